//! Sandboxes by name, made, found and ended.
//!
//! Owns the order in which a sandbox comes to be (disk, program, container, start,
//! link) and what is there when some of it is already. Every step can be repeated,
//! and of two callers that take it at once one wins and the other goes on with what
//! the winner made.

use std::sync::Arc;
use std::time::Duration;

use outrigger_sandbox::{
    CreateOutcome, CreateSpec, Error, Generation, Sandbox, SandboxId, Suspend,
};

use crate::container::Plan;
use crate::context::{self, DockerContext};
use crate::engine::ContainerCreation;
use crate::live::{self, ContainerState, Reach, SandboxContainer};
use crate::names::{self, Store};
use crate::sandbox::DockerSandbox;
use crate::store::{self, Disk};
use crate::{disk, guest, held, limits, maker};

fn fresh_generation() -> Generation {
    Generation::new(maker::fresh()).expect("hexadecimal digits are a valid name")
}

/// From one attempt to the next, while others work on the same sandbox.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(limits::CREATE_PAUSE_MS)).await;
}

impl DockerContext {
    /// Makes or attaches. `None`: somebody else got in between; it is to be tried again.
    async fn try_create(
        &self,
        id: &SandboxId,
        spec: &CreateSpec,
        reach: &Reach,
    ) -> Result<Option<Arc<DockerSandbox>>, Error> {
        let seen = live::look(&self.engine, id).await?;
        if let Some(seen) = &seen {
            match seen.doing {
                ContainerState::Running => {
                    return self.attach(id, seen, CreateOutcome::Attached, reach).await.map(Some);
                }
                ContainerState::Paused => return self.thaw(id, seen, reach).await.map(Some),
                ContainerState::Waiting => {
                    held::released(&self.engine, id).await?;
                    if !self.engine.start(&seen.container).await? {
                        return Ok(None);
                    }
                    return self.attach(id, seen, seen.began, reach).await.map(Some);
                }
                // By the daemon's id, so that nothing newer is meant.
                ContainerState::Ended => self.engine.remove(&seen.container).await?,
            }
        }
        let store = Store::Disk(id.clone());
        let (disk, began) = match store::find::<Disk>(&self.engine, &store).await? {
            Some(disk) => {
                held::released(&self.engine, id).await?;
                (disk, CreateOutcome::Restarted)
            }
            None => (
                Box::pin(disk::make(&self.engine, &self.config, &store, spec)).await?,
                CreateOutcome::Made,
            ),
        };
        let image = self.config.image(&disk.record.template)?;
        let generation = fresh_generation();
        let plan = Plan {
            id,
            spec,
            image,
            runtime: self.config.runtime.as_deref(),
            generation: &generation,
            began,
            disk: &disk,
            guest: guest::volume(&self.engine, self.config.guest, image).await?,
        };
        let name = names::container(&self.engine.owner, id);
        let container = match self.engine.make(&name, plan.body(&self.engine)?).await? {
            ContainerCreation::Made(container) => container,
            ContainerCreation::Taken => return Ok(None),
        };
        if !self.engine.start(&container).await? {
            return Ok(None);
        }
        let seen = SandboxContainer {
            container,
            doing: ContainerState::Running,
            generation: generation.clone(),
            began,
            old_at_ms: disk.record.old_at_ms(),
            idle_ms_max: spec.lifetime.idle_ms_max,
            code: None,
        };
        self.attach(id, &seen, began, reach).await.map(Some)
    }

    /// Ends a sandbox and deletes its disk.
    pub(crate) async fn end(&self, id: &SandboxId) -> Result<(), Error> {
        let turn = self.turns.of(id);
        let _turn = turn.lock().await;
        for _ in 0..limits::CREATE_ATTEMPTS_MAX {
            let Some(seen) = live::look(&self.engine, id).await? else { break };
            self.engine.remove(&seen.container).await?;
            if live::look(&self.engine, id).await?.is_some() {
                // Somebody else removes it too, and until it is gone it holds its volumes.
                pause().await;
            }
        }
        store::remove(&self.engine, &Store::Disk(id.clone())).await?;
        self.used.remove(id);
        self.dues.remove(id);
        Ok(())
    }

    fn enough(&self, spec: &CreateSpec) -> Result<(), Error> {
        let (has, wants) = (self.capabilities.isolation, spec.isolation_min);
        if has >= wants {
            return Ok(());
        }
        Err(Error::Unavailable {
            reason: format!("Docker's isolation is `{has}`, and `{wants}` is asked for"),
            advice: "ask for less, use the runtime `runsc`, or use another backend".to_owned(),
        })
    }

    /// See [`outrigger_sandbox::Backend::create`].
    pub(crate) async fn create(
        &self,
        id: &SandboxId,
        spec: &CreateSpec,
    ) -> Result<Arc<dyn Sandbox>, Error> {
        spec.check()?;
        self.enough(spec)?;
        let turn = self.turns.of(id);
        let _turn = turn.lock().await;
        let reach = Reach::default();
        let mut last = live::lost("others make and end it at the same time");
        for _ in 0..limits::CREATE_ATTEMPTS_MAX {
            match Box::pin(self.try_create(id, spec, &reach)).await {
                Ok(Some(docked)) => return Ok(docked),
                Ok(None) => {}
                Err(error @ Error::Lost { .. }) if reach.is_over() => return Err(error),
                Err(error @ Error::Lost { .. }) => last = error,
                Err(error) => return Err(error),
            }
            pause().await;
        }
        Err(last)
    }

    /// See [`outrigger_sandbox::Backend::find`].
    pub(crate) async fn find(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>, Error> {
        let turn = self.turns.of(id);
        let _turn = turn.lock().await;
        let reach = Reach::default();
        let mut last = live::lost("its container comes and goes");
        for _ in 0..limits::CREATE_ATTEMPTS_MAX {
            let Some(seen) = live::look(&self.engine, id).await? else { return Ok(None) };
            let found = match seen.doing {
                ContainerState::Running => {
                    self.attach(id, &seen, CreateOutcome::Attached, &reach).await
                }
                ContainerState::Paused => self.attach_resting(id, &seen, &reach).await,
                ContainerState::Waiting | ContainerState::Ended => return Ok(None),
            };
            match found {
                Ok(docked) => return Ok(Some(docked)),
                Err(error @ Error::Lost { .. }) if reach.is_over() => return Err(error),
                Err(error @ Error::Lost { .. }) => last = error,
                Err(error) => return Err(error),
            }
            pause().await;
        }
        Err(last)
    }

    /// See [`outrigger_sandbox::Backend::suspend`].
    pub(crate) async fn suspend(&self, id: &SandboxId, how: Suspend) -> Result<(), Error> {
        if !self.capabilities.suspend.contains(&how) {
            return Err(Error::Unsupported {
                what: format!("{how} suspension"),
                reason: match how {
                    Suspend::Frozen => "this daemon has no freezer for its containers",
                    Suspend::Cold => "the outcomes of commands live in the container",
                }
                .to_owned(),
            });
        }
        let turn = self.turns.of(id);
        let _turn = turn.lock().await;
        let absent = || context::absent("living sandbox", id);
        let seen = live::look(&self.engine, id).await?.ok_or_else(absent)?;
        match seen.doing {
            ContainerState::Paused => Ok(()),
            ContainerState::Waiting | ContainerState::Ended => Err(absent()),
            ContainerState::Running => self.rest(id, &seen).await.map(drop),
        }
    }
}
