//! The ports that a backend implements.

use async_trait::async_trait;
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::{
    Capabilities, CreateOutcome, CreateSpec, Error, ExecId, ExecOutcome, Execute, FileOp,
    FileReply, Generation, Input, ListedSandbox, Output, SandboxId, Snapshot, SnapshotId, Suspend,
};

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

    /// Makes the sandbox, or attaches to the one of that name: a frozen one thaws, a
    /// cold one is resumed in the same [`Generation`], after its disk was verified
    /// ([`Error::Altered`]). Repeating it is harmless. One that died is made anew,
    /// over what is left of its disk, with another generation; only a sandbox
    /// without a disk begins from [`CreateSpec::origin`]. [`Sandbox::outcome`] tells which.
    async fn create(&self, id: &SandboxId, spec: &CreateSpec) -> Result<Arc<dyn Sandbox>, Error>;

    /// The living sandbox of that name, running or frozen, if there is one. Makes
    /// and resumes nothing.
    async fn find(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>, Error>;

    /// All sandboxes of this backend, living or dead but not destroyed, sorted by name.
    async fn list(&self) -> Result<Vec<ListedSandbox>, Error>;

    /// Ends every process of the sandbox and deletes its disk. One that is not there
    /// is fine. Snapshots of it stay.
    async fn destroy(&self, id: &SandboxId) -> Result<(), Error>;

    /// Suspends a living sandbox, [`Error::Busy`] while a command runs in it. One that
    /// is suspended at least as deeply already is fine; one that does not live is
    /// [`Error::Absent`].
    async fn suspend(&self, id: &SandboxId, how: Suspend) -> Result<(), Error>;

    /// Snapshots, where the backend has them, else [`Error::Unsupported`].
    fn snapshots(&self) -> Result<&dyn Snapshots, Error>;

    /// Removes what calls that were cut short left behind, which no list shows, and
    /// ends what [`crate::Lifetime::age_ms_max`] is over for. Says how many things that
    /// were. Harmless while others make sandboxes and snapshots. A backend that leaves
    /// nothing has nothing to do.
    async fn sweep(&self) -> Result<usize, Error> {
        Ok(0)
    }
}

/// Keeps the disks of sandboxes as they were, to restore and fork from: a sandbox
/// is made from one by [`crate::DiskOrigin::Snapshot`].
#[async_trait]
pub trait Snapshots: Send + Sync + Debug {
    /// Keeps the disk of a sandbox, living or not, as it is now. [`Error::Busy`] while
    /// a command runs in it. The sandbox goes on in the same generation; processes
    /// that commands left behind may end. A snapshot of that name that is there
    /// already is the answer, whatever it was taken of: repeating it is harmless.
    async fn take(&self, sandbox: &SandboxId, name: &SnapshotId) -> Result<Snapshot, Error>;

    /// All snapshots, sorted by name.
    async fn list(&self) -> Result<Vec<Snapshot>, Error>;

    /// Forgets a snapshot. What others stand on stays until they are gone too. One
    /// that is not there is fine.
    async fn remove(&self, name: &SnapshotId) -> Result<(), Error>;
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

    /// What the call that gave this handle found.
    fn outcome(&self) -> CreateOutcome;

    /// Whether this life goes on, as far as is known here: asks nobody. `false` is
    /// certain, and whatever is asked of this handle from then on is [`Error::Lost`];
    /// `true` may be out of date. A sandbox that went cold is lost to its handles:
    /// [`Backend::create`] resumes it in the same generation.
    fn is_alive(&self) -> bool;

    /// Runs a command, or waits for the one of the same id, or gives the kept
    /// outcome of the one that ended: create-or-attach, never a second run. The
    /// rest of a request whose id is known is ignored. `sink` gets all output
    /// that was kept and all that follows, from the first byte. A frozen sandbox thaws.
    async fn execute(&self, request: Execute, sink: &dyn OutputSink) -> Result<ExecOutcome, Error>;

    /// Kills the whole process tree of a command within [`crate::limits::KILL_MS_MAX`].
    /// One that ended, or never was, is fine; an id that never was is refused from now on with [`crate::End::Killed`].
    async fn kill(&self, id: &ExecId) -> Result<(), Error>;

    /// Gives a running command with a terminal something to read, or its terminal
    /// another size. A command without one, or that ended, is [`Error::Invalid`].
    async fn input(&self, id: &ExecId, input: Input) -> Result<(), Error>;

    /// Performs a file operation with the rights of the sandbox's user.
    async fn files(&self, op: FileOp) -> Result<FileReply, Error>;
}

/// Takes connections that programs of a sandbox made. Called from one task; must not block.
pub trait ConnectionSink: Send + Sync {
    /// Takes the next one: a stream of bytes, one end of a pair of sockets. `captured`: the port
    /// of [`crate::capture::ADDRESS`] that the program connected to; `None`: it was the other.
    fn connection(&self, connection: OwnedFd, captured: Option<u16>);
}

/// Where the programs of a sandbox find its way out.
#[derive(Debug)]
pub struct Listener {
    /// A port of the sandbox's own `127.0.0.1`.
    pub port: u16,
    /// The listening sockets themselves, to accept on: that of the port, and at
    /// [`crate::capture::ADDRESS`] those of the ports that were free. They outlive whoever asked for them. Where there
    /// are none each connection goes to the [`ConnectionSink`], for as long as the asker lives.
    pub descriptors: Vec<OwnedFd>,
}

/// Gives sandboxes a way out: a listener inside, whose connections somebody outside takes.
/// A backend that has it declares [`crate::NetworkMode::Gate`].
#[async_trait]
pub trait Networks: Send + Sync + Debug {
    /// Has the guest of a living sandbox listen, and says where. From then on names lead to
    /// [`crate::capture::ADDRESS`], and what connects there comes the same way: at its own ports
    /// and at `ports`, at most [`crate::limits::CAPTURED_PORTS_MAX`]. Repeating it gives the same
    /// port in the same [`Generation`]; where connections go to a sink, that stays the first one of
    /// this process for as long as `ports` do: with others those that are carried end.
    /// [`Error::Absent`] if the sandbox does not live.
    async fn listen(
        &self,
        id: &SandboxId,
        ports: &[u16],
        sink: Arc<dyn ConnectionSink>,
    ) -> Result<Listener, Error>;
}
