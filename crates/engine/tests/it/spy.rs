//! A backend that notes what it is asked, and fails where it is told to.

use async_trait::async_trait;
use outrigger_agent::{Event, SessionId};
use outrigger_sandbox::{
    Backend, Capabilities, CreateSpec, Error, ListedSandbox, Sandbox, SandboxId, Snapshot,
    SnapshotId, Snapshots, Suspend,
};
use outrigger_sandbox_testing::fake::Fake;
use outrigger_store::{Journal, Memory, SessionSummary};
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone)]
pub(crate) struct Spy {
    pub(crate) inner: Fake,
    capabilities: Capabilities,
    notes: Arc<Mutex<Vec<String>>>,
    /// The next resume, and each after it until the disk is destroyed, finds it altered.
    altered: Arc<Mutex<bool>>,
    full: Arc<Mutex<bool>>,
    /// Nothing can be destroyed now.
    stuck: Arc<Mutex<bool>>,
    /// A session in this journal goes on when the next sandbox is destroyed.
    returning: Arc<Mutex<Option<(Memory, SessionId)>>>,
}

impl Spy {
    pub(crate) fn new(name: &str) -> Self {
        let inner = Fake::new();
        let capabilities =
            Capabilities { backend: name.to_owned(), ..inner.capabilities().clone() };
        let (notes, altered, full, stuck, returning) = Default::default();
        Self { inner, capabilities, notes, altered, full, stuck, returning }
    }

    /// A spy whose backend can't suspend in this way.
    pub(crate) fn without(mut self, how: Suspend) -> Self {
        self.capabilities.suspend.retain(|offered| *offered != how);
        self
    }

    /// Somebody writes to the disk of a cold sandbox.
    pub(crate) fn alter(&self) {
        *self.altered.lock().unwrap() = true;
    }

    /// No snapshot fits on the disk any more.
    pub(crate) fn fill(&self) {
        *self.full.lock().unwrap() = true;
    }

    /// Nothing can be destroyed until [`Spy::mend`].
    pub(crate) fn break_destroy(&self) {
        *self.stuck.lock().unwrap() = true;
    }

    /// Somebody comes back to a session while the next sandbox is destroyed.
    pub(crate) fn come_back(&self, journal: &Memory, session: &SessionId) {
        *self.returning.lock().unwrap() = Some((journal.clone(), session.clone()));
    }

    pub(crate) fn mend(&self) {
        *self.stuck.lock().unwrap() = false;
    }

    fn note(&self, text: String) {
        self.notes.lock().unwrap().push(text);
    }

    /// What it was asked since it was last asked this.
    pub(crate) fn noted(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock().unwrap())
    }
}

#[async_trait]
impl Backend for Spy {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn create(&self, id: &SandboxId, spec: &CreateSpec) -> Result<Arc<dyn Sandbox>, Error> {
        if *self.altered.lock().unwrap() {
            self.note(format!("altered {id}"));
            let detail = "/workspace/a differs".to_owned();
            return Err(Error::Altered { name: id.to_string(), detail });
        }
        let made = self.inner.create(id, spec).await?;
        self.note(format!("create {id}: {:?}", made.outcome()));
        Ok(made)
    }

    async fn find(&self, id: &SandboxId) -> Result<Option<Arc<dyn Sandbox>>, Error> {
        self.inner.find(id).await
    }

    async fn list(&self) -> Result<Vec<ListedSandbox>, Error> {
        Backend::list(&self.inner).await
    }

    async fn destroy(&self, id: &SandboxId) -> Result<(), Error> {
        if *self.stuck.lock().unwrap() {
            return Err(Error::Backend("it does not answer".to_owned()));
        }
        self.note(format!("destroy {id}"));
        let returning = self.returning.lock().unwrap().take();
        if let Some((journal, session)) = returning {
            let head = journal.head(&session).await.unwrap();
            let events = [Event::Said(Arc::new(crate::world::said("I am back")))];
            journal.append(&session, head, 0, &events, SessionSummary::default()).await.unwrap();
        }
        *self.altered.lock().unwrap() = false;
        self.inner.destroy(id).await
    }

    async fn suspend(&self, id: &SandboxId, how: Suspend) -> Result<(), Error> {
        let done = self.inner.suspend(id, how).await;
        let busy = if matches!(done, Err(Error::Busy { .. })) { ": busy" } else { "" };
        self.note(format!("{how} {id}{busy}"));
        done
    }

    fn snapshots(&self) -> Result<&dyn Snapshots, Error> {
        Ok(self)
    }
}

#[async_trait]
impl Snapshots for Spy {
    async fn take(&self, sandbox: &SandboxId, name: &SnapshotId) -> Result<Snapshot, Error> {
        if *self.full.lock().unwrap() {
            return Err(Error::Backend("no space left on the disk".to_owned()));
        }
        let taken = self.inner.take(sandbox, name).await?;
        self.note(format!("keep {name}"));
        Ok(taken)
    }

    async fn list(&self) -> Result<Vec<Snapshot>, Error> {
        Snapshots::list(&self.inner).await
    }

    async fn remove(&self, name: &SnapshotId) -> Result<(), Error> {
        self.note(format!("forget {name}"));
        self.inner.remove(name).await
    }
}
