//! Working copies on their way to the tree.
//!
//! Owns that one copy is written by one commit at a time, which goes on whoever stops
//! waiting for it, and what becomes of a copy that is refused: what was only added is
//! added to what is there now; anything else is lost, and whoever wrote it is told.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use outrigger_sandbox::{ExpectedRevision, TreeOp, limits as door};

use super::answer::Body;
use super::file::Pages;
use super::mounted_tree::MountedTree;
use super::nodes::Entry;
use super::requests::{Errno, NodeReply};
use crate::limits;

/// A copy as it is to be written.
struct Snapshot {
    path: String,
    base: ExpectedRevision,
    bytes: Rc<Vec<u8>>,
    edits: u64,
    pid: Option<u32>,
}

impl MountedTree {
    /// `close`, and fsync(2): what this sandbox wrote is outside when it is answered.
    pub(super) async fn flush(
        self: &Rc<Self>,
        handle: u64,
        only_written: bool,
    ) -> Result<Body, Errno> {
        let opened = self.opened(handle)?;
        if !opened.stale && opened.writes {
            self.settle(opened.node, only_written).await?;
        }
        // It may have been another's commit that was refused.
        if self.opened(handle)?.stale { Err(libc::ESTALE) } else { Ok(Body::default()) }
    }

    /// Waits until a node is outside as it is here. `only_written`: what was merely made
    /// or cut may wait for what is about to be written to it.
    pub(super) async fn settle(self: &Rc<Self>, id: u64, only_written: bool) -> Result<(), Errno> {
        loop {
            let (ended, ours) = {
                let mut nodes = self.node_cache.nodes.borrow_mut();
                let Ok(file) = nodes.get(id).and_then(Entry::file) else { return Ok(()) };
                let wanted = file
                    .copy
                    .as_ref()
                    .is_some_and(|copy| copy.changed && (copy.written || !only_written));
                let ours = !file.commit.running;
                if ours && !wanted {
                    return Ok(());
                }
                file.commit.running = true;
                (file.commit.ended, ours)
            };
            if ours {
                let tree = Rc::clone(self);
                self.shared.tasks.begin(async move {
                    let result = tree.commit(id).await;
                    let mut nodes = tree.node_cache.nodes.borrow_mut();
                    if let Ok(file) = nodes.get(id).and_then(Entry::file) {
                        file.end_commit(result);
                    }
                    nodes.tidy(id);
                });
            }
            let result = self.committed(id, ended).await;
            if ours {
                return result;
            }
        }
    }

    /// Waits for the end of the commit after so many.
    async fn committed(&self, id: u64, ended: u64) -> Result<(), Errno> {
        poll_fn(|context| {
            let mut nodes = self.node_cache.nodes.borrow_mut();
            let Ok(file) = nodes.get(id).and_then(Entry::file) else {
                return Poll::Ready(Ok(()));
            };
            if file.commit.ended > ended {
                return Poll::Ready(file.commit.last.map_or(Ok(()), Err));
            }
            file.commit.wakers.push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// What is to be written. `None`: nothing any more.
    fn snapshot(&self, id: u64) -> Result<Option<Snapshot>, Errno> {
        let mut nodes = self.node_cache.nodes.borrow_mut();
        let entry = nodes.get(id)?;
        let detached = entry.detached;
        let file = entry.file()?;
        let Some(copy) = file.copy.as_mut().filter(|copy| copy.changed) else { return Ok(None) };
        if detached {
            // It is gone for all others; who has it open goes on with it.
            (copy.changed, copy.written) = (false, false);
            return Ok(None);
        }
        let (base, bytes, edits) = (copy.base, Rc::clone(&copy.bytes), copy.edits);
        let pid = file.written.map(|(pid, _)| pid);
        Ok(Some(Snapshot { path: nodes.path(id)?, base, bytes, edits, pid }))
    }

    async fn commit(&self, id: u64) -> Result<(), Errno> {
        let until = Instant::now() + Duration::from_millis(door::TREE_MS_MAX);
        for _ in 0..limits::REBASES_MAX {
            let Some(snapshot) = self.snapshot(id)? else { return Ok(()) };
            let op = TreeOp::Write {
                path: snapshot.path.clone(),
                expected: snapshot.base,
                contents: snapshot.bytes.to_vec(),
            };
            match self.shared.requests.node(op).await {
                Ok(found) => return self.written(id, found, &snapshot),
                Err(libc::ESTALE | libc::EEXIST | libc::ENOENT) if Instant::now() < until => {
                    self.rebase(id, snapshot.path).await?;
                }
                Err(libc::EEXIST | libc::ENOENT) => return Err(libc::ESTALE),
                Err(errno) => return Err(errno),
            }
        }
        Err(libc::ESTALE)
    }

    /// Notes that a copy is outside.
    fn written(&self, id: u64, found: NodeReply, snapshot: &Snapshot) -> Result<(), Errno> {
        let node = found.node;
        let tick = self.shared.tick();
        let mut nodes = self.node_cache.nodes.borrow_mut();
        let heard = self.shared.heard();
        let entry = nodes.get(id)?;
        entry.see(found, heard);
        let file = entry.file()?;
        file.note_opened(node.revision, tick);
        let mut settled = false;
        if let Some(copy) = &mut file.copy {
            let length = snapshot.bytes.len();
            settled = copy.edits == snapshot.edits;
            copy.base = ExpectedRevision::Revision(node.revision);
            copy.appended = if settled || copy.appended.is_some() { Some(length) } else { None };
            if settled {
                (copy.changed, copy.written) = (false, false);
            }
        }
        if settled && file.pages() == Pages::Copy {
            file.has_pages(Pages::Revision(node.revision));
        }
        if let Some(pid) = snapshot.pid {
            self.reads.borrow_mut().note(pid, id, node.revision);
        }
        if settled {
            self.keep(&mut nodes, id, node.revision, Rc::clone(&snapshot.bytes));
        }
        Ok(())
    }

    /// Somebody else wrote the file. Adds what was added to what is there now, or gives up.
    async fn rebase(&self, id: u64, path: String) -> Result<(), Errno> {
        let adds = {
            let mut nodes = self.node_cache.nodes.borrow_mut();
            let file = nodes.get(id)?.file()?;
            file.copy.as_ref().is_some_and(|copy| copy.appended.is_some())
        };
        if !adds {
            return Err(self.refuse(id));
        }
        let (base, beginning) = match self.shared.requests.fetch(path).await {
            Ok((found, bytes)) => (ExpectedRevision::Revision(found.node.revision), bytes),
            Err(libc::ENOENT) => (ExpectedRevision::Absent, Rc::default()),
            Err(errno) => return Err(errno),
        };
        let rebased = {
            let mut nodes = self.node_cache.nodes.borrow_mut();
            let file = nodes.get(id)?.file()?;
            file.has_pages(Pages::Unknown);
            file.epoch += 1;
            match &mut file.copy {
                Some(copy) => copy.rebase(base, &beginning),
                None => Ok(()),
            }
        };
        // Something else may have been written to it meanwhile.
        rebased.map_err(|errno| if errno == libc::ESTALE { self.refuse(id) } else { errno })
    }

    /// Lets go of a copy that another one won over. Gives what its writers are told.
    fn refuse(&self, id: u64) -> Errno {
        let mut nodes = self.node_cache.nodes.borrow_mut();
        if let Ok(file) = nodes.get(id).and_then(Entry::file) {
            file.drop_copy();
        }
        self.files.borrow_mut().refuse(id);
        libc::ESTALE
    }
}
