//! Attributes that are changed: how long a file is.
//!
//! Owns that a file which nobody has open to write is outside as it was cut when that is
//! answered.

use std::rc::Rc;

use outrigger_sandbox::ExpectedRevision;

use super::answer::Body;
use super::file::WorkingCopy;
use super::header::{AttrChange, SET_GID, SET_SIZE, SET_UID};
use super::mounted_tree::MountedTree;
use super::requests::{Errno, moved};

/// Length is the one attribute that can be changed. That others can't is no error where
/// a program only copies them.
pub(super) async fn set_attributes(
    tree: &Rc<MountedTree>,
    id: u64,
    change: AttrChange,
    pid: u32,
) -> Result<Body, Errno> {
    let owner = tree.shared.owner.0;
    let gives_away = (change.valid & SET_UID != 0 && change.uid != owner)
        || (change.valid & SET_GID != 0 && change.gid != owner);
    if gives_away {
        return Err(libc::EPERM);
    }
    if change.valid & SET_SIZE != 0 {
        let length = usize::try_from(change.size).map_err(|_| libc::EFBIG)?;
        resize(tree, id, length, pid).await?;
    }
    tree.node_cache.attributes(id).await
}

/// Cuts a file, or makes it longer. Where nobody has it open to write, that is all that
/// is written, and it is written at once.
async fn resize(tree: &Rc<MountedTree>, id: u64, length: usize, pid: u32) -> Result<(), Errno> {
    let held = {
        let mut nodes = tree.node_cache.nodes.borrow_mut();
        nodes.get(id)?.file()?.copy.is_some()
    };
    let fetched = if held {
        None
    } else {
        let path = tree.node_cache.nodes.borrow().path(id)?;
        let (found, bytes) = tree.shared.requests.fetch(path.clone()).await.map_err(moved)?;
        if !found.node.writable {
            tree.shared.requests.may_change(path).await?;
        }
        Some((found, bytes))
    };
    let tick = tree.shared.tick();
    let transient = {
        let mut nodes = tree.node_cache.nodes.borrow_mut();
        let heard = tree.shared.heard();
        let entry = nodes.get(id)?;
        if let Some((found, _)) = &fetched {
            entry.see(*found, heard);
        }
        let file = entry.file()?;
        if file.copy.is_none() {
            let (found, bytes) = fetched.ok_or(libc::ESTALE)?;
            let base = ExpectedRevision::Revision(found.node.revision);
            file.copy = Some(WorkingCopy::new(base, bytes, &tree.shared.copied)?);
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
    let done = tree.settle(id, false).await;
    tree.drop_unused(id);
    done
}
