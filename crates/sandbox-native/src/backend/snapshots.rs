//! Snapshots, which the spawner takes.

use async_trait::async_trait;
use outrigger_sandbox::{Error, SandboxId, Snapshot, SnapshotId, Snapshots};

use super::native::{Native, astray};
use crate::protocol::{Answer, Request};

#[async_trait]
impl Snapshots for Native {
    async fn take(&self, sandbox: &SandboxId, name: &SnapshotId) -> Result<Snapshot, Error> {
        let request = Request::Snapshot { id: sandbox.clone(), name: name.clone() };
        match self.ask(request).await? {
            (Answer::Snapshot(taken), _) => Ok(taken),
            _ => Err(astray()),
        }
    }

    async fn list(&self) -> Result<Vec<Snapshot>, Error> {
        match self.ask(Request::Snapshots).await? {
            (Answer::Snapshots(all), _) => Ok(all),
            _ => Err(astray()),
        }
    }

    async fn remove(&self, name: &SnapshotId) -> Result<(), Error> {
        self.ask_done(Request::Forget(name.clone())).await
    }
}
