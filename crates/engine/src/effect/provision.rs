//! Makes a session's sandbox, with its starting content, or makes one in the place of
//! one that was lost: over its disk, from what was kept of it, or from the start.

use outrigger_agent::{
    Amounts, Failure, Outcome, Product, Replacement, SandboxReady, Seq, SessionId, SnapshotRef,
};
use outrigger_sandbox::{CreateOutcome, DiskOrigin, Error, ListedSandbox, Sandbox};
use outrigger_store::Blobs;
use std::sync::Arc;

use crate::driver::grants::attempt_of;
use crate::driver::session::{Completion, SessionRun};
use crate::memory;
use crate::sandbox::handle::{self, SandboxHandle, origin_of};
use crate::sandbox::snapshot::of_sandbox;
use crate::workspace::{self, ImportOutcome};
use crate::{Engine, Feed, Notice, SnapshotPolicy, Warning, limits};

pub(super) fn provision(
    engine: &Engine,
    run: &SessionRun,
    effect: Seq,
    sandbox: String,
) -> impl Future<Output = Completion> + Send + use<> {
    let handle = handle::of(engine, &run.session, &run.state, &sandbox);
    memory::serve(engine, run, handle.as_ref().ok(), effect, None);
    let provision = handle.map(|handle| Provision {
        blobs: Arc::clone(&engine.parts.blobs),
        feed: engine.feed().clone(),
        session: run.session.clone(),
        name: sandbox.clone(),
        effect,
        attempt: attempt_of(&run.state, effect).unwrap_or_default(),
        before: run.state.last_ready(&sandbox).cloned(),
        set_back: run.state.is_set_back(&sandbox),
        handle,
    });
    async move {
        let made = match provision {
            Ok(provision) => provision.perform().await.map_err(|error| error.detail),
            Err(error) => Err(error.to_string()),
        };
        let (outcome, attached, kept) = match made {
            Ok(made) => {
                let ready = Outcome::Done(Product::Sandbox(made.ready));
                (ready, Some((sandbox.clone(), made.sandbox)), made.kept)
            }
            Err(detail) => (Outcome::Failed(Failure::Sandbox { detail }), None, None),
        };
        let kept = kept.map(|kept| (sandbox, kept));
        Completion { attached, kept, ..Completion::new(effect, outcome, Amounts::default()) }
    }
}

struct Provision {
    blobs: Arc<dyn Blobs>,
    feed: Feed,
    session: SessionId,
    name: String,
    effect: Seq,
    attempt: u32,
    /// As it was ready last, if it ever was.
    before: Option<SandboxReady>,
    /// The session went back to an earlier checkpoint: a disk of later is not its own.
    set_back: bool,
    handle: SandboxHandle,
}

struct ProvisionedSandbox {
    ready: SandboxReady,
    sandbox: Arc<dyn Sandbox>,
    kept: Option<SnapshotRef>,
}

/// Why a sandbox could not be made.
struct ProvisionError {
    detail: String,
    /// It was suspended, or died, while it was filled: another attempt may succeed.
    lost: bool,
}

impl From<Error> for ProvisionError {
    fn from(error: Error) -> Self {
        Self { detail: workspace::explain(&error), lost: matches!(error, Error::Lost { .. }) }
    }
}

impl From<workspace::Error> for ProvisionError {
    fn from(error: workspace::Error) -> Self {
        let lost = matches!(&error, workspace::Error::Sandbox { source: Error::Lost { .. }, .. });
        Self { detail: workspace::explain(&error), lost }
    }
}

impl Provision {
    /// Makes it, a few times if it is suspended in the middle.
    async fn perform(&self) -> Result<ProvisionedSandbox, ProvisionError> {
        self.handle.check().map_err(|detail| ProvisionError { detail, lost: false })?;
        self.clear_other_disk().await?;
        let mut made = self.make_once().await;
        for _ in 1..limits::ATTACHES_MAX {
            if !matches!(&made, Err(ProvisionError { lost: true, .. })) {
                break;
            }
            made = self.make_once().await;
        }
        made
    }

    /// Where the session had another disk since, at another server, what lies here under its name is
    /// of before that, or of an attempt that no event tells of: nobody's work.
    async fn clear_other_disk(&self) -> Result<(), Error> {
        let last = self.before.as_ref().and_then(|before| before.disk_made_at_ms);
        let (Some(last), false) = (last, self.handle.shared) else { return Ok(()) };
        let here = self.handle.lookup().await?;
        if here.is_some_and(|here| here.made_at_ms > 0 && here.made_at_ms != last) {
            self.handle.backend.destroy(&self.handle.id).await?;
        }
        Ok(())
    }

