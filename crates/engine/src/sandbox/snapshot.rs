//! Snapshots of sandboxes: how they are named, taken and removed.

use outrigger_agent::{Seq, SessionId, SnapshotRef};
use outrigger_sandbox::{Error, SandboxId, Snapshot, SnapshotId, Snapshots};

use super::handle::SandboxHandle;
use crate::Warning;

impl SandboxHandle {
    /// Takes a snapshot of the disk as it is after `seq`. The name says so: repeating it
    /// after a crash is harmless.
    pub(crate) async fn take_snapshot(
        &self,
        snapshots: &dyn Snapshots,
        session: &SessionId,
        seq: Seq,
    ) -> Result<SnapshotRef, Error> {
        let name = self.snapshot_name(session, seq)?;
        let taken = snapshots.take(&self.id, &name).await?;
        Ok(SnapshotRef { snapshot: name.to_string(), at_ms: taken.taken_at_ms })
    }

    /// The name of the snapshot of the disk as it is after `seq`.
    pub(crate) fn snapshot_name(&self, session: &SessionId, seq: Seq) -> Result<SnapshotId, Error> {
        let (id, shared) = (&self.id, self.shared);
        // Each session that shares it counts for itself.
        let name = if shared { format!("{id}.{session}.{seq}") } else { format!("{id}.{seq}") };
        SnapshotId::new(name).map_err(|error| Error::Invalid(error.to_string()))
    }
}

/// Removes snapshots by name.
pub(crate) async fn remove(snapshots: &dyn Snapshots, names: Vec<String>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for name in names {
        let removed = match SnapshotId::new(name.as_str()) {
            Ok(id) => snapshots.remove(&id).await,
            // It can't be there.
            Err(_) => Ok(()),
        };
        warnings.extend(removed.err().map(|source| Warning::NotRemoved { name, source }));
    }
    warnings
}

/// Removes all snapshots of a sandbox but the newest.
pub(crate) async fn prune(
    snapshots: &dyn Snapshots,
    sandbox: &SandboxId,
    kept_max: usize,
) -> Vec<Warning> {
    match of_sandbox(snapshots, sandbox).await {
        Ok(mut kept) => {
            kept.truncate(kept.len().saturating_sub(kept_max));
            remove(snapshots, kept.into_iter().map(|kept| kept.snapshot).collect()).await
        }
        Err(source) => {
            vec![Warning::NotRemoved { name: format!("snapshots of {sandbox}"), source }]
        }
    }
}

/// Whether a snapshot was taken here and not by hand: its name begins with its
/// sandbox's and ends in a place of a journal.
pub(crate) fn is_ours(snapshot: &Snapshot) -> bool {
    let rest = snapshot.name.as_str().strip_prefix(snapshot.sandbox.as_str());
    let seq = rest.and_then(|rest| rest.strip_prefix('.')?.rsplit('.').next());
    seq.is_some_and(|seq| !seq.is_empty() && seq.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What is kept of a sandbox, by whichever session, the oldest first.
pub(crate) async fn of_sandbox(
    snapshots: &dyn Snapshots,
    sandbox: &SandboxId,
) -> Result<Vec<SnapshotRef>, Error> {
    let mut found = snapshots.list().await?;
    found.retain(|snapshot| snapshot.sandbox == *sandbox && is_ours(snapshot));
    found.sort_by_key(|snapshot| snapshot.taken_at_ms);
    let kept = |snapshot: Snapshot| SnapshotRef {
        snapshot: snapshot.name.to_string(),
        at_ms: snapshot.taken_at_ms,
    };
    Ok(found.into_iter().map(kept).collect())
}
