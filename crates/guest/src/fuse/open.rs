//! Files that are opened, read, written and closed.
//!
//! Owns close-to-open consistency: whoever opens a file asks the tree which revision it is
//! at, and the kernel goes on to use the pages that it has only if they are of that one.

use std::rc::Rc;
use std::time::SystemTime;

use outrigger_sandbox::{ExpectedRevision, Node};

use super::answer::{self, Body, KEEP_CACHE, NO_FLUSH};
use super::file::{File, Pages, Total, WorkingCopy};
use super::header::WRITE_CACHE;
use super::mounted_tree::MountedTree;
use super::nodes::Entry;
use super::open_files::OpenFile;
use super::requests::{Errno, NodeReply, moved};
use crate::limits;

/// How a file is opened, by the flags of open(2).
#[derive(Debug, Clone, Copy)]
struct OpenFlags {
    reads: bool,
    writes: bool,
    cuts: bool,
    appends: bool,
}

impl OpenFlags {
    fn of(flags: u32) -> Self {
        let has = |flag: i32| flags & flag.unsigned_abs() != 0;
        let access = flags & libc::O_ACCMODE.unsigned_abs();
        let writes = access != libc::O_RDONLY.unsigned_abs();
        Self {
            reads: access != libc::O_WRONLY.unsigned_abs(),
            writes,
            cuts: writes && has(libc::O_TRUNC),
            appends: has(libc::O_APPEND),
        }
    }

    fn opened(self, node: u64, epoch: u64) -> OpenFile {
        let Self { writes, appends, .. } = self;
        OpenFile { node, writes, appends, stale: false, epoch, drops: false }
    }
}

/// Now, as a tree gives it.
fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

impl MountedTree {
    /// Sees to it that what is known of a file is as it is now, with its bytes where
    /// those are needed and not at hand.
    async fn current(&self, id: u64, way: OpenFlags) -> Result<(), Errno> {
        for _ in 0..limits::RETRIES_MAX {
            let (path, held) = {
                let mut nodes = self.node_cache.nodes.borrow_mut();
                let entry = nodes.get(id)?;
                if entry.is_folder() {
                    return Err(libc::EISDIR);
                }
                if entry.is_local() {
                    return Ok(());
                }
                let held = entry.file()?.held(way.writes);
                (nodes.path(id)?, held)
            };
            if way.cuts || held.is_some() {
                let found = self.shared.requests.stat(path.clone()).await.map_err(moved)?;
                let mut nodes = self.node_cache.nodes.borrow_mut();
                let heard = self.shared.heard();
                let entry = nodes.get(id)?;
                if entry.is_local() {
                    return Ok(());
                }
                if found.node.folder {
                    return Err(libc::ESTALE);
                }
                entry.see(found, heard);
                let now = entry.seen.revision;
                if way.cuts || (held == Some(now) && entry.file()?.catch_up(now)?) {
                    return Ok(());
                }
            }
            let (found, bytes) = self.shared.requests.fetch(path).await.map_err(moved)?;
            let mut nodes = self.node_cache.nodes.borrow_mut();
            let heard = self.shared.heard();
            let entry = nodes.get(id)?;
            if entry.is_local() {
                return Ok(());
            }
            if entry.see(found, heard) {
                let now = found.node.revision;
                self.keep(&mut nodes, id, now, bytes);
                nodes.get(id)?.file()?.catch_up(now)?;
                return Ok(());
            }
        }
        Err(libc::ESTALE)
    }

    pub(super) async fn open(&self, id: u64, flags: u32, pid: u32) -> Result<Body, Errno> {
        let way = OpenFlags::of(flags);
        self.current(id, way).await?;
        let seen = self.node_cache.nodes.borrow_mut().get(id)?.seen;
        if way.writes && !seen.writable {
            let path = self.node_cache.nodes.borrow().path(id)?;
            self.shared.requests.may_change(path).await?;
        }
        let (handle, keeps) = self.enter_file(id, way, pid)?;
        let keep = if keeps { KEEP_CACHE } else { 0 };
        // Who does not write has nothing that could fail when it closes.
        let flush = if way.writes { 0 } else { NO_FLUSH };
        Ok(answer::opened(Body::default(), handle, keep | flush))
    }

