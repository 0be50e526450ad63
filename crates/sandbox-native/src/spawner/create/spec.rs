//! What a guest is to be made of.
//!
//! Owns the description alone. It is complete: who makes the guest decides nothing more.

use outrigger_sandbox::{CreateOutcome, Generation};

use super::request::CreateRequest;
use crate::spawner::rootfs::LowerDir;

/// What a sandbox is made of: what was asked for, what its disk stands on, its life.
#[derive(Debug, Clone)]
pub(crate) struct SandboxSpec {
    pub(crate) request: CreateRequest,
    pub(crate) outcome: CreateOutcome,
    pub(crate) generation: Generation,
    /// The template at the bottom of its disk.
    pub(crate) template: String,
    /// What the disk stands on, newest first.
    pub(crate) lowers: Vec<LowerDir>,
    pub(crate) disk_age: DiskAge,
}

/// Whose disk a guest begins over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskAge {
    /// One that was made for it, and that nothing ever ran on.
    New,
    /// One that was there before.
    Old,
}

/// A life that ended, and that can go on if it was kept.
#[derive(Debug, Clone)]
pub(crate) struct PreviousGuest {
    pub(crate) generation: Generation,
    pub(crate) request: CreateRequest,
}
