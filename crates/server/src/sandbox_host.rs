//! What the server asks of whoever makes the sandboxes of people.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use outrigger_agent::EgressFlow;
use outrigger_api::{
    CreateSandbox, ForkSandbox, SandboxInfo, SnapshotInfo, SuspendDepth, TemplateList,
};
use outrigger_sandbox::{ExecId, Generation, Sandbox, SandboxId, SnapshotId};

use crate::RequestError;

/// Something that a person's sandbox reached, or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotedFlow {
    /// When it was noted, milliseconds since 1970.
    pub at_ms: u64,
    /// Where to, and how much.
    pub flow: EgressFlow,
}

/// Makes sandboxes that people drive themselves, and finds them again after a restart. Sandboxes
/// of sessions, and those that were made otherwise, are none of them.
#[async_trait]
pub trait SandboxHost: Send + Sync + Debug {
    /// All of them, the newest first.
    ///
    /// # Errors
    /// Where the backend can't be asked.
    async fn list(&self) -> Result<Vec<SandboxInfo>, RequestError>;

    /// Whose one is; nothing where there is none.
    fn owner(&self, id: &SandboxId) -> Option<String>;

    /// Makes one under a name. Where its person has one of that name it is given: the same request
    /// came twice.
    ///
    /// # Errors
    /// What is above the ceiling, or not there; what keeps it from being made.
    async fn create(
        &self,
        person: &str,
        id: &SandboxId,
        asked: CreateSandbox,
    ) -> Result<SandboxInfo, RequestError>;

    /// Makes another one under a name, with the disk of one as it is now or as it was kept.
    ///
    /// # Errors
    /// Where there is no such disk, a command runs, or it can't be made.
    async fn fork(
        &self,
        id: &SandboxId,
        into: (&str, &SandboxId),
        asked: ForkSandbox,
    ) -> Result<SandboxInfo, RequestError>;

    /// One to be used: resumed, or started over its disk, if it does not live.
    ///
    /// # Errors
    /// Where it is gone, or can't be reached.
    async fn open(&self, id: &SandboxId) -> Result<Arc<dyn Sandbox>, RequestError>;

    /// Suspends one.
    ///
    /// # Errors
    /// While a command runs in it.
    async fn suspend(&self, id: &SandboxId, how: SuspendDepth) -> Result<(), RequestError>;

    /// Ends one and deletes its disk.
    ///
    /// # Errors
    /// Where the backend can't do it.
    async fn remove(&self, id: &SandboxId) -> Result<(), RequestError>;

    /// In which life of its sandbox a command was begun by that name; nothing where none was.
    /// `begins`: it is begun now, in this life, unless it was before.
    ///
    /// # Errors
    /// Where it can't be written down.
    fn exec_life(
        &self,
        id: &SandboxId,
        exec: &ExecId,
        begins: Option<&Generation>,
    ) -> Result<Option<Generation>, RequestError>;
}

/// Lets the commands of such sandboxes reach something.
#[async_trait]
pub trait SandboxEgress: Send + Sync + Debug {
    /// Opens what one reaches, for a command that begins: the variables by which it does.
    ///
    /// # Errors
    /// Where it is gone, or nothing can be opened.
    async fn variables(
        &self,
        sandbox: &dyn Sandbox,
    ) -> Result<BTreeMap<String, String>, RequestError>;

    /// From now on its commands reach what these words say, and nothing else.
    ///
    /// # Errors
    /// Words that mean nothing here, or where it is gone.
    async fn set_network(&self, id: &SandboxId, words: &[String]) -> Result<(), RequestError>;

    /// What it reached and what was refused to it, the newest first, as much as is kept.
    ///
    /// # Errors
    /// Where it is gone, or that can't be read.
    async fn egress(&self, id: &SandboxId) -> Result<Vec<NotedFlow>, RequestError>;
}

/// Keeps the disks of such sandboxes, and knows what they can be made from.
#[async_trait]
pub trait SnapshotStore: Send + Sync + Debug {
    /// Keeps a disk as it is now, for a person. One of that name is given as it is.
    ///
    /// # Errors
    /// While a command runs in it.
    async fn take(
        &self,
        sandbox: &SandboxId,
        of: (&str, &SnapshotId),
        label: &str,
    ) -> Result<SnapshotInfo, RequestError>;

    /// All that were taken so, the newest first.
    ///
    /// # Errors
    /// Where the backend can't be asked.
    async fn snapshots(&self) -> Result<Vec<SnapshotInfo>, RequestError>;

    /// Whose one is; nothing where there is none.
    fn snapshot_owner(&self, id: &SnapshotId) -> Option<String>;

    /// Forgets one. Sandboxes that were made from it stay.
    ///
    /// # Errors
    /// Where the backend can't do it.
    async fn forget(&self, id: &SnapshotId) -> Result<(), RequestError>;

    /// What sandboxes can be made from, and the most that one may take.
    ///
    /// # Errors
    /// Where the backend can't be asked.
    async fn templates(&self) -> Result<TemplateList, RequestError>;
}
