//! What must hold between a session and those that it started, told from their events
//! alone: how a subagent begins, what it may spend and do, and how it ends.
//!
//! Must never look at the state that the engine decides from.

use outrigger_agent::{
    Author, Event, Limit, Measure, Outcome, Parent, Product, Seq, SessionId, Spec, ToolKind,
    ToolOutput,
};
use std::collections::BTreeSet;

use crate::Violation;
use crate::session_facts::{All, SessionFacts};
use crate::tally::Happening;

/// What does not hold between a session and others after one more event of it.
pub(crate) fn check(all: &All, session: &SessionId, event: &Event) -> Result<(), Violation> {
    let Some(own) = all.get(session) else { return Ok(()) };
    match (event, own.subagents.parent()) {
        (Event::Forked { cut, .. }, Some(parent)) => born(all, session, own, parent, &cut.labels),
        (Event::Said(message), Some(parent)) if matches!(message.author, Author::Agent(_)) => {
            // What was given up before it was opened is opened as ended.
            under_way(all, session, parent)
        }
        (Event::Started { .. }, Some(parent)) => {
            if own.subagents.is_closed {
                return Err(Violation::Orphan(session.clone()));
            }
            match above(all, session, parent)?.ledger.is_over(parent.effect) {
                true => Err(Violation::Orphan(session.clone())),
                false => Ok(()),
            }
        }
        (Event::Settled { effect, outcome, spent, .. }, _) => {
            let below = session.child(*effect);
            let Some(child) = all.get(&below) else { return Ok(()) };
            if matches!(outcome, Outcome::Unknown { .. }) {
                return Ok(());
            }
            if child.subagents.is_open() || !child.subagents.is_closed || !child.ledger.is_idle() {
                return Err(Violation::Orphan(below));
            }
            if *spent != child.ledger.owed().plus(outrigger_agent::Amounts::STEP) {
                return Err(Violation::Miscounted(below));
            }
            match outcome {
                Outcome::Done(Product::Output(output)) if child.subagents.is_begun => {
                    labelled(&below, child, output)
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn above<'a>(
    all: &'a All,
    session: &SessionId,
    parent: &Parent,
) -> Result<&'a SessionFacts, Violation> {
    let above = all.get(&parent.session);
    above.ok_or_else(|| Violation::NoIntent(session.to_string()))
}

/// The call that starts it is under way.
fn under_way(all: &All, session: &SessionId, parent: &Parent) -> Result<(), Violation> {
    match above(all, session, parent)?.ledger.is_open(parent.effect) {
        true => Ok(()),
        false => Err(Violation::Orphan(session.clone())),
    }
}

/// It is the session of a call that was meant to be made, may spend what is reserved for
/// that, and has no right, no tool and no label fewer than the session above would have it.
fn born(
    all: &All,
    session: &SessionId,
    own: &SessionFacts,
    parent: &Parent,
    labels: &BTreeSet<String>,
) -> Result<(), Violation> {
    let above = above(all, session, parent)?;
    let is_its_call = above.ledger.intended(parent.effect)
        && above.ledger.tool(parent.effect) == Some("task")
        && parent.session.child(parent.effect) == *session;
    if !is_its_call {
        return Err(Violation::NoIntent(session.to_string()));
    }
    let (Some(ours), Some(theirs)) = (&own.subagents.spec, &above.subagents.spec) else {
        return Ok(());
    };
    if above.ledger.is_open(parent.effect) && !covered(ours.budget, above, parent.effect) {
        return Err(Violation::Overspent(parent.effect));
    }
    if is_wider(ours, theirs) || !above.subagents.heard.is_subset(labels) {
        return Err(Violation::Wider(session.clone()));
    }
    Ok(())
}

/// Whether all that it may spend is reserved, beside the step of starting it.
fn covered(budget: Limit, above: &SessionFacts, effect: Seq) -> bool {
    let reserved = above.ledger.reserved(effect);
    Measure::ALL.into_iter().all(|measure| match (measure, budget.of(measure)) {
        (Measure::Steps, Some(most)) => most < reserved.steps,
        (_, Some(most)) => most <= reserved.of(measure),
        // No price is known: there is no money.
        (Measure::Money, None) => true,
        (_, None) => false,
    })
}

fn is_wider(ours: &Spec, theirs: &Spec) -> bool {
    let name = theirs.role.agent.as_deref().unwrap_or("default");
    let bound = ours
        .role
        .above
        .split_first()
        .is_some_and(|(first, rest)| first == name && rest == theirs.role.above);
    let starts = ours.tools.iter().any(|tool| tool.kind == ToolKind::Subagent);
    let no_deeper = ours.role.deep < theirs.role.deep && (ours.role.deep > 0 || !starts);
    let same = ours.principal == theirs.principal
        && ours.model == theirs.model
        && ours.approvals == theirs.approvals
        && ours.sandboxes == theirs.sandboxes;
    !(bound && no_deeper && same && ours.tools.iter().all(|tool| theirs.tools.contains(tool)))
}

/// What it was told of comes up with its answer.
fn labelled(below: &SessionId, child: &SessionFacts, output: &ToolOutput) -> Result<(), Violation> {
    match child.subagents.heard.is_subset(&output.labels) {
        true => Ok(()),
        false => Err(Violation::Unlabelled(below.clone())),
    }
}

/// What an event of a session shows of those below it.
pub(crate) fn tell(all: &All, session: &SessionId, event: &Event) -> Option<Happening> {
    let own = all.get(session)?;
    match event {
        Event::Said(message) if matches!(message.author, Author::Agent(_)) => {
            let spec = own.subagents.spec.as_ref()?;
            Some(if spec.role.above.len() > 1 { Happening::Grandchild } else { Happening::Child })
        }
        Event::Forked { cut, .. } if !cut.sandboxes.is_empty() => Some(Happening::ChildCopied),
        Event::Settled { effect, outcome, .. } if own.ledger.tool(*effect) == Some("task") => {
            match outcome {
                Outcome::Done(Product::Output(output)) => {
                    let child = all.get(&session.child(*effect));
                    let starved = output.text.contains("does not cover its first question");
                    let told = child.is_some_and(|child| !child.subagents.heard.is_empty());
                    match (starved, told) {
                        (true, _) => Some(Happening::ChildStarved),
                        (false, true) => Some(Happening::ChildLabelled),
                        (false, false) => None,
                    }
                }
                Outcome::Cancelled => Some(Happening::ChildStopped),
                _ => None,
            }
        }
        _ => None,
    }
}
