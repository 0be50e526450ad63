//! What a session charges to the accounts above it, and what is done when one has no room.
//!
//! Owns that a charge goes along with the very events that it follows from, so that the
//! store takes in both or none. It keeps no sums: those are the session's state and the
//! store's accounts.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use outrigger_agent::{AccountId, Amounts, Event, LeftOpen, Seq, SessionId, State, Work};
use outrigger_store::{BudgetRefusal, Charge, Cover, Error as StoreError, Level, SessionSummary};
use std::collections::BTreeMap;

use crate::{Engine, Error};

/// How a driver goes on after an account had no room.
#[derive(Debug, Default)]
pub(crate) struct BudgetRefusals {
    /// Effects that are started by events of which nothing is durable yet.
    pub(crate) starting: Vec<Seq>,
    /// More were refused together: each is asked for by itself now.
    pub(crate) singly: bool,
    /// Those that were refused by themselves: each is made smaller, or withheld.
    pub(crate) refused: BTreeMap<Seq, BudgetRefusal>,
    /// The one that was made smaller: it is asked for by itself, and no third time.
    pub(crate) shrunk: Option<Seq>,
}

impl BudgetRefusals {
    /// Takes in that the store refused what was pending.
    pub(crate) fn add(&mut self, mut refusal: BudgetRefusal) {
        match self.starting[..] {
            [only] => {
                refusal.charged_max.take_if(|_| self.shrunk == Some(only));
                self.refused.insert(only, refusal);
            }
            _ => self.singly = true,
        }
        self.forget_starts();
    }

    /// Takes in that nothing is pending any more.
    pub(crate) fn forget_starts(&mut self) {
        self.starting.clear();
        self.shrunk = None;
    }
}

/// What the session says of its spending, if the events change it.
pub(crate) fn charge(engine: &Engine, events: &[Event], state: &State) -> Option<Charge> {
    let started = |event: &Event| match event {
        Event::Started { effect, .. } => Some(*effect),
        _ => None,
    };
    let started: Vec<Seq> = events.iter().filter_map(started).collect();
    let settled = |event: &Event| {
        // What is withheld may have been lost in a crash, and is charged then.
        matches!(event, Event::Settled { .. } | Event::Withheld { .. } | Event::Rewound { .. })
    };
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
    Some(Charge { starts: !started.is_empty(), unpriced, ..standing(engine, state) })
}

/// What the session has spent and reserved.
fn standing(engine: &Engine, state: &State) -> Charge {
    let level = |account: AccountId| Level {
        usual: engine.defaults.of(&account).clone(),
        // A subagent's parent was asked about all that it may spend.
        soft_lifted_ms: match state.is_child() {
            true => Some(u64::MAX),
            false => state.soft_lifted_ms(account.as_str()),
        },
        account,
    };
    let levels = state.accounts().into_iter().map(level).collect();
    let (spent, reserved) = (state.charged(), state.charged_reserved());
    Charge { spent, reserved, levels, starts: false, unpriced: false }
}

/// Gives back what a session keeps reserved in accounts and can't spend any more, where
/// the caller knows that nobody drives it: a model call and a call of a tool outside
/// ended with their driver, a command ends by its deadline. They are charged with an
/// estimate until somebody drives the session again and says what became of them. Gives
/// whether it keeps something still. Nothing changes if somebody appends meanwhile.
///
/// # Errors
/// No such session, or the journal's.
pub async fn release(engine: &Engine, session: &SessionId) -> Result<bool, Error> {
    let state = engine.state(session).await?;
    let at_ms = engine.parts.clock.now_ms();
    let left = left_open(engine, session, &state, at_ms).await?;
    let mut charge = standing(engine, &state);
    charge.spent = charge.spent.plus(left.lost);
    charge.reserved = left.reserved;
    let keeps = charge.reserved != Amounts::default();
    let summary = SessionSummary { charge: Some(charge), ..SessionSummary::default() };
    match engine.parts.journal.append(session, state.seq(), at_ms, &[], summary).await {
        Ok(_) | Err(StoreError::Conflict { .. }) => Ok(keeps),
        Err(error) => Err(Error::journal(session, error)),
    }
}

/// What effects of a session without a driver may still spend, and what the others
/// are to be charged with.
fn left_open<'a>(
    engine: &'a Engine,
    session: &'a SessionId,
    state: &'a State,
    now_ms: u64,
) -> BoxFuture<'a, Result<LeftOpen, Error>> {
    async move {
        let mut left = LeftOpen::default();
        for id in state.in_flight() {
            let below = session.child(id);
            let of_effect = match state.is_subagent(id) {
                false => LeftOpen::of(state, id, now_ms),
                true => match engine.state(&below).await {
                    Err(Error::NotFound(_)) => LeftOpen::default(),
                    Err(error) => return Err(error),
                    Ok(child) => {
                        let open = left_open(engine, &below, &child, now_ms).await?;
                        let lost = open.lost.plus(child.spent()).plus(Amounts::STEP);
                        LeftOpen { lost, ..open }
                    }
                },
            };
            left = left.plus(of_effect);
        }
        Ok(left)
    }
    .boxed()
}

/// Charges a session anew with what its journal says: one of before there were
/// accounts, or whose account was damaged. Nothing changes if it was right.
///
/// # Errors
/// No such session, or the journal's.
pub async fn recharge(engine: &Engine, session: &SessionId) -> Result<(), Error> {
    for _ in 0..crate::limits::CONFLICTS_MAX {
        let state = engine.state(session).await?;
        let charge = Some(standing(engine, &state));
        let summary = SessionSummary { charge, cover: Cover::Soon, ..SessionSummary::default() };
        let (at_ms, seq) = (engine.parts.clock.now_ms(), state.seq());
        match engine.parts.journal.append(session, seq, at_ms, &[], summary).await {
            Err(StoreError::Conflict { .. }) => {}
            done => return done.map(drop).map_err(|e| Error::journal(session, e)),
        }
    }
    Err(Error::Contended(session.clone()))
}

/// Whether something is under way in a session, that an account pays for. One that merely waits
/// for a person, and keeps nothing reserved, is left to wait where its account is stopped.
#[must_use]
pub fn is_under_way(state: &State, account: &AccountId) -> bool {
    let idle = state.status() == State::WAITS && state.reserved() == Amounts::default();
    state.in_turn() && !idle && state.accounts().contains(account)
}
