//! What must hold of every run, whatever happened to it.

use outrigger_agent::{Event, Failure, Outcome, Phase, Record, Seq, Work};
use outrigger_policy::Verdict;
use std::collections::{BTreeMap, BTreeSet};

use crate::world::{World, fold};

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A command or a changing file operation was started twice in one life of its sandbox.
    #[error("`{0}` was started twice")]
    StartedTwice(String),
    /// A word that is written once per command stands in the log more than once.
    #[error("`{0}` was written twice")]
    WrittenTwice(String),
    /// An effect was started without a decision that permits it.
    #[error("effect {0} was started without being permitted")]
    Undecided(Seq),
    /// An effect was settled twice, or without having been proposed.
    #[error("effect {0} was settled out of order")]
    SettledTwice(Seq),
    /// More was reserved than the budget has.
    #[error("effect {0} was started beyond the budget")]
    Overspent(Seq),
    /// The journal's chain does not verify.
    #[error("the journal does not verify")]
    Broken,
    /// The session neither ended nor waits for a named reason.
    #[error("the session was started {0} times and still does not wait")]
    Livelock(u32),
    /// The journal has another shape than without crashes.
    #[error("the journal differs at line {line}: `{crashed}` instead of `{calm}`")]
    Shape {
        /// Which line, from 0.
        line: usize,
        /// Without crashes.
        calm: String,
        /// With them.
        crashed: String,
    },
    /// The session waits although an effect is not settled.
    #[error("effect {0} was never settled")]
    Unsettled(Seq),
    /// A tool call of a reply has no result in the conversation, or several.
    #[error("call `{call}` has {results} results")]
    Results {
        /// The provider's id of the call.
        call: String,
        /// How many results it has.
        results: usize,
    },
    /// An effect was started although a person had stopped the turn or ended the session.
    #[error("effect {0} was started after a person had stopped it")]
    StartedAfterStop(Seq),
    /// A turn that a person stopped did not end as stopped, or the session does not wait as it should.
    #[error("a person had stopped it, and it waits as {0}")]
    StopUnheard(String),
    /// A sandbox began another life and the model was not told of the loss of the one before.
    #[error("the model was not told of the loss of {0}")]
    Untold(String),
    /// An effect was begun again although nobody had died.
    #[error("effect {0} was begun again although nobody had died")]
    Repeated(Seq),
    /// No sandbox could be made although none was lost: such a run shows nothing.
    #[error("no sandbox could be made: {0}")]
    NoSandbox(String),
    /// The engine stopped with an error that no crash explains.
    #[error("the engine stopped: {0}")]
    Engine(String),
}

/// Checks a run.
pub(crate) async fn check(world: &World, records: &[Record]) -> Result<(), Violation> {
    ledger(records)?;
    budget(records)?;
    nothing_twice(world)?;
    if !world.verify().await {
        return Err(Violation::Broken);
    }
    Ok(())
}

fn ledger(records: &[Record]) -> Result<(), Violation> {
    let mut permitted = BTreeSet::new();
    let mut open = BTreeMap::new();
    for record in records {
        match &record.event {
            Event::Proposed(work) => {
                open.insert(record.seq, work);
            }
            Event::Decided { effect, verdict, .. } => {
                if matches!(verdict, Verdict::Permit { .. }) {
                    permitted.insert(*effect);
                } else {
                    permitted.remove(effect);
                }
            }
            Event::Started { effect, .. } if !permitted.contains(effect) => {
                return Err(Violation::Undecided(*effect));
            }
            Event::Settled { effect, .. } => {
                open.remove(effect).ok_or(Violation::SettledTwice(*effect))?;
            }
            _ => {}
        }
    }
    Ok(())
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

fn budget(records: &[Record]) -> Result<(), Violation> {
    let mut overspent = None;
    fold(records, |record, state| {
        let Event::Started { effect, .. } = &record.event else { return };
        let asks = state.effect(*effect).is_some_and(|open| {
            open.work == Work::AskModel && matches!(open.phase, Phase::Started { .. })
        });
        let reserved = state.reserved_for(*effect);
        if asks && !state.spent().plus(reserved).fits(state.budget()) {
            overspent.get_or_insert(*effect);
        }
    });
    overspent.map_or(Ok(()), |effect| Err(Violation::Overspent(effect)))
}

fn nothing_twice(world: &World) -> Result<(), Violation> {
    let mut seen = BTreeSet::new();
    let starts = world.sandboxes.starts();
    for start in &starts {
        if !seen.insert(start) {
            return Err(Violation::StartedTwice(format!("{start:?}")));
        }
    }
    let id = outrigger_engine::Engine::sandbox_id(&world.session, crate::world::SANDBOX);
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
