//! What a name stands for, and what it looks like.
//!
//! Owns that nothing is told of a path that was not asked for just then, but for what
//! nobody in the sandbox can know to be otherwise.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

use outrigger_sandbox::Node;

use super::answer::{self, Body, NodeAttr};
use super::context::FuseContext;
use super::nodes::{Nodes, ROOT};
use super::requests::{Errno, NodeReply};
use crate::limits;

/// What is known of nodes, and for how long it may be used.
#[derive(Debug)]
pub(super) struct NodeCache {
    pub(super) shared: Rc<FuseContext>,
    pub(super) nodes: RefCell<Nodes>,
    /// Nodes whose attributes the kernel may use without asking.
    lent: RefCell<Vec<u64>>,
}

impl NodeCache {
    /// Of a tree that is mounted at a path.
    pub(super) fn new(path: String, shared: Rc<FuseContext>) -> Self {
        Self { shared, nodes: RefCell::new(Nodes::new(path)), lent: RefCell::default() }
    }

    /// How a node looks to the kernel.
    pub(super) fn look(&self, id: u64) -> Result<NodeAttr, Errno> {
        let mut nodes = self.nodes.borrow_mut();
        let entry = nodes.get(id)?;
        let links = if entry.detached { 0 } else { 1 };
        Ok(NodeAttr { id, node: entry.look(), links })
    }

    pub(super) async fn lookup(&self, parent: u64, name: &str) -> Result<Body, Errno> {
        let path = {
            let mut nodes = self.nodes.borrow_mut();
            let heard = self.shared.heard();
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
        let found = self.shared.requests.stat(path).await?;
        self.entered(parent, name, found)
    }

    /// Answers with what was just seen at a name.
    pub(super) fn entered(&self, parent: u64, name: &str, found: NodeReply) -> Result<Body, Errno> {
        let id = self.nodes.borrow_mut().enter(parent, name, found, self.shared.heard())?;
        Ok(self.shared.owner.entry(Body::default(), self.look(id)?))
    }

    /// Sees to it that what is known of a node is as it is now.
    pub(super) async fn refresh(&self, id: u64) -> Result<Node, Errno> {
        let path = {
            let mut nodes = self.nodes.borrow_mut();
            let heard = self.shared.heard();
            let entry = nodes.get(id)?;
            if entry.is_local() || entry.is_fresh(heard) {
                return Ok(entry.look());
            }
            nodes.path(id)?
        };
        let seen = self.shared.requests.stat(path).await;
        let mut nodes = self.nodes.borrow_mut();
        let entry = nodes.get(id)?;
        if entry.is_local() {
            return Ok(entry.look());
        }
        match seen {
            Ok(found) if found.node.folder == entry.is_folder() => {
                entry.see(found, self.shared.heard());
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
        let (now, heard) = (Instant::now(), self.shared.heard());
        let may = self.nodes.borrow_mut().get(id).is_ok_and(|entry| entry.tell(now, heard));
        let mut lent = self.lent.borrow_mut();
        let lends = may && lent.len() < limits::LENT_MAX;
        if lends {
            lent.push(id);
        }
        lends
    }

    /// Something came from outside: nothing is known for sure any more.
    pub(super) fn take_back(&self, device: &OwnedFd) {
        for id in self.lent.borrow_mut().drain(..) {
            answer::take_back(device, id);
        }
    }

    pub(super) async fn access(&self, id: u64, mask: u32) -> Result<Body, Errno> {
        let node = self.refresh(id).await?;
        let wants = |what: libc::c_int| mask & what.unsigned_abs() != 0;
        let may_not = (wants(libc::W_OK) && !node.writable)
            || (wants(libc::X_OK) && !node.folder && !node.executable);
        if may_not { Err(libc::EACCES) } else { Ok(Body::default()) }
    }
}
