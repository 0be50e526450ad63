//! What the kernel knows by number.
//!
//! Owns the numbers, where each stands, and for how long: the kernel counts its uses of a
//! number and tells when it forgets them. A number stands for a path, so that what others
//! write at that path is seen; one whose file was removed or replaced here stands for
//! what is open of it, and for no path.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Instant;

use outrigger_sandbox::{Node, limits as door};

use super::file::{File, Pages};
use super::requests::{AskTime, Errno, NodeReply};
use crate::limits;

/// The number of what is mounted.
pub(super) const ROOT: u64 = 1;

/// What a number stands for.
#[derive(Debug)]
pub(super) struct Entry {
    parent: u64,
    name: Rc<str>,
    /// Whether it stands for a path no longer.
    pub(super) detached: bool,
    /// Uses that the kernel has of it.
    lookups: u64,
    /// What was last heard of it, when that was asked, and after how many messages of hosts
    /// it was known.
    pub(super) seen: Node,
    asked: Option<AskTime>,
    heard: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Folder(BTreeMap<Rc<str>, u64>),
    File(Option<Box<File>>),
}

/// All nodes of a mount.
#[derive(Debug)]
pub(super) struct Nodes {
    root: String,
    all: HashMap<u64, Entry>,
    next: u64,
}

/// A folder of which nothing else is known.
const FOLDER: Node =
    Node { folder: true, bytes: 0, revision: 0, modified_ms: 0, writable: true, executable: false };

impl Entry {
    /// Its file, made up if nothing was known of it.
    pub(super) fn file(&mut self) -> Result<&mut File, Errno> {
        match &mut self.kind {
            Kind::Folder(_) => Err(libc::EISDIR),
            Kind::File(file) => Ok(file.get_or_insert_default()),
        }
    }

    /// What is known of its file, if anything is.
    pub(super) fn known(&self) -> Option<&File> {
        match &self.kind {
            Kind::Folder(_) => None,
            Kind::File(file) => file.as_deref(),
        }
    }

    pub(super) fn is_folder(&self) -> bool {
        matches!(self.kind, Kind::Folder(_))
    }

    /// Whether nobody here can know that it is otherwise now.
    pub(super) fn is_fresh(&self, heard: u64) -> bool {
        self.asked.is_some_and(|asked| asked.is_fresh(heard))
    }

    /// The kernel has one more use of it.
    pub(super) fn lookups_add(&mut self) {
        self.lookups += 1;
    }

    /// Notes what was heard of it. `false`: something newer is known. Answers overtake each
    /// other, and of two that were on their way at once the larger revision is the later.
    pub(super) fn see(&mut self, found: NodeReply, heard: u64) -> bool {
        let NodeReply { node, asked } = found;
        if asked.is_before(self.heard) && node.revision < self.seen.revision {
            return false;
        }
        (self.seen, self.asked, self.heard) = (node, Some(asked), heard);
        true
    }

    /// Whether something happened to it here that nobody outside knows of.
    pub(super) fn is_local(&self) -> bool {
        self.detached || self.known().is_some_and(File::is_changed)
    }

    /// Its attributes are told to the kernel. Whether it may use them once more without
    /// asking: it is a file that is open here to be read and no more, of which the kernel has
    /// pages of what nobody here can know to be otherwise now.
    ///
    /// And it was told so for a while. Attributes that are taken back while they are on their
    /// way are dropped by the kernel, which goes on with the length that it was told before.
    pub(super) fn tell(&mut self, now: Instant, heard: u64) -> bool {
        let pages = Pages::Revision(self.seen.revision);
        let is_known = !self.is_local() && self.is_fresh(heard);
        let Kind::File(Some(file)) = &mut self.kind else { return false };
        let told = file.tell(now).as_millis() >= u128::from(limits::LENT_AFTER_MS);
        told && is_known && file.handles > 0 && file.writers == 0 && file.pages() == pages
    }

    /// As it looks here and now.
    pub(super) fn look(&self) -> Node {
        match self.known().and_then(File::changed) {
            Some(bytes) => Node { bytes: bytes as u64, ..self.seen },
            None => self.seen,
        }
    }

    /// Whether it is a file that was made here, and that is nowhere else yet.
    fn is_new(&self) -> bool {
        self.known().is_some_and(File::is_new)
    }
}

