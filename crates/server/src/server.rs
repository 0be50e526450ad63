//! The server: what it was given, and what it keeps in memory.

use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

use crate::Services;
use crate::counters::Counters;
use crate::device_logins::DeviceLogins;
use crate::egress_index::EgressIndex;
use crate::hub::Hub;
use crate::limits::TERMINALS_MAX;
use crate::listing::Listing;
use crate::presence::Presence;
use crate::request_keys::RequestKeys;
use crate::sandboxes::UploadTurns;

/// A server. Cheap to share.
#[derive(Debug, Clone)]
pub struct Server {
    pub(crate) parts: Arc<Services>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) listing: Arc<Listing>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) egress: Arc<EgressIndex>,
    pub(crate) presence: Arc<Presence>,
    pub(crate) devices: Arc<DeviceLogins>,
    pub(crate) keys: Arc<RequestKeys>,
    pub(crate) uploads: Arc<UploadTurns>,
    /// One for each terminal that may be open.
    pub(crate) terminals: Arc<Semaphore>,
    /// True once the server is to end: streams end then.
    pub(crate) ends: watch::Receiver<bool>,
}

impl Server {
    /// A server that nobody listens for yet. It ends when `ends` becomes true.
    #[must_use]
    pub fn new(parts: Services, ends: watch::Receiver<bool>) -> Self {
        Self {
            parts: Arc::new(parts),
            hub: Arc::default(),
            listing: Arc::default(),
            counters: Arc::default(),
            egress: Arc::default(),
            presence: Arc::default(),
            devices: Arc::default(),
            keys: Arc::default(),
            uploads: Arc::default(),
            terminals: Arc::new(Semaphore::new(TERMINALS_MAX as usize)),
            ends,
        }
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
