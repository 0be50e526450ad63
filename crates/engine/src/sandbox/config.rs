//! The sandboxes that sessions can have: where each is made, what is kept of it, and whose
//! it is.
//!
//! Owns the ids of sandboxes. Must never ask a backend anything.

use outrigger_agent::SessionId;
use outrigger_sandbox::{Backend, CreateSpec, SandboxId, Suspend};
use std::sync::Arc;

/// What a sandbox is made from and where, by a name in sessions.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// Where it is made.
    pub backend: Arc<dyn Backend>,
    /// What it is made from.
    pub spec: CreateSpec,
    /// What is kept of it while nobody uses it.
    pub retention: RetentionPolicy,
}

impl SandboxConfig {
    /// With the retention that is right for most.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, spec: CreateSpec) -> Self {
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
pub enum SandboxOwner {
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

impl SandboxOwner {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_whose_they_are_and_those_of_others_do_not() {
        let session = SessionId::new("s-1").unwrap();
        let own = SandboxOwner::Session { session, name: "work".to_owned() };
        let shared =
            SandboxOwner::Assistant { assistant: "ann-e".to_owned(), name: "work".to_owned() };
        for owner in [own, shared] {
            assert_eq!(SandboxOwner::of(&owner.id()), Some(owner));
        }
        for other in ["mine", "s-1-work", "a.b.c", "s.", "assistant.x.y.z"] {
            assert_eq!(SandboxOwner::of(&SandboxId::new(other).unwrap()), None, "{other}");
        }
    }
}
