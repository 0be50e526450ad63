//! Sees every append and every act of every harness at the moment when it comes about,
//! and keeps the first thing that does not hold.

use outrigger_agent::{Answer, Event, Outcome, Product, Replacement, Seq, SessionId, TurnEnd};
use outrigger_policy::Verdict;
use outrigger_sandbox::fake::Fake;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::Violation;
use crate::ledger::{Ledger, Under};
use crate::tally::{Happening, Tally};

/// See the module.
#[derive(Debug)]
pub(crate) struct Witness {
    session: SessionId,
    began: Instant,
    seen: Mutex<Seen>,
}

/// How much of what happens is kept for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// What did not hold.
    Verdict,
    /// Everything that happened, too.
    Whole,
}

#[derive(Debug, Default)]
struct Seen {
    head: Seq,
    ledger: Ledger,
    /// Effects that were permitted once.
    permitted: BTreeSet<Seq>,
    /// Model calls that were begun.
    calls: u64,
    /// Tokens that the provider charges for them.
    burnt: u64,
    /// How many starts in sandboxes were looked at.
    starts: usize,
    /// Appends that are on their way to the store.
    on_their_way: u64,
    violation: Option<Violation>,
    tally: Tally,
    /// What happened, in lines, if somebody wants to read it.
    story: Option<Vec<String>>,
}

impl Seen {
    fn blame(&mut self, held: Result<(), Violation>) {
        if let Err(violation) = held {
            self.violation.get_or_insert(violation);
        }
    }

    /// What the provider charges was charged to the session, or is reserved for it.
    fn solvent(&self) -> Result<(), Violation> {
        if self.burnt > self.ledger.owed().tokens {
            return Err(Violation::Undercharged { burnt: self.burnt });
        }
        Ok(())
    }
}

impl Witness {
    pub(crate) fn new(session: SessionId, told: Told) -> Self {
        let story = (told == Told::Whole).then(Vec::new);
        let seen = Mutex::new(Seen { story, ..Seen::default() });
        Self { session, began: Instant::now(), seen }
    }

    /// What happened, up to the first thing that did not hold.
    pub(crate) fn story(&self) -> Vec<String> {
        self.seen().story.clone().unwrap_or_default()
    }

    /// Adds a line to the story.
    fn note(&self, seen: &mut Seen, line: impl FnOnce() -> String) {
        if let (Some(story), None) = (&mut seen.story, &seen.violation) {
            story.push(format!("{:>9} ms  {}", self.began.elapsed().as_millis(), line()));
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("no witness panics while it looks")
    }

    pub(crate) fn count(&self, what: Happening) {
        let mut seen = self.seen();
        self.note(&mut seen, || format!("+ {what}"));
        seen.tally.count(what);
    }

    pub(crate) fn tally(&self) -> Tally {
        self.seen().tally.clone()
    }

    pub(crate) fn head(&self) -> Seq {
        self.seen().head
    }

    /// An append leaves for the store, or came to its end there.
    pub(crate) fn on_its_way(&self, leaves: bool) {
        let mut seen = self.seen();
        seen.on_their_way = if leaves { seen.on_their_way + 1 } else { seen.on_their_way - 1 };
    }

    /// Whether no append is on its way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.seen().on_their_way == 0
    }

    /// The first thing that did not hold.
    pub(crate) fn verdict(&self) -> Result<(), Violation> {
        self.seen().violation.clone().map_or(Ok(()), Err)
    }

    /// Events became durable.
    pub(crate) fn appended(&self, after: Seq, events: &[Event], under: Under) {
        let mut seen = self.seen();
        let seen = &mut *seen;
        if after != seen.head {
            seen.blame(Err(Violation::Unfenced(after)));
        }
        for event in events {
            seen.head = seen.head.next();
            let head = seen.head;
            self.note(seen, || {
                let text: String = format!("{event:?}").chars().take(240).collect();
                format!("{head} {text} ({:?})", under.kind)
            });
            let held = seen.ledger.take(seen.head, event, under);
            seen.blame(held);
            seen.tell(event);
        }
        let solvent = seen.solvent();
        seen.blame(solvent);
    }

