//! What the cases about suspension, snapshots and forks are made with.

pub(super) mod cold;
pub(super) mod fork;
pub(super) mod frozen;
pub(super) mod lifecycle;
pub(super) mod lifetime;
pub(super) mod snapshot;

use std::time::Duration;

use super::context::{Context, Listener, Outcome, id, same, shell, soon, start, text, within};
use outrigger_sandbox::{
    CreateSpec, DiskOrigin, End, Error, FileOp, LifecycleState, ListedSandbox, ManifestEntry,
    SandboxId, Snapshot, SnapshotId, Snapshots, Suspend,
};
use outrigger_sandbox::{FileReply, limits};

/// Between two looks at what must change soon.
const LOOK: Duration = Duration::from_millis(20);

/// How long a case looks for what a backend does by itself, once some seconds are over.
const CHANGE: Duration = Duration::from_secs(60);

/// Time in which something that runs would show, and something that stopped does not.
pub(super) async fn a_while() {
    // poll: nothing tells that something does not happen.
    tokio::time::sleep(Duration::from_millis(250)).await;
}

/// Looks again and again, until a look gives something. An error of a look ends it.
pub(super) async fn until<T, L>(what: &str, mut look: impl FnMut() -> L) -> Result<T, String>
where
    L: Future<Output = Result<Option<T>, String>>,
{
    let looking = async {
        loop {
            if let Some(seen) = look().await? {
                return Ok(seen);
            }
            // poll: the port tells of no change by itself.
            tokio::time::sleep(LOOK).await;
        }
    };
    within(CHANGE, what, looking).await?
}

/// Demands a certain kind of error.
pub(super) fn refused<T: std::fmt::Debug>(
    what: &str,
    result: Result<T, Error>,
    expected: fn(&Error) -> bool,
) -> Outcome {
    match result {
        Err(error) if expected(&error) => Ok(()),
        other => Err(format!("{what}: got {}", start(&other))),
    }
}

pub(super) fn is_absent(error: &Error) -> bool {
    matches!(error, Error::Absent { .. })
}

pub(super) fn is_busy(error: &Error) -> bool {
    matches!(error, Error::Busy { .. })
}

pub(super) fn is_lost(error: &Error) -> bool {
    matches!(error, Error::Lost { .. })
}

pub(super) fn is_invalid(error: &Error) -> bool {
    matches!(error, Error::Invalid(_))
}

pub(super) fn is_unsupported(error: &Error) -> bool {
    matches!(error, Error::Unsupported { .. })
}

impl Context {
    /// The sandbox as `create` gives it now.
    pub(super) async fn again(&self) -> Result<Self, String> {
        let made = self.backend.create(self.sandbox.id(), &self.spec).await;
        let sandbox = made.map_err(|error| format!("create: {error}"))?;
        Ok(Self { sandbox, ..self.clone() })
    }

    /// The sandbox as `find` gives it now.
    pub(super) async fn found(&self) -> Result<Option<Self>, String> {
        let found = self.backend.find(self.sandbox.id()).await;
        let found = found.map_err(|error| format!("find: {error}"))?;
        Ok(found.map(|sandbox| Self { sandbox, ..self.clone() }))
    }

    /// Its entry in the list.
    pub(super) async fn listed(&self) -> Result<Option<ListedSandbox>, String> {
        let all = self.backend.list().await.map_err(|error| format!("list: {error}"))?;
        Ok(all.into_iter().find(|listed| listed.id == *self.sandbox.id()))
    }

    /// What the list says that it does; `None` if it is not there.
    pub(super) async fn state(&self) -> Result<Option<LifecycleState>, String> {
        Ok(self.listed().await?.map(|listed| listed.state))
    }

    /// Suspends it.
    pub(super) async fn suspend(&self, how: Suspend) -> Outcome {
        let suspended = self.backend.suspend(self.sandbox.id(), how).await;
        suspended.map_err(|error| format!("suspend {how}: {error}"))
    }

