//! Changes of a sandbox that take more than one step.
//!
//! Owns the order of the steps: a guest hands over and ends, its disk is looked at,
//! sealed or deleted, a guest begins. Whatever may take long is waited for by the
//! loop; one sandbox has one change at a time, and whoever asks for it meanwhile waits.

mod begin;
mod destroy;
pub(crate) mod disk_record;
mod expire;
mod kill_retry;
pub(crate) mod sandboxes;
mod snapshot;
mod suspend;
pub(crate) mod suspend_record;

use std::collections::VecDeque;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Instant;

use outrigger_sandbox::{CreateOutcome, CreateSpec, Error, Generation, SandboxId, SnapshotId};

use super::backend;
use super::create::running::GuestMessage;
use super::event_loop::Spawner;
use super::event_loop::poll::{Key, Source};
use super::event_loop::task::Task;
use super::layers::Layer;
use super::layers::verify::{self, Check, Measure};
use super::lifecycle::sandboxes::StartingSandbox;
use super::rootfs::LowerDir;
use crate::limits;
use crate::protocol::{Answer, Request};

pub(crate) use begin::check;

/// What is to become of a sandbox.
#[derive(Debug)]
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

/// What somebody asks a sandbox to be like.
#[derive(Debug, Clone)]
pub(crate) struct CreateRequest {
    pub(crate) spec: CreateSpec,
    pub(crate) read_only: Vec<PathBuf>,
}

/// A change that goes on.
#[derive(Debug)]
pub(crate) struct Change {
    desired: DesiredState,
    /// Who asked for it; `None`: the spawner itself.
    peer: Option<UnixStream>,
    stage: Stage,
    /// The life that was ended for it, to go on afterwards.
    previous: Option<PreviousGuest>,
    /// Who asks for the same sandbox.
    waiting: VecDeque<(Request, UnixStream)>,
}

/// A life that was ended for a change.
#[derive(Debug)]
struct PreviousGuest {
    generation: Generation,
    request: CreateRequest,
}

#[derive(Debug)]
enum Stage {
    /// Nothing was done yet.
    New,
    /// Its guest was asked to hand over.
    HandingOver { until: Instant },
    /// Its guest was told to end.
    Ending,
    /// Its guest was ended because it did not hand over.
    Failing,
    /// A process looks at its disk.
    Measuring(Task, Key),
    /// A process compares its disk with how it was left.
    Verifying(Task, Key, Vec<Check>, FollowUp),
    /// A process makes one layer of those that it stands on.
    Flattening(Task, Key, Layer),
    /// What was asked for is done, and the life that was ended for it goes on soon: others
    /// come first.
    PutOff { until: Instant },
    /// Its guest was told to begin.
    Beginning(Box<PendingStart>, Key),
    /// A process deletes its disk.
    Deleting(Task, Key),
}

/// What follows a comparison.
#[derive(Debug)]
enum FollowUp {
    /// Its guest begins.
    Begin(StartPlan),
    /// Its tree, which looks like this, is sealed.
    Seal(Measure),
}

/// How a guest is to begin.
#[derive(Debug)]
struct StartPlan {
    outcome: CreateOutcome,
    generation: Generation,
    lowers: Vec<LowerDir>,
    template: String,
    disk_age: DiskAge,
}

/// Whose disk it begins over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiskAge {
    /// One that this change made, and that nothing ever ran on.
    New,
    /// One that was there before.
    Old,
}

/// A guest that begins.
#[derive(Debug)]
struct PendingStart {
    starting: StartingSandbox,
    disk_age: DiskAge,
    until: Instant,
    goal: Goal,
}

/// What a guest begins for.
#[derive(Debug)]
enum Goal {
    /// Somebody wants to reach it.
    Attach(CreateOutcome),
    /// It goes on after something was done, which holds even if it can't.
    GoOn,
}

/// What comes of a step.
#[derive(Debug)]
enum StepResult {
    Wait(Stage),
    /// It is done. The life that was ended for it goes on, for which nobody waits.
    GoOn(Answer),
    Done(Answer, Option<OwnedFd>),
}

type Step = Result<StepResult, Error>;

fn done(answer: Answer) -> Step {
    Ok(StepResult::Done(answer, None))
}

impl Change {
    pub(crate) fn new(desired: DesiredState, peer: Option<UnixStream>) -> Self {
        Self { desired, peer, stage: Stage::New, previous: None, waiting: VecDeque::new() }
    }

    /// Has somebody wait for its end. Gives them back if too many do.
    pub(crate) fn queue(&mut self, request: Request, peer: UnixStream) -> Option<UnixStream> {
        if self.waiting.len() >= limits::QUEUED_MAX {
            return Some(peer);
        }
        self.waiting.push_back((request, peer));
        None
    }

