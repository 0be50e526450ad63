//! What is made, removed and moved.
//!
//! Owns what a change expects to find. Who removes or moves something means what is there,
//! whatever it is; but who puts a new file in the place of another means the one that it
//! was made from: what nobody in this sandbox saw is not lost that way.

use std::rc::Rc;

use outrigger_sandbox::{ExpectedRevision, TreeOp, TreeReply};

use super::answer::Body;
use super::file::File;
use super::mount::Mount;
use super::nodes::Entry;
use super::requests::{Errno, NodeReply};
use crate::limits;

/// `RENAME_NOREPLACE` of renameat2(2).
const NO_REPLACE: u32 = 1;

/// Where something is: a folder, and a name in it.
type EntryName<'a> = (u64, &'a str);

/// What a move expects at its target.
#[derive(Debug, Clone, Copy)]
struct RenameTarget {
    expected: ExpectedRevision,
    /// Whether it is what the moved file was made from, and not just what is there.
    meant: bool,
}

impl Mount {
    pub(super) async fn make_node(
        &self,
        parent: u64,
        name: &str,
        mode: u32,
    ) -> Result<Body, Errno> {
        if !matches!(mode & libc::S_IFMT, 0 | libc::S_IFREG) {
            return Err(libc::EPERM);
        }
        let found = self.make_empty(parent, name).await?;
        self.made(parent, name, found)
    }

    pub(super) async fn make_folder(&self, parent: u64, name: &str) -> Result<Body, Errno> {
        let path = self.nodes.borrow().path_of(parent, name)?;
        let found = self.found(TreeOp::MakeFolder { path }).await?;
        if found.node.folder { self.made(parent, name, found) } else { Err(libc::EIO) }
    }

    /// Answers with what was just made, where nothing was.
    fn made(&self, parent: u64, name: &str, found: NodeReply) -> Result<Body, Errno> {
        let mut nodes = self.nodes.borrow_mut();
        if let Some(old) = nodes.child(parent, name) {
            nodes.detach(old);
        }
        drop(nodes);
        self.entered(parent, name, found)
    }

    pub(super) async fn unlink(self: &Rc<Self>, parent: u64, name: &str) -> Result<Body, Errno> {
        let path = self.nodes.borrow().path_of(parent, name)?;
        let id = self.nodes.borrow().child(parent, name);
        if let Some(id) = id {
            self.await_commit(id).await;
            let mut nodes = self.nodes.borrow_mut();
            if nodes.get(id)?.known().is_some_and(File::is_new) {
                nodes.detach(id);
                return Ok(Body::default());
            }
        }
        let mut known = self.fresh_revision(id);
        let mut done = Err(libc::ESTALE);
        for _ in 0..limits::RETRIES_MAX {
            let expected = match known.take() {
                Some(revision) => revision,
                None => match self.stat(path.clone()).await?.node {
                    node if node.folder => return Err(libc::EISDIR),
                    node => node.revision,
                },
            };
            let op = TreeOp::Remove { path: path.clone(), expected };
            done = self.shared.requests.ask(op).await;
            if !matches!(done, Err(libc::ESTALE)) {
                break;
            }
        }
        self.gone(done, id)
    }

    pub(super) async fn remove_folder(&self, parent: u64, name: &str) -> Result<Body, Errno> {
        let path = self.nodes.borrow().path_of(parent, name)?;
        let id = self.nodes.borrow().child(parent, name);
        if id.is_some_and(|id| !self.nodes.borrow().new_in(id).is_empty()) {
            return Err(libc::ENOTEMPTY);
        }
        let done = self.shared.requests.ask(TreeOp::RemoveFolder { path }).await;
        self.gone(done, id)
    }

    /// Notes that something is not there any more.
    fn gone(&self, done: Result<TreeReply, Errno>, id: Option<u64>) -> Result<Body, Errno> {
        if done? != TreeReply::Done {
            return Err(libc::EIO);
        }
        id.into_iter().for_each(|id| self.nodes.borrow_mut().detach(id));
        Ok(Body::default())
    }

    /// Waits for the end of what is being written, however it ends.
    async fn await_commit(self: &Rc<Self>, id: u64) {
        let runs = {
            let mut nodes = self.nodes.borrow_mut();
            nodes.get(id).is_ok_and(|entry| entry.known().is_some_and(|file| file.commit.running))
        };
        if runs {
            let _ = self.settle(id, true).await;
        }
    }

    /// The revision of a file, if nobody can know another one yet.
    fn fresh_revision(&self, id: Option<u64>) -> Option<u64> {
        let mut nodes = self.nodes.borrow_mut();
        let entry = nodes.get(id?).ok()?;
        let fresh = entry.is_fresh(self.heard()) && !entry.is_folder();
        fresh.then_some(entry.seen.revision)
    }

