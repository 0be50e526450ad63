//! The shape of a journal: what happened, without when, what it cost, and how
//! often it was attempted. A run with crashes has the same shape as one without.

use outrigger_agent::{Event, Outcome, Product, Record, Seq};
use std::collections::BTreeMap;

use crate::world::name;

/// One line an event.
pub(crate) fn shape(records: &[Record]) -> Vec<String> {
    let mut numbers = BTreeMap::new();
    let mut lines = Vec::new();
    for record in records {
        lines.extend(line(record, &mut numbers));
    }
    lines
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
