//! The shape of a journal: what happened, without when, what it cost, and how
//! often it was attempted. A run with crashes has the same shape as one without.

use outrigger_agent::{Event, Outcome, Product, Record, Seq, SessionId};
use std::collections::BTreeMap;

use crate::world::{World, name};

/// One line an event; subagents right after what their session says of the call that is
/// one. Those of the same reply run beside each other, and which is over first says nothing:
/// what is said of an effect stands together.
pub(crate) async fn shape(world: &World, root: &SessionId) -> Vec<String> {
    let mut shape = Vec::new();
    let alone = world.witness.below().is_empty();
    let mut open = vec![root.clone()];
    while let Some(session) = open.pop() {
        let mut numbers = BTreeMap::new();
        let mut lines = Vec::new();
        for record in world.records(&session).await {
            let line = line(&record, &mut numbers).filter(|_| alone || !is_care(&record));
            let about = about(&record).and_then(|effect| numbers.get(&effect).copied());
            let place = about.unwrap_or(numbers.len());
            lines.extend(line.map(|line| (place, line)));
        }
        if alone {
            return lines.into_iter().map(|(_, line)| line).collect();
        }
        lines.sort_by_key(|(place, _)| *place);
        shape.extend(lines.into_iter().map(|(_, line)| line));
        let known = world.witness.below();
        let below = numbers.keys().rev().map(|effect| session.child(*effect));
        open.extend(below.filter(|below| known.contains(below)));
    }
    shape
}

/// When a session that waits for its subagents is looked after depends on when they came
/// to wait.
fn is_care(record: &Record) -> bool {
    matches!(record.event, Event::SandboxKept { .. })
}

/// The effect that an event is about.
fn about(record: &Record) -> Option<Seq> {
    match &record.event {
        Event::Proposed(_) => Some(record.seq),
        Event::Decided { effect, .. }
        | Event::Answered { effect, .. }
        | Event::Started { effect, .. }
        | Event::Withheld { effect, .. }
        | Event::Settled { effect, .. } => Some(*effect),
        _ => None,
    }
}

/// Effects are numbered by their order, because a further attempt moves places.
fn line(record: &Record, numbers: &mut BTreeMap<Seq, usize>) -> Option<String> {
    let number = |numbers: &BTreeMap<Seq, usize>, effect: &Seq| numbers.get(effect).copied();
    Some(match &record.event {
        Event::Proposed(work) => {
            let next = numbers.len();
            numbers.insert(record.seq, next);
            let work = match work {
                outrigger_agent::Work::CallTool(call) => format!("{}[{}]", call.tool, call.index),
                other => format!("{other:?}"),
            };
            format!("proposed #{next} {work}")
        }
        Event::Decided { effect, verdict, .. } => {
            format!("decided #{:?} {verdict:?}", number(numbers, effect))
        }
        Event::Started { attempt, .. } if *attempt > 1 => return None,
        Event::Started { effect, .. } => format!("started #{:?}", number(numbers, effect)),
        Event::Settled { effect, outcome, .. } => {
            format!("settled #{:?} {}", number(numbers, effect), brief(outcome))
        }
        Event::TurnEnded(end) => format!("ended {end:?}"),
        other => name(other),
    })
}

fn brief(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(Product::Output(output)) => {
            format!("{:?} {:?} {:?}", output.status, output.exit_code, output.text)
        }
        Outcome::Done(Product::Reply(reply)) => format!("reply {:?}", reply.parts),
        Outcome::Done(Product::Sandbox(_)) => "sandbox".to_owned(),
        Outcome::Failed(failure) => format!("failed {failure:?}"),
        Outcome::Cancelled => "cancelled".to_owned(),
        Outcome::Unknown { evidence } => format!("unknown {evidence}"),
    }
}
