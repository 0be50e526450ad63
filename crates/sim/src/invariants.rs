//! What must hold of every run, whatever happened to it.

use outrigger_agent::{Event, Failure, Outcome, Record, SessionId};
use outrigger_engine::SandboxOwner;
use outrigger_sandbox::{Backend, SandboxId, Snapshots};
use std::collections::BTreeSet;

use crate::Violation;
use crate::spec::SANDBOX;
use crate::world::World;

/// Checks a run that is over; what the witness saw on the way included.
pub(crate) async fn check(world: &World) -> Result<(), Violation> {
    world.witness.verdict()?;
    nothing_twice(world)?;
    for session in world.witness.sessions() {
        if !world.verify(&session).await {
            return Err(Violation::Broken);
        }
        // Nothing came into the journal past the witness.
        let head = world.records(&session).await.last().map(|record| record.seq);
        let head = head.unwrap_or_default();
        if head != world.witness.head(&session) {
            return Err(Violation::Unfenced(head));
        }
    }
    match world.witness.open_below() {
        Some(open) => Err(Violation::Orphan(open)),
        None => Ok(()),
    }
}

/// Nothing is left of subagents: no sandbox, and nothing that was kept for one.
pub(crate) async fn check_nothing_left(world: &World) -> Result<(), Violation> {
    let below = world.witness.below();
    let is_theirs = |id: &SandboxId| {
        let Some(SandboxOwner::Session { session, .. }) = SandboxOwner::of(id) else {
            return false;
        };
        below.contains(&session)
    };
    let sandboxes = Backend::list(&world.sandboxes).await.unwrap_or_default();
    if let Some(left) = sandboxes.iter().find(|listed| is_theirs(&listed.id)) {
        return Err(Violation::Left(left.id.to_string()));
    }
    let copies: BTreeSet<String> = below.iter().map(copy_for).collect();
    let snapshots = Snapshots::list(&world.sandboxes).await.unwrap_or_default();
    let left = snapshots
        .iter()
        .find(|kept| is_theirs(&kept.sandbox) || copies.contains(kept.name.as_str()));
    left.map_or(Ok(()), |left| Err(Violation::Left(left.name.to_string())))
}

/// What the disk above is kept under for a subagent: its session is named by both too.
fn copy_for(below: &SessionId) -> String {
    let (above, effect) = below.as_str().rsplit_once('-').unwrap_or_default();
    format!("{above}.{SANDBOX}.{effect}")
}

/// Checks a run in which nobody died: what was done is known, and is not done again.
pub(crate) fn check_undisturbed(records: &[Record]) -> Result<(), Violation> {
    for record in records {
        match &record.event {
            Event::Started { effect, attempt: 2.., .. }
            | Event::Settled { effect, outcome: Outcome::Unknown { .. }, .. } => {
                return Err(Violation::Repeated(*effect));
            }
            Event::Settled { outcome: Outcome::Failed(Failure::Sandbox { detail }), .. } => {
                return Err(Violation::NoSandbox(detail.clone()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn nothing_twice(world: &World) -> Result<(), Violation> {
    let mut seen = BTreeSet::new();
    let starts = world.sandboxes.starts();
    for start in &starts {
        // Not in another life of its sandbox either, unless it only fills a workspace.
        let effect = start.exec.as_str().starts_with(world.session.as_str());
        let life = (!effect).then_some(&start.generation);
        if !seen.insert((&start.exec, life)) {
            return Err(Violation::StartedTwice(format!("{start:?}")));
        }
    }
    world.witness.sessions().iter().try_for_each(|session| written_once(world, session))
}

fn written_once(world: &World, session: &SessionId) -> Result<(), Violation> {
    let id = outrigger_engine::sandbox_id(session, SANDBOX);
    let log = world.sandboxes.peek(&id, "/workspace/log").unwrap_or_default();
    let log = String::from_utf8_lossy(&log).into_owned();
    let mut words: Vec<&str> = log.split('w').filter(|word| !word.is_empty()).collect();
    words.sort_unstable();
    for pair in words.windows(2) {
        if pair[0] == pair[1] {
            return Err(Violation::WrittenTwice(pair[0].to_owned()));
        }
    }
    Ok(())
}
