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
use crate::spawner::error::backend;
use crate::spawner::event_loop::poll::{Key, Poller, Source};
use crate::spawner::lifecycle::sandboxes::Sandboxes;
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
pub(crate) struct ImageJobs {
    running: BTreeMap<u64, (Job, Key)>,
    next: u64,
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

impl ImageJobs {
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Answers a request about images, or starts a process that will. Gives the caller back
    /// with the answer if there is one.
    pub(crate) fn perform(
        &mut self,
        sandboxes: &mut Sandboxes,
        request: ImageRequest,
        file: Option<OwnedFd>,
        peer: UnixStream,
    ) -> Option<(UnixStream, Answer)> {
        let store = &sandboxes.store;
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
                Some(blob) => match self.unpack(sandboxes, &request, &blob, peer) {
                    Ok(()) => return None,
                    Err((peer, error)) => return Some((peer, Answer::Failed(error))),
                },
            },
            ImageRequest::Remove(name) if sandboxes.stands_on(&name) => Ok(ImageAnswer::Done),
            ImageRequest::Remove(name) => template::forget(store, &name).map(|()| {
                sandboxes.collect();
                ImageAnswer::Done
            }),
        };
        Some((peer, answer.map_or_else(Answer::Failed, Answer::Image)))
    }

    fn unpack(
        &mut self,
        sandboxes: &mut Sandboxes,
        request: &UnpackRequest,
        blob: &OwnedFd,
        peer: UnixStream,
    ) -> Result<(), (UnixStream, Error)> {
        if self.running.len() >= limits::LAYER_JOBS_MAX {
            let what = "too many layers are unpacked at once; try again".to_owned();
            return Err((peer, Error::Backend(what)));
        }
        let owners = match sandboxes.isolation {
            Isolation::RootRange => Owners::Layer,
            Isolation::RootlessRange => Owners::Shifted,
            _ => Owners::Caller,
        };
        let work = || unpack::unpack(&sandboxes.store, owners, request, blob);
        let started = Job::start(&peer, blob, work).and_then(|(pid, pidfd)| {
            let key = sandboxes.poller.add(&pidfd, Source::Image(self.next))?;
            Ok((pid, pidfd, key))
        });
        match started {
            Ok((pid, pidfd, key)) => {
                self.running.insert(self.next, (Job { pid, pidfd, peer }, key));
                self.next += 1;
                Ok(())
            }
            Err(error) => Err((peer, backend("cannot start a process", &error))),
        }
    }

    /// Sees to a job that ended. Gives its caller back if it could not answer by itself.
    pub(crate) fn ended(
        &mut self,
        poller: &mut Poller,
        number: u64,
    ) -> Option<(UnixStream, Answer)> {
        let (job, key) = self.running.remove(&number)?;
        poller.remove(key, &job.pidfd);
        if sys::wait(job.pid) {
            return None;
        }
        let reason = "the process that unpacks a layer ended early".to_owned();
        Some((job.peer, Answer::Failed(Error::Backend(reason))))
    }
}
