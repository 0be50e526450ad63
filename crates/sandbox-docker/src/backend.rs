//! The port: sandboxes by name, made, found and ended.
//!
//! Owns the order in which a sandbox comes to be (disk, program, container, start,
//! link) and what is there when some of it is already. Every step can be repeated,
//! and of two callers that take it at once one wins and the other goes on with what
//! the winner made.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::container::Plan;
use crate::engine::{Engine, Made};
use crate::inner::{Inner, locked};
use crate::keeper;
use crate::live::{self, Doing, Reach, Seen};
use crate::names::{self, Store};
use crate::sandbox::Docked;
use crate::store::{self, Disk};
use crate::{guest, held, limits, maker, probe};
use async_trait::async_trait;
use outrigger_sandbox::{
    Backend, Capabilities, CreateOutcome, CreateSpec, Error, Generation, ListedSandbox, Sandbox,
    SandboxId, Snapshots, Suspend,
};

/// The daemon's socket where none is named.
const SOCKET: &str = "/var/run/docker.sock";

/// Sandboxes of one owner with one Docker daemon.
///
/// Nothing of it must be kept: another value, in this process or another one, with
/// the same owner and daemon sees the same sandboxes. As long as there is one, it sees
/// to the lifetimes of sandboxes.
#[derive(Debug)]
pub struct Docker(Arc<Inner>);

fn fresh_generation() -> Generation {
    Generation::new(maker::fresh()).expect("hexadecimal digits are a valid name")
}

impl Docker {
    /// Connects to the daemon and asks what it can do. Makes and changes nothing.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where no daemon answers, or it is too old, or lacks the
    /// runtime, with what would fix it; [`Error::Invalid`] for a malformed owner.
    pub async fn open(config: Config) -> Result<Self, Error> {
        config.check()?;
        let socket = config.socket.clone().unwrap_or_else(|| PathBuf::from(SOCKET));
        let (engine, info) = Engine::connect(&socket, &config.owner).await?;
        let runtime = config.runtime.as_deref();
        let api = engine.version();
        let runc = engine.runc().map(str::to_owned);
        let said = probe::Said { info, api, runc };
        let capabilities = probe::capabilities(&said, runtime)?;
        let (used, turns, dues, news) = Default::default();
        let inner = Inner { engine, config, capabilities, used, dues, news, turns };
        inner.learn_dues().await?;
        let inner = Arc::new(inner);
        keeper::start(&inner);
        Ok(Self(inner))
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        self.0.news.notify_one();
    }
}

impl Inner {
    /// Makes or attaches. `None`: somebody else got in between; it is to be tried again.
    async fn try_create(
        &self,
        id: &SandboxId,
        spec: &CreateSpec,
        reach: &Reach,
    ) -> Result<Option<Arc<Docked>>, Error> {
        let seen = live::look(&self.engine, id).await?;
        if let Some(seen) = &seen {
            match seen.doing {
                Doing::Running => {
                    return self.attach(id, seen, CreateOutcome::Attached, reach).await.map(Some);
                }
                Doing::Paused => return self.thaw(id, seen, reach).await.map(Some),
                Doing::Waiting => {
                    held::released(&self.engine, id).await?;
                    if !self.engine.start(&seen.container).await? {
                        return Ok(None);
                    }
                    return self.attach(id, seen, seen.began, reach).await.map(Some);
                }
                // By the daemon's id, so that nothing newer is meant.
                Doing::Ended => self.engine.remove(&seen.container).await?,
            }
        }
        let store = Store::Disk(id.clone());
        let (disk, began) = match store::find::<Disk>(&self.engine, &store).await? {
            Some(disk) => {
                held::released(&self.engine, id).await?;
                (disk, CreateOutcome::Restarted)
            }
            None => (Box::pin(self.make_disk(&store, spec)).await?, CreateOutcome::Made),
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
            Made::Made(container) => container,
            Made::Taken => return Ok(None),
        };
        if !self.engine.start(&container).await? {
            return Ok(None);
        }
        let seen = Seen {
            container,
            doing: Doing::Running,
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
        let turn = self.turn(id);
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
        locked(&self.used).remove(id);
        self.dues().remove(id);
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
}

/// From one attempt to the next, while others work on the same sandbox.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(limits::CREATE_PAUSE_MS)).await;
}

impl Inner {
    async fn create(&self, id: &SandboxId, spec: &CreateSpec) -> Result<Arc<dyn Sandbox>, Error> {
        spec.check()?;
        self.enough(spec)?;
        let turn = self.turn(id);
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

    async fn find(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>, Error> {
        let turn = self.turn(id);
        let _turn = turn.lock().await;
        let reach = Reach::default();
        let mut last = live::lost("its container comes and goes");
        for _ in 0..limits::CREATE_ATTEMPTS_MAX {
            let Some(seen) = live::look(&self.engine, id).await? else { return Ok(None) };
            let found = match seen.doing {
                Doing::Running => self.attach(id, &seen, CreateOutcome::Attached, &reach).await,
                Doing::Paused => self.attach_resting(id, &seen, &reach).await,
                Doing::Waiting | Doing::Ended => return Ok(None),
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
        let turn = self.turn(id);
        let _turn = turn.lock().await;
        let absent = || Error::Absent { what: "living sandbox".to_owned(), name: id.to_string() };
        let seen = live::look(&self.engine, id).await?.ok_or_else(absent)?;
        match seen.doing {
            Doing::Paused => Ok(()),
            Doing::Waiting | Doing::Ended => Err(absent()),
            Doing::Running => self.rest(id, &seen).await.map(drop),
        }
    }
}

#[async_trait]
impl Backend for Docker {
    fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    async fn create(&self, id: &SandboxId, spec: &CreateSpec) -> Result<Arc<dyn Sandbox>, Error> {
        self.0.create(id, spec).await
    }

    async fn find(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>, Error> {
        self.0.find(id).await
    }

    async fn list(&self) -> Result<Vec<ListedSandbox>, Error> {
        self.0.list().await
    }

    async fn destroy(&self, id: &SandboxId) -> Result<(), Error> {
        self.0.end(id).await
    }

    async fn suspend(&self, id: &SandboxId, how: Suspend) -> Result<(), Error> {
        self.0.suspend(id, how).await
    }

    fn snapshots(&self) -> Result<&dyn Snapshots, Error> {
        Ok(&*self.0)
    }

    async fn sweep(&self) -> Result<usize, Error> {
        self.0.sweep().await
    }
}
