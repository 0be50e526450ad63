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
    pub(super) ticks: Cell<u64>,
    /// The number of the last handle.
    pub(super) handles: Cell<u64>,
    /// Files that are being written although nobody has them open any more.
    pub(super) releasing: Cell<usize>,
}