    /// Suspends it cold and resumes it.
    pub(super) async fn resumed(&self) -> Result<Self, String> {
        self.suspend(Suspend::Cold).await?;
        self.again().await
    }

    /// Starts a command and stops waiting once it has printed `up`.
    pub(super) async fn begin(&self, name: &str, line: &str) -> Outcome {
        let listener = Listener::default();
        let running = self.sandbox.execute(shell(name, line), &listener);
        tokio::select! {
            done = running => Err(format!("it ended too soon: {done:?}")),
            heard = soon("its first output", listener.hears("up")) => heard,
        }
    }

    /// Kills a command that printed `up` and went on: that it ends by this shows that it
    /// ran until now.
    pub(super) async fn killed(&self, name: &str) -> Outcome {
        let killed = self.sandbox.kill(&id(name)).await;
        killed.map_err(|error| format!("kill: {error}"))?;
        let done = soon("its end", self.shell(name, "true")).await??;
        same("outcome", (done.end, text(&done.stdout)), (End::Killed, "up\n".to_owned()))
    }

    /// The backend's snapshots.
    pub(super) fn snapshots(&self) -> Result<&dyn Snapshots, String> {
        self.backend.snapshots().map_err(|error| format!("snapshots: {error}"))
    }

    /// A name for a snapshot of this case.
    pub(super) fn snapshot_id(&self, suffix: &str) -> Result<SnapshotId, String> {
        let name = format!("{}-{suffix}", self.sandbox.id());
        SnapshotId::new(name).map_err(|error| error.to_string())
    }

    /// Takes a snapshot.
    pub(super) async fn take(&self, suffix: &str) -> Result<Snapshot, String> {
        let name = self.snapshot_id(suffix)?;
        let taken = self.snapshots()?.take(self.sandbox.id(), &name).await;
        taken.map_err(|error| format!("take {suffix}: {error}"))
    }

    /// Another sandbox, made from a snapshot.
    pub(super) async fn forked(&self, from: &Snapshot, suffix: &str) -> Result<Self, String> {
        let name = format!("{}-{suffix}", self.sandbox.id());
        let name = SandboxId::new(name).map_err(|error| error.to_string())?;
        let spec =
            CreateSpec { origin: DiskOrigin::Snapshot(from.name.clone()), ..self.spec.clone() };
        let made = self.backend.create(&name, &spec).await;
        let sandbox = made.map_err(|error| format!("create from {}: {error}", from.name))?;
        Ok(Self { sandbox, spec, ..self.clone() })
    }

    /// Every file and link of the workspace.
    pub(super) async fn manifest(&self) -> Result<Vec<ManifestEntry>, String> {
        let mut all: Vec<ManifestEntry> = Vec::new();
        loop {
            let after = all.last().map(|entry| entry.path.clone());
            let root = "/workspace".to_owned();
            let op = FileOp::Manifest {
                root,
                after,
                skip: Vec::new(),
                entries_max: limits::ENTRIES_MAX,
            };
            match self.files(op).await? {
                FileReply::Manifest { entries, more } => {
                    all.extend(entries);
                    if !more {
                        return Ok(all);
                    }
                }
                other => return Err(format!("manifest answered {other:?}")),
            }
        }
    }

    /// Removes what is at a path.
    pub(super) async fn remove(&self, name: &str, path: &str) -> Outcome {
        let op = FileOp::Remove { id: id(name), path: path.to_owned() };
        self.files(op).await.map(drop)
    }

    /// Size of a file; 0 while it is not there.
    pub(super) async fn size(&self, path: &str) -> u64 {
        match self.sandbox.files(FileOp::Stat { path: path.to_owned() }).await {
            Ok(FileReply::Entry(entry)) => entry.bytes,
            Ok(_) | Err(_) => 0,
        }
    }
}