    /// Makes a handle. Gives whether the kernel may use the pages that it has, too.
    fn enter_file(&self, id: u64, way: OpenFlags, pid: u32) -> Result<(u64, bool), Errno> {
        let tick = self.shared.tick();
        let mut nodes = self.node_cache.nodes.borrow_mut();
        let entry = nodes.get(id)?;
        let (seen, detached) = (entry.seen, entry.detached);
        let file = entry.file()?;
        if detached && file.bytes().is_none() {
            return Err(libc::ESTALE);
        }
        if way.writes {
            begin_copy(file, seen, way.cuts, &self.shared.copied)?;
        }
        let changed = file.is_changed();
        let at = if changed { Pages::Copy } else { Pages::Revision(seen.revision) };
        let fits = file.pages() == at;
        file.has_pages(at);
        file.handles += 1;
        file.writers += u32::from(way.writes);
        let base = match &file.copy {
            Some(copy) => revision(copy.base),
            None => Some(seen.revision),
        };
        if let Some(base) = base {
            file.note_opened(base, tick);
            if way.reads && !way.cuts {
                self.reads.borrow_mut().note(pid, id, base);
            }
        }
        let mut opened = way.opened(id, file.epoch);
        opened.drops = way.cuts || !fits;
        let drops_before = fits && file.dropping.is_some();
        let handle = self.hold(opened);
        if opened.drops {
            file.dropping = Some(handle);
        }
        // Pages of a file that is cut are gone.
        Ok((handle, way.cuts || !(opened.drops || drops_before)))
    }

    pub(super) async fn create(
        &self,
        parent: u64,
        name: &str,
        flags: u32,
        pid: u32,
    ) -> Result<Body, Errno> {
        let way = OpenFlags::of(flags);
        let exclusive = flags & libc::O_EXCL.unsigned_abs() != 0;
        let found = if exclusive {
            let path = self.node_cache.nodes.borrow().path_of(parent, name)?;
            self.shared.requests.make_empty(path).await?
        } else {
            let folder = self.node_cache.refresh(parent).await?;
            if !folder.writable {
                let path = self.node_cache.nodes.borrow().path_of(parent, name)?;
                self.shared.requests.may_change(path).await?;
            }
            let node = Node {
                folder: false,
                bytes: 0,
                revision: 0,
                modified_ms: now_ms(),
                writable: true,
                executable: false,
            };
            NodeReply { node, asked: self.shared.requests.moment() }
        };
        let tick = self.shared.tick();
        let mut nodes = self.node_cache.nodes.borrow_mut();
        // What the kernel knows not to be there any more.
        if let Some(old) = nodes.child(parent, name) {
            nodes.detach(old);
        }
        let id = nodes.enter(parent, name, found, self.shared.heard())?;
        let file = nodes.get(id)?.file()?;
        let revision = found.node.revision;
        let base =
            if exclusive { ExpectedRevision::Revision(revision) } else { ExpectedRevision::Absent };
        let mut copy = WorkingCopy::new(base, Rc::default(), &self.shared.copied)?;
        copy.changed = !exclusive;
        file.copy = Some(copy);
        file.has_pages(if exclusive { Pages::Revision(revision) } else { Pages::Copy });
        (file.handles, file.writers) = (1, u32::from(way.writes));
        file.written = Some((pid, tick));
        drop(nodes);
        let handle = self.hold(way.opened(id, 0));
        let body = self.shared.owner.entry(Body::default(), self.node_cache.look(id)?);
        Ok(answer::opened(body, handle, KEEP_CACHE))
    }

    /// What is read of an open file, if it is here.
    pub(super) fn bytes_here(&self, handle: u64) -> Result<Option<Rc<Vec<u8>>>, Errno> {
        let opened = self.opened(handle)?;
        if opened.stale && opened.writes {
            return Err(libc::ESTALE);
        }
        let mut nodes = self.node_cache.nodes.borrow_mut();
        let file = nodes.get(opened.node).and_then(Entry::file);
        Ok(file.ok().and_then(|file| file.bytes().cloned()))
    }

    /// Reads what was let go of, if it is still what the kernel has pages of.
    pub(super) async fn read_later(
        &self,
        handle: u64,
        offset: u64,
        size: u32,
    ) -> Result<Body, Errno> {
        let id = self.opened(handle)?.node;
        let path = self.node_cache.nodes.borrow().path(id)?;
        let (found, bytes) = self.shared.requests.fetch(path).await.map_err(moved)?;
        let mut nodes = self.node_cache.nodes.borrow_mut();
        let heard = self.shared.heard();
        let entry = nodes.get(id)?;
        if !entry.is_local() {
            let newest = entry.see(found, heard);
            let revision = found.node.revision;
            if matches!(entry.file()?.pages(), Pages::Revision(other) if other != revision) {
                return Err(libc::ESTALE);
            }
            if newest {
                self.keep(&mut nodes, id, revision, Rc::clone(&bytes));
            }
        }
        Ok(Body(part(&bytes, offset, size).to_vec()))
    }

