//! What there is of a sandbox, and a way to its guest.
//!
//! Owns both answers. A way is a descriptor, which the caller gets with its answer.

use std::os::fd::OwnedFd;

use outrigger_sandbox::{CreateOutcome, Error, SandboxId, SnapshotId};

use super::event::{GuestState, LifecycleEvent};
use super::sandboxes::Sandboxes;
use crate::protocol::Answer;
use crate::spawner::create::running::unreached;
use crate::spawner::error::backend;

/// What there is before a change begins, with its record as it is to be.
pub(super) fn inspect(
    sandboxes: &mut Sandboxes,
    id: &SandboxId,
    name: Option<&SnapshotId>,
) -> LifecycleEvent {
    let settled = sandboxes.settle(id);
    let settled = settled.map_err(|error| backend("cannot write the record", &error));
    let kept = name.and_then(|name| Some((name, sandboxes.snapshots.all.get(name)?)));
    let named = kept.map(|(name, kept)| kept.describe(name));
    let guest = if sandboxes.is_running(id) {
        GuestState::Running
    } else if sandboxes.disks.get(id).is_some_and(|disk| disk.cold.is_some()) {
        GuestState::Suspended
    } else {
        GuestState::Ended
    };
    LifecycleEvent::Inspected { settled, guest, named }
}

/// Whether it lives, with a way to its guest if it does.
pub(super) fn find(
    sandboxes: &mut Sandboxes,
    id: &SandboxId,
) -> Result<(Answer, Option<OwnedFd>), Error> {
    let cold = sandboxes.disks.get(id).is_some_and(|disk| disk.cold.is_some());
    match sandboxes.running.get(id) {
        Some(running) if !running.has_ended() => connect(sandboxes, id, CreateOutcome::Attached),
        Some(_) | None => Ok((Answer::Absent { cold }, None)),
    }
}

/// A way to the guest of a sandbox that somebody wants to live, and that does.
pub(super) fn attach(
    sandboxes: &mut Sandboxes,
    id: &SandboxId,
    outcome: CreateOutcome,
) -> Result<(Answer, Option<OwnedFd>), Error> {
    if outcome == CreateOutcome::Attached {
        sandboxes.touch(id);
    }
    connect(sandboxes, id, outcome)
}

fn connect(
    sandboxes: &mut Sandboxes,
    id: &SandboxId,
    outcome: CreateOutcome,
) -> Result<(Answer, Option<OwnedFd>), Error> {
    let isolation = sandboxes.isolation;
    let ended = || Error::Lost { reason: "its guest ended".to_owned() };
    let running = sandboxes.running.get_mut(id).ok_or_else(ended)?;
    let (generation, fd) = running.connect().map_err(unreached)?;
    // One that just began was told nothing yet.
    let frozen = outcome == CreateOutcome::Attached && running.group.is_frozen();
    Ok((Answer::Attached { generation, isolation, outcome, frozen }, Some(fd)))
}
