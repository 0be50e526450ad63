//! Our Docker backend: what a command costs over its one long-lived stream.

use outrigger_sandbox::{Backend, Sandbox, SandboxId, Spec};
use outrigger_sandbox_docker::{Config, Docker};
use std::sync::Arc;

use super::Samples;
use super::native::{name, run_true_at};
use crate::error::{Doing, Outcome};
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
        todo_docker(image).await
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
