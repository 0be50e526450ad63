//! The spawner's loop.
//!
//! Owns who waits for what: connections, ended guests, and the processes that delete
//! disks. Nothing a peer or a guest does can hold it longer than a named limit.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use outrigger_sandbox::{Error, SandboxId};

use super::deleter::Deleter;
use super::images::Job;
use super::live::{Living, Sandboxes};
use super::sys;
use crate::limits;
use crate::protocol::{self, Answer, Request};

/// See the module.
#[derive(Debug)]
pub(super) struct Spawner {
    pub(super) listener: UnixListener,
    pub(super) sandboxes: Sandboxes,
    pub(super) destroying: Vec<Destroying>,
    /// Work on images.
    pub(super) jobs: Vec<Job>,
    /// Deletes what an earlier spawner had no time to.
    pub(super) cleaner: Option<Deleter>,
    /// Held while this lives, so that there is one.
    pub(super) _lock: OwnedFd,
}

/// A request to destroy that is not answered yet.
#[derive(Debug)]
pub(super) struct Destroying {
    id: SandboxId,
    peer: UnixStream,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Its guest was told to end.
    Dying(Box<Living>),
    /// A process deletes its disk.
    Deleting(Deleter),
    /// The answer is known.
    Done(Answer),
}

impl Spawner {
    /// Serves until idle.
    pub(super) fn serve(mut self) -> io::Result<()> {
        let mut active = Instant::now();
        loop {
            let mut fds = vec![sys::pollfd(&self.listener)];
            fds.extend(self.sandboxes.living.values().map(|living| sys::pollfd(living.ended())));
            for destroying in &self.destroying {
                match &destroying.stage {
                    Stage::Dying(living) => fds.push(sys::pollfd(living.ended())),
                    Stage::Deleting(deleter) => fds.push(sys::pollfd(deleter.ended())),
                    Stage::Done(_) => {}
                }
            }
            fds.extend(self.jobs.iter().map(|job| sys::pollfd(job.ended())));
            fds.extend(self.cleaner.as_ref().map(|cleaner| sys::pollfd(cleaner.ended())));
            match sys::poll(&mut fds, limits::SPAWNER_TICK_MS) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                Ok(()) | Err(_) => {}
            }
            let idle = self.sandboxes.living.is_empty()
                && self.destroying.is_empty()
                && self.jobs.is_empty()
                && self.cleaner.is_none();
            if fds.iter().any(|fd| fd.revents != 0) || !idle {
                active = Instant::now();
            }
            self.sandboxes.bury_dead();
            self.destroy_on();
            self.finish_jobs();
            if let Some(cleaner) = self.cleaner.take_if(|cleaner| readable(cleaner.ended())) {
                // What it could not delete stays in the trash for the next spawner.
                cleaner.finish();
            }
            if fds[0].revents != 0 {
                self.accept();
            }
            let over = active.elapsed() >= Duration::from_millis(limits::SPAWNER_IDLE_MS);
            if (idle && over) || !self.sandboxes.has_state() {
                // An engine that connects now finds the connection closed and starts another.
                let _ = std::fs::remove_file(self.sandboxes.socket());
                self.sandboxes.close();
                return Ok(());
            }
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
        let (request, file) = match protocol::receive::<Request>(&peer) {
            Ok(received) => received,
            Err(error) => {
                // An engine of another version sees by the answer's header that this is one.
                let answer = Answer::Failed(Error::Invalid(error.to_string()));
                let _ = protocol::send(&peer, &answer, None);
                return;
            }
        };
        let (answer, fd) = match request {
            Request::Create { id, spec, read_only } => {
                match self.busy(&id).and_then(|()| self.sandboxes.create(&id, &spec, &read_only)) {
                    Ok((generation, fd)) => (self.attached(generation), Some(fd)),
                    Err(error) => (Answer::Failed(error), None),
                }
            }
            Request::Find(id) => match self.sandboxes.find(&id) {
                Ok(Some((generation, fd))) => (self.attached(generation), Some(fd)),
                Ok(None) => (Answer::Absent, None),
                Err(error) => (Answer::Failed(error), None),
            },
            Request::List => match self.sandboxes.list() {
                // One that is on its way out can't be had any more.
                Ok(mut all) => {
                    all.retain(|listed| self.busy(&listed.id).is_ok());
                    (Answer::List(all), None)
                }
                Err(error) => (Answer::Failed(error), None),
            },
            Request::Destroy(id) => return self.destroy(id, peer),
            Request::Image(request) => return self.image(request, file, peer),
        };
        use std::os::fd::AsFd;
        // A peer that is gone asks again when it is back.
        let _ = protocol::send(&peer, &answer, fd.as_ref().map(AsFd::as_fd));
    }

    fn attached(&self, generation: outrigger_sandbox::Generation) -> Answer {
        Answer::Attached { generation, isolation: self.sandboxes.isolation }
    }

    fn busy(&self, id: &SandboxId) -> Result<(), Error> {
        if self.destroying.iter().any(|destroying| destroying.id == *id) {
            return Err(Error::Backend(format!("`{id}` is being destroyed; try again")));
        }
        Ok(())
    }

    fn destroy(&mut self, id: SandboxId, peer: UnixStream) {
        let stage = match self.sandboxes.living.remove(&id) {
            Some(living) => {
                living.kill();
                Stage::Dying(Box::new(living))
            }
            None => self.delete(&id),
        };
        self.destroying.push(Destroying { id, peer, stage });
        self.destroy_on();
    }

    /// Takes a disk away and starts its deletion.
    fn delete(&self, id: &SandboxId) -> Stage {
        let failed = |error: io::Error| {
            Stage::Done(Answer::Failed(Error::Backend(format!("cannot delete the disk: {error}"))))
        };
        let name = match self.sandboxes.discard(id) {
            Ok(None) => return Stage::Done(Answer::Destroyed),
            Ok(Some(name)) => name,
            Err(error) => return failed(error),
        };
        match Deleter::start(|| self.sandboxes.delete_from_trash(&name)) {
            Ok(deleter) => Stage::Deleting(deleter),
            Err(error) => failed(error),
        }
    }

    /// Moves every destruction on that can be.
    fn destroy_on(&mut self) {
        let mut waiting = Vec::new();
        for mut destroying in std::mem::take(&mut self.destroying) {
            loop {
                destroying.stage = match destroying.stage {
                    Stage::Dying(living) if readable(living.ended()) => {
                        living.bury();
                        self.delete(&destroying.id)
                    }
                    Stage::Deleting(deleter) if readable(deleter.ended()) => {
                        Stage::Done(deleted(deleter.finish()))
                    }
                    Stage::Done(answer) => {
                        let _ = protocol::send(&destroying.peer, &answer, None);
                        break;
                    }
                    stage @ (Stage::Dying(_) | Stage::Deleting(_)) => {
                        destroying.stage = stage;
                        waiting.push(destroying);
                        break;
                    }
                };
            }
        }
        self.destroying = waiting;
    }
}

fn deleted(whole: bool) -> Answer {
    if whole {
        return Answer::Destroyed;
    }
    let what = "the sandbox is gone, but its disk could not be deleted whole; \
                what is left of it is in `trash` of the state directory";
    Answer::Failed(Error::Backend(what.to_owned()))
}

pub(super) fn readable(fd: &OwnedFd) -> bool {
    let mut fds = [sys::pollfd(fd)];
    sys::poll(&mut fds, 0).is_ok() && fds[0].revents != 0
}
