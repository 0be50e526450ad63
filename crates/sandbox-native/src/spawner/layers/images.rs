//! Requests about images, and the processes that unpack layers.
//!
//! Owns those processes. Each answers its engine by itself; the spawner answers in its
//! place only if it could not.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use outrigger_sandbox::{Error, Isolation};

use super::entries::Owners;
use super::template;
use super::unpack;
use crate::image::request::{ImageAnswer, ImageRequest, UnpackRequest};
use crate::limits;
use crate::protocol::{self, Answer};
use crate::spawner::backend;
use crate::spawner::event_loop::Spawner;
use crate::spawner::event_loop::poll::{Key, Source};
use crate::spawner::sys::{self, Fork};

/// A process that does one piece of work.
#[derive(Debug)]
struct Job {
    pid: i32,
    pidfd: OwnedFd,
    peer: UnixStream,
}

/// Those that go on, by number.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    running: BTreeMap<u64, (Job, Key)>,
    next: u64,
}

impl Jobs {
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }
}

impl Job {
    /// Starts one. It keeps the connection and `file` of the spawner's descriptors, and
    /// ends with the spawner. To be called by the spawner alone, which has one thread.
    fn start(
        peer: &UnixStream,
        file: &OwnedFd,
        work: impl FnOnce() -> Result<ImageAnswer, Error>,
    ) -> std::io::Result<(i32, OwnedFd)> {
        let spawner = rustix::process::getpid().as_raw_nonzero().get();
        // SAFETY: the spawner has one thread.
        match unsafe { sys::fork(0) }? {
            Fork::Parent { pid, pidfd } => Ok((pid, pidfd)),
            Fork::Child => {
                let run = || {
                    sys::die_with(spawner)?;
                    sys::keep_only(&[peer.as_fd(), file.as_fd()])?;
                    let answer = work().map_or_else(Answer::Failed, Answer::Image);
                    // An engine that is gone asks again when it is back.
                    let _ = protocol::send(peer, &answer, None);
                    Ok::<(), std::io::Error>(())
                };
                // A panic must not unwind into what was copied from the spawner.
                let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
                sys::leave(i32::from(!ran.is_ok_and(|done| done.is_ok())))
            }
        }
    }
}

impl Spawner {
    /// Answers a request about images, or starts a process that will.
    pub(crate) fn image(&mut self, request: ImageRequest, file: Option<OwnedFd>, peer: UnixStream) {
        let store = &self.sandboxes.store;
        let answer = match request {
            ImageRequest::Missing(layers) => {
                Ok(ImageAnswer::Missing(template::missing(store, &layers)))
            }
            ImageRequest::List => template::list(store).map(ImageAnswer::List),
            ImageRequest::Save(template) => template::save(store, &template).map(|missing| {
                if missing.is_empty() { ImageAnswer::Done } else { ImageAnswer::Missing(missing) }
            }),
            ImageRequest::Unpack(UnpackRequest { diff, .. })
                if template::missing(store, &[diff]).is_empty() =>
            {
                Ok(ImageAnswer::Unpacked { left_out: 0 })
            }
            ImageRequest::Unpack(request) => match file {
                None => Err(Error::Invalid("no layer came with the request".to_owned())),
                Some(blob) => return self.unpack(&request, &blob, peer),
            },
            ImageRequest::Remove(name) => template::forget(store, &name).map(|()| {
                self.collect();
                ImageAnswer::Done
            }),
        };
        self.answer(&peer, &answer.map_or_else(Answer::Failed, Answer::Image), None);
    }

    fn owners(&self) -> Owners {
        match self.sandboxes.isolation {
            Isolation::RootRange => Owners::Layer,
            Isolation::RootlessRange => Owners::Shifted,
            _ => Owners::Caller,
        }
    }

    fn unpack(&mut self, request: &UnpackRequest, blob: &OwnedFd, peer: UnixStream) {
        let (store, owners) = (self.sandboxes.store.clone(), self.owners());
        let number = self.jobs.next;
        let started = if self.jobs.running.len() >= limits::LAYER_JOBS_MAX {
            Err(Error::Backend("too many layers are unpacked at once; try again".to_owned()))
        } else {
            let work = || unpack::unpack(&store, owners, request, blob);
            let started = Job::start(&peer, blob, work).and_then(|(pid, pidfd)| {
                let key = self.sandboxes.poller.add(&pidfd, Source::Image(number))?;
                Ok((pid, pidfd, key))
            });
            started.map_err(|error| backend("cannot start a process", &error))
        };
        match started {
            Ok((pid, pidfd, key)) => {
                self.jobs.next += 1;
                self.jobs.running.insert(number, (Job { pid, pidfd, peer }, key));
            }
            Err(error) => self.answer(&peer, &Answer::Failed(error), None),
        }
    }

    /// Sees to a job that ended.
    pub(crate) fn finish_job(&mut self, number: u64) {
        let Some((job, key)) = self.jobs.running.remove(&number) else { return };
        self.sandboxes.poller.remove(key, &job.pidfd);
        if !sys::wait(job.pid) {
            let reason = "the process that unpacks a layer ended early".to_owned();
            self.answer(&job.peer, &Answer::Failed(Error::Backend(reason)), None);
        }
    }
}
