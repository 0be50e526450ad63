//! What a session charges to the accounts above it, and what is done when one has no room.
//!
//! Owns that a charge goes along with the very events that it follows from, so that the
//! store takes in both or none. It keeps no sums: those are the session's state and the
//! store's accounts.

use outrigger_agent::{AccountId, Event, Seq, SessionId, Shortfall, State, Work};
use outrigger_store::{Charge, Cover, Error as StoreError, Level, Summary, Terms};

use crate::live::Live;
use crate::{Engine, Error};

/// What holds for accounts of which nothing was set in the store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usual {
    /// For the organisation.
    pub organisation: Terms,
    /// For each user.
    pub user: Terms,
}

impl Usual {
    /// What holds for one account.
    #[must_use]
    pub fn of(&self, account: &AccountId) -> &Terms {
        if account.is_user() { &self.user } else { &self.organisation }
    }
}

/// How a driver goes on after an account had no room.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    /// Events that start something, of which nothing is durable yet.
    pub(crate) starting: usize,
    /// More were refused together: each is asked for by itself now.
    pub(crate) singly: bool,
    /// One was refused by itself: it is to be withheld.
    pub(crate) shortfall: Option<Shortfall>,
}

impl Refused {
    /// Takes in that the store refused what was pending.
    pub(crate) fn by(&mut self, shortfall: Shortfall) {
        if self.starting > 1 {
            self.singly = true;
        } else {
            self.shortfall = Some(shortfall);
        }
        self.starting = 0;
    }
}

impl Engine {
    /// What the session says of its spending, if the events change it.
    pub(crate) fn charge(&self, events: &[Event], state: &State) -> Option<Charge> {
        let started = |event: &Event| match event {
            Event::Started { effect, .. } => Some(*effect),
            _ => None,
        };
        let started: Vec<Seq> = events.iter().filter_map(started).collect();
        let settled =
            |event: &Event| matches!(event, Event::Settled { .. } | Event::Rewound { .. });
        let settled = events.iter().any(settled);
        if started.is_empty() && !settled {
            return None;
        }
        let priced = state.spec().is_some_and(|spec| spec.model.price.is_some());
        let asks_model = started
            .iter()
            .filter_map(|id| state.effect(*id))
            .any(|effect| matches!(effect.work, Work::AskModel | Work::Compact));
        let unpriced = asks_model && !priced;
        Some(Charge { starts: !started.is_empty(), unpriced, ..self.standing(state) })
    }

    /// What the session has spent and reserved.
    fn standing(&self, state: &State) -> Charge {
        let level = |account: AccountId| Level {
            usual: self.usual.of(&account).clone(),
            // A subagent's parent was asked about all that it may spend.
            soft_lifted: state.is_child() || state.is_soft_lifted(account.as_str()),
            account,
        };
        let levels = state.accounts().into_iter().map(level).collect();
        let (spent, reserved) = (state.charged(), state.charged_reserved());
        Charge { spent, reserved, levels, starts: false, unpriced: false }
    }

    /// Charges a session anew with what its journal says: one of before there were
    /// accounts, or whose account was damaged. Nothing changes if it was right.
    ///
    /// # Errors
    /// No such session, or the journal's.
    pub async fn recharge(&self, session: &SessionId) -> Result<(), Error> {
        for _ in 0..crate::limits::CONFLICTS_MAX {
            let state = self.state(session).await?;
            let charge = Some(self.standing(&state));
            let summary = Summary { charge, cover: Cover::Soon, ..Summary::default() };
            let (at_ms, seq) = (self.parts.clock.now_ms(), state.seq());
            match self.parts.journal.append(session, seq, at_ms, Vec::new(), summary).await {
                Err(StoreError::Conflict { .. }) => {}
                done => return done.map(drop).map_err(|e| Self::journal_error(session, e)),
            }
        }
        Err(Error::Contended(session.clone()))
    }
}

impl Live {
    /// Writes down that an effect is not started, if an account refused it just now.
    pub(crate) fn withhold(&mut self, id: Seq, at_ms: u64) -> bool {
        let Some(shortfall) = self.refused.shortfall.take() else { return false };
        self.push(at_ms, Event::Withheld { effect: id, shortfall });
        true
    }
}
