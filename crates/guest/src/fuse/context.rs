//! What all mounts have in common.

use std::cell::Cell;

use super::answer::Owner;
use super::file::Total;
use super::requests::HostRequests;
use super::tasks::Tasks;

/// What all mounts have in common.
#[derive(Debug)]
pub(super) struct FuseContext {
    pub(super) tasks: Tasks,
    pub(super) requests: HostRequests,
    pub(super) owner: Owner,
    /// What working copies take.
    pub(super) copied: Total,
    /// A clock of its own, for what came before what.
    ticks: Cell<u64>,
    /// The number of the last handle.
    handles: Cell<u64>,
    /// Files that are being written although nobody has them open any more.
    pub(super) releasing: Cell<usize>,
}

impl FuseContext {
    /// `owner` is whose all files seem to be.
    pub(super) fn new(owner: Owner) -> Self {
        Self {
            tasks: Tasks::default(),
            requests: HostRequests::default(),
            owner,
            copied: Total::default(),
            ticks: Cell::new(0),
            handles: Cell::new(0),
            releasing: Cell::new(0),
        }
    }

    /// How much was heard of hosts so far.
    pub(super) fn heard(&self) -> u64 {
        self.requests.heard()
    }

    /// A number that is larger than all before.
    pub(super) fn tick(&self) -> u64 {
        self.ticks.set(self.ticks.get() + 1);
        self.ticks.get()
    }

    /// The number of what is opened next.
    pub(super) fn next_handle(&self) -> u64 {
        self.handles.set(self.handles.get() + 1);
        self.handles.get()
    }
}
