//! The sandboxes that sessions can have: where each is made, how it is looked after,
//! and what it is for one session.
//!
//! Owns the ids of sandboxes and of their snapshots. Must never ask a backend anything.

use outrigger_agent::{Kept, SandboxSpec, Scope, SessionId, State, Workspace};
use outrigger_sandbox::{Backend, Isolation, Origin, SandboxId, Spec, Suspend};
use std::sync::Arc;

use crate::{Engine, Error};

/// What a sandbox is made from and where, by a name in sessions.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// Where it is made.
    pub backend: Arc<dyn Backend>,
    /// What it is made from.
    pub spec: Spec,
    /// What is kept of it while nobody uses it.
    pub retention: RetentionPolicy,
}

impl SandboxConfig {
    /// With the retention that is right for most.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, spec: Spec) -> Self {
        Self { backend, spec, retention: RetentionPolicy::default() }
    }
}

/// What is kept of a sandbox that nobody uses. What its backend can't do is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// How deeply it is suspended when the session waits for a person, if at all;
    /// less deeply where the backend can't.
    pub suspend: Option<Suspend>,
    /// It is frozen when the model has been thinking for this long, in milliseconds.
    pub freeze_after_ms: Option<u64>,
    /// When a snapshot of its disk is taken.
    pub snapshots: SnapshotPolicy,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self {
            suspend: Some(Suspend::Cold),
            freeze_after_ms: Some(crate::limits::FREEZE_AFTER_MS_DEFAULT),
            snapshots: SnapshotPolicy::Turn { kept_max: crate::limits::SNAPSHOTS_DEFAULT },
        }
    }
}

/// When a snapshot of a sandbox's disk is taken, to begin from when it is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotPolicy {
    /// Never.
    Off,
    /// When it was filled, and after each turn that may have changed it.
    Turn {
        /// Snapshots that are kept at once; the oldest goes first.
        kept_max: usize,
    },
}

/// Whose a sandbox is, as its id tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// One session's.
    Session {
        /// The session.
        session: SessionId,
        /// The sandbox's name in it.
        name: String,
    },
    /// Shared by the sessions of an assistant.
    Assistant {
        /// The assistant.
        assistant: String,
        /// The sandbox's name in its sessions.
        name: String,
    },
}

const ASSISTANT: &str = "assistant";

impl Owner {
    /// The id at its backend: the same after every restart, so that making it is
    /// create-or-attach. The parts are joined by dots, which no part has.
    #[must_use]
    pub fn id(&self) -> SandboxId {
        let id = match self {
            Self::Session { session, name } => format!("{session}.{name}"),
            Self::Assistant { assistant, name } => format!("{ASSISTANT}.{assistant}.{name}"),
        };
        SandboxId::new(id).expect("names of sessions, assistants and sandboxes are plain and short")
    }

    /// Whose an id is. Nothing for one that was not made here.
    #[must_use]
    pub fn of(id: &SandboxId) -> Option<Self> {
        let parts: Vec<&str> = id.as_str().split('.').collect();
        match parts[..] {
            [session, name] if !name.is_empty() => {
                SessionId::new(session).map(|session| Self::Session { session, name: name.into() })
            }
            [ASSISTANT, assistant, name] => {
                Some(Self::Assistant { assistant: assistant.into(), name: name.into() })
            }
            _ => None,
        }
    }
}

/// A sandbox of one session, with everything that is needed to attach to it.
#[derive(Debug, Clone)]
pub(crate) struct SandboxHandle {
    pub(crate) id: SandboxId,
    pub(crate) shared: bool,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) retention: RetentionPolicy,
    pub(crate) content: Option<Workspace>,
    /// What is kept of it, the oldest first, as the session knows.
    pub(crate) kept: Vec<Kept>,
    asked: Option<SandboxSpec>,
    spec: Spec,
}

impl Engine {
    /// The id, at its backend, of a sandbox that is a session's alone.
    #[must_use]
    pub fn sandbox_id(session: &SessionId, name: &str) -> SandboxId {
        Owner::Session { session: session.clone(), name: name.to_owned() }.id()
    }

    /// A sandbox of a session.
    pub(crate) fn handle_of(
        &self,
        session: &SessionId,
        state: &State,
        name: &str,
    ) -> Result<SandboxHandle, Error> {
        let unknown = || Error::NoSuchSandbox(name.to_owned());
        let config = self.parts.sandboxes.get(name).ok_or_else(unknown)?;
        let asked = state.spec().and_then(|spec| spec.sandbox(name)).cloned();
        let name = name.to_owned();
        let owner = match asked.as_ref().map(|asked| &asked.scope) {
            Some(Scope::Assistant(assistant)) => {
                Owner::Assistant { assistant: assistant.clone(), name: name.clone() }
            }
            Some(Scope::Thread) | None => {
                Owner::Session { session: session.clone(), name: name.clone() }
            }
        };
        Ok(SandboxHandle {
            id: owner.id(),
            shared: matches!(owner, Owner::Assistant { .. }),
            backend: Arc::clone(&config.backend),
            retention: config.retention,
            content: state.spec().and_then(|spec| spec.content(&name)).cloned(),
            kept: state.kept(&name).to_vec(),
            asked,
            spec: config.spec.clone(),
        })
    }
}

impl SandboxHandle {
    /// What it is made from, if it has no disk.
    pub(crate) fn spec(&self, origin: Origin) -> Spec {
        // Who shares a disk does not share what each may see of memory.
        let served = if self.shared { Vec::new() } else { self.spec.served.clone() };
        Spec { origin, isolation_min: self.isolation_min(), served, ..self.spec.clone() }
    }

    /// What it is resumed with: if its disk is gone after all, it begins as it was kept.
    pub(crate) fn spec_of_last(&self) -> Spec {
        self.spec(self.kept.last().and_then(origin_of).unwrap_or_else(|| self.template()))
    }

    /// Where it begins if nothing was kept of it.
    pub(crate) fn template(&self) -> Origin {
        self.spec.origin.clone()
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
pub(crate) fn origin_of(kept: &Kept) -> Option<Origin> {
    let name = outrigger_sandbox::SnapshotId::new(kept.snapshot.as_str());
    name.ok().map(Origin::Snapshot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_whose_they_are_and_those_of_others_do_not() {
        let session = SessionId::new("s-1").unwrap();
        let own = Owner::Session { session, name: "work".to_owned() };
        let shared = Owner::Assistant { assistant: "ann-e".to_owned(), name: "work".to_owned() };
        for owner in [own, shared] {
            assert_eq!(Owner::of(&owner.id()), Some(owner));
        }
        for other in ["mine", "s-1-work", "a.b.c", "s.", "assistant.x.y.z"] {
            assert_eq!(Owner::of(&SandboxId::new(other).unwrap()), None, "{other}");
        }
    }
}
