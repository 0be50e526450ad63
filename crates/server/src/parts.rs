//! What a server is made of, and by which addresses it is reached.

use outrigger_engine::{AccountDefaults, Clock, Engine};
use outrigger_store::entries::{Entries, Reviews};
use outrigger_store::{Accounts, DatabaseAddress, Journal, Keys};
use std::path::PathBuf;
use std::sync::Arc;

use crate::{
    AgentCatalog, LoginProvider, Observer, SandboxEgress, SandboxHost, SecretStore, SessionChanges,
    SessionDisks, SessionHost, SkillCatalog, SnapshotStore, UploadHost,
};

/// What a server is made of.
#[derive(Debug, Clone)]
pub struct Services {
    /// Takes in what people say; performs nothing. Its feed is the one that every driver of
    /// this process tells.
    pub engine: Engine,
    /// The journal of all sessions.
    pub journal: Arc<dyn Journal>,
    /// Who is let in.
    pub keys: Arc<dyn Keys>,
    /// Memory and skills.
    pub entries: Arc<dyn Entries>,
    /// What is proposed for them.
    pub reviews: Arc<dyn Reviews>,
    /// What was spent.
    pub accounts: Arc<dyn Accounts>,
    /// What may be spent where nothing else was set.
    pub usual: AccountDefaults,
    /// The directory of the store, for its audit.
    pub store: PathBuf,
    /// Where the store's database is.
    pub database: DatabaseAddress,
    /// Opens and drives sessions.
    pub host: Arc<dyn SessionHost>,
    /// Takes directories that people send.
    pub uploads: Arc<dyn UploadHost>,
    /// Knows the agents.
    pub agents: Arc<dyn AgentCatalog>,
    /// Knows the skills.
    pub skills: Arc<dyn SkillCatalog>,
    /// Takes out what they changed.
    pub changes: Arc<dyn SessionChanges>,
    /// Looks into their sandboxes.
    pub disks: Arc<dyn SessionDisks>,
    /// Makes sandboxes that people drive themselves.
    pub sandboxes: Arc<dyn SandboxHost>,
    /// Lets their commands reach something.
    pub sandbox_egress: Arc<dyn SandboxEgress>,
    /// Keeps their disks.
    pub snapshots: Arc<dyn SnapshotStore>,
    /// Where files are made that are gone with their last handle.
    pub scratch: PathBuf,
    /// Keeps secrets.
    pub secrets: Arc<dyn SecretStore>,
    /// Knows people by an account elsewhere.
    pub logins: Arc<dyn LoginProvider>,
    /// Is told what it did.
    pub observer: Arc<dyn Observer>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// By which addresses the server is reached.
    pub origins: Origins,
}

/// By which addresses people reach the server: what comes by another name is refused, so that
/// no page elsewhere can make a browser speak for its person (DNS rebinding, cross-site requests).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origins {
    all: Vec<String>,
}

impl Origins {
    /// Origins such as `http://127.0.0.1:7373`, the first of which links name.
    #[must_use]
    pub fn new(all: Vec<String>) -> Self {
        Self { all }
    }

    /// The one that links name.
    #[must_use]
    pub fn first(&self) -> &str {
        self.all.first().map_or("", String::as_str)
    }

    /// Whether cookies may be sent over TLS alone.
    pub(crate) fn is_secure(&self) -> bool {
        self.first().starts_with("https://")
    }

    /// Whether it is the host of the one that links name.
    pub(crate) fn is_first(&self, host: &str) -> bool {
        self.first().split_once("://").is_some_and(|(_, known)| known == host)
    }

    pub(crate) fn has(&self, origin: &str) -> bool {
        self.all.iter().any(|known| known == origin)
    }

    pub(crate) fn has_host(&self, host: &str) -> bool {
        let hosts = self.all.iter().filter_map(|known| known.split_once("://"));
        hosts.into_iter().any(|(_, known)| known == host)
    }
}
