//! A sandbox of one session: from what it is made, and whether it may be used.
//!
//! Must never ask a backend anything but what it can do.

use outrigger_agent::{
    SandboxReady, SandboxScope, SandboxSpec, SessionId, SnapshotRef, State, Workspace,
};
use outrigger_sandbox::{Backend, CreateSpec, DiskOrigin, Isolation, ListedSandbox, SandboxId};
use std::sync::Arc;

use super::config::{RetentionPolicy, SandboxOwner};
use crate::{Engine, Error};

/// A sandbox of one session, with everything that is needed to attach to it.
#[derive(Debug, Clone)]
pub(crate) struct SandboxHandle {
    pub(crate) id: SandboxId,
    pub(crate) shared: bool,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) retention: RetentionPolicy,
    pub(crate) content: Option<Workspace>,
    /// What is kept of it, the oldest first, as the session knows.
    pub(crate) kept: Vec<SnapshotRef>,
    asked: Option<SandboxSpec>,
    spec: CreateSpec,
}

/// The id, at its backend, of a sandbox that is a session's alone.
#[must_use]
pub fn sandbox_id(session: &SessionId, name: &str) -> SandboxId {
    SandboxOwner::Session { session: session.clone(), name: name.to_owned() }.id()
}

/// A sandbox of a session.
pub(crate) fn of(
    engine: &Engine,
    session: &SessionId,
    state: &State,
    name: &str,
) -> Result<SandboxHandle, Error> {
    let unknown = || Error::NoSuchSandbox(name.to_owned());
    let config = engine.parts.sandboxes.get(name).ok_or_else(unknown)?;
    let asked = state.spec().and_then(|spec| spec.sandbox(name)).cloned();
    let name = name.to_owned();
    let owner = match asked.as_ref().map(|asked| &asked.scope) {
        Some(SandboxScope::Assistant(assistant)) => {
            SandboxOwner::Assistant { assistant: assistant.clone(), name: name.clone() }
        }
        Some(SandboxScope::Thread) | None => {
            SandboxOwner::Session { session: session.clone(), name: name.clone() }
        }
    };
    Ok(SandboxHandle {
        id: owner.id(),
        shared: matches!(owner, SandboxOwner::Assistant { .. }),
        backend: Arc::clone(&config.backend),
        retention: config.retention,
        content: state.spec().and_then(|spec| spec.content(&name)).cloned(),
        kept: state.kept(&name).to_vec(),
        asked,
        spec: config.spec.clone(),
    })
}

impl SandboxHandle {
    /// What it is made from, if it has no disk.
    pub(crate) fn spec(&self, origin: DiskOrigin) -> CreateSpec {
        // Who shares a disk does not share what each may see of memory.
        let served = if self.shared { Vec::new() } else { self.spec.served.clone() };
        CreateSpec { origin, isolation_min: self.isolation_min(), served, ..self.spec.clone() }
    }

    /// What it is resumed with: if its disk is gone after all, it begins as it was kept.
    pub(crate) fn spec_of_last(&self) -> CreateSpec {
        self.spec(self.kept.last().and_then(origin_of).unwrap_or_else(|| self.template()))
    }

    /// Whether what is there is of what was given up when the session went back: the life that
    /// was ready last, or one that was looked at and began elsewhere than it would now.
    pub(crate) fn is_given_up(&self, there: &ListedSandbox, last: &SandboxReady) -> bool {
        let is_last = match &there.generation {
            Some(found) => found.as_str() == last.generation,
            None => last.disk_made_at_ms.is_none_or(|made_at_ms| made_at_ms == there.made_at_ms),
        };
        is_last || there.origin != self.spec_of_last().origin
    }

    /// Where it begins if nothing was kept of it.
    pub(crate) fn template(&self) -> DiskOrigin {
        match self.asked.as_ref().and_then(|asked| asked.template.clone()) {
            Some(template) => DiskOrigin::Template(template),
            None => self.spec.origin.clone(),
        }
    }

    /// Where it begins where that template was made for a project at another server: what it was
    /// made over, without what the project depends on.
    pub(crate) fn base(&self) -> Option<DiskOrigin> {
        let DiskOrigin::Template(base) = &self.spec.origin else { return None };
        let asked = self.asked.as_ref()?.template.as_ref()?;
        let is_over = asked.strip_prefix(base.as_str())?.starts_with('.');
        is_over.then(|| self.spec.origin.clone())
    }

    /// The stronger of what the session was opened with and what is configured now. A
    /// name that is not known here is stronger than anything.
    fn isolation_min(&self) -> Isolation {
        let asked = self.asked.as_ref().map(|asked| {
            let name = serde_json::Value::String(asked.isolation_min.clone());
            serde_json::from_value(name).unwrap_or(Isolation::RootRange)
        });
        asked.map_or(self.spec.isolation_min, |asked| asked.max(self.spec.isolation_min))
    }

    /// Whether the backend is the session's, and isolates as well as the session
    /// demands; if not, why and what to do.
    pub(crate) fn check(&self) -> Result<(), String> {
        let offered = self.backend.capabilities();
        if let Some(asked) = self.asked.as_ref().filter(|asked| asked.backend != offered.backend) {
            let (name, theirs, ours) = (&asked.name, &asked.backend, &offered.backend);
            return Err(format!(
                "The sandbox `{name}` of this session is in the backend `{theirs}`, and the configuration now says `{ours}`, which does not have its disk. Set `sandbox.backend` back, or begin a new session."
            ));
        }
        let least = self.isolation_min();
        if offered.isolation < least {
            let (backend, isolation) = (&offered.backend, offered.isolation);
            return Err(format!(
                "The backend `{backend}` isolates as `{isolation}` on this machine, and this session accepts no less than `{least}`. Fix what is missing, or set `sandbox.isolation_min` to `{isolation}` and begin a new session."
            ));
        }
        Ok(())
    }
}

/// A snapshot as a place to begin from.
pub(crate) fn origin_of(kept: &SnapshotRef) -> Option<DiskOrigin> {
    let name = outrigger_sandbox::SnapshotId::new(kept.snapshot.as_str());
    name.ok().map(DiskOrigin::Snapshot)
}
