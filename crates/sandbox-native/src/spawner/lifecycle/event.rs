//! What can happen to a sandbox, and what can be done with one.
//!
//! Owns the words between [`machine`](super::machine), which decides, and
//! [`Lifecycle`](super::Lifecycle), which performs. None of them holds a descriptor.

use outrigger_sandbox::{CreateOutcome, Error, Generation, Snapshot, SnapshotId};

use crate::protocol::Answer;
use crate::spawner::create::request::CreateRequest;
use crate::spawner::create::spec::{PreviousGuest, SandboxSpec};
use crate::spawner::layers::verify::{Check, Measure};
use crate::spawner::tree::fingerprint::Fingerprint;

/// Who waits for an answer. Each gets exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PeerId(pub(crate) u64);

/// What somebody asks of a sandbox.
#[derive(Debug, Clone)]
pub(crate) enum SandboxRequest {
    /// To be told whether it lives, and how to reach it.
    Find,
    /// It is to become so.
    Become(DesiredState),
}

/// What a guest left beside its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handover {
    /// What it knew of its commands, as it was asked to.
    Written,
    /// Nothing: it did not live.
    Absent,
}

/// What is to become of a sandbox.
#[derive(Debug, Clone)]
pub(crate) enum DesiredState {
    /// It lives, and the caller has a way to it.
    Live(Box<CreateRequest>),
    /// Nothing of it runs, its life is kept.
    Cold,
    /// Its disk is kept under a name.
    Snapshot(SnapshotId),
    /// It is gone.
    Gone,
}

/// What a life is ended for that can go on later.
#[derive(Debug, Clone)]
pub(super) enum Suspension {
    /// Nothing else.
    Cold,
    /// Its disk is kept under this name.
    Snapshot(SnapshotId),
}

/// Whether anything of a sandbox runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuestState {
    /// Its guest does.
    Running,
    /// Nothing, and its life is kept.
    Suspended,
    /// Nothing, or there is no such sandbox.
    Ended,
}

/// Something that happened to a sandbox.
#[derive(Debug, Clone)]
pub(crate) enum LifecycleEvent {
    /// Somebody asks for it; `None`: the spawner itself, which needs no answer.
    Asked(SandboxRequest, Option<PeerId>),
    /// It was looked at.
    Inspected {
        /// Whether its record is as it is to be.
        settled: Result<(), Error>,
        guest: GuestState,
        /// The snapshot that has the wanted name already.
        named: Option<Snapshot>,
    },
    /// It is known what its guest is to be made of, and what is to be verified before.
    Planned(Result<(Box<SandboxSpec>, Vec<Check>), Error>),
    /// What its guest is to be made over was compared with how it was left.
    Verified(Result<(), Error>),
    /// Its guest serves, or never will.
    Started(Result<(), Error>),
    /// Its guest handed over and waits for its end.
    HandedOver,
    /// Its guest goes on instead of handing over.
    Refused(Error),
    /// Its guest ended. Which it was, if it had one.
    Ended(Option<PreviousGuest>),
    /// Its guest was told to end for a long time and did not.
    Unkillable,
    /// Its disk was looked at.
    Measured(Result<Measure, Error>),
    /// Its life was written down.
    Recorded(Result<(), Error>),
    /// Its tree is a layer, on so many others that there are this many.
    Sealed(Result<usize, Error>),
    /// Its layers are one, or are as many as before.
    Flattened,
    /// Its layers have their name.
    Named(Result<Snapshot, Error>),
    /// Its disk was deleted.
    Deleted(Result<(), Error>),
    /// The time passed until which it waits.
    Due,
}

/// What is to be done. Those marked with an event come back as that, now or later.
#[derive(Debug, Clone)]
pub(crate) enum LifecycleEffect {
    /// Tell a caller.
    Answer(PeerId, Answer),
    /// Tell a caller whether it lives, and how to reach it.
    Find(PeerId),
    /// Give a caller a way to its guest.
    Attach(PeerId, CreateOutcome),
    /// Write its record if that is behind, and look what there is of it and under this
    /// name: [`LifecycleEvent::Inspected`].
    Inspect(Option<SnapshotId>),
    /// Find out what its guest is to be made of: [`LifecycleEvent::Planned`].
    Plan(Box<CreateRequest>),
    /// Compare what its guest is to be made over with how it was left: [`LifecycleEvent::Verified`].
    Verify(Vec<Check>),
    /// Have a guest begin: [`LifecycleEvent::Started`].
    Start(Box<SandboxSpec>),
    /// Have a suspended life go on: [`LifecycleEvent::Started`].
    Resume(PreviousGuest),
    /// End the guest that begins. What it would have come back as never comes.
    AbandonStart,
    /// Take a disk away that nothing ever ran on.
    DiscardDisk,
    /// Ask its guest to hand over: [`LifecycleEvent::HandedOver`] or [`LifecycleEvent::Refused`].
    HandOver,
    /// Remove what its guest has handed over so far.
    ForgetHandedOver,
    /// Tell its guest to end: [`LifecycleEvent::Ended`].
    Kill,
    /// Look at the disk that a guest just left, and at what it handed over:
    /// [`LifecycleEvent::Measured`].
    Measure(Handover),
    /// Look at a disk that was at rest before, which must be as it was left:
    /// [`LifecycleEvent::Measured`].
    MeasureResting,
    /// Write down how this life left its disk, and what it handed over: [`LifecycleEvent::Recorded`].
    Record { generation: Generation, tree: Fingerprint, kept: [u8; 32] },
    /// Make a layer of its tree, which looks like this: [`LifecycleEvent::Sealed`].
    Seal(Fingerprint),
    /// Make one layer of all that its disk stands on: [`LifecycleEvent::Flattened`].
    Flatten,
    /// Give the layers of its disk a name: [`LifecycleEvent::Named`].
    Name(SnapshotId),
    /// Take away the layers that nothing stands on any more.
    CollectLayers,
    /// Take its disk away and delete it: [`LifecycleEvent::Deleted`].
    Delete,
}
