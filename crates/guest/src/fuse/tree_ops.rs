//! Questions that have one kind of answer.
//!
//! Owns what counts as an answer to each: a host that says something else, or more than
//! a tree may hold, is an I/O error.

use std::rc::Rc;

use outrigger_sandbox::{ExpectedRevision, Node, TreeOp, TreeReply, limits as door};

use super::requests::{Errno, HostRequests, NodeReply};

/// What an answer says is at a path.
fn node_of(reply: TreeReply) -> Result<Node, Errno> {
    match reply {
        TreeReply::Node(node) if i64::try_from(node.bytes).is_ok() => Ok(node),
        _ => Err(libc::EIO),
    }
}

impl HostRequests {
    /// What is at a path.
    pub(super) async fn stat(&self, path: String) -> Result<NodeReply, Errno> {
        self.node(TreeOp::Stat { path }).await
    }

    /// The node that an operation answers with.
    pub(super) async fn node(&self, op: TreeOp) -> Result<NodeReply, Errno> {
        let asked = self.moment();
        let node = node_of(self.ask(op).await?)?;
        Ok(NodeReply { node, asked })
    }

    /// Passes if a file may be changed after all that was said not to be writable: it is
    /// the tree that refuses it, and knows then of what was tried.
    pub(super) async fn may_change(&self, path: String) -> Result<(), Errno> {
        match self.ask(TreeOp::MayChange { path }).await? {
            TreeReply::Done => Ok(()),
            _ => Err(libc::EIO),
        }
    }

    /// A file, whole.
    pub(super) async fn fetch(&self, path: String) -> Result<(NodeReply, Rc<Vec<u8>>), Errno> {
        let asked = self.moment();
        match self.ask(TreeOp::Read { path }).await? {
            TreeReply::Contents { node, contents }
                if !node.folder
                    && contents.len() <= door::TREE_FILE_BYTES_MAX
                    && contents.len() as u64 == node.bytes =>
            {
                Ok((NodeReply { node, asked }, Rc::new(contents)))
            }
            _ => Err(libc::EIO),
        }
    }

    /// Makes an empty file where nothing is.
    pub(super) async fn make_empty(&self, path: String) -> Result<NodeReply, Errno> {
        let op = TreeOp::Write { path, expected: ExpectedRevision::Absent, contents: Vec::new() };
        let found = self.node(op).await.map_err(|errno| match errno {
            libc::ESTALE => libc::EEXIST,
            other => other,
        })?;
        if found.node.folder { Err(libc::EIO) } else { Ok(found) }
    }
}
