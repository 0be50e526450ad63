//! What a backend, its keeper and its snapshots share.

use outrigger_sandbox::{Capabilities, Error, SandboxId};
use outrigger_sandbox_client::CarriedConnections;
use std::collections::HashMap;
use tokio::sync::Mutex;

use crate::config::Config;
use crate::due::DueTable;
use crate::engine::Engine;
use crate::turns::SandboxTurns;
use crate::used::UsedSandboxes;

/// The daemon, and what this process knows of the sandboxes that it keeps there.
///
/// Sandboxes are made and ended by it in `lifecycle`, reached in `attach`, and kept in
/// `snapshots`.
#[derive(Debug)]
pub(crate) struct DockerContext {
    pub(crate) engine: Engine,
    pub(crate) config: Config,
    pub(crate) capabilities: Capabilities,
    pub(crate) used: UsedSandboxes,
    pub(crate) dues: DueTable,
    pub(crate) turns: SandboxTurns,
    /// The streams that carry what connects inside, one for each life of a sandbox.
    pub(crate) carried: Mutex<HashMap<SandboxId, CarriedConnections>>,
}

/// That there is no such sandbox, or that none of it lives.
pub(crate) fn absent(what: &str, id: &SandboxId) -> Error {
    Error::Absent { what: what.to_owned(), name: id.to_string() }
}
