//! What must hold once a session waits: nothing is left open, whoever stopped it is
//! heard, and the model knows of every sandbox that it lost.

use outrigger_agent::{Event, Item, Outcome, Park, Product, Record, Seq, State, TurnEnd};
use std::collections::{BTreeMap, BTreeSet};

use crate::Violation;
use crate::world::fold;

/// Checks a session that waits.
pub(crate) fn check(records: &[Record], park: &Park) -> Result<(), Violation> {
    let mut stop = Stop::default();
    let last = fold(records, |record, state| stop.see(record, state));
    settled(records, &last)?;
    answered(&last)?;
    stop.heard(&last, park)?;
    told(records, &last)
}

/// Whether a turn left nothing for a person to resume.
fn is_whole(last: &State) -> bool {
    match last.ended() {
        Some(
            TurnEnd::Answered
            | TurnEnd::Refused { .. }
            | TurnEnd::OutputLimit
            | TurnEnd::Empty
            | TurnEnd::Interrupted
            | TurnEnd::Cancelled,
        )
        | None => true,
        Some(
            TurnEnd::StepsExhausted
            | TurnEnd::TimeExhausted
            | TurnEnd::BudgetExhausted
            | TurnEnd::OutOfBudget(_)
            | TurnEnd::ModelFailed { .. }
            | TurnEnd::SandboxFailed { .. },
        ) => false,
    }
}

/// Nothing is under way; and nothing waits to be, but in a turn that can be resumed.
fn settled(records: &[Record], last: &State) -> Result<(), Violation> {
    let mut open = BTreeSet::new();
    for record in records {
        match &record.event {
            Event::Proposed(_) if is_whole(last) => drop(open.insert(record.seq)),
            Event::Started { effect, .. } => drop(open.insert(*effect)),
            // What was lost and withheld begins anew when the turn is resumed.
            Event::Settled { effect, .. } | Event::Withheld { effect, .. } => {
                open.remove(effect);
            }
            _ => {}
        }
    }
    open.first().map_or(Ok(()), |effect| Err(Violation::Unsettled(*effect)))
}

/// Every call of every reply has one result. A simulated call's id is unique.
fn answered(last: &State) -> Result<(), Violation> {
    let mut results: BTreeMap<&str, usize> = BTreeMap::new();
    for item in last.conversation() {
        match item {
            Item::Reply(reply) => {
                reply.calls().for_each(|call| *results.entry(call.id.as_str()).or_default() += 0);
            }
            Item::Result(result) => *results.entry(result.call.as_str()).or_default() += 1,
            Item::Message(_) | Item::Summary(_) | Item::Notice(_) => {}
        }
    }
    let wrong = |results: usize| results > 1 || (results == 0 && is_whole(last));
    match results.into_iter().find(|(_, results)| wrong(*results)) {
        None => Ok(()),
        Some((call, results)) => Err(Violation::Results { call: call.to_owned(), results }),
    }
}

/// What a person stopped.
#[derive(Debug, Default)]
struct Stop {
    /// How the turn must end.
    end: Option<TurnEnd>,
    was_running: bool,
    started_after: Option<Seq>,
}

impl Stop {
    fn see(&mut self, record: &Record, state: &State) {
        match &record.event {
            Event::Interrupted { .. } if state.in_turn() => {
                (self.end, self.was_running) = (Some(TurnEnd::Interrupted), true);
            }
            Event::Cancelled { .. } => {
                (self.end, self.was_running) = (Some(TurnEnd::Cancelled), state.in_turn());
            }
            // It ended as it should; what is said afterwards begins another turn.
            Event::TurnEnded(TurnEnd::Interrupted) if self.end == Some(TurnEnd::Interrupted) => {
                *self = Self { started_after: self.started_after, ..Self::default() };
            }
            // A person let it go on after all.
            Event::Resumed { .. } if self.end == Some(TurnEnd::Interrupted) => {
                *self = Self { started_after: self.started_after, ..Self::default() };
            }
            Event::Started { effect, .. } if self.end.is_some() => {
                self.started_after.get_or_insert(*effect);
            }
            _ => {}
        }
    }

    fn heard(&self, last: &State, park: &Park) -> Result<(), Violation> {
        if let Some(effect) = self.started_after {
            return Err(Violation::StartedAfterStop(effect));
        }
        let Some(end) = &self.end else { return Ok(()) };
        let waits = if *end == TurnEnd::Cancelled { Park::Cancelled } else { Park::Message };
        if *park != waits || (self.was_running && last.ended() != Some(end)) {
            return Err(Violation::StopUnheard(format!("{park:?}, {:?}", last.ended())));
        }
        Ok(())
    }
}

/// Between two lives of a sandbox stands that the first was lost, and the model was
/// told of it once for each life that took the place of another.
fn told(records: &[Record], last: &State) -> Result<(), Violation> {
    let notices = last.conversation().iter().filter(|item| match item {
        // What a turn goes on with after a stop tells of no sandbox.
        Item::Notice(text) => !text.starts_with("Go on"),
        _ => false,
    });
    let mut lives: BTreeMap<&str, &str> = BTreeMap::new();
    // What the model is not asked again after is told when it is.
    let asked = records.iter().rfind(|record| is_reply(record)).map(|record| record.seq);
    let (mut replaced, mut untold, mut news) = (0, 0, String::new());
    for record in records {
        match &record.event {
            Event::SandboxLost { sandbox, generation, .. } => {
                let lived = lives.remove(sandbox.as_str()) == Some(generation);
                lived.then_some(()).ok_or_else(|| Violation::Untold(generation.clone()))?;
            }
            Event::Settled { outcome: Outcome::Done(Product::Sandbox(ready)), .. } => {
                let before = lives.insert(crate::spec::SANDBOX, &ready.generation);
                if before.is_some_and(|before| before != ready.generation) {
                    return Err(Violation::Untold(ready.generation.clone()));
                }
                if ready.replaces.is_some() {
                    replaced += 1;
                    untold += usize::from(asked < Some(record.seq));
                    news.clone_from(&ready.generation);
                }
            }
            _ => {}
        }
    }
    let told = notices.count();
    if (replaced - untold..=replaced).contains(&told) {
        return Ok(());
    }
    Err(Violation::Untold(news))
}

fn is_reply(record: &Record) -> bool {
    matches!(&record.event, Event::Settled { outcome: Outcome::Done(Product::Reply(_)), .. })
}
