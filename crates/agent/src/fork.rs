//! Where a session can be cut, and how one stands on a cut: a fork begins with it, a rewind
//! goes back to it. What is open there is decided anew.

use std::sync::Arc;

use crate::context::Context;
use crate::round::Round;
use crate::sandboxes::SandboxRecord;
use crate::{Cut, CutSandbox, Item, Next, Park, Seq, SessionId, SnapshotRef, Spec, State};

impl State {
    /// The cut at this state's last event, if it is one: nothing is under way, and every
    /// disk is as it was kept last. `at_ms` is the time of that event.
    #[must_use]
    pub fn cut(&self, session: &SessionId, at_ms: u64) -> Option<Cut> {
        let waits = self.stands(session, at_ms)?;
        let sandbox = |(name, known): (&str, &SandboxRecord)| {
            let (ready, kept) = (known.ready.clone(), known.kept.last().cloned());
            (name.to_owned(), CutSandbox { ready, kept })
        };
        Some(Cut {
            session: session.clone(),
            at: self.seq,
            conversation: self.conversation.clone(),
            queued: [&self.queued[..], &self.after_turn].concat(),
            waiting: waits.then(|| self.round.as_ref().map(Round::results).unwrap_or_default()),
            ended: self.ended.clone(),
            spent: self.spent,
            labels: self.labels.clone(),
            counted_tokens: self.context.tokens,
            uncounted_bytes: self.context.bytes,
            replies: self.context.replies,
            sandboxes: self.own_sandboxes().map(sandbox).collect(),
        })
    }

    /// Whether there is a cut at this state's last event, without making it.
    #[must_use]
    pub fn is_cut(&self, session: &SessionId, at_ms: u64) -> bool {
        self.stands(session, at_ms).is_some()
    }

    /// What was kept last of each sandbox that is the session's alone.
    pub fn last_kept(&self) -> impl Iterator<Item = &SnapshotRef> {
        self.own_sandboxes().filter_map(|(_, known)| known.kept.last())
    }

    /// Whether it waits for answers, if it stands still.
    fn stands(&self, session: &SessionId, at_ms: u64) -> Option<bool> {
        let waits = match self.decide(session, at_ms) {
            Next::Park(Park::Message) => false,
            Next::Park(Park::Answers(_)) => true,
            Next::Park(Park::Unopened | Park::Cancelled)
            | Next::Record(_)
            | Next::Judge(_)
            | Next::Start(..)
            | Next::Perform(_)
            | Next::Stop(_)
            | Next::Wait(_) => return None,
        };
        let unkept =
            self.own_sandboxes().any(|(_, known)| known.lost.is_none() && known.changed.is_some());
        (!unkept).then_some(waits)
    }

    fn own_sandboxes(&self) -> impl Iterator<Item = (&str, &SandboxRecord)> {
        self.sandboxes.iter().filter(|(name, _)| is_own(self.spec.as_deref(), name))
    }

    /// A new session begins with a cut of another one.
    pub(crate) fn forked(&mut self, cut: &Cut, place: Seq, at_ms: u64) {
        // Only right after it was opened: later it would make what was spent unspent.
        if self.spec.is_some() && place == Seq(2) {
            self.spent = cut.spent;
            // The session that was cut is charged for it.
            self.inherited = cut.spent;
            self.stand_on(cut, place, at_ms);
        }
    }

    /// The session goes back to a cut of its own. What was spent stays spent.
    pub(crate) fn rewound(&mut self, cut: &Cut, place: Seq, at_ms: u64) {
        if self.spec.is_some() && !self.cancelled {
            self.spent = self.spent.plus(self.reserved());
            self.stand_on(cut, place, at_ms);
        }
    }

    fn stand_on(&mut self, cut: &Cut, place: Seq, at_ms: u64) {
        self.effects.clear();
        self.conversation.clone_from(&cut.conversation);
        self.queued.clone_from(&cut.queued);
        self.after_turn.clear();
        // A person may go back to before something came in; the model can't.
        self.labels.clone_from(&cut.labels);
        (self.turn, self.round, self.stuck, self.repeated) = (None, None, None, None);
        self.sharing.end_turn(self.spec.as_deref(), &self.queued);
        self.context = Context::of_cut(cut);
        let spec = self.spec.as_deref();
        self.sandboxes.set_back(&cut.sandboxes, |name| is_own(spec, name));
        if let Some(results) = &cut.waiting {
            self.begin_turn(at_ms);
            // Whose words the turn is made of is not known any more.
            self.sharing.note_authors(self.spec.as_deref(), &cut.conversation);
            if let (Some(spec), Some(Item::Reply(reply))) = (&self.spec, self.conversation.last())
                && reply.calls().next().is_some()
            {
                // The calls of the last reply that have no result are proposed anew, and
                // so the rules, and people, are asked about them once more.
                let round = Round::new(place, Arc::clone(reply), spec, &mut self.repeated);
                self.round = Some(round.with_results(results));
                self.close_round();
            }
        }
        self.ended = cut.ended.clone().filter(|_| self.turn.is_none());
    }
}

/// Whether a sandbox is the session's alone: others are not its to cut.
fn is_own(spec: Option<&Spec>, name: &str) -> bool {
    let asked = spec.and_then(|spec| spec.sandbox(name));
    asked.is_none_or(|asked| asked.scope.is_thread())
}
