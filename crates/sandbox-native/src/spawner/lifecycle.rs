//! Changes of sandboxes that take more than one step.
//!
//! Owns what a change waits for outside of [`machine`], which decides: callers, processes
//! that may take long, guests that begin. Performs what is decided and tells the machine
//! what came of it. Nothing is decided here.

mod attach;
mod begin;
mod destroy;
pub(crate) mod disk_record;
mod disk_task;
pub(crate) mod event;
pub(crate) mod expire;
mod kill_retry;
#[deny(clippy::wildcard_enum_match_arm)]
mod machine;
pub(crate) mod sandboxes;
mod snapshot;
mod suspend;
pub(crate) mod suspend_record;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use outrigger_sandbox::{Error, SandboxId};

use self::disk_task::{DiskTask, PendingDiskTask, TaskStart};
use self::event::{LifecycleEffect, LifecycleEvent, PeerId, SandboxRequest};
use self::machine::Change;
use self::sandboxes::{Sandboxes, not_started};
use super::create::running::GuestMessage;
use super::create::spec::SandboxSpec;
use super::create::starting::StartingGuest;
use super::error::backend;
use super::event_loop::poll::{Key, Source};
use crate::protocol::{self, Answer};

/// The changes that go on, and what they wait for.
#[derive(Debug, Default)]
pub(crate) struct Lifecycle {
    changes: BTreeMap<SandboxId, Change>,
    peers: BTreeMap<PeerId, UnixStream>,
    next_peer: u64,
    /// Processes that look at a disk, copy or delete it.
    tasks: BTreeMap<SandboxId, PendingDiskTask>,
    starting: BTreeMap<SandboxId, (StartingGuest, Key)>,
}

impl Lifecycle {
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(crate) fn is_changing(&self, id: &SandboxId) -> bool {
        self.changes.contains_key(id)
    }

    /// Whether a life goes on that was ended for something else: whoever asks for it waits
    /// for that.
    pub(crate) fn revives(&self, id: &SandboxId) -> bool {
        self.changes.get(id).is_some_and(Change::revives)
    }