    /// The model is asked; the provider charges so many tokens whatever becomes of it.
    pub(crate) fn asked(&self, tokens: u64) {
        let mut seen = self.seen();
        self.note(&mut seen, || format!("> model, {tokens} tokens"));
        seen.calls += 1;
        seen.burnt += tokens;
        let intended = seen.calls <= seen.ledger.questions;
        let call = seen.calls;
        let no_intent = || Violation::NoIntent(format!("model call {call}"));
        let held = intended.then_some(()).ok_or_else(no_intent);
        seen.blame(held);
        let solvent = seen.solvent();
        seen.blame(solvent);
    }

    /// Something was asked of a sandbox under an exec id, by a harness with these rules.
    /// Called right after the sandbox had it.
    pub(crate) fn begun(&self, exec: &str, sandboxes: &Fake, under: Under) {
        let mut seen = self.seen();
        let seen = &mut *seen;
        let starts = sandboxes.starts();
        let fresh = starts.len() > seen.starts;
        seen.starts = starts.len();
        self.note(seen, || format!("> {exec}{}", if fresh { ", begun" } else { "" }));
        let effect = self.effect(exec);
        let intended = match effect {
            Some(effect) => seen.ledger.intended(effect),
            // The files of a workspace have names of their own.
            None => seen.ledger.provisions(),
        };
        if !intended {
            seen.blame(Err(Violation::NoIntent(exec.to_owned())));
        }
        let Some(effect) = effect else { return };
        if !fresh {
            if starts.iter().any(|start| start.exec.as_str() == exec) {
                seen.tally.count(Happening::Reattached);
            }
            return;
        }
        let held = seen.ledger.allows(effect, under);
        seen.blame(held);
        if seen.ledger.is_over(effect) {
            seen.blame(Err(Violation::BegunAfterEnd(effect)));
        }
    }

    fn effect(&self, exec: &str) -> Option<Seq> {
        let rest = exec.strip_prefix(self.session.as_str())?.strip_prefix('.')?;
        rest.split('.').next()?.parse().ok().map(Seq)
    }
}

impl Seen {
    /// Counts what an event shows.
    fn tell(&mut self, event: &Event) {
        let happening = match event {
            Event::Decided { effect, verdict, .. } => match verdict {
                Verdict::Permit { .. } => {
                    self.permitted.insert(*effect);
                    return;
                }
                Verdict::Forbid { .. } => Happening::Forbidden,
                Verdict::Ask { .. } if self.permitted.contains(effect) => Happening::AskedAgain,
                Verdict::Ask { .. } => return,
            },
            Event::Answered { effect, answer, .. } => match answer {
                Answer::Approved { .. } => {
                    self.permitted.insert(*effect);
                    Happening::Approved
                }
                Answer::Denied { .. } if self.permitted.contains(effect) => Happening::Overruled,
                Answer::Denied { .. } => Happening::Denied,
                Answer::Amended { .. } => Happening::Amended,
            },
            Event::Started { attempt: 2.., .. } => Happening::Repeated,
            Event::Settled { outcome, .. } => match outcome {
                Outcome::Unknown { .. } => Happening::Unknown,
                Outcome::Done(Product::Sandbox(ready))
                    if matches!(ready.replaces, Some(Replacement::Snapshot(_))) =>
                {
                    Happening::Restored
                }
                Outcome::Done(Product::Output(output)) if output.text.contains("still running") => {
                    Happening::CommandHung
                }
                _ => return,
            },
            Event::Interrupted { .. } => Happening::Interrupted,
            Event::Cancelled { .. } => Happening::Cancelled,
            Event::Resumed { .. } => Happening::Resumed,
            Event::TurnEnded(TurnEnd::StepsExhausted) => Happening::OutOfSteps,
            Event::TurnEnded(TurnEnd::BudgetExhausted) => Happening::OutOfBudget,
            _ => return,
        };
        self.tally.count(happening);
    }
}
