//! The server: what it was given, and what it keeps in memory.

use outrigger_agent::{Seq, SessionId, State};
use std::sync::Arc;
use tokio::sync::watch;

use crate::counters::Counters;
use crate::hub::Hub;
use crate::listing::Listing;
use crate::{RequestError, Services};

/// A server. Cheap to share.
#[derive(Debug, Clone)]
pub struct Server {
    pub(crate) parts: Arc<Services>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) listing: Arc<Listing>,
    pub(crate) counters: Arc<Counters>,
    /// True once the server is to end: streams end then.
    pub(crate) ends: watch::Receiver<bool>,
}

impl Server {
    /// A server that nobody listens for yet. It ends when `ends` becomes true.
    #[must_use]
    pub fn new(parts: Services, ends: watch::Receiver<bool>) -> Self {
        let (hub, listing, counters) = (Arc::default(), Arc::default(), Arc::default());
        Self { parts: Arc::new(parts), hub, listing, counters, ends }
    }

    /// The state of a session that is a person's. What is somebody else's does not exist.
    pub(crate) async fn state(
        &self,
        person: &str,
        session: &str,
    ) -> Result<(SessionId, State), RequestError> {
        let unknown = || RequestError::not_found(format!("there is no session `{session}`"));
        let id = SessionId::new(session).ok_or_else(unknown)?;
        let state = self.parts.engine.state(&id).await?;
        let is_theirs = state.spec().is_some_and(|spec| spec.principal == person);
        if is_theirs { Ok((id, state)) } else { Err(unknown()) }
    }

    /// A session that is a person's, which is known of most without their journal.
    pub(crate) async fn own(&self, person: &str, session: &str) -> Result<SessionId, RequestError> {
        if let Some(id) = SessionId::new(session).filter(|id| self.listing.is_of(id, person))
            // It may have been removed since.
            && self.parts.journal.head(&id).await? > Seq(0)
        {
            return Ok(id);
        }
        self.state(person, session).await.map(|(id, _)| id)
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.parts.clock.now_ms()
    }
}

/// Waits until the server is to end.
pub(crate) async fn ended(mut ends: watch::Receiver<bool>) {
    // An error means that who could end it is gone, which ends it as well.
    drop(ends.wait_for(|ends| *ends).await);
}
