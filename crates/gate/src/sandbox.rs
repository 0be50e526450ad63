//! One sandbox, as its connections see it.
//!
//! Owns what they share: the rules of the moment, the table, the authority, and how many
//! there are. That the rules changed or ended reaches them by the same channel.

mod authority;
mod questions;
mod table;

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout_at;

pub(crate) use authority::Authority;
pub(crate) use table::{Outcome, Row, Table};

use crate::host::Target;
use crate::limits;
use crate::network::Destination;
use crate::outside::Outside;
use crate::rules::Rules;
use questions::Questions;

/// One sandbox.
#[derive(Debug)]
pub(crate) struct Sandbox {
    /// `None`: it is closed.
    rules: watch::Sender<Option<Arc<Rules>>>,
    pub(crate) table: Table,
    questions: Questions,
    pub(crate) authority: Authority,
    pub(crate) outside: Arc<Outside>,
    room: Arc<Semaphore>,
}

/// The hosts that one connection has to do with.
#[derive(Debug, Default)]
pub(crate) struct Targets(Mutex<Vec<Target>>);

impl Sandbox {
    pub(crate) fn new(rules: Rules, authority: Authority, outside: Arc<Outside>) -> Self {
        Self {
            rules: watch::Sender::new(Some(Arc::new(rules))),
            table: Table::default(),
            questions: Questions::default(),
            authority,
            outside,
            room: Arc::new(Semaphore::new(limits::CONNECTIONS_MAX)),
        }
    }

    pub(crate) fn change(&self, rules: Rules) {
        self.questions.answered(&rules);
        self.rules.send_replace(Some(Arc::new(rules)));
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

    /// Whether anything is connected. One place is held for the next connection.
    pub(crate) fn is_used(&self) -> bool {
        self.room.available_permits() + 1 < limits::CONNECTIONS_MAX
    }

    /// Until one of the hosts is not granted any more, or the sandbox is closed.
    pub(crate) async fn revoked(&self, targets: &Targets) {
        let revoked = |rules: &Option<Arc<Rules>>| match rules {
            None => true,
            Some(rules) => !targets.all(|target| rules.knows(target)),
        };
        let _ = self.rules.subscribe().wait_for(revoked).await;
    }
}

impl Targets {
    /// Adds one before it is reached.
    pub(crate) fn add(&self, target: &Target) {
        let mut targets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !targets.contains(target) {
            targets.push(target.clone());
        }
    }

    fn all(&self, holds: impl Fn(&Target) -> bool) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().all(holds)
    }
}

/// A connection from inside that waits to be served.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) fd: OwnedFd,
    pub(crate) room: OwnedSemaphorePermit,
}
