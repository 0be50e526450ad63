//! Sandboxes that people make on the server and drive themselves.
//!
//! Owns whose each is: a record beside the backend, which outlives this process as the sandbox
//! does. What a sandbox may take has the configuration as its ceiling.

mod ceiling;
mod exec_lives;
mod flows;
mod held;
mod network;
mod reach;
mod records;
mod snapshots;

use async_trait::async_trait;
use outrigger_api::{
    CreateSandbox, ForkSandbox, ProblemCode, SandboxInfo, SandboxLimits, SandboxState, SuspendDepth,
};
use outrigger_sandbox::{
    CreateSpec, DiskOrigin, ExecId, Generation, LifecycleState, ListedSandbox, Sandbox, SandboxId,
    SnapshotId, Suspend,
};
use outrigger_sandbox_native::is_of_project;
use outrigger_server::{RequestError, SandboxHost};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use tokio::sync::OnceCell;

use super::context::ServeContext;
use super::failure::told;
use crate::command::sandbox::context::SandboxContext;
use crate::limits::{PERSON_SANDBOXES_MAX, SANDBOX_BEGIN_MS_MAX};
use crate::session::now_ms;
use held::HeldSandbox;
use network::{NetworkedSandbox, PersonNetwork};
use records::{Records, SandboxRecord, SnapshotRecord};

/// The sandboxes of people.
#[derive(Debug, Clone)]
pub(super) struct PersonSandboxes(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    context: Arc<ServeContext>,
    /// The backend, once anybody asked for a sandbox.
    opened: OnceCell<SandboxContext>,
    network: OnceCell<Arc<PersonNetwork>>,
    sandboxes: Records<SandboxRecord>,
    snapshots: Records<SnapshotRecord>,
    held: Mutex<HashMap<SandboxId, Arc<HeldSandbox>>>,
}

/// By which name a disk is kept while another sandbox is made from it.
const FORK: &str = "fork-";

impl PersonSandboxes {
    pub(super) fn new(context: Arc<ServeContext>) -> Self {
        let harness = context.paths.harness();
        let sandboxes = Records::new(harness.join("sandboxes"));
        let snapshots = Records::new(harness.join("snapshots"));
        let (opened, network, held) = (OnceCell::new(), OnceCell::new(), Mutex::default());
        Self(Arc::new(Inner { context, opened, network, sandboxes, snapshots, held }))
    }

    /// The backend, and what the configuration says of sandboxes.
    async fn context(&self) -> Result<&SandboxContext, RequestError> {
        let ServeContext { paths, config, .. } = &*self.0.context;
        let open = || SandboxContext::open(paths, config.clone(), None);
        self.0.opened.get_or_try_init(open).await.map_err(told)
    }

    /// How they get out.
    async fn network(&self) -> Result<&Arc<PersonNetwork>, RequestError> {
        let SandboxContext { backend_name, networks, .. } = self.context().await?;
        let open = async || {
            let opened = PersonNetwork::new(&self.0.context, *backend_name, networks.clone());
            opened.map(Arc::new).map_err(told)
        };
        self.0.network.get_or_try_init(open).await
    }

    /// One that has a record, or the error that there is none.
    fn known(&self, id: &SandboxId) -> Result<Arc<HeldSandbox>, RequestError> {
        self.found(id).ok_or_else(|| gone(id))
    }

    /// One that is not being removed.
    fn found(&self, id: &SandboxId) -> Option<Arc<HeldSandbox>> {
        self.held(id).filter(|held| !held.leaves.load(Ordering::Acquire))
    }

    fn new_held(&self, id: &SandboxId, record: SandboxRecord) -> HeldSandbox {
        HeldSandbox::new(record, |ending| self.0.sandboxes.beside(id.as_str(), ending))
    }

