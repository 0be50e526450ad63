//! From a container to a handle of its sandbox.
//!
//! Owns that all handles of a sandbox share one link, and whether what rests goes on.

use std::sync::Arc;

use outrigger_sandbox::{CreateOutcome, Error, SandboxId};
use outrigger_sandbox_client::RemoteSandbox;

use crate::clock::now_ms;
use crate::context::DockerContext;
use crate::due::Due;
use crate::held;
use crate::live::{self, ContainerState, Reach, SandboxContainer};
use crate::sandbox::{DockerSandbox, Gate};

/// A container as it is once it goes on.
fn running(seen: &SandboxContainer) -> SandboxContainer {
    SandboxContainer { doing: ContainerState::Running, ..seen.clone() }
}

/// What is due for a sandbox that is seen now.
fn due(seen: &SandboxContainer) -> Due {
    let (old_at_ms, idle_ms_max) = (seen.old_at_ms, seen.idle_ms_max);
    Due { old_at_ms, idle_ms_max, since_ms: now_ms() }
}

impl DockerContext {
    /// The handle of a sandbox that runs.
    pub(crate) async fn attach(
        &self,
        id: &SandboxId,
        seen: &SandboxContainer,
        began: CreateOutcome,
        reach: &Reach,
    ) -> Result<Arc<DockerSandbox>, Error> {
        let (link, gate) = match self.used.link(id, &seen.generation) {
            Some(known) => known,
            None => {
                let link = live::connect(&self.engine, id, seen, reach).await?;
                let link = Arc::new(link);
                (link, Arc::new(Gate::new(self.engine.clone(), id.clone(), seen.container.clone())))
            }
        };
        gate.touch();
        self.used.insert(id, &seen.generation, &link, &gate);
        if self.dues.insert(id, due(seen)) {
            self.dues.wake_keeper();
        }
        Ok(Arc::new(DockerSandbox { remote: RemoteSandbox::new(id.clone(), began, link), gate }))
    }

    /// The handle of a sandbox that rests, which goes on resting.
    pub(crate) async fn attach_resting(
        &self,
        id: &SandboxId,
        seen: &SandboxContainer,
        reach: &Reach,
    ) -> Result<Arc<DockerSandbox>, Error> {
        if self.used.link(id, &seen.generation).is_some() {
            let docked = self.attach(id, seen, CreateOutcome::Attached, reach).await?;
            docked.gate.rests(true);
            return Ok(docked);
        }
        // A new link needs the guest, for as long as it takes to greet.
        if !held::unpause(&self.engine, id, &seen.container).await? {
            return Err(live::lost("its container is gone"));
        }
        let docked = self.attach(id, &running(seen), CreateOutcome::Attached, reach).await?;
        docked.gate.rests(true);
        match docked.gate.rest(&docked.remote).await {
            // Somebody runs something in it.
            Err(Error::Busy { .. }) => docked.gate.rests(false),
            rested => rested?,
        }
        Ok(docked)
    }

    /// Lets a paused sandbox go on, whoever paused it, and gives its handle.
    pub(crate) async fn thaw(
        &self,
        id: &SandboxId,
        seen: &SandboxContainer,
        reach: &Reach,
    ) -> Result<Arc<DockerSandbox>, Error> {
        if !held::unpause(&self.engine, id, &seen.container).await? {
            return Err(live::lost("its container is gone"));
        }
        let docked = self.attach(id, &running(seen), CreateOutcome::Attached, reach).await?;
        docked.gate.open().await?;
        docked.remote.thaw().await?;
        Ok(docked)
    }

    /// Lets a sandbox rest in which no command runs, else it is [`Error::Busy`].
    pub(crate) async fn rest(
        &self,
        id: &SandboxId,
        seen: &SandboxContainer,
    ) -> Result<Arc<DockerSandbox>, Error> {
        let reach = Reach::default();
        let docked = self.attach(id, seen, CreateOutcome::Attached, &reach).await?;
        docked.gate.rest(&docked.remote).await?;
        Ok(docked)
    }
}
