//! The spawner's loop.
//!
//! Owns who waits for what: connections, guests, tasks and the clock. Nothing a peer
//! or a guest does can hold it longer than a named limit.

pub(crate) mod poll;
pub(crate) mod task;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use outrigger_sandbox::{
    CreateOutcome, CreateSpec, Error, LifecycleState, ListedSandbox, SandboxId, SnapshotId,
};

use super::create::running::unreached;
use super::event_loop::poll::{Key, Source};
use super::event_loop::task::Task;
use super::layers::images::Jobs;
use super::lifecycle::sandboxes::Sandboxes;
use super::lifecycle::{Change, CreateRequest, DesiredState, check};
use super::quota::disk_usage::DiskUsage;
use crate::limits;
use crate::protocol::{self, Answer, Request};

/// The process that makes sandboxes.
#[derive(Debug)]
pub(crate) struct Spawner {
    listener: UnixListener,
    pub(crate) sandboxes: Sandboxes,
    pub(crate) changes: BTreeMap<SandboxId, Change>,
    pub(crate) disk_usage: DiskUsage,
    /// Work on images.
    pub(crate) jobs: Jobs,
    /// Deletes what is in the trash and nobody waits for.
    cleaner: Option<(Task, Key)>,
    /// Something was put there since it was started.
    clean_again: bool,
    /// Held while this lives, so that there is one.
    /// When it is to be looked whether its state is still there.
    look_at: Instant,
    _lock: OwnedFd,
}

impl Spawner {
    /// Over a state directory that was brought in order.
    pub(crate) fn new(
        listener: UnixListener,
        mut sandboxes: Sandboxes,
        lock: OwnedFd,
    ) -> io::Result<Self> {
        sandboxes.poller.add(&listener, Source::Listener)?;
        let mut spawner = Self {
            listener,
            sandboxes,
            changes: BTreeMap::new(),
            disk_usage: DiskUsage::new(),
            jobs: Jobs::default(),
            cleaner: None,
            clean_again: false,
            look_at: Instant::now(),
            _lock: lock,
        };
        // What an earlier spawner had no time to.
        spawner.clean();
        Ok(spawner)
    }

    /// Serves until idle.
    pub(crate) fn serve(mut self) -> io::Result<()> {
        let mut active = Instant::now();
        loop {
            let sources = self.sandboxes.poller.wait(self.policy())?;
            let quiet = sources.is_empty();
            for source in sources {
                self.hear(source);
            }
            let now = Instant::now();
            self.overdue(now);
            self.retry_kills(now);
            self.expire(now);
            self.watch(now);
            if quiet {
                self.sandboxes.catch_up();
            }
            let idle = self.sandboxes.running.is_empty()
                && self.changes.is_empty()
                && self.jobs.is_empty()
                && self.cleaner.is_none();
            if !quiet || !idle {
                active = now;
            }
            let over = active.elapsed() >= Duration::from_millis(limits::SPAWNER_IDLE_MS);
            let look = self.look_at <= now;
            if look {
                self.look_at = now + Duration::from_millis(limits::SPAWNER_TICK_MS);
            }
            if (idle && over) || (look && !self.sandboxes.has_state()) {
                // An engine that connects now finds the connection closed and starts another.
                let _ = std::fs::remove_file(self.sandboxes.store.socket());
                self.sandboxes.close();
                return Ok(());
            }
        }
    }

    /// How long there is nothing to do if nothing happens.
    fn policy(&self) -> Duration {
        let now = Instant::now();
        let changes = self.changes.values().filter_map(Change::until);
        let put_off = self.sandboxes.has_put_off();
        let put_off = put_off.then(|| now + Duration::from_millis(limits::PUT_OFF_MS));
        let others =
            [put_off, self.next_expiry(now), self.next_disk_check(), self.next_kill_retry()];
        let soonest = changes.chain(others.into_iter().flatten()).min();
        let tick = Duration::from_millis(limits::SPAWNER_TICK_MS);
        soonest.map_or(tick, |soonest| tick.min(soonest.saturating_duration_since(now)))
    }

    fn hear(&mut self, source: Source) {
        match source {
            Source::Listener => self.accept(),
            Source::Ended(id) => self.ended(&id),
            Source::Message(id) => self.guest_said(&id),
            Source::Change(id) => self.changed(&id),
            Source::Cleaner => self.cleaned(),
            Source::Image(job) => self.finish_job(job),
            Source::DiskUsage => self.disks_checked(),
            Source::Look(id) => self.looked(&id),
        }
    }

    fn accept(&mut self) {
        let Ok((peer, _)) = self.listener.accept() else { return };
        let limit = Some(Duration::from_millis(limits::SPAWNER_PEER_MS_MAX));
        let ours = rustix::net::sockopt::socket_peercred(&peer)
            .is_ok_and(|peer| peer.uid == rustix::process::geteuid());
        if !ours || peer.set_read_timeout(limit).is_err() || peer.set_write_timeout(limit).is_err()
        {
            return;
        }
        match protocol::receive::<Request>(&peer) {
            Ok((Request::Image(request), file)) => self.image(request, file, peer),
            Ok((request, _)) => self.perform(request, peer),
            Err(error) => {
                // Who calls and says nothing may be about to take the state away.
                self.look_at = Instant::now();
                // An engine of another version sees by the answer's header that this is one.
                self.answer(&peer, &Answer::Failed(Error::Invalid(error.to_string())), None);
            }
        }
    }