    /// One that has a record.
    fn held(&self, id: &SandboxId) -> Option<Arc<HeldSandbox>> {
        let mut held = self.0.held.lock().expect("nobody panics while they hold the table");
        if let Some(held) = held.get(id) {
            return Some(Arc::clone(held));
        }
        let record = self.0.sandboxes.get(id.as_str())?;
        let found = Arc::new(self.new_held(id, record));
        held.insert(id.clone(), Arc::clone(&found));
        Some(found)
    }

    /// The one of that name, or a new one that nobody knows of yet.
    fn held_or_new(&self, id: &SandboxId, record: SandboxRecord) -> Arc<HeldSandbox> {
        if let Some(held) = self.held(id) {
            return held;
        }
        let mut held = self.0.held.lock().expect("nobody panics while they hold the table");
        let new = || Arc::new(self.new_held(id, record));
        Arc::clone(held.entry(id.clone()).or_insert_with(new))
    }

    fn forget_held(&self, id: &SandboxId) {
        self.0.held.lock().expect("nobody panics while they hold the table").remove(id);
        self.0.sandboxes.remove(id.as_str());
    }

    /// One that is not there any more: nothing of it is kept, here or at the gate.
    async fn forget_gone(&self, id: &SandboxId) -> Result<(), RequestError> {
        if let Some(held) = self.held(id) {
            self.network().await?.forget(id, &held).await;
        }
        self.forget_held(id);
        Ok(())
    }

    /// What went cold by itself holds nothing at the gate.
    async fn tidy(&self, listed: &ListedSandbox) -> Result<(), RequestError> {
        if listed.state == LifecycleState::Cold
            && let Some(held) = self.held(&listed.id)
        {
            self.network().await?.rest(&listed.id, &held).await;
        }
        Ok(())
    }

    async fn listed(&self, id: &SandboxId) -> Result<Option<ListedSandbox>, RequestError> {
        let all = self.context().await?.backend.list().await?;
        Ok(all.into_iter().find(|listed| listed.id == *id))
    }

    /// Makes one from a record, once: whoever comes with the same name meanwhile waits for it.
    async fn made(
        &self,
        id: &SandboxId,
        record: SandboxRecord,
        make: impl AsyncFnOnce(&SandboxContext, CreateSpec) -> Result<Arc<dyn Sandbox>, RequestError>,
    ) -> Result<SandboxInfo, RequestError> {
        let held = self.held_or_new(id, record);
        let mut handle = held.handle.lock().await;
        let has_record = self.0.sandboxes.get(id.as_str()).is_some();
        // A server may have died after the record, and before the sandbox.
        if handle.is_none() && (!has_record || self.listed(id).await?.is_none()) {
            self.0.sandboxes.put(id.as_str(), &held.record).map_err(told)?;
            let made = async { make(self.context().await?, held.record.spec.clone()).await }.await;
            *handle = Some(made.inspect_err(|_| self.forget_held(id))?);
        }
        drop(handle);
        let listed = self.listed(id).await?.ok_or_else(|| gone(id))?;
        Ok(info(&held.record, held.network(), &listed))
    }

    /// An error where somebody has too many, or the name is somebody else's.
    fn check_new(&self, person: &str, id: &SandboxId) -> Result<(), RequestError> {
        if let Some(held) = self.held(id) {
            let text = format!("there is a sandbox `{id}` already");
            let ours = held.record.person == person;
            return if ours { Ok(()) } else { Err(RequestError::new(ProblemCode::Conflict, text)) };
        }
        let all = self.0.sandboxes.all();
        let own = all.iter().map(|(_, record)| record);
        let own = own.filter(|it| it.person == person && !it.is_too_old(now_ms())).count();
        if own < PERSON_SANDBOXES_MAX {
            return Ok(());
        }
        let text = format!("you have {own} sandboxes, and {PERSON_SANDBOXES_MAX} are the most");
        Err(RequestError::new(ProblemCode::RateLimited, text).hint("Remove one of them."))
    }

