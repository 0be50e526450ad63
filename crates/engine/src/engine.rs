//! The engine: everything that it was given, and nothing that it found for itself.

use outrigger_agent::AccountId;
use outrigger_model::Model;
use outrigger_policy::RuleSet;
use outrigger_store::{Blobs, Journal, Terms};
use outrigger_tools::outside::Outside;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::driver::retry::RetryingJournal;
use crate::{Clock, Egress, Error, Feed, MemoryService, RuleSource, SandboxConfig};

/// What an engine is made of.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The journal of all sessions.
    pub journal: Arc<dyn Journal>,
    /// Workspaces and large payloads.
    pub blobs: Arc<dyn Blobs>,
    /// The model.
    pub model: Arc<dyn Model>,
    /// The sandboxes that sessions can have, by name.
    pub sandboxes: BTreeMap<String, SandboxConfig>,
    /// The servers outside whose tools sessions can have, by name.
    pub outside: BTreeMap<String, OutsideServer>,
    /// What lets sandboxes reach something outside, where anything does.
    pub egress: Option<Arc<dyn Egress>>,
    /// Memory and skills, where sessions have them.
    pub memory: Option<MemoryService>,
    /// The rules in force.
    pub rules: Arc<dyn RuleSource>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Who is told.
    pub feed: Feed,
}

/// A server outside, and how patient one is with it.
#[derive(Debug, Clone)]
pub struct OutsideServer {
    /// The way to it.
    pub port: Arc<dyn Outside>,
    /// From the start of a call to giving up, in milliseconds.
    pub timeout_ms: u64,
    /// What a model sees of an answer, in bytes.
    pub result_bytes_max: usize,
}

/// What holds for accounts of which nothing was set in the store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountDefaults {
    /// For the organisation.
    pub organisation: Terms,
    /// For each user.
    pub user: Terms,
}

impl AccountDefaults {
    /// What holds for one account.
    #[must_use]
    pub fn of(&self, account: &AccountId) -> &Terms {
        if account.is_user() { &self.user } else { &self.organisation }
    }
}

/// Drives sessions. Cheap to share; holds no session itself.
#[derive(Debug, Clone)]
pub struct Engine {
    pub(crate) parts: Arc<Parts>,
    pub(crate) defaults: Arc<AccountDefaults>,
}

impl Engine {
    /// Puts an engine together.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self { parts: Arc::new(parts), defaults: Arc::default() }
    }

    /// Limits accounts like that, unless something else was set in the store.
    #[must_use]
    pub fn with_accounts(self, defaults: AccountDefaults) -> Self {
        Self { defaults: Arc::new(defaults), ..self }
    }

    /// Tells those who listen to another feed, which engines can share.
    #[must_use]
    pub fn with_feed(self, feed: Feed) -> Self {
        Self { parts: Arc::new(Parts { feed, ..(*self.parts).clone() }), ..self }
    }

    /// Who is told of what happens here.
    #[must_use]
    pub fn feed(&self) -> &Feed {
        &self.parts.feed
    }

    /// What lets its sandboxes reach something outside, where anything does.
    #[must_use]
    pub fn egress(&self) -> Option<&Arc<dyn Egress>> {
        self.parts.egress.as_ref()
    }

    /// An engine for a driver: it holds what it knows while the store is busy or full.
    pub(crate) fn waiting_for_store(&self) -> Self {
        let (inner, feed) = (Arc::clone(&self.parts.journal), self.feed().clone());
        let journal = Arc::new(RetryingJournal::new(inner, feed));
        Self { parts: Arc::new(Parts { journal, ..(*self.parts).clone() }), ..self.clone() }
    }

    /// The rules in force now.
    ///
    /// # Errors
    /// [`Error::Rules`] where they can't be read.
    pub fn rules(&self) -> Result<RuleSet, Error> {
        self.parts.rules.current().map_err(Error::Rules)
    }
}