    pub(super) fn write(
        &self,
        handle: u64,
        offset: u64,
        flags: u32,
        data: &[u8],
        pid: u32,
    ) -> Result<Body, Errno> {
        let opened = self.opened(handle)?;
        if !opened.writes {
            return Err(libc::EBADF);
        }
        if opened.stale {
            return Err(libc::ESTALE);
        }
        let tick = self.shared.tick();
        let mut nodes = self.node_cache.nodes.borrow_mut();
        let file = nodes.get(opened.node)?.file()?;
        let offset = usize::try_from(offset).map_err(|_| libc::EFBIG)?;
        let copy = file.copy.as_mut().ok_or(libc::ESTALE)?;
        // The kernel adds at the end that it knows of, which may not be the end.
        let at_end = opened.appends && flags & WRITE_CACHE == 0;
        // What it was opened for is not what it would write into.
        if opened.epoch != file.epoch && !at_end {
            return Err(libc::ESTALE);
        }
        let place = if at_end { copy.bytes.len() } else { offset };
        if let Err(errno) = copy.write(place, data, at_end) {
            file.has_pages(Pages::Unknown);
            return Err(errno);
        }
        file.follow();
        if place != offset {
            file.has_pages(Pages::Unknown);
        }
        file.written = Some((pid, tick));
        Ok(Body::default().u32(u32::try_from(data.len()).unwrap_or(0)).u32(0))
    }

    /// A handle is gone.
    pub(super) fn release(self: &Rc<Self>, handle: u64) {
        let Some(opened) = self.files.borrow_mut().remove(handle) else { return };
        let id = opened.node;
        self.dropped(id, handle);
        let commits = {
            let mut nodes = self.node_cache.nodes.borrow_mut();
            let Ok(file) = nodes.get(id).and_then(Entry::file) else { return };
            file.handles = file.handles.saturating_sub(1);
            file.writers = file.writers.saturating_sub(u32::from(opened.writes));
            file.writers == 0 && file.is_changed()
        };
        if !commits {
            return self.drop_unused(id);
        }
        let (tree, shared) = (Rc::clone(self), Rc::clone(&self.shared));
        shared.releasing.set(shared.releasing.get() + 1);
        shared.tasks.begin(async move {
            // Nobody is left to be told of a failure.
            let _ = tree.settle(id, false).await;
            tree.drop_unused(id);
            tree.shared.releasing.set(tree.shared.releasing.get() - 1);
        });
    }

    /// Lets a working copy go that nobody writes any more. What could not be written is lost.
    pub(super) fn drop_unused(&self, id: u64) {
        let mut nodes = self.node_cache.nodes.borrow_mut();
        let Ok(file) = nodes.get(id).and_then(Entry::file) else { return };
        if file.writers == 0 && !file.commit.running {
            let unchanged = file.copy.as_ref().filter(|copy| !copy.changed);
            let kept =
                unchanged.and_then(|copy| Some((revision(copy.base)?, Rc::clone(&copy.bytes))));
            if file.is_changed() {
                file.drop_copy();
            }
            file.copy = None;
            if let Some((revision, bytes)) = kept {
                self.keep(&mut nodes, id, revision, bytes);
            }
        }
        nodes.tidy(id);
    }
}

/// Has a file be written to: from what is known of it, or from nothing if it is cut.
fn begin_copy(file: &mut File, seen: Node, cuts: bool, copied: &Total) -> Result<(), Errno> {
    let base = ExpectedRevision::Revision(seen.revision);
    let behind = file.copy.as_ref().is_none_or(|copy| !copy.changed && copy.base != base);
    if behind && cuts {
        let mut copy = WorkingCopy::new(base, Rc::default(), copied)?;
        if seen.bytes > 0 {
            (copy.changed, copy.appended) = (true, None);
        }
        file.copy = Some(copy);
    } else if behind {
        let contents = file.contents.as_ref().filter(|c| c.revision == seen.revision);
        let bytes = Rc::clone(&contents.ok_or(libc::ESTALE)?.bytes);
        match &mut file.copy {
            Some(copy) => copy.renew(base, bytes)?,
            None => file.copy = Some(WorkingCopy::new(base, bytes, copied)?),
        }
    } else if cuts && let Some(copy) = &mut file.copy {
        copy.resize(0)?;
    }
    Ok(())
}

fn revision(base: ExpectedRevision) -> Option<u64> {
    match base {
        ExpectedRevision::Revision(revision) => Some(revision),
        ExpectedRevision::Absent => None,
    }
}

/// What is at a place, as far as there is anything.
pub(super) fn part(bytes: &[u8], offset: u64, size: u32) -> &[u8] {
    let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let to = from.saturating_add(size as usize).min(bytes.len());
    &bytes[from..to]
}
