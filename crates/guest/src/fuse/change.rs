//! What is made and removed.
//!
//! Owns what a change expects to find: who removes something means what is there, whatever
//! it is.

use std::rc::Rc;

use outrigger_sandbox::{TreeOp, TreeReply};

use super::answer::Body;
use super::file::File;
use super::mounted_tree::MountedTree;
use super::node_cache::NodeCache;
use super::requests::{Errno, NodeReply};
use crate::limits;

/// Makes an empty file, the one kind of node that a tree has besides folders.
pub(super) async fn make_node(
    cache: &NodeCache,
    parent: u64,
    name: &str,
    mode: u32,
) -> Result<Body, Errno> {
    if !matches!(mode & libc::S_IFMT, 0 | libc::S_IFREG) {
        return Err(libc::EPERM);
    }
    let path = cache.nodes.borrow().path_of(parent, name)?;
    let found = cache.shared.requests.make_empty(path).await?;
    made(cache, parent, name, found)
}

/// Makes a folder where nothing is.
pub(super) async fn make_folder(cache: &NodeCache, parent: u64, name: &str) -> Result<Body, Errno> {
    let path = cache.nodes.borrow().path_of(parent, name)?;
    let found = cache.shared.requests.node(TreeOp::MakeFolder { path }).await?;
    if found.node.folder { made(cache, parent, name, found) } else { Err(libc::EIO) }
}

/// Answers with what was just made, where nothing was.
fn made(cache: &NodeCache, parent: u64, name: &str, found: NodeReply) -> Result<Body, Errno> {
    let mut nodes = cache.nodes.borrow_mut();
    if let Some(old) = nodes.child(parent, name) {
        nodes.detach(old);
    }
    drop(nodes);
    cache.entered(parent, name, found)
}

/// Removes a file, whatever its revision; one that is nowhere but here just goes.
pub(super) async fn unlink(tree: &Rc<MountedTree>, parent: u64, name: &str) -> Result<Body, Errno> {
    let path = tree.node_cache.nodes.borrow().path_of(parent, name)?;
    let id = tree.node_cache.nodes.borrow().child(parent, name);
    if let Some(id) = id {
        await_commit(tree, id).await;
        let mut nodes = tree.node_cache.nodes.borrow_mut();
        if nodes.get(id)?.known().is_some_and(File::is_new) {
            nodes.detach(id);
            return Ok(Body::default());
        }
    }
    let mut fresh = fresh_revision(&tree.node_cache, id);
    let mut done = Err(libc::ESTALE);
    for _ in 0..limits::RETRIES_MAX {
        let expected = match fresh.take() {
            Some(revision) => revision,
            None => match tree.shared.requests.stat(path.clone()).await?.node {
                node if node.folder => return Err(libc::EISDIR),
                node => node.revision,
            },
        };
        let op = TreeOp::Remove { path: path.clone(), expected };
        done = tree.shared.requests.ask(op).await;
        if !matches!(done, Err(libc::ESTALE)) {
            break;
        }
    }
    gone(&tree.node_cache, done, id)
}

/// Removes a folder that is empty, here too.
pub(super) async fn remove_folder(
    cache: &NodeCache,
    parent: u64,
    name: &str,
) -> Result<Body, Errno> {
    let path = cache.nodes.borrow().path_of(parent, name)?;
    let id = cache.nodes.borrow().child(parent, name);
    if id.is_some_and(|id| !cache.nodes.borrow().new_in(id).is_empty()) {
        return Err(libc::ENOTEMPTY);
    }
    let done = cache.shared.requests.ask(TreeOp::RemoveFolder { path }).await;
    gone(cache, done, id)
}

/// Notes that something is not there any more.
fn gone(cache: &NodeCache, done: Result<TreeReply, Errno>, id: Option<u64>) -> Result<Body, Errno> {
    if done? != TreeReply::Done {
        return Err(libc::EIO);
    }
    id.into_iter().for_each(|id| cache.nodes.borrow_mut().detach(id));
    Ok(Body::default())
}

/// Waits for the end of what is being written, however it ends.
async fn await_commit(tree: &Rc<MountedTree>, id: u64) {
    let runs = {
        let mut nodes = tree.node_cache.nodes.borrow_mut();
        nodes.get(id).is_ok_and(|entry| entry.known().is_some_and(|file| file.commit.running))
    };
    if runs {
        let _ = tree.settle(id, true).await;
    }
}

/// The revision of a file, if nobody can know another one yet.
fn fresh_revision(cache: &NodeCache, id: Option<u64>) -> Option<u64> {
    let mut nodes = cache.nodes.borrow_mut();
    let entry = nodes.get(id?).ok()?;
    let fresh = entry.is_fresh(cache.shared.heard()) && !entry.is_folder();
    fresh.then_some(entry.seen.revision)
}
