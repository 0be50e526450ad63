//! Sees every append and every act of every harness at the moment when it comes about,
//! and keeps the first thing that does not hold.

use outrigger_agent::{
    Answer, Cause, Event, Failure, Outcome, Product, Replacement, Seq, SessionId, TurnEnd,
};
use outrigger_engine::SandboxOwner;
use outrigger_policy::Verdict;
use outrigger_sandbox::SandboxId;
use outrigger_sandbox_testing::fake::Fake;
use outrigger_tools::outside::OutsideCall;
use std::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::Violation;
use crate::accounts::AccountTotals;
use crate::ledger::Under;
use crate::session_facts::{All, SessionFacts};
use crate::tally::{Happening, Tally};
use crate::{outside_tools, subagents};

/// What all harnesses of a seed report to, and the first thing that did not hold.
#[derive(Debug)]
pub(crate) struct Witness {
    began: Instant,
    seen: Mutex<WitnessState>,
}

/// How much of what happens is kept for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What did not hold.
    Verdict,
    /// Everything that happened, too.
    Whole,
}

#[derive(Debug, Default)]
struct WitnessState {
    sessions: All,
    accounts: AccountTotals,
    /// How many starts in sandboxes were looked at.
    starts: usize,
    /// Appends that are on their way to the store.
    on_their_way: u64,
    violation: Option<Violation>,
    tally: Tally,
    /// What happened, in lines, if somebody wants to read it.
    story: Option<Vec<String>>,
}

impl WitnessState {
    fn blame(&mut self, held: Result<(), Violation>) {
        if let Err(violation) = held {
            self.violation.get_or_insert(violation);
        }
    }

    fn of(&mut self, session: &SessionId) -> &mut SessionFacts {
        self.sessions.entry(session.clone()).or_default()
    }

    /// What the provider charges was charged to the session, or is reserved for it.
    fn solvent(&self, session: &SessionId) -> Result<(), Violation> {
        match self.sessions.get(session) {
            Some(own) if own.burnt > own.ledger.owed().tokens => {
                Err(Violation::Undercharged { burnt: own.burnt })
            }
            _ => Ok(()),
        }
    }

    /// Whoever answers for a session pays for what the provider charges.
    fn burns(&mut self, session: &SessionId, tokens: u64) {
        for payer in self.line(session) {
            self.of(&payer).burnt += tokens;
            let solvent = self.solvent(&payer);
            self.blame(solvent);
        }
    }

    /// A session, and those above it, the nearest first.
    fn line(&self, session: &SessionId) -> Vec<SessionId> {
        let above = |session: &SessionId| {
            Some(self.sessions.get(session)?.subagents.parent()?.session.clone())
        };
        std::iter::successors(Some(session.clone()), above).collect()
    }
}

/// An append, as it came about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AppendRecord<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) after: Seq,
    pub(crate) at_ms: u64,
    pub(crate) events: &'a [Event],
    pub(crate) under: Under,
    /// By which process.
    pub(crate) writer: u64,
}

impl Witness {
    pub(crate) fn new(told: Detail) -> Self {
        let story = (told == Detail::Whole).then(Vec::new);
        let seen = Mutex::new(WitnessState { story, ..WitnessState::default() });
        Self { began: Instant::now(), seen }
    }

    /// What happened, up to the first thing that did not hold.
    pub(crate) fn story(&self) -> Vec<String> {
        self.seen().story.clone().unwrap_or_default()
    }

    /// Adds a line to the story.
    fn note(&self, seen: &mut WitnessState, line: impl FnOnce() -> String) {
        if let (Some(story), None) = (&mut seen.story, &seen.violation) {
            story.push(format!("{:>9} ms  {}", self.began.elapsed().as_millis(), line()));
        }
    }