    /// Where the disk of a new one begins.
    async fn origin(&self, asked: &CreateSandbox) -> Result<DiskOrigin, RequestError> {
        let context = self.context().await?;
        match (&asked.template, &asked.snapshot) {
            (None, None) => Ok(context.spec.origin.clone()),
            (None, Some(name)) => {
                let unknown = || RequestError::new(ProblemCode::NotFound, no_snapshot(name));
                SnapshotId::new(name.clone()).map(DiskOrigin::Snapshot).map_err(|_| unknown())
            }
            // What was made for a project is its own.
            (Some(name), None) if !is_of_project(name) => Ok(DiskOrigin::Template(name.clone())),
            (Some(name), None) => {
                let text = format!("there is no template `{name}`");
                Err(RequestError::new(ProblemCode::NotFound, text)
                    .hint("`GET /v1/templates` lists them."))
            }
            (Some(_), Some(_)) => {
                let text = "give `template` or `snapshot`: a disk begins with one of them";
                Err(RequestError::new(ProblemCode::InvalidRequest, text))
            }
        }
    }
}

fn no_snapshot(name: &str) -> String {
    format!("there is no snapshot `{name}`")
}

fn gone(id: &SandboxId) -> RequestError {
    RequestError::new(ProblemCode::NotFound, format!("there is no sandbox `{id}` any more"))
        .hint("It was removed, or its `age_seconds` were over.")
}

fn info(record: &SandboxRecord, network: Vec<String>, listed: &ListedSandbox) -> SandboxInfo {
    let (template, snapshot) = match &record.spec.origin {
        DiskOrigin::Template(name) => (Some(name.clone()), None),
        // Nobody can ask for what was only there while it was made.
        DiskOrigin::Snapshot(name) if name.as_str().starts_with(FORK) => (None, None),
        DiskOrigin::Snapshot(name) => (None, Some(name.to_string())),
    };
    let seconds = |ms: Option<u64>| ms.map(|ms| ms / 1_000);
    SandboxInfo {
        id: listed.id.to_string(),
        person: record.person.clone(),
        label: record.label.clone(),
        state: match listed.state {
            LifecycleState::Running => SandboxState::Running,
            LifecycleState::Frozen => SandboxState::Frozen,
            LifecycleState::Cold => SandboxState::Cold,
            LifecycleState::Dead => SandboxState::Dead,
        },
        template,
        snapshot,
        network,
        limits: limits(&record.spec),
        idle_seconds: seconds(record.spec.lifetime.idle_ms_max),
        age_seconds: seconds(record.spec.lifetime.age_ms_max),
        created_ms: record.created_ms,
        used_ms: listed.used_at_ms,
        may_drive: false,
    }
}

fn limits(spec: &CreateSpec) -> SandboxLimits {
    SandboxLimits {
        memory_mib: Some(spec.memory_bytes_max >> 20),
        cpu_millis: Some(spec.cpu_millis_max),
        pids: Some(spec.pids_max),
        disk_mib: Some(spec.disk_bytes_max >> 20),
    }
}

#[async_trait]
impl SandboxHost for PersonSandboxes {
    async fn list(&self) -> Result<Vec<SandboxInfo>, RequestError> {
        let all = self.0.sandboxes.all();
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let listed = self.context().await?.backend.list().await?;
        let mut found = Vec::new();
        for (name, record) in all {
            match listed.iter().find(|listed| listed.id.as_str() == name) {
                Some(listed) => {
                    found.push(info(&record, record.network.clone(), listed));
                    self.tidy(listed).await?;
                }
                // Its age was over, or somebody else removed it; one that is being made is not.
                None if record.is_too_old(now_ms())
                    || record.created_ms + SANDBOX_BEGIN_MS_MAX < now_ms() =>
                {
                    if let Ok(id) = SandboxId::new(name) {
                        self.forget_gone(&id).await?;
                    }
                }
                None => {}
            }
        }
        found.sort_by(|one, other| (other.created_ms, &other.id).cmp(&(one.created_ms, &one.id)));
        Ok(found)
    }

    fn owner(&self, id: &SandboxId) -> Option<String> {
        self.found(id).map(|held| held.record.person.clone())
    }

