//! What is moved.
//!
//! Owns what a move expects to find. Who moves something means what is there, whatever it
//! is; but who puts a new file in the place of another means the one that it was made
//! from: what nobody in this sandbox saw is not lost that way.

use std::rc::Rc;

use outrigger_sandbox::{ExpectedRevision, TreeOp};

use super::answer::Body;
use super::mounted_tree::MountedTree;
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

/// Something on its way to another name.
struct RenameOp<'a> {
    tree: &'a MountedTree,
    id: u64,
    folder: bool,
    /// Where it is, as a path.
    old: String,
    to: EntryName<'a>,
    /// Where it goes, as a path.
    new: String,
    /// Whether what is there goes.
    replaces: bool,
}

/// Moves what is at a name to another one.
pub(super) async fn rename(
    tree: &Rc<MountedTree>,
    from: EntryName<'_>,
    to: EntryName<'_>,
    flags: u32,
) -> Result<Body, Errno> {
    if flags & !NO_REPLACE != 0 {
        return Err(libc::EINVAL);
    }
    let nodes = &tree.node_cache.nodes;
    let id = nodes.borrow().child(from.0, from.1).ok_or(libc::ESTALE)?;
    let folder = nodes.borrow_mut().get(id)?.is_folder();
    if !folder {
        tree.settle(id, false).await?;
    }
    let revision = nodes.borrow_mut().get(id)?.seen.revision;
    let (old, new) = {
        let nodes = nodes.borrow();
        (nodes.path_of(from.0, from.1)?, nodes.path_of(to.0, to.1)?)
    };
    let replaces = flags & NO_REPLACE == 0;
    RenameOp { tree, id, folder, old, to, new, replaces }.run(revision).await
}

impl RenameOp<'_> {
    /// Moves what is known to be at this revision.
    async fn run(&self, mut revision: u64) -> Result<Body, Errno> {
        let requests = &self.tree.shared.requests;
        let mut target = self.target().await?;
        for _ in 0..limits::RETRIES_MAX {
            let op = TreeOp::Rename {
                from: self.old.clone(),
                revision,
                to: self.new.clone(),
                expected: target.expected,
            };
            match requests.node(op).await {
                Ok(found) => return Ok(self.moved(found)),
                Err(libc::ESTALE | libc::EEXIST) if !self.folder && self.replaces => {
                    let now = requests.stat(self.old.clone()).await?.node.revision;
                    if std::mem::replace(&mut revision, now) != now {
                        continue;
                    }
                    if target.meant {
                        return Err(self.refuse().await);
                    }
                    target = self.target_there().await?;
                }
                Err(errno) => return Err(errno),
            }
        }
        Err(libc::ESTALE)
    }

    /// What is expected at the target.
    async fn target(&self) -> Result<RenameTarget, Errno> {
        let requests = &self.tree.shared.requests;
        let absent = RenameTarget { expected: ExpectedRevision::Absent, meant: false };
        if !self.replaces {
            return Ok(absent);
        }
        if self.folder {
            return match requests.stat(self.new.clone()).await {
                Ok(found) if found.node.folder => {
                    requests.ask(TreeOp::RemoveFolder { path: self.new.clone() }).await?;
                    Ok(absent)
                }
                Ok(_) => Err(libc::ENOTDIR),
                Err(libc::ENOENT) => Ok(absent),
                Err(errno) => Err(errno),
            };
        }
        let target = self.tree.node_cache.nodes.borrow().child(self.to.0, self.to.1);
        if let Some(target) = target
            && let Some(expected) = self.made_from(target)?
        {
            return Ok(RenameTarget { expected, meant: true });
        }
        self.target_there().await
    }

    /// What is at the target now.
    async fn target_there(&self) -> Result<RenameTarget, Errno> {
        let expected = match self.tree.shared.requests.stat(self.new.clone()).await {
            Ok(found) if found.node.folder => return Err(libc::EISDIR),
            Ok(found) => ExpectedRevision::Revision(found.node.revision),
            Err(libc::ENOENT) => ExpectedRevision::Absent,
            Err(errno) => return Err(errno),
        };
        Ok(RenameTarget { expected, meant: false })
    }

    /// The state of a target that a file was made from: what whoever wrote the file read of
    /// the target, or else what this sandbox knew of it by then.
    fn made_from(&self, target: u64) -> Result<Option<ExpectedRevision>, Errno> {
        let mut nodes = self.tree.node_cache.nodes.borrow_mut();
        let written = nodes.get(self.id)?.known().and_then(|file| file.written);
        let Some((pid, tick)) = written else { return Ok(None) };
        let file = nodes.get(target)?.known();
        if file.is_some_and(|file| file.is_new() && !file.commit.running) {
            return Ok(Some(ExpectedRevision::Absent));
        }
        let read = self.tree.reads.borrow().get(pid, target);
        let known = file.and_then(|file| file.opened_until(tick));
        Ok(read.or(known).map(ExpectedRevision::Revision))
    }

    /// Another one wrote the target meanwhile. From now on this sandbox knows of that, so
    /// that who makes the file anew is not refused again.
    async fn refuse(&self) -> Errno {
        if let Ok(found) = self.tree.shared.requests.stat(self.new.clone()).await {
            let tick = self.tree.shared.tick();
            let mut nodes = self.tree.node_cache.nodes.borrow_mut();
            let target = nodes.child(self.to.0, self.to.1);
            let file = target.and_then(|id| nodes.get(id).and_then(Entry::file).ok());
            if let Some(file) = file {
                file.note_opened(found.node.revision, tick);
            }
        }
        libc::ESTALE
    }

    /// Notes that something is somewhere else.
    fn moved(&self, found: NodeReply) -> Body {
        let node = found.node;
        let tick = self.tree.shared.tick();
        let heard = self.tree.shared.heard();
        let mut nodes = self.tree.node_cache.nodes.borrow_mut();
        if let Some(replaced) =
            nodes.child(self.to.0, self.to.1).filter(|replaced| *replaced != self.id)
        {
            nodes.detach(replaced);
        }
        nodes.relocate(self.id, self.to.0, self.to.1);
        let Ok(entry) = nodes.get(self.id) else { return Body::default() };
        let before = entry.seen.revision;
        if entry.is_folder() == node.folder {
            entry.see(found, heard);
        }
        if let Ok(file) = entry.file() {
            file.rename(before, node.revision);
            file.note_opened(node.revision, tick);
            if let Some((pid, _)) = file.written {
                self.tree.reads.borrow_mut().note(pid, self.id, node.revision);
            }
        }
        Body::default()
    }
}
