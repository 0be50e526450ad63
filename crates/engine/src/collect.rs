//! Destroys sandboxes and snapshots that no journal names any more, and those of
//! sessions that answered long ago.
//!
//! Safe beside running engines and after crashes: a session is opened before
//! anything is made for it, the ids carry its name, and what was used lately is left
//! alone. Must never touch what was not made by an engine, nor what an assistant's
//! sessions share: that ends by its own age.

use outrigger_agent::{Seq, SessionId, State, TurnEnd};
use outrigger_sandbox::{Backend, SandboxId};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::keep::{is_ours, remove};
use crate::{Engine, Error, Owner, Trouble};

/// What was collected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Collected {
    /// Sandboxes that were destroyed.
    pub sandboxes: Vec<SandboxId>,
    /// Names of snapshots that were removed.
    pub snapshots: Vec<String>,
    /// How many things beside these went that calls left behind which were cut short.
    pub swept: usize,
    /// What went wrong. It is tried again the next time.
    pub troubles: Vec<Trouble>,
}

/// What the journal says of the sessions that were looked at, each up to an event.
type Folded = BTreeMap<SessionId, (Said, Seq)>;

/// What the journal says of a session.
enum Said {
    /// There is none.
    Nothing,
    /// How it stands.
    State(Box<State>),
    /// It can't be read now, so that it may name anything.
    Unreadable,
}

impl Said {
    /// Whether the session may still want a sandbox of that name. One that has answered
    /// may be asked more, but its work was taken out: it does not want it for ever.
    fn names(&self, name: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::State(state) => {
                let over = state.is_cancelled() || state.ended() == Some(&TurnEnd::Answered);
                let asked = state.spec().map(|spec| spec.sandbox_names());
                !over && asked.is_some_and(|asked| asked.contains(name))
            }
            Self::Unreadable => true,
        }
    }

    /// Whether the session may still want a snapshot of that sandbox.
    fn keeps(&self, name: &str, snapshot: &str) -> bool {
        match self {
            Self::State(state) => {
                self.names(name) && state.kept(name).iter().any(|kept| kept.snapshot == snapshot)
            }
            Self::Nothing | Self::Unreadable => self.names(name),
        }
    }
}

/// What is done with what nobody wants any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hand {
    Destroys,
    Looks,
}

impl Engine {
    /// Destroys what no journal names and nobody used for `retention_ms`.
    pub async fn collect(&self, retention_ms: u64) -> Collected {
        self.go_through(retention_ms, Hand::Destroys).await
    }

    /// What [`Self::collect`] would destroy; nothing is touched.
    pub async fn collectable(&self, retention_ms: u64) -> Collected {
        self.go_through(retention_ms, Hand::Looks).await
    }

    async fn go_through(&self, retention_ms: u64, hand: Hand) -> Collected {
        let before_ms = self.parts.clock.now_ms().saturating_sub(retention_ms);
        let mut backends: Vec<&Arc<dyn Backend>> = Vec::new();
        for site in self.parts.sandboxes.values() {
            if !backends.iter().any(|known| Arc::ptr_eq(known, &site.backend)) {
                backends.push(&site.backend);
            }
        }
        let mut folded = Folded::new();
        let mut collected = Collected::default();
        for backend in backends {
            let asked = (before_ms, hand);
            self.sandboxes_of(&**backend, asked, &mut folded, &mut collected).await;
            self.snapshots_of(&**backend, asked, &mut folded, &mut collected).await;
            if hand == Hand::Looks {
                continue;
            }
            match backend.sweep().await {
                Ok(swept) => collected.swept += swept,
                Err(source) => collected.troubles.push(trouble(&**backend, source)),
            }
        }
        collected
    }

    async fn sandboxes_of(
        &self,
        backend: &dyn Backend,
        (before_ms, hand): (u64, Hand),
        folded: &mut Folded,
        collected: &mut Collected,
    ) {
        let listed = match backend.list().await {
            Ok(listed) => listed,
            Err(source) => {
                collected.troubles.push(trouble(backend, source));
                return;
            }
        };
        for listed in listed.into_iter().filter(|listed| listed.used_at_ms < before_ms) {
            let Some(Owner::Session { session, name }) = Owner::of(&listed.id) else { continue };
            let (said, seq) = self.known(&session, folded).await;
            if said.names(&name) || !self.still(&session, *seq).await {
                continue;
            }
            if hand == Hand::Looks {
                collected.sandboxes.push(listed.id);
                continue;
            }
            // Somebody may have come back to it since: then it is used.
            match backend.list().await {
                Ok(now) if now.contains(&listed) => {}
                Ok(_) => continue,
                Err(source) => {
                    collected.troubles.push(trouble(backend, source));
                    return;
                }
            }
            match backend.destroy(&listed.id).await {
                Ok(()) => collected.sandboxes.push(listed.id),
                Err(source) => collected
                    .troubles
                    .push(Trouble::NotRemoved { name: listed.id.to_string(), source }),
            }
        }
    }

    async fn snapshots_of(
        &self,
        backend: &dyn Backend,
        (before_ms, hand): (u64, Hand),
        folded: &mut Folded,
        collected: &mut Collected,
    ) {
        let Ok(snapshots) = backend.snapshots() else { return };
        let listed = match snapshots.list().await {
            Ok(listed) => listed,
            Err(source) => {
                collected.troubles.push(trouble(backend, source));
                return;
            }
        };
        for snapshot in listed.into_iter().filter(|snapshot| snapshot.taken_at_ms < before_ms) {
            let Some(Owner::Session { session, name }) = Owner::of(&snapshot.sandbox) else {
                continue;
            };
            // Somebody may have taken one of a session's sandbox by hand.
            let (said, seq) = self.known(&session, folded).await;
            let kept = said.keeps(&name, snapshot.name.as_str());
            if kept || !is_ours(&snapshot) || !self.still(&session, *seq).await {
                continue;
            }
            let name = snapshot.name.to_string();
            if hand == Hand::Looks {
                collected.snapshots.push(name);
                continue;
            }
            let troubles = remove(snapshots, vec![name.clone()]).await;
            if troubles.is_empty() {
                collected.snapshots.push(name);
            }
            collected.troubles.extend(troubles);
        }
    }

    async fn known<'a>(&self, session: &SessionId, folded: &'a mut Folded) -> &'a (Said, Seq) {
        if !folded.contains_key(session) {
            let said = match self.state(session).await {
                Ok(state) => {
                    let seq = state.seq();
                    (Said::State(Box::new(state)), seq)
                }
                Err(Error::NotFound(_)) => (Said::Nothing, Seq::default()),
                Err(_) => (Said::Unreadable, Seq::default()),
            };
            folded.insert(session.clone(), said);
        }
        folded.get(session).unwrap_or(&(Said::Unreadable, Seq(0)))
    }

    /// Whether nothing was said in a session since it was looked at.
    async fn still(&self, session: &SessionId, seq: Seq) -> bool {
        self.parts.journal.head(session).await.is_ok_and(|head| head == seq)
    }
}

fn trouble(backend: &dyn Backend, source: outrigger_sandbox::Error) -> Trouble {
    Trouble::NotRemoved {
        name: format!("what is left in {}", backend.capabilities().backend),
        source,
    }
}
