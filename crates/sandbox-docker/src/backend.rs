//! The port, spoken to a daemon.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use outrigger_sandbox::{
    Backend, Capabilities, CreateSpec, Error, ListedSandbox, Sandbox, SandboxId, Snapshots, Suspend,
};

use crate::config::Config;
use crate::context::DockerContext;
use crate::engine::Engine;
use crate::{collect, keeper, list, probe};

/// The daemon's socket where none is named.
const SOCKET: &str = "/var/run/docker.sock";

/// Sandboxes of one owner with one Docker daemon.
///
/// Nothing of it must be kept: another value, in this process or another one, with
/// the same owner and daemon sees the same sandboxes. As long as there is one, it sees
/// to the lifetimes of sandboxes.
#[derive(Debug)]
pub struct Docker(pub(crate) Arc<DockerContext>);

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
        let said = probe::DaemonInfo { info, api, runc };
        let capabilities = probe::capabilities(&said, runtime)?;
        let (used, dues, turns, carried) = Default::default();
        let context = DockerContext { engine, config, capabilities, used, dues, turns, carried };
        keeper::learn_dues(&context.engine, &context.dues).await?;
        let context = Arc::new(context);
        keeper::start(&context);
        Ok(Self(context))
    }

    /// Whether the daemon has the image of a template. Pulls nothing.
    ///
    /// # Errors
    /// [`Error::Absent`] for a template without an image, [`Error::Unavailable`] where the
    /// daemon has not got it.
    pub async fn has_template(&self, template: &str) -> Result<(), Error> {
        let image = self.0.config.image(template)?;
        self.0.engine.has_image(image).await
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        self.0.dues.wake_keeper();
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
        list::list(&self.0.engine, &self.0.used).await
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
        collect::sweep(&self.0).await
    }
}
