//! The moments between turns, taken where a turn begins: when the model is asked.
//! Everything before that is durable then.
//!
//! Must never do more than read two clocks while turns are measured.

use async_trait::async_trait;
use outrigger_agent::Reply;
use outrigger_model::{Client, Description, Error, Frames, Model, Request};
use rustix::time::{ClockId, clock_gettime};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A moment between two turns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    /// Processor time of this process until then, all threads, user and system.
    pub(crate) cpu_ms: f64,
    /// The moment.
    pub(crate) at: Instant,
}

impl Mark {
    fn now() -> Self {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let cpu_ms = time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6;
        Self { cpu_ms, at: Instant::now() }
    }
}

/// The marks of one session, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks(Arc<Mutex<Vec<Mark>>>);

impl Marks {
    /// Takes them out, so that the next session begins anew.
    pub(crate) fn take(&self) -> Vec<Mark> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The product's client, with a mark at every question.
#[derive(Debug)]
pub(crate) struct MarkedClient {
    pub(crate) client: Client,
    pub(crate) marks: Marks,
}

#[async_trait]
impl Model for MarkedClient {
    fn describe(&self) -> &Description {
        self.client.describe()
    }

    async fn reply(&self, request: &Request<'_>, frames: &dyn Frames) -> Result<Reply, Error> {
        self.marks.0.lock().unwrap_or_else(PoisonError::into_inner).push(Mark::now());
        self.client.reply(request, frames).await
    }
}
