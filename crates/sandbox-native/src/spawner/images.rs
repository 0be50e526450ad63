//! Requests about images, and the processes that do what takes long.
//!
//! Owns those processes. Each answers its engine by itself; the spawner answers in its
//! place only if it could not.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use outrigger_sandbox::{Error, Isolation};

use super::layer::Owners;
use super::serve::{Spawner, readable};
use super::sys::{self, Fork};
use super::{template, unpack};
use crate::image::ask::{ImageAnswer, ImageRequest, Unpack};
use crate::limits;
use crate::protocol::{self, Answer};

/// A process that does one piece of work.
#[derive(Debug)]
pub(super) struct Job {
    pid: i32,
    pidfd: OwnedFd,
    peer: UnixStream,
}

impl Job {
    /// Starts one. It keeps the connection and `file` of the spawner's descriptors, and
    /// ends with the spawner. To be called by the spawner alone, which has one thread.
    fn start(
        peer: UnixStream,
        file: Option<&OwnedFd>,
        work: impl FnOnce() -> Result<ImageAnswer, Error>,
    ) -> Result<Self, (UnixStream, Error)> {
        let spawner = rustix::process::getpid().as_raw_nonzero().get();
        // SAFETY: the spawner has one thread.
        match unsafe { sys::fork(0) } {
            Err(error) => Err((peer, Error::Backend(format!("cannot start a process: {error}")))),
            Ok(Fork::Parent { pid, pidfd }) => Ok(Self { pid, pidfd, peer }),
            Ok(Fork::Child) => {
                let mut kept = vec![peer.as_fd()];
                kept.extend(file.map(AsFd::as_fd));
                let run = || {
                    sys::die_with(spawner)?;
                    sys::keep_only(&kept)?;
                    let answer = work().map_or_else(Answer::Failed, Answer::Image);
                    // An engine that is gone asks again when it is back.
                    let _ = protocol::send(&peer, &answer, None);
                    Ok::<(), std::io::Error>(())
                };
                // A panic must not unwind into what was copied from the spawner.
                let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
                sys::leave(i32::from(!ran.is_ok_and(|done| done.is_ok())))
            }
        }
    }

    /// Readable when it ended.
    pub(super) fn ended(&self) -> &OwnedFd {
        &self.pidfd
    }

    fn finish(self) {
        if !sys::wait(self.pid) {
            let answer =
                Answer::Failed(Error::Backend("the process that did it failed".to_owned()));
            let _ = protocol::send(&self.peer, &answer, None);
        }
    }
}

impl Spawner {
    /// Answers a request about images, or starts a process that will.
    pub(super) fn image(&mut self, request: ImageRequest, file: Option<OwnedFd>, peer: UnixStream) {
        let state = self.sandboxes.state().to_owned();
        let answer = match request {
            ImageRequest::Missing(layers) => {
                Ok(ImageAnswer::Missing(template::missing(&state, &layers)))
            }
            ImageRequest::List => template::list(&state).map(ImageAnswer::List),
            ImageRequest::Save(template) => template::save(&state, &template).map(|missing| {
                if missing.is_empty() { ImageAnswer::Done } else { ImageAnswer::Missing(missing) }
            }),
            ImageRequest::Unpack(Unpack { diff, .. })
                if template::missing(&state, &[diff]).is_empty() =>
            {
                Ok(ImageAnswer::Unpacked { left_out: 0 })
            }
            ImageRequest::Unpack(request) => match file {
                None => Err(Error::Invalid("no layer came with the request".to_owned())),
                Some(blob) => {
                    let owners = self.owners();
                    return self.job(peer, Some(&blob), || {
                        unpack::unpack(&state, owners, &request, &blob)
                    });
                }
            },
            ImageRequest::Remove(name) => match self.forget(&name) {
                Err(error) => Err(error),
                Ok(trash) => {
                    return self.job(peer, None, || {
                        template::delete(&state, &trash)?;
                        Ok(ImageAnswer::Done)
                    });
                }
            },
        };
        let answer = answer.map_or_else(Answer::Failed, Answer::Image);
        let _ = protocol::send(&peer, &answer, None);
    }

    fn owners(&self) -> Owners {
        match self.sandboxes.isolation {
            Isolation::RootRange => Owners::Layer,
            Isolation::Fake
            | Isolation::Reduced
            | Isolation::RootlessSingle
            | Isolation::RootlessRange => Owners::Caller,
        }
    }

    /// Forgets a template; gives what is to be deleted.
    fn forget(&self, name: &str) -> Result<Vec<String>, Error> {
        template::forget(self.sandboxes.state(), name)?;
        template::collect(self.sandboxes.state(), &self.layers_in_use())
    }

    /// Names of layers that sandboxes and snapshots stand on.
    fn layers_in_use(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }

    fn job(
        &mut self,
        peer: UnixStream,
        file: Option<&OwnedFd>,
        work: impl FnOnce() -> Result<ImageAnswer, Error>,
    ) {
        let started = if self.jobs.len() >= limits::LAYER_JOBS_MAX {
            Err((
                peer,
                Error::Backend("too many layers are unpacked at once; try again".to_owned()),
            ))
        } else {
            Job::start(peer, file, work)
        };
        match started {
            Ok(job) => self.jobs.push(job),
            Err((peer, error)) => {
                let _ = protocol::send(&peer, &Answer::Failed(error), None);
            }
        }
    }

    /// Sees to every job that ended.
    pub(super) fn finish_jobs(&mut self) {
        let (ended, left) =
            std::mem::take(&mut self.jobs).into_iter().partition(|job| readable(job.ended()));
        self.jobs = left;
        for job in <Vec<Job>>::into_iter(ended) {
            job.finish();
        }
    }
}
