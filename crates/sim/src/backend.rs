//! A backend as one harness reaches it: the witness sees what is begun there, and in
//! a concurrent run requests fail, hang, or are done without an answer.

use async_trait::async_trait;
use futures_util::FutureExt;
use outrigger_sandbox::{
    Backend, Capabilities, CreateOutcome, CreateSpec, Error, ExecId, ExecOutcome, Execute, FileOp,
    FileReply, Generation, Input, ListedSandbox, OutputSink, Sandbox, SandboxId, Snapshot,
    SnapshotId, Snapshots, Suspend,
};
use outrigger_sandbox_testing::fake::Fake;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::ledger::Under;
use crate::limits;
use crate::store::Life;
use crate::tally::Happening;
use crate::witness::Witness;

/// A fake backend that reports to the witness what is begun there, and fails where it is
/// told to.
#[derive(Debug, Clone)]
pub(crate) struct WitnessedBackend {
    pub(crate) fake: Fake,
    pub(crate) witness: Arc<Witness>,
    pub(crate) under: Under,
    /// The process that reaches it.
    pub(crate) life: Arc<Life>,
    /// What the backend does wrong is drawn from it, if anything.
    pub(crate) mood: Option<Arc<Mutex<fastrand::Rng>>>,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Sound,
    Fails,
    Unanswered,
    /// Who asks is dead.
    Unasked,
}

impl WitnessedBackend {
    /// Waits as long as the request takes on its way.
    async fn fate(&self) -> Fate {
        let fate = self.way().await;
        if self.life.is_dead() { Fate::Unasked } else { fate }
    }

    async fn way(&self) -> Fate {
        let Some(mood) = &self.mood else { return Fate::Sound };
        let (fate, wait) = {
            let mut rng = mood.lock().expect("nobody panics who draws");
            match rng.u8(..) {
                0..3 => (Fate::Fails, 0),
                3..6 => (Fate::Unanswered, 0),
                6..9 => (Fate::Sound, rng.u64(..limits::HANG_MS_MAX)),
                9..96 => (Fate::Sound, rng.u64(..limits::BACKEND_MS_MAX)),
                _ => (Fate::Sound, 0),
            }
        };
        if wait > limits::BACKEND_MS_MAX {
            self.witness.count(Happening::BackendHung);
        }
        tokio::time::sleep(Duration::from_millis(wait)).await;
        fate
    }

    async fn ask<T>(&self, asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        match self.fate().await {
            Fate::Sound => asked.await,
            Fate::Fails => Err(self.fail(Happening::BackendFailed)),
            Fate::Unasked => Err(unasked()),
            Fate::Unanswered => {
                drop(asked.await);
                Err(self.fail(Happening::AnswerLost))
            }
        }
    }

    fn fail(&self, how: Happening) -> Error {
        self.witness.count(how);
        Error::Backend("simulated".to_owned())
    }

    fn held(&self, inner: Arc<dyn Sandbox>) -> Arc<dyn Sandbox> {
        Arc::new(FaultySandbox { inner, backend: self.clone() })
    }
}

/// What a dead process sees; nobody acts on it.
fn unasked() -> Error {
    Error::Backend("simulated: who asks is dead".to_owned())
}

#[async_trait]
impl Backend for WitnessedBackend {
    fn capabilities(&self) -> &Capabilities {
        self.fake.capabilities()
    }

    async fn create(&self, id: &SandboxId, spec: &CreateSpec) -> Result<Arc<dyn Sandbox>, Error> {
        self.ask(self.fake.create(id, spec)).await.map(|inner| self.held(inner))
    }

    async fn find(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>, Error> {
        let found = self.ask(self.fake.find(id)).await?;
        Ok(found.map(|inner| self.held(inner)))
    }

    async fn list(&self) -> Result<Vec<ListedSandbox>, Error> {
        self.ask(Backend::list(&self.fake)).await
    }

    async fn destroy(&self, id: &SandboxId) -> Result<(), Error> {
        self.ask(self.fake.destroy(id)).await
    }

    async fn suspend(&self, id: &SandboxId, how: Suspend) -> Result<(), Error> {
        self.ask(self.fake.suspend(id, how)).await
    }

    fn snapshots(&self) -> Result<&dyn Snapshots, Error> {
        Ok(self)
    }
}

#[async_trait]
impl Snapshots for WitnessedBackend {
    async fn take(&self, sandbox: &SandboxId, name: &SnapshotId) -> Result<Snapshot, Error> {
        self.ask(self.fake.take(sandbox, name)).await
    }

    async fn list(&self) -> Result<Vec<Snapshot>, Error> {
        self.ask(Snapshots::list(&self.fake)).await
    }

    async fn remove(&self, name: &SnapshotId) -> Result<(), Error> {
        self.ask(self.fake.remove(name)).await
    }
}

/// A sandbox of such a backend.
#[derive(Debug)]
struct FaultySandbox {
    inner: Arc<dyn Sandbox>,
    backend: WitnessedBackend,
}

impl FaultySandbox {
    /// Asks for something under an exec id. The fake begins it when it is first polled.
    async fn begin<T>(
        &self,
        exec: Option<&ExecId>,
        asked: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let fate = self.backend.fate().await;
        match fate {
            Fate::Fails => return Err(self.backend.fail(Happening::BackendFailed)),
            Fate::Unasked => return Err(unasked()),
            Fate::Sound | Fate::Unanswered => {}
        }
        let mut asked = Box::pin(asked);
        let first = asked.as_mut().now_or_never();
        if let Some(exec) = exec {
            let WitnessedBackend { fake, witness, under, .. } = &self.backend;
            witness.begun(self.inner.id(), exec.as_str(), fake, *under);
        }
        if fate == Fate::Unanswered {
            return Err(self.backend.fail(Happening::AnswerLost));
        }
        match first {
            Some(answer) => answer,
            None => asked.await,
        }
    }
}

#[async_trait]
impl Sandbox for FaultySandbox {
    fn id(&self) -> &SandboxId {
        self.inner.id()
    }

    fn generation(&self) -> &Generation {
        self.inner.generation()
    }

    fn outcome(&self) -> CreateOutcome {
        self.inner.outcome()
    }

    fn is_alive(&self) -> bool {
        self.inner.is_alive()
    }

    async fn execute(&self, request: Execute, sink: &dyn OutputSink) -> Result<ExecOutcome, Error> {
        let exec = request.id.clone();
        self.begin(Some(&exec), self.inner.execute(request, sink)).await
    }

    async fn kill(&self, id: &ExecId) -> Result<(), Error> {
        self.backend.ask(self.inner.kill(id)).await
    }

    async fn input(&self, id: &ExecId, input: Input) -> Result<(), Error> {
        self.inner.input(id, input).await
    }

    async fn files(&self, op: FileOp) -> Result<FileReply, Error> {
        let exec = op.id().cloned();
        self.begin(exec.as_ref(), self.inner.files(op)).await
    }
}