    /// Create-or-attach, and fill-unless-filled: repeating it after a crash is harmless.
    async fn make_once(&self) -> Result<ProvisionedSandbox, ProvisionError> {
        if self.set_back {
            self.handle.backend.destroy(&self.handle.id).await?;
        }
        let kept = self.kept().await;
        let sandbox = self.create(&kept).await?;
        let listed = self.handle.lookup().await?;
        // A backend that does not know when it made a disk says 0.
        let disk = listed.as_ref().map(|listed| listed.made_at_ms).filter(|made| *made > 0);
        let known =
            self.before.is_some() && !self.set_back && self.has_old_disk(disk, &*sandbox).await;
        let from = listed.and_then(|listed| snapshot_of(listed, &kept)).filter(|_| !known);
        let begins = !known && from.is_none() && self.handle.content.is_some();
        let filled = begins && self.fill(&*sandbox).await?;
        let capabilities = self.handle.backend.capabilities();
        let generation = sandbox.generation().to_string();
        let lived = self.before.as_ref().is_some_and(|before| before.generation == generation);
        let replaces = match (&self.before, from) {
            (None, _) => None,
            (Some(_), _) if lived => None,
            (Some(_), Some(kept)) => Some(Replacement::Snapshot(kept)),
            (Some(_), None) if known => Some(Replacement::Disk),
            (Some(_), None) => Some(Replacement::Start),
        };
        let ready = SandboxReady {
            id: self.handle.id.to_string(),
            generation,
            backend: capabilities.backend.clone(),
            isolation: capabilities.isolation.to_string(),
            disk_made_at_ms: disk,
            replaces,
        };
        // Also what an attempt before this one filled; but not what others work in.
        let keeps = filled || (begins && !self.handle.shared);
        let kept = if keeps { self.take_snapshot().await } else { None };
        Ok(ProvisionedSandbox { ready, sandbox, kept })
    }

    /// What is kept of it, the oldest first. The sessions that share one know nothing
    /// of what the others kept.
    async fn kept(&self) -> Vec<SnapshotRef> {
        match self.handle.backend.snapshots() {
            Ok(snapshots) if self.handle.shared => {
                of_sandbox(snapshots, &self.handle.id).await.unwrap_or_default()
            }
            Ok(_) | Err(_) => self.handle.kept.clone(),
        }
    }

    /// Over its own disk if there is a sound one, else from what was kept last, from
    /// what was kept before that, or from the template, or from what that was made over.
    async fn create(&self, kept: &[SnapshotRef]) -> Result<Arc<dyn Sandbox>, Error> {
        let SandboxHandle { id, backend, .. } = &self.handle;
        let origins = kept.iter().rev().filter_map(origin_of).chain([self.handle.template()]);
        let base = self.handle.base();
        let mut last = None;
        for origin in origins.chain(base.clone()) {
            let spec = self.handle.spec(origin);
            let mut created = backend.create(id, &spec).await;
            if let Err(Error::Altered { .. }) = &created {
                // Either its own disk or what it would begin from: without the first,
                // it shows whether it is the second.
                backend.destroy(id).await?;
                created = backend.create(id, &spec).await;
            }
            match created {
                Ok(sandbox) => {
                    if let Some(source) = last.filter(|_| base == Some(spec.origin)) {
                        let sandbox = self.name.clone();
                        let warning = Warning::WithoutProject { sandbox, source };
                        self.feed.tell(&self.session, || Notice::Warning(warning));
                    }
                    return Ok(sandbox);
                }
                Err(error @ (Error::Altered { .. } | Error::Absent { .. })) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.expect("the template is always tried"))
    }

    /// Whether its disk is the one that it had when it was ready last.
    async fn has_old_disk(&self, disk: Option<u64>, sandbox: &dyn Sandbox) -> bool {
        match (self.before.as_ref().and_then(|before| before.disk_made_at_ms), disk) {
            (Some(before), Some(now)) => before == now,
            // What was filled and holds something was filled before; a command may have
            // deleted the mark.
            (None, _) | (_, None) => match &self.handle.content {
                Some(_) => !workspace::is_empty(sandbox).await.unwrap_or(true),
                None => sandbox.outcome() != CreateOutcome::Made,
            },
        }
    }

    /// Fills it. False if there is nothing to fill it with, or it was filled before.
    async fn fill(&self, sandbox: &dyn Sandbox) -> Result<bool, workspace::Error> {
        let Some(content) = &self.handle.content else { return Ok(false) };
        let attempt = format!("{}.{}.{}", self.session, self.effect, self.attempt);
        let imported = workspace::import(&*self.blobs, content, &attempt, sandbox).await?;
        Ok(imported == ImportOutcome::Fresh)
    }

    /// Keeps it as it was filled. Failing to is no failure: it can be filled again.
    async fn take_snapshot(&self) -> Option<SnapshotRef> {
        if self.handle.retention.snapshots == SnapshotPolicy::Off {
            return None;
        }
        let snapshots = self.handle.backend.snapshots().ok()?;
        match self.handle.take_snapshot(snapshots, &self.session, self.effect).await {
            Ok(kept) => Some(kept),
            Err(source) => {
                let warning = Warning::NotKept { sandbox: self.name.clone(), source };
                self.feed.tell(&self.session, || Notice::Warning(warning));
                None
            }
        }
    }
}

/// The snapshot that a disk began from.
fn snapshot_of(listed: ListedSandbox, kept: &[SnapshotRef]) -> Option<SnapshotRef> {
    let DiskOrigin::Snapshot(name) = listed.origin else { return None };
    let known = kept.iter().find(|kept| kept.snapshot == name.as_str()).cloned();
    Some(known.unwrap_or(SnapshotRef { snapshot: name.to_string(), at_ms: listed.made_at_ms }))
}