    fn seen(&self) -> MutexGuard<'_, WitnessState> {
        self.seen.lock().expect("no witness panics while it looks")
    }

    pub(crate) fn count(&self, what: Happening) {
        let mut seen = self.seen();
        self.note(&mut seen, || format!("+ {what}"));
        seen.tally.count(what);
        let kills = [
            Happening::KilledBefore,
            Happening::KilledAfter,
            Happening::KilledBetween,
            Happening::Torn,
        ];
        let below =
            |own: &SessionFacts| own.subagents.parent().is_some() && own.subagents.is_open();
        if kills.contains(&what) && seen.sessions.values().any(below) {
            seen.tally.count(Happening::KilledAboveChild);
        }
    }

    pub(crate) fn tally(&self) -> Tally {
        self.seen().tally.clone()
    }

    pub(crate) fn head(&self, session: &SessionId) -> Seq {
        self.seen().sessions.get(session).map(|own| own.head).unwrap_or_default()
    }

    /// All sessions that there are, by name.
    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        self.seen().sessions.keys().cloned().collect()
    }

    /// Those that were started by others.
    pub(crate) fn below(&self) -> Vec<SessionId> {
        let seen = self.seen();
        let below = seen.sessions.iter().filter(|(_, own)| own.subagents.parent().is_some());
        below.map(|(session, _)| session.clone()).collect()
    }

    /// One that was started by another and can still go on.
    pub(crate) fn open_below(&self) -> Option<SessionId> {
        let seen = self.seen();
        let open = |own: &SessionFacts| {
            own.subagents.parent().is_some() && (own.subagents.is_open() || !own.ledger.is_idle())
        };
        seen.sessions.iter().find(|(_, own)| open(own)).map(|(session, _)| session.clone())
    }

    /// What holds for the accounts changes.
    pub(crate) fn accounts(&self, change: impl FnOnce(&mut AccountTotals)) {
        change(&mut self.seen().accounts);
    }

    /// Whether an account above the sessions is limited.
    pub(crate) fn is_limited(&self) -> bool {
        self.seen().accounts.is_limited()
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
    pub(crate) fn appended(&self, appended: AppendRecord<'_>) {
        let AppendRecord { session, after, at_ms, events, under, writer } = appended;
        let mut seen = self.seen();
        let seen = &mut *seen;
        if after != seen.of(session).head {
            seen.blame(Err(Violation::Unfenced(after)));
        }
        for event in events {
            let own = seen.of(session);
            own.head = own.head.next();
            let head = own.head;
            self.note(seen, || {
                let text: String = format!("{event:?}").chars().take(240).collect();
                format!("{session} {head} {text} ({:?}, {writer})", under.kind)
            });
            let own = seen.of(session);
            let held = own.keeps_its_word(event, writer);
            let asked = own.ledger.questions;
            let held = held.and(own.ledger.take((head, at_ms), event, under));
            own.subagents.take(event);
            if own.ledger.questions > asked {
                own.subagents.asks();
            }
            seen.blame(held);
            let held = subagents::check(&seen.sessions, session, event);
            seen.blame(held);
            if matches!(event, Event::Started { .. }) {
                let held = seen.accounts.allows(&seen.sessions);
                seen.blame(held);
            }
            seen.tell(session, event);
        }
        let own = seen.of(session);
        if own.subagents.parent().is_some() && own.writer != 0 && own.writer != writer {
            seen.tally.count(Happening::ChildFoundAgain);
        }
        seen.of(session).writer = writer;
        let solvent = seen.solvent(session);
        seen.blame(solvent);
    }

    /// The store did not take this in, of a process that may live on: what it knows it
    /// still knows.
    pub(crate) fn refused(&self, session: &SessionId, events: &[Event], writer: u64) {
        let mut seen = self.seen();
        let seen = &mut *seen;
        for event in events {
            // What is charged by an estimate was decided of a lost attempt, and what is denied
            // never began: nobody knew what became of either.
            let Event::Settled { effect, outcome, estimated: false, .. } = event else { continue };
            if matches!(outcome, Outcome::Failed(Failure::Denied { .. })) {
                continue;
            }
            self.note(seen, || {
                format!("x {session} settles {effect} in vain: {outcome:?} ({writer})")
            });
            let own = seen.of(session);
            if own.ledger.is_open(*effect) {
                own.refused.insert(*effect, (writer, outcome.clone()));
                seen.tally.count(Happening::OutcomeRefused);
            }
        }
    }

    /// An account had no room for what would start.
    pub(crate) fn unaffordable(&self, session: &SessionId, events: &[Event]) {
        let mut seen = self.seen();
        for event in events {
            if let Event::Started { effect, reserved, .. } = event {
                seen.of(session).unaffordable.insert(*effect, *reserved);
            }
        }
    }

    /// The model is asked; the provider charges so many tokens for what was sent.
    pub(crate) fn asked(&self, session: &str, tokens: u64) {
        let mut seen = self.seen();
        self.note(&mut seen, || format!("> {session} asks the model, {tokens} tokens"));
        let Some(session) = SessionId::new(session) else { return };
        let own = seen.of(&session);
        own.calls += 1;
        let (call, intended) = (own.calls, own.calls <= own.ledger.questions);
        let no_intent = || Violation::NoIntent(format!("model call {call} of {session}"));
        let held = intended.then_some(()).ok_or_else(no_intent);
        seen.blame(held);
        seen.burns(&session, tokens);
    }

    /// The provider charges so many tokens more.
    pub(crate) fn burns(&self, session: &str, tokens: u64) {
        let Some(session) = SessionId::new(session) else { return };
        self.seen().burns(&session, tokens);
    }

    /// Something was asked of a sandbox under an exec id, by a harness with these rules.
    /// Called right after the sandbox had it.
    pub(crate) fn begun(&self, sandbox: &SandboxId, exec: &str, sandboxes: &Fake, under: Under) {
        let mut seen = self.seen();
        let seen = &mut *seen;
        let starts = sandboxes.starts();
        let fresh = starts.len() > seen.starts;
        seen.starts = starts.len();
        self.note(seen, || format!("> {exec}{}", if fresh { ", begun" } else { "" }));
        let Some(SandboxOwner::Session { session, .. }) = SandboxOwner::of(sandbox) else { return };
        let effect = effect_of(&session, exec);
        let own = seen.of(&session);
        let intended = match effect {
            Some(effect) => own.ledger.intended(effect),
            // The files of a workspace have names of their own.
            None => own.ledger.provisions(),
        };
        let Some(effect) = effect.filter(|_| intended) else {
            let held = intended.then_some(()).ok_or_else(|| Violation::NoIntent(exec.to_owned()));
            return seen.blame(held);
        };
        if !fresh {
            if starts.iter().any(|start| start.exec.as_str() == exec) {
                seen.tally.count(Happening::Reattached);
            }
            return;
        }
        let allowed = own.ledger.allows(effect, under);
        let over = own.ledger.is_over(effect);
        seen.blame(allowed);
        if over {
            seen.blame(Err(Violation::BegunAfterEnd(effect)));
        }
    }
}

