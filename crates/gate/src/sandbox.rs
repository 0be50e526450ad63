//! One sandbox, as its connections see it.
//!
//! Owns what they share: the rules of the moment, the table, the authority, and how many
//! there are. That the rules changed or ended reaches them by the same channel.

mod authority;
mod pace;
mod questions;
mod table;

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout_at;

pub(crate) use authority::Authority;
pub(crate) use table::{Outcome, Row, Table};

use crate::host::Target;
use crate::limits;
use crate::network::Destination;
use crate::outside::Outside;
use crate::rules::Rules;
use pace::Pace;
use questions::Questions;

/// One sandbox.
#[derive(Debug)]
pub(crate) struct Sandbox {
    /// `None`: it is closed.
    rules: watch::Sender<Option<Arc<Rules>>>,
    pub(crate) table: Table,
    questions: Questions,
    /// `None`: a caller, which trusts the gate with its requests as they are.
    pub(crate) authority: Option<Authority>,
    pub(crate) outside: Arc<Outside>,
    /// When its next connection is served, and its next request.
    pub(crate) arrivals: Pace,
    pub(crate) requests: Pace,
    room: Arc<Semaphore>,
    outside_room: Arc<Semaphore>,
}

/// The hosts and the secrets that one connection has to do with.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    hosts: Mutex<Vec<Target>>,
    secrets: Mutex<Vec<String>>,
}

impl Sandbox {
    pub(crate) fn new(rules: Rules, authority: Option<Authority>, outside: Arc<Outside>) -> Self {
        Self {
            rules: watch::Sender::new(Some(Arc::new(rules))),
            table: Table::default(),
            questions: Questions::default(),
            authority,
            outside,
            arrivals: Pace::new(limits::CONNECTIONS_PER_S_MAX, limits::CONNECTIONS_MAX as u32),
            requests: Pace::new(limits::REQUESTS_PER_S_MAX, limits::REQUESTS_PER_S_MAX),
            room: Arc::new(Semaphore::new(limits::CONNECTIONS_MAX)),
            outside_room: Arc::new(Semaphore::new(limits::UPSTREAMS_MAX)),
        }
    }

    pub(crate) fn change(&self, rules: Rules) -> Arc<Rules> {
        self.questions.answered(&rules);
        let rules = Arc::new(rules);
        self.rules.send_replace(Some(Arc::clone(&rules)));
        rules
    }

    /// Whether it is a process of the installation itself, to which TLS is not spoken.
    pub(crate) fn is_caller(&self) -> bool {
        self.authority.is_none()
    }

    pub(crate) fn end(&self) {
        self.rules.send_replace(None);
    }

    /// What is granted now. `None`: the sandbox is closed.
    pub(crate) fn rules(&self) -> Option<Arc<Rules>> {
        self.rules.borrow().clone()
    }

    /// Waits until somebody answered about a host that is to be asked about, or nobody will.
    pub(crate) async fn hold(&self, target: &Target) {
        let asks =
            |rules: &Option<Arc<Rules>>| rules.as_ref().is_some_and(|rules| rules.asks(target));
        let mut rules = self.rules.subscribe();
        if !asks(&rules.borrow()) {
            return;
        }
        let Some(held) = self.questions.hold(target) else { return };
        let _ = timeout_at(held.until, rules.wait_for(|rules| !asks(rules))).await;
    }

    /// What is asked now.
    pub(crate) fn questions(&self) -> Vec<Destination> {
        self.rules().map(|rules| self.questions.open(&rules)).unwrap_or_default()
    }

    /// Room for a connection, as soon as there is some.
    pub(crate) async fn room(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).acquire_owned().await.ok()
    }

    /// Room for a connection, if there is some.
    pub(crate) fn room_now(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).try_acquire_owned().ok()
    }

    /// Room for a connection to the outside, if there is some.
    pub(crate) fn outside_room_now(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.outside_room).try_acquire_owned().ok()
    }

    /// Whether anything is connected. One place is held for the next connection.
    pub(crate) fn is_used(&self) -> bool {
        self.room.available_permits() + 1 < limits::CONNECTIONS_MAX
    }

    /// Until one of the hosts or secrets is not granted any more, or the sandbox is closed.
    pub(crate) async fn revoked(&self, targets: &Targets) {
        let revoked = |rules: &Option<Arc<Rules>>| match rules {
            None => true,
            Some(rules) => !targets.are_granted(rules),
        };
        let _ = self.rules.subscribe().wait_for(revoked).await;
    }
}

impl Targets {
    /// Adds one before it is reached.
    pub(crate) fn add(&self, target: &Target) {
        let mut hosts = lock(&self.hosts);
        if !hosts.contains(target) {
            hosts.push(target.clone());
        }
    }

    /// Adds secrets before they are sent.
    pub(crate) fn add_secrets(&self, ids: Vec<String>) {
        let mut secrets = lock(&self.secrets);
        for id in ids {
            if !secrets.contains(&id) {
                secrets.push(id);
            }
        }
    }

    fn are_granted(&self, rules: &Rules) -> bool {
        lock(&self.hosts).iter().all(|target| rules.knows(target))
            && lock(&self.secrets).iter().all(|id| rules.secrets.has(id))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection from inside that waits to be served.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) fd: OwnedFd,
    /// The port to which a name led it. `None`: it came to the proxy.
    pub(crate) captured: Option<u16>,
    pub(crate) room: OwnedSemaphorePermit,
}
