//! A consistent cut through a session: its conversation, the disks of its sandboxes,
//! what was spent and what waits for a person, all of the same moment.
//!
//! Owns when a session can be cut, what belongs to a cut, and how a session stands on
//! one: a fork begins with it, a rewind goes back to it. Must never carry what is under
//! way, nor an answer that a person gave: what is open is decided anew.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::round::Round;
use crate::sandboxes::Known;
use crate::state::Context;
use crate::{
    Amounts, Item, Kept, Loss, Next, Park, SandboxReady, Seq, SessionId, State, ToolResult, TurnEnd,
};

/// A cut through a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The session that was cut.
    pub session: SessionId,
    /// The last event that belongs to it.
    pub at: Seq,
    /// The conversation as the model saw it.
    pub conversation: Vec<Item>,
    /// What the model is to be told next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queued: Vec<Item>,
    /// Results of the last reply's calls, by index, while others of them wait for a
    /// person. Nothing where no turn runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<BTreeMap<u32, Arc<ToolResult>>>,
    /// How the last turn ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<TurnEnd>,
    /// What was spent. A fork has spent it too; a rewind takes nothing back.
    pub spent: Amounts,
    /// What the conversation was made of, as far as that came from outside.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<String>,
    /// Tokens of the conversation, as the provider counted them at the last reply.
    pub counted_tokens: u64,
    /// Bytes that came since and were not counted.
    pub uncounted_bytes: u64,
    /// Replies since the last compaction.
    pub replies: u64,
    /// The sandboxes that are the session's alone, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sandboxes: BTreeMap<String, CutSandbox>,
}

/// A sandbox in a cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutSandbox {
    /// As it was ready last.
    pub ready: SandboxReady,
    /// What is kept of its disk; without, it begins anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

impl State {
    /// The cut at this state's last event, if it is one: nothing is under way, and every
    /// disk is as it was kept last. `at_ms` is the time of that event.
    #[must_use]
    pub fn cut(&self, session: &SessionId, at_ms: u64) -> Option<Cut> {
        let waits = self.stands(session, at_ms)?;
        let own = || self.sandboxes.iter().filter(|(name, _)| self.is_own(name));
        let sandbox = |(name, known): (&String, &Known)| {
            let (ready, kept) = (known.ready.clone(), known.kept.last().cloned());
            (name.clone(), CutSandbox { ready, kept })
        };
        Some(Cut {
            session: session.clone(),
            at: self.seq,
            conversation: self.conversation.clone(),
            queued: self.queued.clone(),
            waiting: waits.then(|| self.round.as_ref().map(Round::results).unwrap_or_default()),
            ended: self.ended.clone(),
            spent: self.spent,
            labels: self.labels.clone(),
            counted_tokens: self.context.tokens,
            uncounted_bytes: self.context.bytes,
            replies: self.context.replies,
            sandboxes: own().map(sandbox).collect(),
        })
    }

    /// Whether there is a cut at this state's last event, without making it.
    #[must_use]
    pub fn is_cut(&self, session: &SessionId, at_ms: u64) -> bool {
        self.stands(session, at_ms).is_some()
    }

    /// What was kept last of each sandbox that is the session's alone.
    pub fn last_kept(&self) -> impl Iterator<Item = &Kept> {
        let own = self.sandboxes.iter().filter(|(name, _)| self.is_own(name));
        own.filter_map(|(_, known)| known.kept.last())
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
            | Next::Stop(_) => return None,
        };
        let mut own = self.sandboxes.iter().filter(|(name, _)| self.is_own(name));
        let unkept = own.any(|(_, known)| known.lost.is_none() && known.changed.is_some());
        (!unkept).then_some(waits)
    }

    /// Whether a sandbox is the session's alone: others are not its to cut.
    fn is_own(&self, name: &str) -> bool {
        let asked = self.spec.as_ref().and_then(|spec| spec.sandbox(name));
        asked.is_none_or(|asked| asked.scope.is_thread())
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
        // A person may go back to before something came in; the model can't.
        self.labels.clone_from(&cut.labels);
        (self.turn, self.round, self.stuck, self.repeated) = (None, None, None, None);
        self.context = Context {
            tokens: cut.counted_tokens,
            bytes: cut.uncounted_bytes,
            replies: cut.replies,
            overflowed: false,
            attempts: 0,
        };
        self.set_back(cut);
        if let Some(results) = &cut.waiting {
            self.begin_turn(at_ms);
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

    /// Every disk goes back to what was kept of it; one that was not there yet begins anew.
    fn set_back(&mut self, cut: &Cut) {
        let own: Vec<String> =
            self.sandboxes.keys().filter(|name| self.is_own(name)).cloned().collect();
        for name in own {
            if let Some(known) = self.sandboxes.get_mut(&name) {
                known.set_back(cut.sandboxes.get(&name).and_then(|cut| cut.kept.as_ref()));
            }
        }
        for (name, CutSandbox { ready, kept }) in &cut.sandboxes {
            self.sandboxes.entry(name.clone()).or_insert_with(|| Known {
                ready: ready.clone(),
                lost: Some(Loss::SetBack),
                kept: kept.iter().cloned().collect(),
                changed: None,
            });
        }
    }
}
