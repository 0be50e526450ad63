//! Destroys sandboxes and snapshots that no journal names any more.
//!
//! Safe beside running engines and after crashes: a session is opened before
//! anything is made for it, the ids carry its name, and what was used lately is left
//! alone. Must never touch what was not made by an engine, nor what an assistant's
//! sessions share: that ends by its own age.

use outrigger_agent::{SessionId, State};
use outrigger_sandbox::{Backend, SandboxId};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::keep::remove;
use crate::{Engine, Error, Owner, Trouble};

/// What was collected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Collected {
    /// Sandboxes that were destroyed.
    pub sandboxes: Vec<SandboxId>,
    /// Names of snapshots that were removed.
    pub snapshots: Vec<String>,
    /// What went wrong. It is tried again the next time.
    pub troubles: Vec<Trouble>,
}

/// What the journal says of the sessions that were looked at; `None` of one that is not there.
type Folded = BTreeMap<SessionId, Option<State>>;

impl Engine {
    /// Destroys what no journal names and nobody used for `retention_ms`.
    ///
    /// # Errors
    /// The journal's. What a backend says is among the troubles.
    pub async fn collect(&self, retention_ms: u64) -> Result<Collected, Error> {
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
            self.sandboxes_of(&**backend, before_ms, &mut folded, &mut collected).await?;
            self.snapshots_of(&**backend, before_ms, &mut folded, &mut collected).await?;
        }
        Ok(collected)
    }

    async fn sandboxes_of(
        &self,
        backend: &dyn Backend,
        before_ms: u64,
        folded: &mut Folded,
        collected: &mut Collected,
    ) -> Result<(), Error> {
        let listed = match backend.list().await {
            Ok(listed) => listed,
            Err(source) => {
                collected.troubles.push(trouble(backend, source));
                return Ok(());
            }
        };
        for listed in listed.into_iter().filter(|listed| listed.used_at_ms < before_ms) {
            let Some(Owner::Session { session, name }) = Owner::of(&listed.id) else { continue };
            let state = self.known(session, folded).await?;
            if state.is_some_and(|state| names(state, &name)) {
                continue;
            }
            match backend.destroy(&listed.id).await {
                Ok(()) => collected.sandboxes.push(listed.id),
                Err(source) => collected
                    .troubles
                    .push(Trouble::NotRemoved { name: listed.id.to_string(), source }),
            }
        }
        Ok(())
    }

    async fn snapshots_of(
        &self,
        backend: &dyn Backend,
        before_ms: u64,
        folded: &mut Folded,
        collected: &mut Collected,
    ) -> Result<(), Error> {
        let Ok(snapshots) = backend.snapshots() else { return Ok(()) };
        let listed = match snapshots.list().await {
            Ok(listed) => listed,
            Err(source) => {
                collected.troubles.push(trouble(backend, source));
                return Ok(());
            }
        };
        for snapshot in listed.into_iter().filter(|snapshot| snapshot.taken_at_ms < before_ms) {
            let Some(Owner::Session { session, name }) = Owner::of(&snapshot.sandbox) else {
                continue;
            };
            let state = self.known(session, folded).await?;
            let is_kept = |state: &State| {
                names(state, &name)
                    && state.kept(&name).iter().any(|kept| kept.snapshot == snapshot.name.as_str())
            };
            // Somebody may have taken one of a session's sandbox by hand.
            if state.is_some_and(is_kept) || !is_ours(&snapshot) {
                continue;
            }
            let name = snapshot.name.to_string();
            let troubles = remove(snapshots, vec![name.clone()]).await;
            if troubles.is_empty() {
                collected.snapshots.push(name);
            }
            collected.troubles.extend(troubles);
        }
        Ok(())
    }

    async fn known<'a>(
        &self,
        session: SessionId,
        folded: &'a mut Folded,
    ) -> Result<Option<&'a State>, Error> {
        if !folded.contains_key(&session) {
            let state = match self.state(&session).await {
                Ok(state) => Some(state),
                Err(Error::NotFound(_)) => None,
                Err(error) => return Err(error),
            };
            folded.insert(session.clone(), state);
        }
        Ok(folded.get(&session).and_then(Option::as_ref))
    }
}

/// Whether a session may still want a sandbox of that name.
fn names(state: &State, name: &str) -> bool {
    !state.is_cancelled() && state.spec().is_some_and(|spec| spec.sandbox_names().contains(name))
}

/// Whether a snapshot was taken by an engine: its name says of which sandbox and when.
fn is_ours(snapshot: &outrigger_sandbox::Snapshot) -> bool {
    let rest = snapshot.name.as_str().strip_prefix(snapshot.sandbox.as_str());
    let seq = rest.and_then(|rest| rest.strip_prefix('.'));
    seq.is_some_and(|seq| !seq.is_empty() && seq.bytes().all(|byte| byte.is_ascii_digit()))
}

fn trouble(backend: &dyn Backend, source: outrigger_sandbox::Error) -> Trouble {
    Trouble::NotRemoved {
        name: format!("what is left in {}", backend.capabilities().backend),
        source,
    }
}
