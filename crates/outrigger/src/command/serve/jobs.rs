//! What takes long and stays on one thread: opening sessions, taking changes out. A job goes on
//! to its end, whether anybody waits for it or not.

use futures_util::future::LocalBoxFuture;
use outrigger_api::ProblemCode;
use outrigger_server::RequestError;
use std::fmt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::failure::told;
use crate::exit::Outcome;
use crate::limits;

type Job = Box<dyn FnOnce() -> LocalBoxFuture<'static, ()> + Send>;

/// Gives jobs to the thread that does them.
#[derive(Clone)]
pub(super) struct Jobs(mpsc::Sender<Job>);

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Jobs")
    }
}

/// Jobs that wait for the thread.
pub(super) struct JobQueue(mpsc::Receiver<Job>);

pub(super) fn jobs() -> (Jobs, JobQueue) {
    let (sender, receiver) = mpsc::channel(limits::SERVE_JOBS_MAX);
    (Jobs(sender), JobQueue(receiver))
}

impl Jobs {
    /// Has a job done. Nothing if the server ends before it is over.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> LocalBoxFuture<'static, T> + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move || {
            Box::pin(async move {
                // Who asked may have gone.
                drop(answer.send(job().await));
            })
        });
        self.0.send(job).await.ok()?;
        answered.await.ok()
    }
}

impl Jobs {
    /// Has something done that somebody asked the server for.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> LocalBoxFuture<'static, Outcome<T>> + Send + 'static,
    ) -> Result<T, RequestError> {
        let ends = || RequestError::new(ProblemCode::Internal, "the server is about to end");
        self.run(job).await.ok_or_else(ends)?.map_err(told)
    }
}

impl JobQueue {
    /// Does jobs beside each other, on a thread with a `LocalSet`, until nobody gives any more.
    pub(super) async fn work(mut self) {
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                job = self.0.recv() => match job {
                    Some(job) => drop(running.spawn_local(job())),
                    None => return,
                },
                Some(_) = running.join_next() => {}
            }
        }
    }
}
