//! A living sandbox: its link, and what keeps a paused container from being waited for.
//!
//! Owns the thaw: a request to a sandbox that this process suspended lets it go on
//! first; one that is not answered soon makes sure that nobody else suspended it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bollard::models::ContainerStateStatusEnum as Status;
use outrigger_sandbox::client::Remote;
use outrigger_sandbox::{
    Began, Error, ExecId, Execute, Executed, FileOp, FileReply, Generation, Input, OutputSink,
    Sandbox, SandboxId,
};

use crate::engine::Engine;
use crate::limits;

/// Whether a container is paused, as far as is known here.
#[derive(Debug)]
pub(crate) struct Gate {
    engine: Engine,
    container: String,
    paused: AtomicBool,
}

impl Gate {
    pub(crate) fn new(engine: Engine, container: String) -> Self {
        Self { engine, container, paused: AtomicBool::new(false) }
    }

    /// Stops all processes of the container.
    pub(crate) async fn shut(&self) -> Result<(), Error> {
        self.paused.store(true, Ordering::SeqCst);
        self.engine.pause(&self.container).await.map(drop)
    }

    /// Lets them go on.
    pub(crate) async fn open(&self) -> Result<(), Error> {
        self.engine.unpause(&self.container).await?;
        self.paused.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// Waits for an answer of the guest, which must not be stopped meanwhile.
    async fn through<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        if self.paused.load(Ordering::SeqCst) {
            self.open().await?;
        }
        tokio::select! {
            answer = answer => answer,
            error = self.keep_open() => Err(error),
        }
    }

    /// Looks now and then whether somebody paused the container, and lets it go on.
    /// Ends only if that fails.
    async fn keep_open(&self) -> Error {
        let mut wait_ms = limits::FROZEN_LOOK_MS;
        loop {
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            wait_ms = (wait_ms * 2).min(limits::FROZEN_LOOK_MS_MAX);
            // A daemon that does not answer may be starting again; the link tells.
            let Ok(Some(found)) = self.engine.container(&self.container).await else { continue };
            if found.state.and_then(|state| state.status) == Some(Status::PAUSED)
                && let Err(error) = self.open().await
            {
                return error;
            }
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Docked {
    pub(crate) remote: Remote,
    pub(crate) gate: Arc<Gate>,
}

#[async_trait]
impl Sandbox for Docked {
    fn id(&self) -> &SandboxId {
        self.remote.id()
    }

    fn generation(&self) -> &Generation {
        self.remote.generation()
    }

    fn began(&self) -> Began {
        self.remote.began()
    }

    fn is_alive(&self) -> bool {
        self.remote.is_alive()
    }

    async fn execute(&self, request: Execute, sink: &dyn OutputSink) -> Result<Executed, Error> {
        self.gate.through(self.remote.execute(request, sink)).await
    }

    async fn kill(&self, id: &ExecId) -> Result<(), Error> {
        self.gate.through(self.remote.kill(id)).await
    }

    async fn input(&self, id: &ExecId, input: Input) -> Result<(), Error> {
        self.gate.through(self.remote.input(id, input)).await
    }

    async fn files(&self, op: FileOp) -> Result<FileReply, Error> {
        self.gate.through(self.remote.files(op)).await
    }
}
