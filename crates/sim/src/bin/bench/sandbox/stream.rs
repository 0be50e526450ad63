//! Our Docker backend: what a command costs over its one long-lived stream.

use outrigger_sandbox::{Backend, CreateSpec, Sandbox, SandboxId};
use outrigger_sandbox_docker::{Config, Docker};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::Samples;
use super::native::{name, run_true_at};
use crate::error::{ErrorContext, Outcome};
use crate::sizes;

/// A sandbox of the Docker backend.
#[derive(Debug)]
pub(super) struct Stream {
    docker: Docker,
    id: SandboxId,
    sandbox: Arc<dyn Sandbox>,
}

impl Stream {
    /// From an image.
    pub(super) async fn open(image: &str) -> Outcome<Self> {
        let host = std::env::var("DOCKER_HOST").ok();
        let socket = host.as_deref().and_then(|host| host.strip_prefix("unix://"));
        let docker = Docker::open(Config {
            socket: socket.map(PathBuf::from),
            owner: "bench".to_owned(),
            runtime: None,
            guest: outrigger_guest::PROGRAM,
            images: BTreeMap::new(),
            default_image: Some(image.to_owned()),
        });
        let docker = docker.await.doing("opening the Docker sandboxes")?;
        let id = name("stream");
        let least = docker.capabilities().isolation;
        let spec = CreateSpec { isolation_min: least, ..CreateSpec::default() };
        let sandbox = docker.create(&id, &spec).await.doing("making a container")?;
        Ok(Self { docker, id, sandbox })
    }

    /// A few commands.
    pub(super) async fn sample(&self, round: usize, samples: &mut Samples) -> Outcome<()> {
        for time in 0..sizes::SANDBOX_EXECS {
            let id = format!("e{round}-{time}");
            let run = run_true_at(&*self.sandbox, "/bin/true", &id);
            samples.time("docker/exec_stream", run).await?;
        }
        Ok(())
    }

    /// Destroys it.
    pub(super) async fn close(self) -> Outcome<()> {
        self.docker.destroy(&self.id).await.doing("destroying a container")
    }
}