    pub(super) async fn rename(
        self: &Rc<Self>,
        from: EntryName<'_>,
        to: EntryName<'_>,
        flags: u32,
    ) -> Result<Body, Errno> {
        if flags & !NO_REPLACE != 0 {
            return Err(libc::EINVAL);
        }
        let id = self.nodes.borrow().child(from.0, from.1).ok_or(libc::ESTALE)?;
        let folder = self.nodes.borrow_mut().get(id)?.is_folder();
        if !folder {
            self.settle(id, false).await?;
        }
        let mut revision = self.nodes.borrow_mut().get(id)?.seen.revision;
        let (old, new) = {
            let nodes = self.nodes.borrow();
            (nodes.path_of(from.0, from.1)?, nodes.path_of(to.0, to.1)?)
        };
        let mut wanted = self.wanted(id, to, flags).await?;
        for _ in 0..limits::RETRIES_MAX {
            let op = TreeOp::Rename {
                from: old.clone(),
                revision,
                to: new.clone(),
                expected: wanted.expected,
            };
            match self.found(op).await {
                Ok(found) => return self.moved(id, to, found),
                Err(libc::ESTALE | libc::EEXIST) if !folder && flags & NO_REPLACE == 0 => {
                    let now = self.stat(old.clone()).await?.node.revision;
                    if std::mem::replace(&mut revision, now) != now {
                        continue;
                    }
                    if wanted.meant {
                        return Err(self.refuse_rename(to, &new).await);
                    }
                    wanted = self.there(&new).await?;
                }
                Err(errno) => return Err(errno),
            }
        }
        Err(libc::ESTALE)
    }

    /// What a move expects at its target.
    async fn wanted(&self, id: u64, to: EntryName<'_>, flags: u32) -> Result<RenameTarget, Errno> {
        let absent = RenameTarget { expected: ExpectedRevision::Absent, meant: false };
        if flags & NO_REPLACE != 0 {
            return Ok(absent);
        }
        let path = self.nodes.borrow().path_of(to.0, to.1)?;
        let target = self.nodes.borrow().child(to.0, to.1);
        let folder = self.nodes.borrow_mut().get(id)?.is_folder();
        if folder {
            return match self.stat(path.clone()).await {
                Ok(found) if found.node.folder => {
                    self.shared.requests.ask(TreeOp::RemoveFolder { path }).await?;
                    Ok(absent)
                }
                Ok(_) => Err(libc::ENOTDIR),
                Err(libc::ENOENT) => Ok(absent),
                Err(errno) => Err(errno),
            };
        }
        if let Some(target) = target
            && let Some(expected) = self.made_from(id, target)?
        {
            return Ok(RenameTarget { expected, meant: true });
        }
        self.there(&path).await
    }

    /// What is at a path now.
    async fn there(&self, path: &str) -> Result<RenameTarget, Errno> {
        let expected = match self.stat(path.to_owned()).await {
            Ok(found) if found.node.folder => return Err(libc::EISDIR),
            Ok(found) => ExpectedRevision::Revision(found.node.revision),
            Err(libc::ENOENT) => ExpectedRevision::Absent,
            Err(errno) => return Err(errno),
        };
        Ok(RenameTarget { expected, meant: false })
    }

    /// The state of a target that a file was made from: what whoever wrote the file read of
    /// the target, or else what this sandbox knew of it by then.
    fn made_from(&self, id: u64, target: u64) -> Result<Option<ExpectedRevision>, Errno> {
        let mut nodes = self.nodes.borrow_mut();
        let written = nodes.get(id)?.known().and_then(|file| file.written);
        let Some((pid, tick)) = written else { return Ok(None) };
        let file = nodes.get(target)?.known();
        if file.is_some_and(|file| file.is_new() && !file.commit.running) {
            return Ok(Some(ExpectedRevision::Absent));
        }
        let read = self.reads.borrow().get(pid, target);
        let known = file.and_then(|file| file.opened_until(tick));
        Ok(read.or(known).map(ExpectedRevision::Revision))
    }

    /// Another one wrote the target meanwhile. From now on this sandbox knows of that, so
    /// that who makes the file anew is not refused again.
    async fn refuse_rename(&self, to: EntryName<'_>, path: &str) -> Errno {
        if let Ok(found) = self.stat(path.to_owned()).await {
            let tick = self.tick();
            let mut nodes = self.nodes.borrow_mut();
            let target = nodes.child(to.0, to.1);
            let file = target.and_then(|id| nodes.get(id).and_then(Entry::file).ok());
            if let Some(file) = file {
                file.note_opened(found.node.revision, tick);
            }
        }
        libc::ESTALE
    }

    /// Notes that something is somewhere else.
    fn moved(&self, id: u64, to: EntryName<'_>, found: NodeReply) -> Result<Body, Errno> {
        let node = found.node;
        let tick = self.tick();
        let heard = self.heard();
        let mut nodes = self.nodes.borrow_mut();
        if let Some(replaced) = nodes.child(to.0, to.1).filter(|replaced| *replaced != id) {
            nodes.detach(replaced);
        }
        nodes.relocate(id, to.0, to.1);
        let Ok(entry) = nodes.get(id) else { return Ok(Body::default()) };
        let before = entry.seen.revision;
        if entry.is_folder() == node.folder {
            entry.see(found, heard);
        }
        if let Ok(file) = entry.file() {
            file.rename(before, node.revision);
            file.note_opened(node.revision, tick);
            if let Some((pid, _)) = file.written {
                self.reads.borrow_mut().note(pid, id, node.revision);
            }
        }
        Ok(Body::default())
    }
}