    /// Whether a life goes on by it that was ended for something else.
    pub(crate) fn revives(&self) -> bool {
        match &self.stage {
            Stage::PutOff { .. } => true,
            Stage::Beginning(pending, _) => matches!(pending.goal, Goal::GoOn),
            _ => false,
        }
    }

    /// When it is to be looked at although nothing happened.
    pub(crate) fn until(&self) -> Option<Instant> {
        match self.stage {
            Stage::HandingOver { until } | Stage::PutOff { until } => Some(until),
            Stage::Beginning(ref pending, _) => Some(pending.until),
            _ => None,
        }
    }
}

impl Spawner {
    /// Begins a change.
    pub(crate) fn begin(&mut self, id: SandboxId, mut change: Change) {
        let settled = self.sandboxes.settle(&id);
        let settled = settled.map_err(|error| backend("cannot write the record", &error));
        let step = match &change.desired {
            DesiredState::Gone => self.end(&id),
            DesiredState::Live(request) => settled.and_then(|()| self.create(&id, request)),
            DesiredState::Cold => settled.and_then(|()| self.make_cold(&id)),
            DesiredState::Snapshot(name) => settled.and_then(|()| self.snapshot(&id, name)),
        };
        if let Some(id) = self.conclude(id, &mut change, step) {
            self.changes.insert(id, change);
        }
    }

    /// Notes what came of a step. Gives the name back if the change goes on.
    fn conclude(&mut self, id: SandboxId, change: &mut Change, step: Step) -> Option<SandboxId> {
        let (answer, fd) = match step {
            Ok(StepResult::Wait(stage)) => {
                change.stage = stage;
                return Some(id);
            }
            Ok(StepResult::GoOn(answer)) => {
                if let Some(peer) = change.peer.take() {
                    self.answer(&peer, &answer, None);
                }
                let step = self.go_on_living(&id, change);
                return self.conclude(id, change, step);
            }
            Ok(StepResult::Done(answer, fd)) => (answer, fd),
            Err(error) => (Answer::Failed(error), None),
        };
        if let Some(peer) = &change.peer {
            self.answer(peer, &answer, fd);
        }
        // The next one may begin a change itself, and take the others along.
        let mut waiting = std::mem::take(&mut change.waiting);
        while let Some((request, peer)) = waiting.pop_front() {
            self.perform(request, peer);
            if let Some(next) = self.changes.get_mut(&id) {
                next.waiting.append(&mut waiting);
            }
        }
        None
    }

    /// Goes on with a change, because something happened to it.
    fn go_on(&mut self, id: &SandboxId, step: impl FnOnce(&mut Self, &mut Change) -> Step) {
        let Some(mut change) = self.changes.remove(id) else { return };
        let result = step(self, &mut change);
        if let Some(id) = self.conclude(id.clone(), &mut change, result) {
            self.changes.insert(id, change);
        }
    }

    /// A guest ended.
    pub(crate) fn ended(&mut self, id: &SandboxId) {
        let awaited = |change: &Change| {
            matches!(change.stage, Stage::Ending | Stage::Failing | Stage::HandingOver { .. })
        };
        match self.sandboxes.running.get(id) {
            // News of a life that somebody reaped already, about the one after it.
            Some(running) if !running.has_ended() => return,
            None if !self.changes.get(id).is_some_and(awaited) => return,
            Some(_) | None => {}
        }
        if !self.changes.contains_key(id) {
            self.sandboxes.reap(id);
            return;
        }
        self.go_on(id, |spawner, change| {
            let stage = std::mem::replace(&mut change.stage, Stage::New);
            if matches!(stage, Stage::Ending) {
                change.previous = spawner.sandboxes.running.get(id).map(|running| PreviousGuest {
                    generation: running.generation.clone(),
                    request: CreateRequest {
                        spec: running.spec.clone(),
                        read_only: running.read_only.clone(),
                    },
                });
            }
            spawner.sandboxes.reap(id);
            match (stage, &change.desired) {
                (Stage::Ending, DesiredState::Gone) => spawner.delete(id),
                (Stage::Ending, _) => spawner.measure(id, change),
                _ => Err(Error::Lost { reason: "its guest ended instead of handing over".into() }),
            }
        });
    }

