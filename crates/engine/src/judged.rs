//! An effect of a session as the rules were last asked of it, for who wants to know why.

use outrigger_agent::{Event, Record, Seq, SessionId, State};
use outrigger_policy::{RuleSetHash, Situation, Verdict};
use outrigger_store::{Error, Journal, load_all};

use crate::policy_facts::situation;

/// What the rules were asked, and what they said.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedEffect {
    /// The situation.
    pub situation: Situation,
    /// The verdict and the rules that it was made by, if it came to one.
    pub decided: Option<(Verdict, RuleSetHash)>,
}

/// An effect as the rules were last asked of it; nothing where a session has no such effect.
///
/// # Errors
/// What the disk says.
pub async fn judged(
    journal: &dyn Journal,
    session: &SessionId,
    effect: Seq,
) -> Result<Option<JudgedEffect>, Error> {
    let mut state = State::default();
    let mut found: Option<Situation> = None;
    let mut decided = None;
    load_all(journal, session, Seq::default(), |record: Record| {
        if let Event::Decided { effect: of, verdict, rule_set } = &record.event
            && *of == effect
        {
            found = situation(&state, effect, record.at_ms);
            decided = Some((verdict.clone(), *rule_set));
        }
        let at_ms = record.at_ms;
        state = std::mem::take(&mut state).apply(&record);
        if found.is_none() {
            found = situation(&state, effect, at_ms);
        }
    })
    .await?;
    Ok(found.map(|situation| JudgedEffect { situation, decided }))
}
