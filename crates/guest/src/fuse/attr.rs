//! What a name stands for, and what it looks like.
//!
//! Owns that nothing is told of a path that was not asked for just then, but for what
//! nobody in the sandbox can know to be otherwise.

use std::rc::Rc;
use std::time::Instant;

use outrigger_sandbox::{ExpectedRevision, Node};

use super::answer::{self, Body};
use super::file::WorkingCopy;
use super::header::{AttrChange, SET_GID, SET_SIZE, SET_UID};
use super::mount::Mount;
use super::nodes::ROOT;
use super::requests::{Errno, NodeReply, moved};
use crate::limits;

impl Mount {
    pub(super) async fn lookup(&self, parent: u64, name: &str) -> Result<Body, Errno> {
        let path = {
            let mut nodes = self.nodes.borrow_mut();
            let heard = self.heard();
            if let Some(id) = nodes.child(parent, name) {
                let entry = nodes.get(id)?;
                if entry.is_local() || entry.is_fresh(heard) {
                    entry.lookups_add();
                    drop(nodes);
                    return Ok(self.shared.owner.entry(Body::default(), self.look(id)?));
                }
            }
            nodes.path_of(parent, name)?
        };
        let found = self.stat(path).await?;
        self.entered(parent, name, found)
    }

    /// Answers with what was just seen at a name.
    pub(super) fn entered(&self, parent: u64, name: &str, found: NodeReply) -> Result<Body, Errno> {
        let id = self.nodes.borrow_mut().enter(parent, name, found, self.heard())?;
        Ok(self.shared.owner.entry(Body::default(), self.look(id)?))
    }

    /// Sees to it that what is known of a node is as it is now.
    pub(super) async fn refresh(&self, id: u64) -> Result<Node, Errno> {
        let path = {
            let mut nodes = self.nodes.borrow_mut();
            let heard = self.heard();
            let entry = nodes.get(id)?;
            if entry.is_local() || entry.is_fresh(heard) {
                return Ok(entry.look());
            }
            nodes.path(id)?
        };
        let seen = self.stat(path).await;
        let mut nodes = self.nodes.borrow_mut();
        let entry = nodes.get(id)?;
        if entry.is_local() {
            return Ok(entry.look());
        }
        match seen {
            Ok(found) if found.node.folder == entry.is_folder() => {
                entry.see(found, self.heard());
                Ok(entry.look())
            }
            // The name stands for something else now: it is looked up again.
            Ok(_) => Err(libc::ESTALE),
            Err(libc::ENOENT | libc::ENOTDIR) if id != ROOT => Err(libc::ESTALE),
            Err(errno) => Err(errno),
        }
    }

    pub(super) async fn attributes(&self, id: u64) -> Result<Body, Errno> {
        self.refresh(id).await?;
        let lent = self.lend(id);
        Ok(self.shared.owner.attributes(self.look(id)?, lent))
    }

    /// Whether the kernel may use the attributes of a node without asking until something
    /// comes from outside: who reads a file to its end looks at them every time. Asked in
    /// the same breath in which they are given, because what is fresh is so until then.
    fn lend(&self, id: u64) -> bool {
        let (now, heard) = (Instant::now(), self.heard());
        let may = self.nodes.borrow_mut().get(id).is_ok_and(|entry| entry.tell(now, heard));
        let mut lent = self.lent.borrow_mut();
        let lends = may && lent.len() < limits::LENT_MAX;
        if lends {
            lent.push(id);
        }
        lends
    }

    /// Something came from outside: nothing is known for sure any more.
    pub(super) fn take_back(&self) {
        for id in self.lent.borrow_mut().drain(..) {
            answer::take_back(&self.device, id);
        }
    }

    pub(super) async fn access(&self, id: u64, mask: u32) -> Result<Body, Errno> {
        let node = self.refresh(id).await?;
        let wants = |what: libc::c_int| mask & what.unsigned_abs() != 0;
        let may_not = (wants(libc::W_OK) && !node.writable)
            || (wants(libc::X_OK) && !node.folder && !node.executable);
        if may_not { Err(libc::EACCES) } else { Ok(Body::default()) }
    }

    /// Length is the one attribute that can be changed. That others can't is no error where
    /// a program only copies them.
    pub(super) async fn set_attributes(
        self: &Rc<Self>,
        id: u64,
        change: AttrChange,
        pid: u32,
    ) -> Result<Body, Errno> {
        let owner = self.shared.owner.0;
        let gives_away = (change.valid & SET_UID != 0 && change.uid != owner)
            || (change.valid & SET_GID != 0 && change.gid != owner);
        if gives_away {
            return Err(libc::EPERM);
        }
        if change.valid & SET_SIZE != 0 {
            let length = usize::try_from(change.size).map_err(|_| libc::EFBIG)?;
            self.resize(id, length, pid).await?;
        }
        self.attributes(id).await
    }

    /// Cuts a file, or makes it longer. Where nobody has it open to write, that is all that
    /// is written, and it is written at once.
    async fn resize(self: &Rc<Self>, id: u64, length: usize, pid: u32) -> Result<(), Errno> {
        let held = {
            let mut nodes = self.nodes.borrow_mut();
            nodes.get(id)?.file()?.copy.is_some()
        };
        let fetched = if held {
            None
        } else {
            let path = self.nodes.borrow().path(id)?;
            let (found, bytes) = self.fetch(path.clone()).await.map_err(moved)?;
            if !found.node.writable {
                self.may_change(path).await?;
            }
            Some((found, bytes))
        };
        let tick = self.tick();
        let transient = {
            let mut nodes = self.nodes.borrow_mut();
            let heard = self.heard();
            let entry = nodes.get(id)?;
            if let Some((found, _)) = &fetched {
                entry.see(*found, heard);
            }
            let file = entry.file()?;
            if file.copy.is_none() {
                let (found, bytes) = fetched.ok_or(libc::ESTALE)?;
                let base = ExpectedRevision::Revision(found.node.revision);
                file.copy = Some(WorkingCopy::new(base, bytes, &self.shared.copied)?);
            }
            let copy = file.copy.as_mut().ok_or(libc::EIO)?;
            let before = copy.edits;
            copy.resize(length)?;
            if copy.edits != before {
                copy.written = true;
                file.written = Some((pid, tick));
                file.follow();
            }
            file.writers == 0
        };
        if !transient {
            return Ok(());
        }
        let done = self.settle(id, false).await;
        self.drop_unused(id);
        done
    }
}
