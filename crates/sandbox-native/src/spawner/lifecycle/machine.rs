//! What becomes of a sandbox, decided without touching one.
//!
//! Owns the order of the steps: a guest hands over and ends, its disk is looked at,
//! sealed or deleted, a guest begins. One sandbox has one change at a time, and whoever
//! asks for it meanwhile waits. There is no system call, clock or descriptor in here: time
//! is an argument, a caller is a number, and what is to be done is given back as effects,
//! of which at most one comes back as an event.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use outrigger_sandbox::{CreateOutcome, Error, SandboxId, Snapshot, SnapshotId};

use super::event::{
    DesiredState, GuestState, Handover, LifecycleEffect, LifecycleEvent, PeerId, SandboxRequest,
    Suspension,
};
use crate::limits;
use crate::protocol::Answer;
use crate::spawner::create::spec::{DiskAge, PreviousGuest, SandboxSpec};
use crate::spawner::layers::verify::Measure;
use crate::spawner::tree::fingerprint::Fingerprint;

#[cfg(test)]
mod tests;

/// A change that goes on.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    stage: Stage,
    owed: Obligations,
}

/// What a change owes to others, whatever it waits for.
#[derive(Debug, Clone)]
struct Obligations {
    /// Who is to be told of its end; `None`: nobody, or they were told already.
    peer: Option<PeerId>,
    /// The life that was ended for it, to go on afterwards.
    previous: Option<PreviousGuest>,
    /// Who asks for this sandbox meanwhile.
    waiting: VecDeque<(SandboxRequest, PeerId)>,
}

/// What a change waits for.
#[derive(Debug, Clone)]
enum Stage {
    /// To know what there is of the sandbox.
    Inspecting(DesiredState),
    /// To know what its guest is to be made of.
    Planning,
    /// What its guest is to be made over is compared with how it was left.
    Verifying(Box<SandboxSpec>),
    /// Its guest was told to begin.
    Starting { purpose: StartPurpose, until: Instant },
    /// Its guest was asked to hand over.
    HandingOver { suspension: Suspension, until: Instant },
    /// Its guest was told to end. `None`: so that the sandbox can be deleted.
    Ending(Option<Suspension>),
    /// Its guest was told to end because it did not hand over.
    Failing,
    /// Its disk is looked at.
    Measuring(Suspension),
    /// Its life is written down.
    Recording(Suspension, Fingerprint),
    /// Its tree becomes a layer, for this name.
    Sealing(SnapshotId),
    /// One layer is made of those that it stands on, for this name.
    Flattening(SnapshotId),
    /// Its layers get their name.
    Naming,
    /// What was asked for is done, and the life that was ended for it goes on soon: others
    /// come first.
    PutOff { until: Instant },
    /// Its disk is deleted.
    Deleting,
}

/// What a guest begins for.
#[derive(Debug, Clone, Copy)]
enum StartPurpose {
    /// Somebody wants to reach it.
    Attach(CreateOutcome, DiskAge),
    /// It goes on after something was done, which holds even if it can't.
    GoOn,
}

/// What comes of an event: the change that goes on, if one does, and what is to be done.
pub(crate) fn step(
    id: &SandboxId,
    state: Option<Change>,
    event: LifecycleEvent,
    now: Instant,
) -> (Option<Change>, Vec<LifecycleEffect>) {
    let mut step = Transition { id, now, effects: Vec::new() };
    let state = match (state, event) {
        (None, LifecycleEvent::Asked(request, peer)) => step.begin(request, peer, VecDeque::new()),
        (Some(change), LifecycleEvent::Asked(request, Some(peer))) => {
            step.queue(change, request, peer)
        }
        (Some(change), event) => step.advance(change, event),
        // News of what nobody waits for.
        (None, _) => None,
    };
    (state, step.effects)
}

impl Change {
    /// Whether a life goes on by it that was ended for something else.
    pub(crate) fn revives(&self) -> bool {
        matches!(
            self.stage,
            Stage::PutOff { .. } | Stage::Starting { purpose: StartPurpose::GoOn, .. }
        )
    }