impl Nodes {
    pub(super) fn new(root: String) -> Self {
        let entry = Entry {
            parent: 0,
            name: Rc::from(""),
            detached: false,
            lookups: 1,
            seen: FOLDER,
            asked: None,
            heard: 0,
            kind: Kind::Folder(BTreeMap::new()),
        };
        Self { root, all: HashMap::from([(ROOT, entry)]), next: ROOT }
    }

    pub(super) fn get(&mut self, id: u64) -> Result<&mut Entry, Errno> {
        self.all.get_mut(&id).ok_or(libc::ESTALE)
    }

    /// Where it is.
    pub(super) fn path(&self, id: u64) -> Result<String, Errno> {
        let mut names = Vec::new();
        let mut at = id;
        while at != ROOT {
            let entry = self.all.get(&at).filter(|entry| !entry.detached).ok_or(libc::ESTALE)?;
            names.push(Rc::clone(&entry.name));
            at = entry.parent;
        }
        let mut path = self.root.clone();
        for name in names.iter().rev() {
            path.push('/');
            path.push_str(name);
        }
        if path.len() > door::PATH_BYTES_MAX { Err(libc::ENAMETOOLONG) } else { Ok(path) }
    }

    /// Where a name in a folder is.
    pub(super) fn path_of(&self, parent: u64, name: &str) -> Result<String, Errno> {
        let mut path = self.path(parent)?;
        path.push('/');
        path.push_str(name);
        if path.len() > door::PATH_BYTES_MAX { Err(libc::ENAMETOOLONG) } else { Ok(path) }
    }

    /// The number of a name, if it has one.
    pub(super) fn child(&self, parent: u64, name: &str) -> Option<u64> {
        match &self.all.get(&parent)?.kind {
            Kind::Folder(children) => children.get(name).copied(),
            Kind::File(_) => None,
        }
    }

    /// Files in a folder that were made here and are nowhere else yet.
    pub(super) fn new_in(&self, parent: u64) -> Vec<(Rc<str>, u64)> {
        let Some(Entry { kind: Kind::Folder(children), .. }) = self.all.get(&parent) else {
            return Vec::new();
        };
        let is_new = |id: &u64| self.all.get(id).is_some_and(Entry::is_new);
        let new = children.iter().filter(|(_, id)| is_new(id));
        new.map(|(name, id)| (Rc::clone(name), *id)).collect()
    }

    /// The number of what was just seen at a name, one more use of which the kernel has.
    /// What stood there and was of another kind stands for no path any more.
    pub(super) fn enter(
        &mut self,
        parent: u64,
        name: &str,
        found: NodeReply,
        heard: u64,
    ) -> Result<u64, Errno> {
        let node = found.node;
        if let Some(id) = self.child(parent, name) {
            let entry = self.get(id)?;
            if entry.is_folder() == node.folder {
                entry.lookups += 1;
                entry.see(found, heard);
                return Ok(id);
            }
            self.detach(id);
        }
        if self.all.len() >= limits::NODES_MAX {
            return Err(libc::ENFILE);
        }
        let name: Rc<str> = Rc::from(name);
        match self.all.get_mut(&parent) {
            Some(Entry { kind: Kind::Folder(children), .. }) => {
                children.insert(Rc::clone(&name), self.next + 1);
            }
            _ => return Err(libc::ESTALE),
        }
        self.next += 1;
        let kind = if node.folder { Kind::Folder(BTreeMap::new()) } else { Kind::File(None) };
        let (detached, lookups, asked) = (false, 1, Some(found.asked));
        let entry = Entry { parent, name, detached, lookups, seen: node, asked, heard, kind };
        self.all.insert(self.next, entry);
        Ok(self.next)
    }

    /// Whether there is room for what the kernel did not ask for by name.
    pub(super) fn has_room(&self) -> bool {
        self.all.len() < limits::NODES_MAX / 2
    }

    /// It stands for no path any more.
    pub(super) fn detach(&mut self, id: u64) {
        let Some(entry) = self.all.get_mut(&id) else { return };
        if entry.detached || id == ROOT {
            return;
        }
        entry.detached = true;
        let (parent, name) = (entry.parent, Rc::clone(&entry.name));
        if let Some(Entry { kind: Kind::Folder(children), .. }) = self.all.get_mut(&parent)
            && children.get(&name) == Some(&id)
        {
            children.remove(&name);
        }
        self.tidy(id);
        self.tidy(parent);
    }