    /// Answers a request, at once or when it is done.
    pub(crate) fn perform(&mut self, request: Request, peer: UnixStream) {
        if let Some(id) = concerns(&request)
            && let Some(change) = self.changes.get_mut(id)
        {
            let id = id.clone();
            if let Some(peer) = change.queue(request, peer) {
                let what = format!("too many wait for `{id}`; try again");
                self.answer(&peer, &Answer::Failed(Error::Backend(what)), None);
            }
            return self.wanted(&id);
        }
        let answer = match request {
            Request::Create { id, spec, read_only } => {
                let request = CreateRequest { spec, read_only };
                match check(&request).and_then(|()| self.isolates(&request.spec)) {
                    Ok(()) => {
                        return self.begin(
                            id,
                            Change::new(DesiredState::Live(Box::new(request)), Some(peer)),
                        );
                    }
                    Err(error) => Err(error),
                }
            }
            Request::Destroy(id) => {
                return self.begin(id, Change::new(DesiredState::Gone, Some(peer)));
            }
            Request::Suspend(id) => {
                return self.begin(id, Change::new(DesiredState::Cold, Some(peer)));
            }
            Request::Snapshot { id, name } => {
                return self.begin(id, Change::new(DesiredState::Snapshot(name), Some(peer)));
            }
            Request::Find(id) => match self.find(&id) {
                Ok((answer, fd)) => return self.answer(&peer, &answer, fd),
                Err(error) => Err(error),
            },
            Request::List => Ok(Answer::List(self.list())),
            Request::Snapshots => {
                let all = self.sandboxes.snapshots.iter();
                Ok(Answer::Snapshots(all.map(|(name, kept)| kept.describe(name)).collect()))
            }
            Request::Forget(name) => self.forget(&name),
            // Takes a descriptor along, so it never waits here.
            Request::Image(request) => return self.image(request, None, peer),
        };
        self.answer(&peer, &answer.unwrap_or_else(Answer::Failed), None);
    }

    /// Tells a peer. One that is gone asks again when it is back.
    pub(crate) fn answer(&self, peer: &UnixStream, answer: &Answer, fd: Option<OwnedFd>) {
        let _ = protocol::send(peer, answer, fd.as_ref().map(AsFd::as_fd));
    }

    fn isolates(&self, spec: &CreateSpec) -> Result<(), Error> {
        let (wanted, given) = (spec.isolation_min, self.sandboxes.isolation);
        if given >= wanted {
            return Ok(());
        }
        Err(Error::Unavailable {
            reason: format!("{wanted:?} isolation was asked for and this host gives {given:?}"),
            advice: "run as root, or lower isolation_min".to_owned(),
        })
    }

    fn list(&self) -> Vec<ListedSandbox> {
        let mut all = self.sandboxes.list();
        for listed in &mut all {
            // Whoever asks for it waits for that.
            if self.changes.get(&listed.id).is_some_and(Change::revives) {
                listed.state = LifecycleState::Running;
            }
        }
        all
    }

    fn find(&mut self, id: &SandboxId) -> Result<(Answer, Option<OwnedFd>), Error> {
        let cold = self.sandboxes.disks.get(id).is_some_and(|disk| disk.cold.is_some());
        let running = match self.sandboxes.running.get_mut(id) {
            Some(running) if !running.has_ended() => running,
            Some(_) | None => return Ok((Answer::Absent { cold }, None)),
        };
        let (generation, fd) = running.connect().map_err(unreached)?;
        let frozen = running.group.is_frozen();
        let (isolation, outcome) = (self.sandboxes.isolation, CreateOutcome::Attached);
        Ok((Answer::Attached { generation, isolation, outcome, frozen }, Some(fd)))
    }

    fn forget(&mut self, name: &SnapshotId) -> Result<Answer, Error> {
        if self.sandboxes.forget_snapshot(name)? {
            self.collect();
        }
        Ok(Answer::Done)
    }

    /// Has every layer deleted that nothing stands on any more.
    pub(crate) fn collect(&mut self) {
        // What can't be collected now is when a spawner starts.
        if let Ok(true) = self.sandboxes.discard_unused_layers() {
            self.clean();
        }
    }

    /// Has the trash emptied in the background.
    pub(crate) fn clean(&mut self) {
        if self.cleaner.is_some() {
            self.clean_again = true;
            return;
        }
        let store = self.sandboxes.store.clone();
        // What it can't delete stays in the trash for the next spawner.
        let Ok(task) = Task::start(|| store.empty_trash().map(|()| Vec::new())) else { return };
        if let Ok(key) = self.sandboxes.poller.add(task.ended(), Source::Cleaner) {
            self.cleaner = Some((task, key));
        }
    }

    fn cleaned(&mut self) {
        let Some((task, key)) = self.cleaner.take() else { return };
        self.sandboxes.poller.remove(key, task.ended());
        let _ = task.finish();
        if std::mem::take(&mut self.clean_again) {
            self.clean();
        }
    }
}

/// The sandbox that must not be changing meanwhile.
fn concerns(request: &Request) -> Option<&SandboxId> {
    match request {
        Request::Create { id, .. }
        | Request::Find(id)
        | Request::Destroy(id)
        | Request::Suspend(id)
        | Request::Snapshot { id, .. } => Some(id),
        Request::List | Request::Snapshots | Request::Forget(_) | Request::Image(_) => None,
    }
}
