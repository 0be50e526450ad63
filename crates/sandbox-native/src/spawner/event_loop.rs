//! The spawner's loop.
//!
//! Owns who waits for what: connections, guests, tasks and the clock. Nothing a peer
//! or a guest does can hold it longer than a named limit.

pub(crate) mod poll;
pub(crate) mod task;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use outrigger_sandbox::{CreateSpec, Error, LifecycleState, ListedSandbox};

use self::poll::Source;
use super::create::request::CreateRequest;
use super::layers::images::ImageJobs;
use super::lifecycle::event::{DesiredState, SandboxRequest};
use super::lifecycle::sandboxes::Sandboxes;
use super::lifecycle::{Lifecycle, expire};
use super::quota::disk_usage::DiskUsage;
use crate::limits;
use crate::protocol::{self, Answer, Request};

/// The process that makes sandboxes.
#[derive(Debug)]
pub(crate) struct Spawner {
    listener: UnixListener,
    sandboxes: Sandboxes,
    lifecycle: Lifecycle,
    disk_usage: DiskUsage,
    image_jobs: ImageJobs,
    /// When it is to be looked whether its state is still there.
    look_at: Instant,
    /// Held while this lives, so that there is one.
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
        // What an earlier spawner had no time to.
        sandboxes.clean();
        Ok(Self {
            listener,
            sandboxes,
            lifecycle: Lifecycle::default(),
            disk_usage: DiskUsage::new(),
            image_jobs: ImageJobs::default(),
            look_at: Instant::now(),
            _lock: lock,
        })
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
            self.lifecycle.overdue(&mut self.sandboxes, now);
            for id in self.sandboxes.retry_kills(now) {
                self.lifecycle.unkillable(&mut self.sandboxes, &id);
            }
            expire::expire(&mut self.lifecycle, &mut self.sandboxes, now);
            self.disk_usage.watch(&mut self.sandboxes, now);
            if quiet {
                self.sandboxes.catch_up();
            }
            let idle = self.sandboxes.running.is_empty()
                && self.lifecycle.is_empty()
                && self.image_jobs.is_empty()
                && self.sandboxes.cleaner.is_idle();
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
        let put_off = self.sandboxes.has_put_off();
        let put_off = put_off.then(|| now + Duration::from_millis(limits::PUT_OFF_MS));
        let times = [
            self.lifecycle.next_due(),
            put_off,
            expire::next(&self.lifecycle, &self.sandboxes, now),
            self.disk_usage.next_check(&self.sandboxes),
            self.sandboxes.kill_retries.next(),
        ];
        let tick = Duration::from_millis(limits::SPAWNER_TICK_MS);
        let soonest = times.into_iter().flatten().min();
        soonest.map_or(tick, |soonest| tick.min(soonest.saturating_duration_since(now)))
    }

    fn hear(&mut self, source: Source) {
        let Self { sandboxes, lifecycle, disk_usage, image_jobs, .. } = self;
        match source {
            Source::Listener => self.accept(),
            Source::Ended(id) => lifecycle.guest_ended(sandboxes, &id),
            Source::Message(id) => lifecycle.guest_said(sandboxes, &id),
            Source::Change(id) => lifecycle.progressed(sandboxes, &id),
            Source::Cleaner => sandboxes.cleaner.ended(&sandboxes.store, &mut sandboxes.poller),
            Source::Image(job) => answer(image_jobs.ended(&mut sandboxes.poller, job)),
            Source::DiskUsage => disk_usage.round_ended(sandboxes),
            Source::Look(id) => disk_usage.look_ended(sandboxes, &id),
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
            Ok((request, file)) => self.perform(request, file, peer),
            Err(error) => {
                // Who calls and says nothing may be about to take the state away.
                self.look_at = Instant::now();
                // An engine of another version sees by the answer's header that this is one.
                answer(Some((peer, Answer::Failed(Error::Invalid(error.to_string())))));
            }
        }
    }

    /// Answers a request, at once or when it is done.
    fn perform(&mut self, request: Request, file: Option<OwnedFd>, peer: UnixStream) {
        let (id, request) = match request {
            Request::Create { id, spec, read_only } => {
                let request = CreateRequest { spec, read_only };
                if let Err(error) = request.check().and_then(|()| self.isolates(&request.spec)) {
                    return answer(Some((peer, Answer::Failed(error))));
                }
                (id, SandboxRequest::Become(DesiredState::Live(Box::new(request))))
            }
            Request::Find(id) => (id, SandboxRequest::Find),
            Request::Destroy(id) => (id, SandboxRequest::Become(DesiredState::Gone)),
            Request::Suspend(id) => (id, SandboxRequest::Become(DesiredState::Cold)),
            Request::Snapshot { id, name } => {
                (id, SandboxRequest::Become(DesiredState::Snapshot(name)))
            }
            Request::List => return answer(Some((peer, Answer::List(self.list())))),
            Request::Snapshots => {
                let all = self.sandboxes.snapshots.all.iter();
                let all = all.map(|(name, kept)| kept.describe(name)).collect();
                return answer(Some((peer, Answer::Snapshots(all))));
            }
            Request::Forget(name) => {
                let forgotten = self.sandboxes.forget_snapshot(&name);
                let told = forgotten.map_or_else(Answer::Failed, |()| Answer::Done);
                return answer(Some((peer, told)));
            }
            Request::Image(request) => {
                return answer(self.image_jobs.perform(&mut self.sandboxes, request, file, peer));
            }
        };
        self.lifecycle.ask(&mut self.sandboxes, &id, request, Some(peer));
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
            if self.lifecycle.revives(&listed.id) {
                listed.state = LifecycleState::Running;
            }
        }
        all
    }
}

/// Tells a caller. One that is gone asks again when it is back.
fn answer(told: Option<(UnixStream, Answer)>) {
    if let Some((peer, answer)) = told {
        let _ = protocol::send(&peer, &answer, None);
    }
}