impl Witness {
    /// A tool outside is called, by a harness with these rules.
    pub(crate) fn called(&self, call: &OutsideCall<'_>, under: Under) {
        let mut seen = self.seen();
        let seen = &mut *seen;
        self.note(seen, || format!("> {} calls {}", call.exec, call.tool));
        let name = call.exec.split('.').next().and_then(SessionId::new);
        let Some(session) = name else { return };
        let Some(effect) = effect_of(&session, call.exec) else { return };
        let own = seen.of(&session);
        let held = match own.ledger.intended(effect) {
            true => own.ledger.allows(effect, under),
            false => Err(Violation::NoIntent(call.exec.to_owned())),
        };
        let before = own.called.insert(effect, call.key.to_owned());
        seen.blame(held);
        let Some(before) = before else { return };
        seen.tally.count(Happening::DeskRepeated);
        if !outside_tools::may_repeat(call.tool) || before != call.key {
            seen.blame(Err(Violation::CalledAgain(call.exec.to_owned())));
        }
    }
}

/// The effect of this session that has this name in its sandboxes.
fn effect_of(session: &SessionId, exec: &str) -> Option<Seq> {
    let rest = exec.strip_prefix(session.as_str())?.strip_prefix('.')?;
    rest.split('.').next()?.parse().ok().map(Seq)
}

impl WitnessState {
    /// Counts what an event shows.
    fn tell(&mut self, session: &SessionId, event: &Event) {
        if let Some(happening) = subagents::tell(&self.sessions, session, event) {
            self.tally.count(happening);
        }
        if let Event::Settled { effect, outcome: Outcome::Unknown { .. }, .. } = event
            && self.of(session).called.contains_key(effect)
        {
            self.tally.count(Happening::DeskUnknown);
        }
        if let Event::Started { effect, reserved, .. } = event
            && let Some(before) = self.of(session).unaffordable.remove(effect)
            && reserved.tokens < before.tokens
        {
            self.tally.count(Happening::Shrunk);
        }
        let permitted = &mut self.sessions.entry(session.clone()).or_default().permitted;
        let happening = match event {
            Event::Decided { effect, verdict, .. } => match verdict {
                Verdict::Permit { .. } => {
                    permitted.insert(*effect);
                    return;
                }
                Verdict::Forbid { .. } => Happening::Forbidden,
                Verdict::Ask { .. } if permitted.contains(effect) => Happening::AskedAgain,
                Verdict::Ask { .. } => return,
            },
            Event::Answered { effect, answer, .. } => match answer {
                Answer::Approved { .. } => {
                    permitted.insert(*effect);
                    Happening::Approved
                }
                Answer::Denied { .. } if permitted.contains(effect) => Happening::Overruled,
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
            Event::Withheld { shortfall, .. } => match shortfall.cause {
                Cause::Stopped { .. } => Happening::WithheldStopped,
                _ => Happening::Withheld,
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