    /// Puts it somewhere else, with all that is in it.
    pub(super) fn relocate(&mut self, id: u64, parent: u64, name: &str) {
        let name: Rc<str> = Rc::from(name);
        let Some(entry) = self.all.get_mut(&id) else { return };
        let before = (entry.parent, std::mem::replace(&mut entry.name, Rc::clone(&name)));
        entry.parent = parent;
        if let Some(Entry { kind: Kind::Folder(children), .. }) = self.all.get_mut(&before.0)
            && children.get(&before.1) == Some(&id)
        {
            children.remove(&before.1);
        }
        if let Some(Entry { kind: Kind::Folder(children), .. }) = self.all.get_mut(&parent) {
            children.insert(name, id);
        } else {
            self.detach(id);
        }
        self.tidy(before.0);
    }

    /// The kernel has so many uses of it less.
    pub(super) fn forget(&mut self, id: u64, count: u64) {
        if let Some(entry) = self.all.get_mut(&id) {
            entry.lookups = entry.lookups.saturating_sub(count);
            self.tidy(id);
        }
    }

    /// Lets it go if nobody has a use for it, and those above it in turn.
    pub(super) fn tidy(&mut self, id: u64) {
        let mut at = id;
        while at != ROOT
            && let Some(entry) = self.all.get(&at)
        {
            let used = match &entry.kind {
                Kind::Folder(children) => !children.is_empty(),
                Kind::File(file) => file.as_ref().is_some_and(|file| file.is_used()),
            };
            if entry.lookups > 0 || used {
                return;
            }
            let (parent, name) = (entry.parent, Rc::clone(&entry.name));
            self.all.remove(&at);
            if let Some(Entry { kind: Kind::Folder(children), .. }) = self.all.get_mut(&parent)
                && children.get(&name) == Some(&at)
            {
                children.remove(&name);
            }
            at = parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fuse::requests::HostRequests;

    /// Asked late enough to be fresh however slow this machine is.
    fn found(requests: &HostRequests, revision: u64) -> NodeReply {
        let mut asked = requests.moment();
        asked.at += Duration::from_secs(3_600);
        NodeReply { node: Node { folder: false, revision, ..FOLDER }, asked }
    }

    #[test]
    fn of_answers_that_overtook_each_other_the_newest_revision_stays() {
        let (requests, mut nodes) = (HostRequests::default(), Nodes::new("/memory".to_owned()));
        let (older, newer) = (found(&requests, 1), found(&requests, 2));
        requests.hear();
        let id = nodes.enter(ROOT, "f", newer, requests.heard()).unwrap();
        let entry = nodes.get(id).unwrap();
        assert!(entry.is_fresh(requests.heard()));
        requests.hear();
        assert!(!entry.is_fresh(requests.heard()));
        assert!(!entry.see(older, requests.heard()));
        assert_eq!(entry.seen.revision, 2);
        assert!(!entry.is_fresh(requests.heard()), "an answer to an older question is no news");
        // Asked after the last answer, a smaller one is what there is now.
        let restored = found(&requests, 1);
        requests.hear();
        assert!(entry.see(restored, requests.heard()));
        assert_eq!((entry.seen.revision, entry.is_fresh(requests.heard())), (1, true));
    }

    #[test]
    fn attributes_are_lent_of_what_is_read_and_was_told_for_a_while() {
        let (requests, mut nodes) = (HostRequests::default(), Nodes::new("/memory".to_owned()));
        let asked = found(&requests, 1);
        requests.hear();
        let id = nodes.enter(ROOT, "f", asked, requests.heard()).unwrap();
        let entry = nodes.get(id).unwrap();
        let open = |entry: &mut Entry, revision| {
            let file = entry.file().unwrap();
            file.has_pages(Pages::Revision(revision));
            file.handles = 1;
        };
        let (now, while_later) = (Instant::now(), Duration::from_millis(limits::LENT_AFTER_MS));
        assert!(!entry.tell(now, 1), "not open");
        open(entry, 1);
        assert!(!entry.tell(now, 1), "told for the first time");
        assert!(!entry.tell(now + while_later / 2, 1), "another may still be on its way");
        assert!(entry.tell(now + while_later, 1));
        assert!(!entry.tell(now + while_later, 2), "something was heard since it was asked for");
        entry.file().unwrap().writers = 1;
        assert!(!entry.tell(now + while_later, 1), "open to be written");
        entry.file().unwrap().writers = 0;
        open(entry, 2);
        assert!(!entry.tell(now + while_later, 1), "pages of another revision");
        open(entry, 1);
        assert!(!entry.tell(now + while_later, 1), "as long as before, but newly told");
        assert!(entry.tell(now + while_later * 2, 1));
    }
}