    /// When it is to be looked at although nothing happened.
    pub(crate) fn until(&self) -> Option<Instant> {
        let (Stage::HandingOver { until, .. }
        | Stage::PutOff { until }
        | Stage::Starting { until, .. }) = self.stage
        else {
            return None;
        };
        Some(until)
    }
}

/// One step on its way.
struct Transition<'a> {
    id: &'a SandboxId,
    now: Instant,
    effects: Vec<LifecycleEffect>,
}

impl Transition<'_> {
    /// Nothing is changing: begins with the first request that changes something.
    fn begin(
        &mut self,
        mut request: SandboxRequest,
        mut peer: Option<PeerId>,
        mut waiting: VecDeque<(SandboxRequest, PeerId)>,
    ) -> Option<Change> {
        loop {
            match request {
                SandboxRequest::Find => self.effects.extend(peer.map(LifecycleEffect::Find)),
                SandboxRequest::Become(desired) => {
                    let name = match &desired {
                        DesiredState::Snapshot(name) => Some(name.clone()),
                        DesiredState::Live(_) | DesiredState::Cold | DesiredState::Gone => None,
                    };
                    self.effects.push(LifecycleEffect::Inspect(name));
                    let stage = Stage::Inspecting(desired);
                    let owed = Obligations { peer, previous: None, waiting };
                    return Some(Change { stage, owed });
                }
            }
            let (next, next_peer) = waiting.pop_front()?;
            (request, peer) = (next, Some(next_peer));
        }
    }

    /// Somebody asks for what is changing. What was put off for others is not any more.
    fn queue(
        &mut self,
        mut change: Change,
        request: SandboxRequest,
        peer: PeerId,
    ) -> Option<Change> {
        if change.owed.waiting.len() >= limits::QUEUED_MAX {
            let what = format!("too many wait for `{}`; try again", self.id);
            self.effects.push(LifecycleEffect::Answer(peer, Answer::Failed(Error::Backend(what))));
        } else {
            change.owed.waiting.push_back((request, peer));
        }
        if matches!(change.stage, Stage::PutOff { .. }) {
            return self.go_on(change.owed);
        }
        Some(change)
    }

    fn advance(&mut self, Change { stage, owed }: Change, event: LifecycleEvent) -> Option<Change> {
        match (stage, event) {
            (Stage::Inspecting(desired), LifecycleEvent::Inspected { settled, guest, named }) => {
                self.inspected(owed, desired, settled, guest, named)
            }
            (Stage::Planning, LifecycleEvent::Planned(Ok((spec, checks)))) => {
                self.wait(owed, LifecycleEffect::Verify(checks), Stage::Verifying(spec))
            }
            (Stage::Verifying(spec), LifecycleEvent::Verified(verified)) => {
                self.verified(owed, spec, verified)
            }
            (Stage::Starting { purpose, .. }, LifecycleEvent::Started(started)) => {
                self.started(owed, purpose, started)
            }
            (Stage::HandingOver { suspension, .. }, LifecycleEvent::HandedOver) => {
                self.wait(owed, LifecycleEffect::Kill, Stage::Ending(Some(suspension)))
            }
            (Stage::HandingOver { .. }, LifecycleEvent::Refused(error)) => {
                self.refused(owed, error)
            }
            (Stage::HandingOver { .. } | Stage::Failing, LifecycleEvent::Ended(_)) => {
                self.lost(owed)
            }
            (Stage::Ending(suspension), LifecycleEvent::Ended(previous)) => {
                self.ended(owed, suspension, previous)
            }
            (Stage::Ending(_) | Stage::Failing, LifecycleEvent::Unkillable) => {
                self.unkillable(owed)
            }
            (Stage::Measuring(suspension), LifecycleEvent::Measured(Ok(measure))) => {
                self.measured(owed, suspension, measure)
            }
            (Stage::Recording(suspension, tree), LifecycleEvent::Recorded(Ok(()))) => {
                self.suspended(owed, suspension, tree)
            }
            (Stage::Sealing(name), LifecycleEvent::Sealed(Ok(layers))) => {
                self.sealed(owed, name, layers)
            }
            (Stage::Flattening(name), LifecycleEvent::Flattened) => self.flattened(owed, name),
            (Stage::Naming, LifecycleEvent::Named(Ok(snapshot))) => self.named(owed, snapshot),
            (Stage::Deleting, LifecycleEvent::Deleted(Ok(()))) => self.finish(owed, Answer::Done),
            (Stage::Planning, LifecycleEvent::Planned(Err(error)))
            | (Stage::Measuring(_), LifecycleEvent::Measured(Err(error)))
            | (Stage::Recording(..), LifecycleEvent::Recorded(Err(error)))
            | (Stage::Sealing(_), LifecycleEvent::Sealed(Err(error)))
            | (Stage::Naming, LifecycleEvent::Named(Err(error)))
            | (Stage::Deleting, LifecycleEvent::Deleted(Err(error))) => self.fail(owed, error),
            (stage, LifecycleEvent::Due) => self.due(owed, stage),
            // News of what this change does not wait for.
            (
                stage,
                LifecycleEvent::Asked(..)
                | LifecycleEvent::Inspected { .. }
                | LifecycleEvent::Planned(_)
                | LifecycleEvent::Verified(_)
                | LifecycleEvent::Started(_)
                | LifecycleEvent::HandedOver
                | LifecycleEvent::Refused(_)
                | LifecycleEvent::Ended(_)
                | LifecycleEvent::Unkillable
                | LifecycleEvent::Measured(_)
                | LifecycleEvent::Recorded(_)
                | LifecycleEvent::Sealed(_)
                | LifecycleEvent::Flattened
                | LifecycleEvent::Named(_)
                | LifecycleEvent::Deleted(_),
            ) => Some(Change { stage, owed }),
        }
    }

    fn inspected(
        &mut self,
        owed: Obligations,
        desired: DesiredState,
        settled: Result<(), Error>,
        guest: GuestState,
        named: Option<Snapshot>,
    ) -> Option<Change> {
        // What is to be gone may be damaged.
        if let (Err(error), false) = (settled, matches!(desired, DesiredState::Gone)) {
            return self.fail(owed, error);
        }
        match (desired, guest) {
            (DesiredState::Live(_), GuestState::Running) => {
                self.attach(owed, CreateOutcome::Attached)
            }
            (DesiredState::Live(request), GuestState::Suspended | GuestState::Ended) => {
                self.wait(owed, LifecycleEffect::Plan(request), Stage::Planning)
            }
            (DesiredState::Gone, GuestState::Running) => {
                self.wait(owed, LifecycleEffect::Kill, Stage::Ending(None))
            }
            (DesiredState::Gone, GuestState::Suspended | GuestState::Ended) => {
                self.wait(owed, LifecycleEffect::Delete, Stage::Deleting)
            }
            (DesiredState::Cold, GuestState::Running) => self.hand_over(owed, Suspension::Cold),
            (DesiredState::Cold, GuestState::Suspended) => self.finish(owed, Answer::Done),
            (DesiredState::Cold, GuestState::Ended) => {
                let (what, name) = ("living sandbox".to_owned(), self.id.to_string());
                self.fail(owed, Error::Absent { what, name })
            }
            (DesiredState::Snapshot(name), guest) => match (named, guest) {
                (Some(snapshot), _) => self.finish(owed, Answer::Snapshot(snapshot)),
                (None, GuestState::Running) => self.hand_over(owed, Suspension::Snapshot(name)),
                (None, GuestState::Suspended | GuestState::Ended) => {
                    let stage = Stage::Measuring(Suspension::Snapshot(name));
                    self.wait(owed, LifecycleEffect::MeasureResting, stage)
                }
            },
        }
    }

    fn hand_over(&mut self, owed: Obligations, suspension: Suspension) -> Option<Change> {
        let until = self.now + Duration::from_millis(limits::HANDOVER_MS_MAX);
        self.wait(owed, LifecycleEffect::HandOver, Stage::HandingOver { suspension, until })
    }

    fn refused(&mut self, owed: Obligations, error: Error) -> Option<Change> {
        self.effects.push(LifecycleEffect::ForgetHandedOver);
        self.fail(owed, error)
    }

    fn lost(&mut self, owed: Obligations) -> Option<Change> {
        let reason = "its guest ended instead of handing over".to_owned();
        self.fail(owed, Error::Lost { reason })
    }

    fn unkillable(&mut self, owed: Obligations) -> Option<Change> {
        let what = "its processes do not end, whatever they are told".to_owned();
        self.fail(owed, Error::Backend(what))
    }

    fn verified(
        &mut self,
        owed: Obligations,
        spec: Box<SandboxSpec>,
        verified: Result<(), Error>,
    ) -> Option<Change> {
        match verified {
            Ok(()) => {
                let purpose = StartPurpose::Attach(spec.outcome, spec.disk_age);
                self.start(owed, LifecycleEffect::Start(spec), purpose)
            }
            Err(error) => self.undo(owed, spec.disk_age, error),
        }
    }

    fn start(
        &mut self,
        owed: Obligations,
        effect: LifecycleEffect,
        purpose: StartPurpose,
    ) -> Option<Change> {
        let until = self.now + Duration::from_millis(limits::GUEST_START_MS_MAX);
        self.wait(owed, effect, Stage::Starting { purpose, until })
    }

    fn started(
        &mut self,
        owed: Obligations,
        purpose: StartPurpose,
        started: Result<(), Error>,
    ) -> Option<Change> {
        match (purpose, started) {
            // From here on it lives, whether this caller reaches it or not.
            (StartPurpose::Attach(outcome, _), Ok(())) => self.attach(owed, outcome),
            (StartPurpose::Attach(_, disk_age), Err(error)) => self.undo(owed, disk_age, error),
            // If it can't go on it is cold, and whoever asks for it learns why.
            (StartPurpose::GoOn, Ok(()) | Err(_)) => self.finish(owed, Answer::Done),
        }
    }

    fn attach(&mut self, owed: Obligations, outcome: CreateOutcome) -> Option<Change> {
        self.effects.extend(owed.peer.map(|peer| LifecycleEffect::Attach(peer, outcome)));
        self.proceed(owed.waiting)
    }

    /// Nothing ran over the disk: what was made for that goes.
    fn undo(&mut self, owed: Obligations, disk_age: DiskAge, error: Error) -> Option<Change> {
        if disk_age == DiskAge::New {
            self.effects.push(LifecycleEffect::DiscardDisk);
        }
        self.fail(owed, error)
    }

    fn ended(
        &mut self,
        mut owed: Obligations,
        suspension: Option<Suspension>,
        previous: Option<PreviousGuest>,
    ) -> Option<Change> {
        let Some(suspension) = suspension else {
            return self.wait(owed, LifecycleEffect::Delete, Stage::Deleting);
        };
        owed.previous = previous;
        let handover = owed.previous.as_ref().map_or(Handover::Absent, |_| Handover::Written);
        self.wait(owed, LifecycleEffect::Measure(handover), Stage::Measuring(suspension))
    }

    fn measured(
        &mut self,
        owed: Obligations,
        suspension: Suspension,
        measure: Measure,
    ) -> Option<Change> {
        let Measure { tree, kept } = measure;
        let (Some(previous), Some(kept)) = (&owed.previous, kept) else {
            return self.suspended(owed, suspension, tree);
        };
        let generation = previous.generation.clone();
        let record = LifecycleEffect::Record { generation, tree, kept };
        self.wait(owed, record, Stage::Recording(suspension, tree))
    }

    fn suspended(
        &mut self,
        owed: Obligations,
        suspension: Suspension,
        tree: Fingerprint,
    ) -> Option<Change> {
        match suspension {
            Suspension::Cold => self.finish(owed, Answer::Done),
            Suspension::Snapshot(name) => {
                self.wait(owed, LifecycleEffect::Seal(tree), Stage::Sealing(name))
            }
        }
    }

    fn sealed(&mut self, owed: Obligations, name: SnapshotId, layers: usize) -> Option<Change> {
        if layers < limits::LAYERS_FLATTEN {
            return self.wait(owed, LifecycleEffect::Name(name), Stage::Naming);
        }
        self.wait(owed, LifecycleEffect::Flatten, Stage::Flattening(name))
    }

    fn flattened(&mut self, owed: Obligations, name: SnapshotId) -> Option<Change> {
        let next = self.wait(owed, LifecycleEffect::Name(name), Stage::Naming);
        // Either the many layers, or the one that could not be made.
        self.effects.push(LifecycleEffect::CollectLayers);
        next
    }

    fn named(&mut self, mut owed: Obligations, snapshot: Snapshot) -> Option<Change> {
        let answer = Answer::Snapshot(snapshot);
        self.effects.extend(owed.peer.take().map(|peer| LifecycleEffect::Answer(peer, answer)));
        self.go_on(owed)
    }

    /// What becomes of a life that was ended for this: it goes on for whoever asks for it, not
    /// at all if its end is all that they ask for, and soon if nobody does, because others
    /// come first.
    fn go_on(&mut self, owed: Obligations) -> Option<Change> {
        if owed.previous.is_some() && owed.waiting.is_empty() {
            let until = self.now + Duration::from_millis(limits::PUT_OFF_MS);
            return Some(Change { stage: Stage::PutOff { until }, owed });
        }
        let ends = |request: &SandboxRequest| {
            matches!(request, SandboxRequest::Become(DesiredState::Gone | DesiredState::Cold))
        };
        if owed.waiting.iter().all(|(request, _)| ends(request)) {
            return self.finish(owed, Answer::Done);
        }
        self.revive(owed)
    }

    /// A life that was ended for this goes on.
    fn revive(&mut self, mut owed: Obligations) -> Option<Change> {
        match owed.previous.take() {
            Some(previous) => {
                self.start(owed, LifecycleEffect::Resume(previous), StartPurpose::GoOn)
            }
            None => self.finish(owed, Answer::Done),
        }
    }

    /// The time may be over that it waits.
    fn due(&mut self, owed: Obligations, stage: Stage) -> Option<Change> {
        if let Stage::Starting { purpose, until } = stage
            && until <= self.now
        {
            self.effects.push(LifecycleEffect::AbandonStart);
            let late = "the sandbox could not be started: it takes too long".to_owned();
            return self.started(owed, purpose, Err(Error::Backend(late)));
        }
        if let Stage::PutOff { until } = stage
            && until <= self.now
        {
            return self.revive(owed);
        }
        // What it handed over so far is worth nothing, and it may have stopped to serve.
        if let Stage::HandingOver { until, .. } = stage
            && until <= self.now
        {
            return self.wait(owed, LifecycleEffect::Kill, Stage::Failing);
        }
        Some(Change { stage, owed })
    }

    /// It waits for what comes of an effect.
    fn wait(&mut self, owed: Obligations, effect: LifecycleEffect, stage: Stage) -> Option<Change> {
        self.effects.push(effect);
        Some(Change { stage, owed })
    }

    /// It is over, and whoever waited comes next.
    fn finish(&mut self, owed: Obligations, answer: Answer) -> Option<Change> {
        self.effects.extend(owed.peer.map(|peer| LifecycleEffect::Answer(peer, answer)));
        self.proceed(owed.waiting)
    }

    fn fail(&mut self, owed: Obligations, error: Error) -> Option<Change> {
        self.finish(owed, Answer::Failed(error))
    }

    fn proceed(&mut self, mut waiting: VecDeque<(SandboxRequest, PeerId)>) -> Option<Change> {
        let (request, peer) = waiting.pop_front()?;
        self.begin(request, Some(peer), waiting)
    }
}