    async fn create(
        &self,
        person: &str,
        id: &SandboxId,
        asked: CreateSandbox,
    ) -> Result<SandboxInfo, RequestError> {
        self.check_new(person, id)?;
        let origin = self.origin(&asked).await?;
        let spec = ceiling::spec(&self.context().await?.spec, &asked, origin)?;
        let network = self.reach(asked.network.as_deref()).await?;
        let record = SandboxRecord::new(person, asked.label, spec, network);
        let make = async |context: &SandboxContext, spec: CreateSpec| {
            Ok(context.backend.create(id, &spec).await?)
        };
        self.made(id, record, make).await
    }

    async fn fork(
        &self,
        id: &SandboxId,
        (person, into): (&str, &SandboxId),
        asked: ForkSandbox,
    ) -> Result<SandboxInfo, RequestError> {
        self.check_new(person, into)?;
        let from = self.known(id)?;
        let (spec, network) = (from.record.spec.clone(), from.network());
        let kept = match &asked.snapshot {
            Some(name) => {
                let of_it = self.0.snapshots.get(name).is_some_and(|it| it.sandbox == id.as_str());
                if !of_it {
                    let text = format!("`{name}` is no snapshot of `{id}`");
                    return Err(RequestError::new(ProblemCode::InvalidRequest, text)
                        .hint("`POST /v1/sandboxes` makes one of any snapshot."));
                }
                SnapshotId::new(name.clone())
            }
            None => SnapshotId::new(format!("{FORK}{into}")),
        };
        let kept = kept.map_err(|_| gone(id))?;
        let origin = DiskOrigin::Snapshot(kept.clone());
        let spec = CreateSpec { origin, ..spec };
        let record = SandboxRecord::new(person, asked.label, spec, network);
        let is_now = asked.snapshot.is_none();
        let make = async |context: &SandboxContext, spec: CreateSpec| match is_now {
            true => Ok(context.fork(id, &kept, into, spec).await?),
            false => Ok(context.backend.create(into, &spec).await?),
        };
        self.made(into, record, make).await
    }

    async fn open(&self, id: &SandboxId) -> Result<Arc<dyn Sandbox>, RequestError> {
        let held = self.known(id)?;
        let mut handle = held.handle.lock().await;
        let sandbox = match handle.take().filter(|sandbox| sandbox.is_alive()) {
            Some(alive) => alive,
            // What is not there any more is not made anew.
            None if self.listed(id).await?.is_none() => {
                self.forget_gone(id).await?;
                return Err(gone(id));
            }
            None => self.context().await?.backend.create(id, &held.record.spec).await?,
        };
        *handle = Some(Arc::clone(&sandbox));
        let network = Arc::clone(self.network().await?);
        Ok(Arc::new(NetworkedSandbox { sandbox, held: Arc::clone(&held), network }))
    }

    async fn suspend(&self, id: &SandboxId, how: SuspendDepth) -> Result<(), RequestError> {
        let how = match how {
            SuspendDepth::Frozen => Suspend::Frozen,
            SuspendDepth::Cold => Suspend::Cold,
        };
        let held = self.known(id)?;
        self.context().await?.backend.suspend(id, how).await?;
        if how == Suspend::Cold {
            self.network().await?.close(id, &held).await;
        }
        Ok(())
    }

    async fn remove(&self, id: &SandboxId) -> Result<(), RequestError> {
        let held = self.known(id)?;
        let mut handle = held.handle.lock().await;
        *handle = None;
        let backend = &self.context().await?.backend;
        held.leaves.store(true, Ordering::Release);
        if let Err(error) = backend.destroy(id).await {
            held.leaves.store(false, Ordering::Release);
            return Err(error.into());
        }
        self.forget_gone(id).await
    }

    fn exec_life(
        &self,
        id: &SandboxId,
        exec: &ExecId,
        begins: Option<&Generation>,
    ) -> Result<Option<Generation>, RequestError> {
        let held = self.known(id)?;
        held.exec_life(exec, begins).map_err(told)
    }
}
