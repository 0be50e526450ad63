//! The ports that a backend implements.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::sync::Arc;

use crate::{
    Capabilities, Error, ExecId, Execute, Executed, FileOp, FileReply, Generation, Isolation,
    Output, SandboxId,
};

/// What a sandbox is made from. Mounts, devices, privileges and host network are
/// not expressible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Name of the root filesystem, known to the backend.
    pub template: String,
    /// The least isolation that the caller accepts; less is [`Error::Unavailable`].
    pub isolation_min: Isolation,
    /// Memory of all processes together, in bytes.
    pub memory_bytes_max: u64,
    /// Processes and threads at once.
    pub pids_max: u32,
    /// CPU, in thousandths of a core.
    pub cpu_millis_max: u32,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            template: "host-tools".to_owned(),
            isolation_min: Isolation::RootlessSingle,
            memory_bytes_max: 2 << 30,
            pids_max: 512,
            cpu_millis_max: 2_000,
        }
    }
}

/// Receives output while a command runs. Called in order, from one task; must not block.
pub trait OutputSink: Send + Sync {
    /// Takes the next piece.
    fn output(&self, output: Output<'_>);
}

impl OutputSink for () {
    fn output(&self, _: Output<'_>) {}
}

/// Makes sandboxes and finds them again.
///
/// All methods may be called at once from many tasks, and are safe to repeat
/// after a crash of the caller: sandboxes outlive the process that asked for them.
#[async_trait]
pub trait Backend: Send + Sync + Debug {
    /// What this backend offers on this host. Probed once, when it was opened.
    fn capabilities(&self) -> &Capabilities;

    /// Makes the sandbox, or attaches to the one of that name that lives already.
    /// Repeating it is harmless. A sandbox that died is made anew, over what is
    /// left of its disk, with another [`Generation`].
    async fn create(&self, id: &SandboxId, spec: &Spec) -> Result<Arc<dyn Sandbox>, Error>;

    /// The living sandbox of that name, if there is one. Makes nothing.
    async fn find(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>, Error>;

    /// Names of all sandboxes of this backend, living or dead but not destroyed, sorted.
    async fn list(&self) -> Result<Vec<SandboxId>, Error>;

    /// Ends every process of the sandbox and deletes its disk. One that is not there is fine.
    async fn destroy(&self, id: &SandboxId) -> Result<(), Error>;
}

/// A living sandbox.
///
/// Dropping a future of a method stops the waiting, not what was asked for: a
/// command goes on until it ends, its deadline passes or [`Sandbox::kill`].
#[async_trait]
pub trait Sandbox: Send + Sync + Debug {
    /// Its name.
    fn id(&self) -> &SandboxId;

    /// Which life of it this is.
    fn generation(&self) -> &Generation;

    /// Whether this life goes on, as far as is known here: asks nobody. `false` is
    /// certain, and whatever is asked of this handle from then on is [`Error::Lost`];
    /// `true` may be out of date.
    fn is_alive(&self) -> bool;

    /// Runs a command, or waits for the one of the same id, or gives the kept
    /// outcome of the one that ended: create-or-attach, never a second run. The
    /// rest of a request whose id is known is ignored. `sink` gets all output
    /// that was kept and all that follows, from the first byte.
    async fn execute(&self, request: Execute, sink: &dyn OutputSink) -> Result<Executed, Error>;

    /// Kills the whole process tree of a command within [`crate::limits::KILL_MS_MAX`].
    /// One that ended, or never was, is fine; an id that never was is refused from now on with [`crate::End::Killed`].
    async fn kill(&self, id: &ExecId) -> Result<(), Error>;

    /// Performs a file operation with the rights of the sandbox's user.
    async fn files(&self, op: FileOp) -> Result<FileReply, Error>;
}
