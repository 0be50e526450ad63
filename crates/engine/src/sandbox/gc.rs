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

use super::snapshot::{is_ours, remove};
use crate::{Engine, Error, SandboxOwner, Warning};

/// What a collection destroyed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GcReport {
    /// Sandboxes that were destroyed.
    pub sandboxes: Vec<SandboxId>,
    /// Names of snapshots that were removed.
    pub snapshots: Vec<String>,
    /// How many things beside these went that calls left behind which were cut short.
    pub swept: usize,
    /// What went wrong. It is tried again the next time.
    pub warnings: Vec<Warning>,
}

/// What the sessions that were looked at may still want, each up to an event.
type Claims = BTreeMap<SessionId, (Claim, Seq)>;

/// What a session may still want, as its journal says.
enum Claim {
    /// There is none.
    Nothing,
    /// How it stands.
    State(Box<State>),
    /// It can't be read now, so that it may name anything.
    Unreadable,
}

impl Claim {
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

/// Whether what nobody wants any more is destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GcMode {
    Destroy,
    DryRun,
}

/// Destroys what no journal names and nobody used for `retention_ms`.
pub async fn gc(engine: &Engine, retention_ms: u64) -> GcReport {
    collect(engine, retention_ms, GcMode::Destroy).await
}

/// What [`gc`] would destroy; nothing is touched.
pub async fn gc_dry_run(engine: &Engine, retention_ms: u64) -> GcReport {
    collect(engine, retention_ms, GcMode::DryRun).await
}

async fn collect(engine: &Engine, retention_ms: u64, mode: GcMode) -> GcReport {
    let before_ms = engine.parts.clock.now_ms().saturating_sub(retention_ms);
    let mut backends: Vec<&Arc<dyn Backend>> = Vec::new();
    for config in engine.parts.sandboxes.values() {
        if !backends.iter().any(|known| Arc::ptr_eq(known, &config.backend)) {
            backends.push(&config.backend);
        }
    }
    let mut claims = Claims::new();
    let mut report = GcReport::default();
    for backend in backends {
        let scope = (before_ms, mode);
        sandboxes_of(engine, &**backend, scope, &mut claims, &mut report).await;
        snapshots_of(engine, &**backend, scope, &mut claims, &mut report).await;
        if mode == GcMode::DryRun {
            continue;
        }
        match backend.sweep().await {
            Ok(swept) => report.swept += swept,
            Err(source) => report.warnings.push(warning(&**backend, source)),
        }
    }
    report
}

async fn sandboxes_of(
    engine: &Engine,
    backend: &dyn Backend,
    (before_ms, mode): (u64, GcMode),
    claims: &mut Claims,
    report: &mut GcReport,
) {
    let listed = match backend.list().await {
        Ok(listed) => listed,
        Err(source) => {
            report.warnings.push(warning(backend, source));
            return;
        }
    };
    for listed in listed.into_iter().filter(|listed| listed.used_at_ms < before_ms) {
        let Some(SandboxOwner::Session { session, name }) = SandboxOwner::of(&listed.id) else {
            continue;
        };
        let (claim, seq) = claim(engine, &session, claims).await;
        if claim.names(&name) || !still(engine, &session, *seq).await {
            continue;
        }
        if mode == GcMode::DryRun {
            report.sandboxes.push(listed.id);
            continue;
        }
        // Somebody may have come back to it since: then it is used.
        match backend.list().await {
            Ok(now) if now.contains(&listed) => {}
            Ok(_) => continue,
            Err(source) => {
                report.warnings.push(warning(backend, source));
                return;
            }
        }
        if let Some(egress) = &engine.parts.egress {
            egress.close(&listed.id).await;
        }
        match backend.destroy(&listed.id).await {
            Ok(()) => report.sandboxes.push(listed.id),
            Err(source) => {
                report.warnings.push(Warning::NotRemoved { name: listed.id.to_string(), source })
            }
        }
    }
}

async fn snapshots_of(
    engine: &Engine,
    backend: &dyn Backend,
    (before_ms, mode): (u64, GcMode),
    claims: &mut Claims,
    report: &mut GcReport,
) {
    let Ok(snapshots) = backend.snapshots() else { return };
    let listed = match snapshots.list().await {
        Ok(listed) => listed,
        Err(source) => {
            report.warnings.push(warning(backend, source));
            return;
        }
    };
    for snapshot in listed.into_iter().filter(|snapshot| snapshot.taken_at_ms < before_ms) {
        let Some(SandboxOwner::Session { session, name }) = SandboxOwner::of(&snapshot.sandbox)
        else {
            continue;
        };
        // Somebody may have taken one of a session's sandbox by hand.
        let (claim, seq) = claim(engine, &session, claims).await;
        let kept = claim.keeps(&name, snapshot.name.as_str());
        if kept || !is_ours(&snapshot) || !still(engine, &session, *seq).await {
            continue;
        }
        let name = snapshot.name.to_string();
        if mode == GcMode::DryRun {
            report.snapshots.push(name);
            continue;
        }
        let warnings = remove(snapshots, vec![name.clone()]).await;
        if warnings.is_empty() {
            report.snapshots.push(name);
        }
        report.warnings.extend(warnings);
    }
}

async fn claim<'a>(
    engine: &Engine,
    session: &SessionId,
    claims: &'a mut Claims,
) -> &'a (Claim, Seq) {
    if !claims.contains_key(session) {
        let claim = match engine.state(session).await {
            Ok(state) => {
                let seq = state.seq();
                (Claim::State(Box::new(state)), seq)
            }
            Err(Error::NotFound(_)) => (Claim::Nothing, Seq::default()),
            Err(_) => (Claim::Unreadable, Seq::default()),
        };
        claims.insert(session.clone(), claim);
    }
    claims.get(session).unwrap_or(&(Claim::Unreadable, Seq(0)))
}

/// Whether nothing was said in a session since it was looked at.
async fn still(engine: &Engine, session: &SessionId, seq: Seq) -> bool {
    engine.parts.journal.head(session).await.is_ok_and(|head| head == seq)
}

fn warning(backend: &dyn Backend, source: outrigger_sandbox::Error) -> Warning {
    Warning::NotRemoved {
        name: format!("what is left in {}", backend.capabilities().backend),
        source,
    }
}