    /// A guest said something.
    pub(crate) fn guest_said(&mut self, id: &SandboxId) {
        let Some(running) = self.sandboxes.running.get_mut(id) else { return };
        for message in running.hear() {
            match message {
                GuestMessage::Active => running.active = Instant::now(),
                GuestMessage::Busy => {
                    running.active = Instant::now();
                    let busy = Error::Busy { reason: "a command runs in it".to_owned() };
                    return self.refused(id, busy);
                }
                GuestMessage::Failed => {
                    let what = "its guest could not write down what it knows".to_owned();
                    return self.refused(id, Error::Backend(what));
                }
                GuestMessage::HandedOver => {
                    return self.go_on(id, |spawner, change| {
                        let stage = std::mem::replace(&mut change.stage, Stage::New);
                        if !matches!(stage, Stage::HandingOver { .. }) {
                            return Ok(StepResult::Wait(stage));
                        }
                        spawner.kill(id);
                        Ok(StepResult::Wait(Stage::Ending))
                    });
                }
                GuestMessage::Nonsense => {
                    // Its end is near, or it is broken.
                    running.stop_hearing(&mut self.sandboxes.poller);
                    return self.kill(id);
                }
            }
        }
    }

    /// A guest goes on instead of handing over.
    fn refused(&mut self, id: &SandboxId, why: Error) {
        self.go_on(id, |spawner, change| match change.stage {
            Stage::HandingOver { .. } => {
                let _ = fs::remove_file(spawner.sandboxes.store.disk(id).kept());
                Err(why)
            }
            _ => Ok(StepResult::Wait(std::mem::replace(&mut change.stage, Stage::New))),
        });
    }

    /// A guest was told to end and does not.
    pub(crate) fn does_not_end(&mut self, id: &SandboxId) {
        self.go_on(id, |_, change| match std::mem::replace(&mut change.stage, Stage::New) {
            Stage::Ending | Stage::Failing => {
                Err(Error::Backend("its processes do not end, whatever they are told".to_owned()))
            }
            stage => Ok(StepResult::Wait(stage)),
        });
    }

    /// Somebody asks for a sandbox: what was put off for others is not any more.
    pub(crate) fn wanted(&mut self, id: &SandboxId) {
        if self.changes.get(id).is_some_and(|change| matches!(change.stage, Stage::PutOff { .. })) {
            self.go_on(id, |spawner, change| spawner.go_on_living(id, change));
        }
    }

    /// Looks at the changes whose time is over.
    pub(crate) fn overdue(&mut self, now: Instant) {
        let late: Vec<SandboxId> = self
            .changes
            .iter()
            .filter(|(_, change)| change.until().is_some_and(|until| until <= now))
            .map(|(id, _)| id.clone())
            .collect();
        for id in late {
            self.go_on(&id, |spawner, change| {
                match std::mem::replace(&mut change.stage, Stage::New) {
                    Stage::Beginning(pending, key) => {
                        let late = "the sandbox could not be started: it takes too long";
                        spawner.start_failed(&id, *pending, key, Error::Backend(late.to_owned()))
                    }
                    Stage::PutOff { .. } => spawner.revive(&id, change.previous.take()),
                    // What it handed over so far is worth nothing, and it may have
                    // stopped to serve.
                    _ => {
                        spawner.kill(&id);
                        Ok(StepResult::Wait(Stage::Failing))
                    }
                }
            });
        }
    }

    /// The process of a change ended, or has something to say.
    pub(crate) fn changed(&mut self, id: &SandboxId) {
        self.go_on(id, |spawner, change| match std::mem::replace(&mut change.stage, Stage::New) {
            Stage::Measuring(task, key) => {
                let result = spawner.finish(task, key)?;
                let found = Measure::told(&result)
                    .map_err(|error| backend("cannot look at the disk", &error))?;
                spawner.measured(id, change, found)
            }
            Stage::Verifying(task, key, checks, follow_up) => {
                let result = spawner.finish(task, key)?;
                spawner.verified(id, change, verify::told(&checks, &result), follow_up)
            }
            Stage::Flattening(task, key, layer) => {
                spawner.sandboxes.poller.remove(key, task.ended());
                spawner.flattened(id, change, &layer, task.finish())
            }
            Stage::Beginning(pending, key) => spawner.starting(id, pending, key),
            Stage::Deleting(task, key) => {
                spawner.finish(task, key).map_err(destroy::left)?;
                done(Answer::Done)
            }
            stage @ (Stage::New
            | Stage::HandingOver { .. }
            | Stage::Ending
            | Stage::Failing
            | Stage::PutOff { .. }) => Ok(StepResult::Wait(stage)),
        });
    }

    fn finish(&mut self, task: Task, key: Key) -> Result<Vec<u8>, Error> {
        self.sandboxes.poller.remove(key, task.ended());
        task.finish().map_err(|error| backend("a task of the spawner failed", &error))
    }

    fn await_task(&mut self, id: &SandboxId, task: &Task) -> Result<Key, Error> {
        let source = Source::Change(id.clone());
        let added = self.sandboxes.poller.add(task.ended(), source);
        added.map_err(|error| backend("cannot wait", &error))
    }
}

/// A bug of ours.
fn astray() -> Error {
    Error::Backend("a change of a sandbox went astray".to_owned())
}
