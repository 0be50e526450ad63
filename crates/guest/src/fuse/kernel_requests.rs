//! Requests of the kernel that are being answered.
//!
//! Owns the device of a mount, on which each request is answered once: when its work is
//! done, or with an error when whoever asked was sent a signal and the work takes long.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::answer::{self, Body};
use super::context::FuseContext;
use super::requests::Errno;
use crate::limits;

/// Requests of the kernel that are being answered, of one mount.
#[derive(Debug)]
pub(super) struct KernelRequests {
    pub(super) device: OwnedFd,
    shared: Rc<FuseContext>,
    /// Tasks by the request that they answer.
    running: RefCell<HashMap<u64, u64>>,
    /// Requests whose process was sent a signal, and when.
    interrupted: RefCell<Vec<(u64, Instant)>>,
}

impl KernelRequests {
    pub(super) fn new(device: OwnedFd, shared: Rc<FuseContext>) -> Self {
        Self { device, shared, running: RefCell::default(), interrupted: RefCell::default() }
    }

    /// Has a request answered when its work is done.
    pub(super) fn begin(
        self: &Rc<Self>,
        unique: u64,
        work: impl Future<Output = Result<Body, Errno>> + 'static,
    ) {
        let requests = Rc::clone(self);
        let task = self.shared.tasks.begin(async move {
            let result = work.await;
            requests.running.borrow_mut().remove(&unique);
            requests.finish(unique, result);
        });
        self.running.borrow_mut().insert(unique, task);
    }

    /// Answers a request.
    pub(super) fn finish(&self, unique: u64, result: Result<Body, Errno>) {
        match result {
            Ok(body) => answer::done(&self.device, unique, &body.0),
            Err(errno) => answer::failed(&self.device, unique, errno),
        }
    }

    /// A process was sent a signal while it waits. Most answers come before that matters.
    pub(super) fn interrupt(&self, unique: u64) {
        if self.running.borrow().contains_key(&unique) {
            self.interrupted.borrow_mut().push((unique, Instant::now()));
        }
    }

    /// Lets those go that were interrupted and still wait. Gives when to look again.
    pub(super) fn let_go(&self, now: Instant) -> Option<Duration> {
        let policy = Duration::from_millis(limits::INTERRUPTED_MS_MAX);
        let mut interrupted = self.interrupted.borrow_mut();
        interrupted.retain(|(unique, since)| {
            let running = self.running.borrow().get(unique).copied();
            let Some(task) = running else { return false };
            if *since + policy > now {
                return true;
            }
            self.running.borrow_mut().remove(unique);
            if self.shared.tasks.end(task) {
                answer::failed(&self.device, *unique, libc::EINTR);
            }
            false
        });
        let next = interrupted.iter().map(|(_, since)| *since + policy).min();
        next.map(|next| next.saturating_duration_since(now))
    }
}