    /// When a change is to be looked at although nothing happened.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.changes.values().filter_map(Change::until).min()
    }

    /// Somebody asks for a sandbox, or the spawner itself does.
    pub(crate) fn ask(
        &mut self,
        sandboxes: &mut Sandboxes,
        id: &SandboxId,
        request: SandboxRequest,
        peer: Option<UnixStream>,
    ) {
        let peer = peer.map(|peer| {
            let number = PeerId(self.next_peer);
            self.next_peer += 1;
            self.peers.insert(number, peer);
            number
        });
        self.advance(sandboxes, id, LifecycleEvent::Asked(request, peer));
    }

    /// The descriptor of a guest says that it ended.
    pub(crate) fn guest_ended(&mut self, sandboxes: &mut Sandboxes, id: &SandboxId) {
        // It may be news of a life that somebody reaped already, about the one after it.
        if sandboxes.running.get(id).is_some_and(|running| !running.has_ended()) {
            return;
        }
        let previous = sandboxes.reap(id);
        self.advance(sandboxes, id, LifecycleEvent::Ended(previous));
    }

    /// A guest said something.
    pub(crate) fn guest_said(&mut self, sandboxes: &mut Sandboxes, id: &SandboxId) {
        let Some(running) = sandboxes.running.get_mut(id) else { return };
        for message in running.hear() {
            let event = match message {
                GuestMessage::Active => {
                    running.active = Instant::now();
                    continue;
                }
                GuestMessage::Busy => {
                    running.active = Instant::now();
                    LifecycleEvent::Refused(Error::Busy {
                        reason: "a command runs in it".to_owned(),
                    })
                }
                GuestMessage::Failed => {
                    let what = "its guest could not write down what it knows".to_owned();
                    LifecycleEvent::Refused(Error::Backend(what))
                }
                GuestMessage::HandedOver => LifecycleEvent::HandedOver,
                GuestMessage::Nonsense => {
                    // Its end is near, or it is broken.
                    running.stop_hearing(&mut sandboxes.poller);
                    return sandboxes.kill(id);
                }
            };
            return self.advance(sandboxes, id, event);
        }
    }

    /// A guest was told to end for a long time and does not.
    pub(crate) fn unkillable(&mut self, sandboxes: &mut Sandboxes, id: &SandboxId) {
        self.advance(sandboxes, id, LifecycleEvent::Unkillable);
    }

    /// Looks at the changes whose time is over.
    pub(crate) fn overdue(&mut self, sandboxes: &mut Sandboxes, now: Instant) {
        let late: Vec<SandboxId> = self
            .changes
            .iter()
            .filter(|(_, change)| change.until().is_some_and(|until| until <= now))
            .map(|(id, _)| id.clone())
            .collect();
        for id in late {
            self.advance(sandboxes, &id, LifecycleEvent::Due);
        }
    }

    /// The process of a change ended, or a guest that begins has something to say.
    pub(crate) fn progressed(&mut self, sandboxes: &mut Sandboxes, id: &SandboxId) {
        let event = match self.tasks.remove(id) {
            Some(pending) => Some(pending.finish(sandboxes, id)),
            None => self.hear_starting(sandboxes, id),
        };
        if let Some(event) = event {
            self.advance(sandboxes, id, event);
        }
    }

    fn hear_starting(
        &mut self,
        sandboxes: &mut Sandboxes,
        id: &SandboxId,
    ) -> Option<LifecycleEvent> {
        let heard = match self.starting.get_mut(id)?.0.hear() {
            Ok(false) => return None,
            heard => heard,
        };
        let (guest, key) = self.starting.remove(id)?;
        sandboxes.poller.remove(key, guest.control());
        let started = match heard {
            Ok(_) => {
                sandboxes.refill();
                sandboxes.adopt(id, guest.into_running())
            }
            Err(error) => {
                guest.discard();
                Err(not_started(error))
            }
        };
        Some(LifecycleEvent::Started(started))
    }

    /// Has the machine decide, and performs that, until there is something to wait for.
    fn advance(&mut self, sandboxes: &mut Sandboxes, id: &SandboxId, event: LifecycleEvent) {
        let mut next = Some(event);
        while let Some(event) = next.take() {
            let state = self.changes.remove(id);
            let (state, effects) = machine::step(id, state, event, Instant::now());
            if let Some(change) = state {
                self.changes.insert(id.clone(), change);
            }
            for effect in effects {
                next = self.perform(sandboxes, id, effect).or(next);
            }
        }
    }

    /// Performs one effect. Gives what came of it, if that is known already.
    fn perform(
        &mut self,
        sandboxes: &mut Sandboxes,
        id: &SandboxId,
        effect: LifecycleEffect,
    ) -> Option<LifecycleEvent> {
        match effect {
            LifecycleEffect::Answer(peer, answer) => self.answer(peer, &answer, None),
            LifecycleEffect::Find(peer) => self.connected(peer, attach::find(sandboxes, id)),
            LifecycleEffect::Attach(peer, outcome) => {
                self.connected(peer, attach::attach(sandboxes, id, outcome));
            }
            LifecycleEffect::Inspect(name) => {
                return Some(attach::inspect(sandboxes, id, name.as_ref()));
            }
            LifecycleEffect::Plan(request) => {
                return Some(LifecycleEvent::Planned(begin::plan(sandboxes, id, *request)));
            }
            LifecycleEffect::Verify(checks) => {
                let begun = begin::verify(sandboxes, id, checks);
                return self.begin(sandboxes, id, begun);
            }
            LifecycleEffect::Start(spec) => return self.start(sandboxes, id, *spec),
            LifecycleEffect::Resume(previous) => match begin::resume(sandboxes, id, previous) {
                Ok(spec) => return self.start(sandboxes, id, spec),
                Err(error) => return Some(LifecycleEvent::Started(Err(error))),
            },
            LifecycleEffect::AbandonStart => {
                if let Some((guest, key)) = self.starting.remove(id) {
                    sandboxes.poller.remove(key, guest.control());
                    guest.discard();
                }
            }
            LifecycleEffect::DiscardDisk => destroy::discard(sandboxes, id),
            LifecycleEffect::HandOver => {
                return suspend::hand_over(sandboxes, id).err().map(LifecycleEvent::Refused);
            }
            LifecycleEffect::ForgetHandedOver => suspend::forget_handed_over(sandboxes, id),
            LifecycleEffect::Kill => sandboxes.kill(id),
            LifecycleEffect::Measure(handover) => {
                let begun = suspend::measure(sandboxes, id, handover);
                return self.begin(sandboxes, id, begun);
            }
            LifecycleEffect::MeasureResting => {
                let begun = snapshot::measure_resting(sandboxes, id);
                return self.begin(sandboxes, id, begun);
            }
            LifecycleEffect::Record { generation, tree, kept } => {
                let recorded = suspend::record(sandboxes, id, generation, tree, kept);
                return Some(LifecycleEvent::Recorded(recorded));
            }
            LifecycleEffect::Seal(tree) => {
                return Some(LifecycleEvent::Sealed(snapshot::seal(sandboxes, id, tree)));
            }
            LifecycleEffect::Flatten => {
                let begun = snapshot::flatten(sandboxes, id);
                return self.begin(sandboxes, id, begun);
            }
            LifecycleEffect::Name(name) => {
                return Some(LifecycleEvent::Named(snapshot::name(sandboxes, id, &name)));
            }
            LifecycleEffect::CollectLayers => sandboxes.collect(),
            LifecycleEffect::Delete => {
                let begun = destroy::delete(sandboxes, id);
                return self.begin(sandboxes, id, begun);
            }
        }
        None
    }

    fn start(
        &mut self,
        sandboxes: &mut Sandboxes,
        id: &SandboxId,
        spec: SandboxSpec,
    ) -> Option<LifecycleEvent> {
        let guest = match sandboxes.start_guest(id, spec) {
            Ok(guest) => guest,
            Err(error) => return Some(LifecycleEvent::Started(Err(error))),
        };
        match sandboxes.poller.add(guest.control(), Source::Change(id.clone())) {
            Ok(key) => {
                self.starting.insert(id.clone(), (guest, key));
                None
            }
            Err(error) => {
                guest.discard();
                Some(LifecycleEvent::Started(Err(backend("cannot wait", &error))))
            }
        }
    }

    /// Has a process waited for, unless what it was for is done already.
    fn begin(
        &mut self,
        sandboxes: &mut Sandboxes,
        id: &SandboxId,
        start: TaskStart,
    ) -> Option<LifecycleEvent> {
        let (task, kind) = match start {
            TaskStart::Done(event) => return Some(event),
            TaskStart::Running(task, kind) => (task, kind),
        };
        match sandboxes.poller.add(task.ended(), Source::Change(id.clone())) {
            Ok(key) => {
                self.tasks.insert(id.clone(), PendingDiskTask { task, key, kind });
                None
            }
            // Its process may still write to the layer, which stays known as one in the making.
            Err(_) if matches!(kind, DiskTask::Flatten(_)) => Some(LifecycleEvent::Flattened),
            Err(error) => Some(kind.event(sandboxes, id, Err(backend("cannot wait", &error)))),
        }
    }

    /// Tells a caller. One that is gone asks again when it is back.
    fn answer(&mut self, peer: PeerId, answer: &Answer, fd: Option<OwnedFd>) {
        if let Some(peer) = self.peers.remove(&peer) {
            let _ = protocol::send(&peer, answer, fd.as_ref().map(AsFd::as_fd));
        }
    }

    fn connected(&mut self, peer: PeerId, found: Result<(Answer, Option<OwnedFd>), Error>) {
        let (answer, fd) = found.unwrap_or_else(|error| (Answer::Failed(error), None));
        self.answer(peer, &answer, fd);
    }
}
