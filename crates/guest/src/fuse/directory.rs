//! Folders that are listed.
//!
//! Owns the pages of an open folder: it is read page by page as it is when each is asked
//! for, and a place in it stays what it was for as long as the folder is open.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use outrigger_sandbox::{TreeEntry, TreeOp, TreeReply, limits as door};

use super::answer::{self, Body, NodeAttr};
use super::node_cache::NodeCache;
use super::requests::{AskTime, Errno, NodeReply, moved};
use crate::limits;

/// Places in a folder: itself, the one above, and then each entry of each page.
const DOTS: u64 = 2;
/// Bits of a place that say which entry of its page it is.
const ENTRY_BITS: u32 = 12;
/// The page after all others: what is in this sandbox alone.
const LOCAL: u64 = 1 << 40;
/// The number of what has none here, as the kernel's own servers give it.
const UNKNOWN: u64 = 0xffff_ffff;

fn place(page: u64, entry: u64) -> u64 {
    DOTS + (page << ENTRY_BITS | entry)
}

/// Whether a listing has names alone that can be in a folder.
fn is_plain(entry: &TreeEntry) -> bool {
    let name = entry.name.as_str();
    !matches!(name, "" | "." | "..")
        && name.len() <= door::TREE_NAME_BYTES_MAX
        && !name.contains(['/', '\0'])
}

/// What goes into one answer.
struct Listing {
    body: Body,
    room: usize,
    plus: bool,
}

impl Listing {
    fn has_room(&self, name: &[u8]) -> bool {
        let entry = if self.plus { 128 } else { 0 };
        self.body.0.len() + entry + answer::dirent_bytes(name) <= self.room
    }

    /// Adds a name; `entry` has the kernel know what it stands for.
    fn add(&mut self, id: u64, at: u64, name: &[u8], folder: bool, entry: Option<Body>) {
        let body = std::mem::take(&mut self.body);
        let body = match (self.plus, entry) {
            (false, _) => body,
            (true, None) => answer::no_entry(body),
            (true, Some(entry)) => {
                let mut body = body;
                body.0.extend(entry.0);
                body
            }
        };
        self.body = answer::dirent(body, id, at, name, folder);
    }
}

/// An open folder.
#[derive(Debug)]
struct OpenDirectory {
    node: u64,
    /// After which name each page begins, as far as they are cache.
    begins: Vec<Option<String>>,
    /// The page that was read last.
    page: Option<Page>,
    /// Whether it was read yet since it was asked for.
    used: bool,
}

/// A page of an open folder.
#[derive(Debug, Clone)]
struct Page {
    number: u64,
    entries: Rc<Vec<TreeEntry>>,
    more: bool,
    asked: AskTime,
}

/// Open folders by the numbers that the kernel knows them by.
#[derive(Debug, Default)]
pub(super) struct OpenDirectories(RefCell<HashMap<u64, OpenDirectory>>);

impl OpenDirectories {
    /// Opens a folder, with its first page.
    pub(super) async fn open(&self, cache: &NodeCache, id: u64) -> Result<Body, Errno> {
        let page = fetch_page(cache, id, 0, None).await.map_err(moved)?;
        let folder = OpenDirectory { node: id, begins: vec![None], page: Some(page), used: false };
        let handle = cache.shared.next_handle();
        self.0.borrow_mut().insert(handle, folder);
        Ok(answer::opened(Body::default(), handle, 0))
    }

    /// A page of an open folder. `None`: there is none.
    async fn page(
        &self,
        cache: &NodeCache,
        handle: u64,
        number: u64,
    ) -> Result<Option<(u64, Page)>, Errno> {
        let (id, after) = {
            let mut open = self.0.borrow_mut();
            let Some(folder) = open.get_mut(&handle) else {
                return Err(libc::EBADF);
            };
            let id = folder.node;
            if let Some(page) = folder.page.as_ref().filter(|page| page.number == number) {
                folder.used = true;
                return Ok(Some((id, page.clone())));
            }
            let begins = usize::try_from(number).ok().and_then(|n| folder.begins.get(n));
            match begins {
                Some(after) => (id, after.clone()),
                None => return Ok(None),
            }
        };
        let page = fetch_page(cache, id, number, after).await?;
        if let Some(folder) = self.0.borrow_mut().get_mut(&handle) {
            folder.used = true;
            folder.page = Some(page.clone());
        }
        Ok(Some((id, page)))
    }

    /// Begins again from the start, or goes on from it.
    fn rewind(&self, handle: u64) -> Result<u64, Errno> {
        let mut open = self.0.borrow_mut();
        let Some(folder) = open.get_mut(&handle) else {
            return Err(libc::EBADF);
        };
        if folder.used {
            (folder.page, folder.begins) = (None, vec![None]);
        }
        Ok(folder.node)
    }

