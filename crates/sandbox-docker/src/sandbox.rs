//! A living sandbox: its link, and what keeps a paused container from being waited for.
//!
//! Owns the thaw. A command lets a suspended sandbox go on. Anything else lets only
//! the guest go on, while what commands left behind stays stopped by it, and
//! afterwards the sandbox rests again. A request that is not answered soon makes sure
//! that no other process suspended the sandbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bollard::models::ContainerStateStatusEnum as Status;
use outrigger_sandbox::{
    CreateOutcome, Error, ExecId, ExecOutcome, Execute, FileOp, FileReply, Generation, Input,
    OutputSink, Sandbox, SandboxId,
};
use outrigger_sandbox_client::RemoteSandbox;
use tokio::sync::Mutex as Turn;

use crate::clock::now_ms;
use crate::engine::Engine;
use crate::{held, limits};

/// Whether a container is paused, as far as is known here, and when it was last used.
#[derive(Debug)]
pub(crate) struct Gate {
    engine: Engine,
    id: SandboxId,
    container: String,
    resting: AtomicBool,
    /// One request at a time lets a resting sandbox's guest go on.
    turn: Turn<()>,
    requests: AtomicUsize,
    used_ms: AtomicU64,
    opened_ms: AtomicU64,
}

/// A request on its way, for as long as it is not dropped.
struct RequestGuard<'a>(&'a Gate);

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        self.0.touch();
        self.0.requests.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Gate {
    pub(crate) fn new(engine: Engine, id: SandboxId, container: String) -> Self {
        Self {
            engine,
            id,
            container,
            resting: AtomicBool::new(false),
            turn: Turn::new(()),
            requests: AtomicUsize::new(0),
            used_ms: AtomicU64::new(now_ms()),
            opened_ms: AtomicU64::new(0),
        }
    }

    /// Notes that it is used now.
    pub(crate) fn touch(&self) {
        self.used_ms.store(now_ms(), Ordering::SeqCst);
    }

    /// When it was last used, in milliseconds since 1970.
    pub(crate) fn used_ms(&self) -> u64 {
        self.used_ms.load(Ordering::SeqCst)
    }

    /// Whether nothing is being asked of it, and it does not rest.
    pub(crate) fn is_quiet(&self) -> bool {
        self.requests.load(Ordering::SeqCst) == 0 && !self.resting.load(Ordering::SeqCst)
    }

    /// Whether it has been quiet for this long.
    pub(crate) fn is_idle_for(&self, ms: u64) -> bool {
        self.is_quiet() && now_ms().saturating_sub(self.used_ms()) >= ms
    }

    /// Notes whether it rests.
    pub(crate) fn rests(&self, rests: bool) {
        self.resting.store(rests, Ordering::SeqCst);
    }

    /// Lets all of the container go on, once nobody copies its disk.
    pub(crate) async fn open(&self) -> Result<(), Error> {
        held::unpause(&self.engine, &self.id, &self.container).await?;
        self.opened_ms.store(now_ms(), Ordering::SeqCst);
        self.resting.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// Whether it goes on since less than this.
    pub(crate) fn is_open_since_less_than(&self, ms: u64) -> bool {
        let since_ms = now_ms().saturating_sub(self.opened_ms.load(Ordering::SeqCst));
        !self.resting.load(Ordering::SeqCst) && since_ms < ms
    }

    /// Stops what commands left behind, and then all of the container. `Busy` while a
    /// command runs.
    pub(crate) async fn rest(&self, remote: &RemoteSandbox) -> Result<(), Error> {
        match remote.freeze().await {
            // It has no means, and says so only if no command runs; the daemon has.
            Ok(()) | Err(Error::Unsupported { .. }) => {}
            Err(error) => return Err(error),
        }
        self.resting.store(true, Ordering::SeqCst);
        self.engine.pause(&self.container).await.map(drop)
    }

    fn pass(&self) -> RequestGuard<'_> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        RequestGuard(self)
    }

    /// Waits for the answer to a command, which lets a resting sandbox go on.
    async fn command<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let _passing = self.pass();
        if self.resting.load(Ordering::SeqCst) {
            self.open().await?;
        }
        tokio::select! {
            answer = answer => answer,
            error = async {
                loop {
                    if let Err(error) = self.paused_by_others().await {
                        break error;
                    }
                }
            } => Err(error),
        }
    }

    /// Waits for any other answer, after which a resting sandbox rests again.
    async fn aside<T>(
        &self,
        remote: &RemoteSandbox,
        answer: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let _passing = self.pass();
        let mut turn = None;
        if self.resting.load(Ordering::SeqCst) {
            turn = Some(self.turn.lock().await);
            held::unpause(&self.engine, &self.id, &self.container).await?;
        }
        let mut answer = std::pin::pin!(answer);
        let answer = tokio::select! {
            answer = &mut answer => answer,
            paused = self.paused_by_others() => {
                paused?;
                turn = Some(self.turn.lock().await);
                answer.await
            }
        };
        if turn.is_some() {
            match self.rest(remote).await {
                // Somebody uses it.
                Err(Error::Busy { .. }) => self.resting.store(false, Ordering::SeqCst),
                rested => rested?,
            }
        }
        answer
    }

    /// Looks now and then whether somebody else paused the container. Ends when it was
    /// so and it goes on.
    async fn paused_by_others(&self) -> Result<(), Error> {
        let mut wait_ms = limits::FROZEN_LOOK_MS;
        loop {
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            wait_ms = (wait_ms * 2).min(limits::FROZEN_LOOK_MS_MAX);
            // A daemon that does not answer may be starting again; the link tells.
            let Ok(Some(found)) = self.engine.container(&self.container).await else { continue };
            if found.state.and_then(|state| state.status) == Some(Status::PAUSED) {
                return self.open().await;
            }
        }
    }
}

/// A sandbox in a container, and the gate that thaws it for whoever needs it.
#[derive(Debug)]
pub(crate) struct DockerSandbox {
    pub(crate) remote: RemoteSandbox,
    pub(crate) gate: Arc<Gate>,
}

#[async_trait]
impl Sandbox for DockerSandbox {
    fn id(&self) -> &SandboxId {
        self.remote.id()
    }

    fn generation(&self) -> &Generation {
        self.remote.generation()
    }

    fn outcome(&self) -> CreateOutcome {
        self.remote.outcome()
    }

    fn is_alive(&self) -> bool {
        self.remote.is_alive()
    }

    async fn execute(&self, request: Execute, sink: &dyn OutputSink) -> Result<ExecOutcome, Error> {
        self.gate.command(self.remote.execute(request, sink)).await
    }

    async fn kill(&self, id: &ExecId) -> Result<(), Error> {
        self.gate.aside(&self.remote, self.remote.kill(id)).await
    }

    async fn input(&self, id: &ExecId, input: Input) -> Result<(), Error> {
        self.gate.aside(&self.remote, self.remote.input(id, input)).await
    }

    async fn files(&self, op: FileOp) -> Result<FileReply, Error> {
        self.gate.aside(&self.remote, self.remote.files(op)).await
    }
}
