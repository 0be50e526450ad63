//! What the witness knows of one session.

use outrigger_agent::{
    Amounts, Author, Event, Failure, Outcome, Parent, Product, Seq, SessionId, Spec, TrustedFile,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::Violation;
use crate::ledger::Ledger;

/// What is known of one session.
#[derive(Debug, Default)]
pub(crate) struct SessionFacts {
    pub(crate) head: Seq,
    pub(crate) ledger: Ledger,
    pub(crate) subagents: SubagentFacts,
    /// Effects that were permitted once.
    pub(crate) permitted: BTreeSet<Seq>,
    /// Model calls that were begun.
    pub(crate) calls: u64,
    /// Tokens that the provider charges for them, and for those of its subagents.
    pub(crate) burnt: u64,
    /// Calls of tools outside that were made, and under which keys.
    pub(crate) called: BTreeMap<Seq, String>,
    /// Which process appended last.
    pub(crate) writer: u64,
    /// What became of effects, as a process said in vain to the store.
    pub(crate) refused: BTreeMap<Seq, (u64, Outcome)>,
    /// What starts would have reserved that an account had no room for.
    pub(crate) unaffordable: BTreeMap<Seq, Amounts>,
}

impl SessionFacts {
    /// A process that knew what became of an effect neither begins it again nor says
    /// something else of it.
    pub(crate) fn keeps_its_word(&mut self, event: &Event, writer: u64) -> Result<(), Violation> {
        let (effect, said) = match event {
            Event::Started { effect, .. } => (effect, None),
            Event::Settled { effect, outcome, .. } => (effect, Some(outcome)),
            // It is ended for good: what its last driver was about to say changes nothing.
            Event::Cancelled { .. } => {
                self.refused.clear();
                return Ok(());
            }
            // It is charged as lost, and begins anew when there is room.
            Event::Withheld { effect, .. } => {
                self.refused.remove(effect);
                return Ok(());
            }
            _ => return Ok(()),
        };
        match self.refused.remove(effect) {
            Some((knew, outcome))
                if knew == writer && !said.is_some_and(|said| tells_of(&outcome, said)) =>
            {
                Err(Violation::OutcomeDropped(*effect))
            }
            Some(refused) if said.is_none() => {
                self.refused.insert(*effect, refused);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// What a session is among the others.
#[derive(Debug, Default)]
pub(crate) struct SubagentFacts {
    pub(crate) spec: Option<Arc<Spec>>,
    /// It was ended for good.
    pub(crate) is_closed: bool,
    /// It has heard its task.
    pub(crate) is_begun: bool,
    /// Labels of what its model surely was told.
    pub(crate) heard: BTreeSet<String>,
    /// What the next turn will hear.
    after_turn: BTreeSet<String>,
    /// Labels of what it will be told with the next question.
    pub(crate) coming: BTreeSet<String>,
}

/// All sessions.
pub(crate) type All = BTreeMap<SessionId, SessionFacts>;

impl SubagentFacts {
    /// The call that started it.
    pub(crate) fn parent(&self) -> Option<&Parent> {
        self.spec.as_ref()?.parent()
    }

    /// Whether it was begun, and can go on.
    pub(crate) fn is_open(&self) -> bool {
        self.is_begun && !self.is_closed
    }

    /// Takes in what a session's own events say of it.
    pub(crate) fn take(&mut self, event: &Event) {
        match event {
            Event::Opened(spec) => drop(self.spec.get_or_insert_with(|| Arc::clone(spec))),
            Event::Forked { cut, .. } => self.heard.extend(cut.labels.iter().cloned()),
            Event::Said(message) => match &message.author {
                Author::Agent(_) => self.is_begun = true,
                Author::Person(person) | Author::Trusted(TrustedFile { by: person, .. }) => {
                    let own = self.spec.as_ref().is_some_and(|spec| spec.principal == *person);
                    if !own {
                        let heard_by = match message.after_turn {
                            true => &mut self.after_turn,
                            false => &mut self.coming,
                        };
                        heard_by.insert(format!("from:{person}"));
                    }
                }
                Author::Untrusted(source) => drop(self.coming.insert(format!("from:{source}"))),
            },
            Event::Settled { outcome: Outcome::Done(Product::Output(output)), .. } => {
                self.coming.extend(output.labels.iter().cloned());
            }
            // It answers what it was told.
            Event::Settled { outcome: Outcome::Done(Product::Reply(_)), .. } => {}
            Event::TurnEnded(_) => self.coming.append(&mut self.after_turn),
            Event::Cancelled { .. } => self.is_closed = true,
            _ => {}
        }
    }

    /// The model is asked: whatever came before is in front of it.
    pub(crate) fn asks(&mut self) {
        let coming = std::mem::take(&mut self.coming);
        self.heard.extend(coming);
    }
}

/// Whether both tell the same fact. When a provider is asked again is no fact: it is decided
/// each time that the outcome is taken in.
fn tells_of(one: &Outcome, other: &Outcome) -> bool {
    match (one, other) {
        (
            Outcome::Failed(Failure::Model { fault, detail, .. }),
            Outcome::Failed(Failure::Model { fault: other, detail: said, .. }),
        ) => fault == other && detail == said,
        _ => one == other,
    }
}
