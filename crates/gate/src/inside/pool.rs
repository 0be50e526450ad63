//! The connections to the outside that one connection from inside has.
//!
//! Owns which of them wait to be used again. None is shared between two connections from
//! inside: what one left in them can't reach another.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::{Request, Response};

use super::body::Outgoing;
use super::http::Dialect;
use crate::host::Target;
use crate::limits;

/// What connections are kept by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) target: Target,
    /// One that was dialled under a private grant is for such grants only.
    pub(super) private: bool,
}

/// A connection to the outside that requests can be sent on.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) sender: Sender,
    pub(super) dialect: Dialect,
}

/// Its end in hyper.
#[derive(Debug)]
pub(super) enum Sender {
    One(http1::SendRequest<Outgoing>),
    Two(http2::SendRequest<Outgoing>),
}

/// Connections that wait.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<(Key, Upstream)>>);

impl Upstream {
    pub(super) async fn send(
        &mut self,
        request: Request<Outgoing>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Outgoing>>> {
        match &mut self.sender {
            Sender::One(sender) => sender.try_send_request(request).await,
            Sender::Two(sender) => sender.try_send_request(request).await,
        }
    }

    fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::One(sender) => sender.is_closed(),
            Sender::Two(sender) => sender.is_closed(),
        }
    }

    fn is_ready(&self) -> bool {
        match &self.sender {
            Sender::One(sender) => sender.is_ready(),
            Sender::Two(sender) => sender.is_ready(),
        }
    }

    /// Whether it gets ready in a moment: it may have to see first that the last answer ended.
    async fn gets_ready(&mut self) -> bool {
        let limit = Duration::from_millis(limits::READY_MS_MAX);
        match &mut self.sender {
            Sender::One(sender) => {
                matches!(tokio::time::timeout(limit, sender.ready()).await, Ok(Ok(())))
            }
            Sender::Two(_) => false,
        }
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Vec<(Key, Upstream)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one that can be used. `alone`: the inside has one request at a time, so that one
    /// which is still busy is about to be done.
    pub(super) async fn take(&self, key: &Key, alone: bool) -> Option<Upstream> {
        let mut upstream = {
            let mut waiting = self.lock();
            waiting.retain(|(_, upstream)| !upstream.is_closed());
            let fits =
                |(of, upstream): &(Key, Upstream)| of == key && (alone || upstream.is_ready());
            let at = waiting.iter().position(fits)?;
            if let Sender::Two(sender) = &waiting[at].1.sender {
                let sender = Sender::Two(sender.clone());
                return Some(Upstream { sender, dialect: Dialect::Two });
            }
            waiting.swap_remove(at).1
        };
        (upstream.is_ready() || upstream.gets_ready().await).then_some(upstream)
    }

    /// Gives one back, as soon as the head of its answer is there.
    pub(super) fn give(&self, key: Key, upstream: Upstream) {
        let mut waiting = self.lock();
        if matches!(upstream.sender, Sender::Two(_)) && waiting.iter().any(|(of, _)| *of == key) {
            return;
        }
        if waiting.len() >= limits::IDLE_UPSTREAMS_MAX {
            waiting.remove(0);
        }
        waiting.push((key, upstream));
    }
}
