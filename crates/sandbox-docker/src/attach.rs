//! From a container to a handle of its sandbox.
//!
//! Owns that all handles of a sandbox share one link, and whether what rests goes on.

use std::sync::Arc;

use outrigger_sandbox::{CreateOutcome, Error, SandboxId};
use outrigger_sandbox_client::{Link, RemoteSandbox};

use crate::held;
use crate::inner::{Inner, Used, locked};
use crate::live::{self, Doing, Reach, Seen};
use crate::sandbox::{Docked, Gate};

/// A container as it is once it goes on.
fn running(seen: &Seen) -> Seen {
    Seen { doing: Doing::Running, ..seen.clone() }
}

impl Inner {
    /// The link that is in use, if there is one.
    fn link(&self, id: &SandboxId, seen: &Seen) -> Option<(Arc<Link>, Arc<Gate>)> {
        locked(&self.used)
            .get(id)
            .filter(|used| used.generation == seen.generation)
            .and_then(|used| Some((used.link.upgrade()?, used.gate())))
            .filter(|(link, _)| link.is_open())
    }

    /// The handle of a sandbox that runs.
    pub(crate) async fn attach(
        &self,
        id: &SandboxId,
        seen: &Seen,
        began: CreateOutcome,
        reach: &Reach,
    ) -> Result<Arc<Docked>, Error> {
        let (link, gate) = match self.link(id, seen) {
            Some(known) => known,
            None => {
                let link = live::connect(&self.engine, id, seen, reach).await?;
                let link = Arc::new(link);
                (link, Arc::new(Gate::new(self.engine.clone(), id.clone(), seen.container.clone())))
            }
        };
        gate.touch();
        let used = Used {
            generation: seen.generation.clone(),
            link: Arc::downgrade(&link),
            gate: Arc::clone(&gate),
        };
        locked(&self.used).insert(id.clone(), used);
        self.note_due(id, seen);
        Ok(Arc::new(Docked { remote: RemoteSandbox::new(id.clone(), began, link), gate }))
    }

    /// The handle of a sandbox that rests, which goes on resting.
    pub(crate) async fn attach_resting(
        &self,
        id: &SandboxId,
        seen: &Seen,
        reach: &Reach,
    ) -> Result<Arc<Docked>, Error> {
        if self.link(id, seen).is_some() {
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
        seen: &Seen,
        reach: &Reach,
    ) -> Result<Arc<Docked>, Error> {
        if !held::unpause(&self.engine, id, &seen.container).await? {
            return Err(live::lost("its container is gone"));
        }
        let docked = self.attach(id, &running(seen), CreateOutcome::Attached, reach).await?;
        docked.gate.open().await?;
        docked.remote.thaw().await?;
        Ok(docked)
    }

    /// Lets a sandbox rest in which no command runs, else it is [`Error::Busy`].
    pub(crate) async fn rest(&self, id: &SandboxId, seen: &Seen) -> Result<Arc<Docked>, Error> {
        let reach = Reach::default();
        let docked = self.attach(id, seen, CreateOutcome::Attached, &reach).await?;
        docked.gate.rest(&docked.remote).await?;
        Ok(docked)
    }
}