    /// Entries from a place on, as many as there is room for in `size` bytes. `plus`: each
    /// with what the name stands for.
    pub(super) async fn read(
        &self,
        cache: &NodeCache,
        handle: u64,
        offset: u64,
        size: usize,
        plus: bool,
    ) -> Result<Body, Errno> {
        let mut listing =
            Listing { body: Body::default(), room: size.min(limits::LISTING_BYTES_MAX), plus };
        let mut at = offset;
        if at == 0 {
            let id = self.rewind(handle)?;
            listing.add(id, 1, b".", true, None);
            at = 1;
        }
        if at == 1 {
            listing.add(UNKNOWN, DOTS, b"..", true, None);
            at = DOTS;
        }
        loop {
            let (number, entry) =
                ((at - DOTS) >> ENTRY_BITS, (at - DOTS) & ((1 << ENTRY_BITS) - 1));
            if number >= LOCAL {
                let id = self.0.borrow().get(&handle).ok_or(libc::EBADF)?.node;
                list_local(cache, id, entry, &mut listing);
                return Ok(listing.body);
            }
            let Some((id, page)) = self.page(cache, handle, number).await? else {
                return Ok(listing.body);
            };
            if !list_page(cache, id, &page, entry, &mut listing) {
                return Ok(listing.body);
            }
            at = place(if page.more { number + 1 } else { LOCAL }, 0);
            if page.more {
                self.note_begin(handle, &page);
            }
        }
    }

    /// The kernel has no more use of a number.
    pub(super) fn close(&self, handle: u64) {
        self.0.borrow_mut().remove(&handle);
    }

    fn note_begin(&self, handle: u64, page: &Page) {
        if let Some(folder) = self.0.borrow_mut().get_mut(&handle)
            && folder.begins.len() as u64 == page.number + 1
        {
            folder.begins.push(page.entries.last().map(|entry| entry.name.clone()));
        }
    }
}

/// Asks for a page of a folder, which begins after a name.
async fn fetch_page(
    cache: &NodeCache,
    id: u64,
    number: u64,
    after: Option<String>,
) -> Result<Page, Errno> {
    let path = cache.nodes.borrow().path(id)?;
    let asked = cache.shared.requests.moment();
    match cache.shared.requests.ask(TreeOp::List { path, after }).await? {
        TreeReply::Listed { entries, more }
            if entries.len() <= door::TREE_PAGE_ENTRIES_MAX
                && !(entries.is_empty() && more)
                && entries.iter().all(is_plain) =>
        {
            Ok(Page { number, entries: Rc::new(entries), more, asked })
        }
        _ => Err(libc::EIO),
    }
}

/// Adds entries of a page. `false`: there is no room for all of them.
fn list_page(cache: &NodeCache, id: u64, page: &Page, from: u64, listing: &mut Listing) -> bool {
    let heard = cache.shared.heard();
    let mut nodes = cache.nodes.borrow_mut();
    for (number, TreeEntry { name, node }) in (0_u64..).zip(page.entries.iter()) {
        if number < from {
            continue;
        }
        if !listing.has_room(name.as_bytes()) {
            return false;
        }
        let mut entry = None;
        let mut listed_as = nodes.child(id, name).unwrap_or(UNKNOWN);
        if listing.plus
            && nodes.has_room()
            && let Ok(child) =
                nodes.enter(id, name, NodeReply { node: *node, asked: page.asked }, heard)
            && let Ok(seen) = nodes.get(child)
        {
            let look = NodeAttr { id: child, node: seen.look(), links: 1 };
            entry = Some(cache.shared.owner.entry(Body::default(), look));
            listed_as = child;
        }
        let next = match number + 1 < page.entries.len() as u64 {
            true => place(page.number, number + 1),
            false if page.more => place(page.number + 1, 0),
            false => place(LOCAL, 0),
        };
        listing.add(listed_as, next, name.as_bytes(), node.folder, entry);
    }
    true
}

/// Adds what was made in this sandbox and is nowhere else yet.
fn list_local(cache: &NodeCache, id: u64, from: u64, listing: &mut Listing) {
    let new = cache.nodes.borrow().new_in(id);
    for (number, (name, child)) in (0_u64..).zip(new) {
        if number < from {
            continue;
        }
        if !listing.has_room(name.as_bytes()) {
            return;
        }
        listing.add(child, place(LOCAL, number + 1), name.as_bytes(), false, None);
    }
}
