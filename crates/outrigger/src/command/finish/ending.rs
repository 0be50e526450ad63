//! How a drive ended, as an error for whoever called: what went wrong, and how it goes on.

use outrigger_agent::{Cause, ModelFault, SessionId, State, TurnEnd};

use crate::command::drive::resume_hint;
use crate::command::shortage;
use crate::exit::{Failure, Kind, Outcome};
use crate::waiting::PendingApproval;

/// The end of a drive that stands before a person's answer.
pub(crate) fn waits(waiting: &[PendingApproval]) -> Option<Failure> {
    let (first, more) = waiting.split_first()?;
    let first = first.id();
    let text = match more.len() {
        0 => format!("{first} waits for approval"),
        more => format!("{first} and {more} more wait for approval"),
    };
    Some(
        Failure::new(Kind::WaitsForApproval, text)
            .hint(format!("`outrigger inbox {first}` shows exactly what it would do."))
            .hint(format!(
                "`outrigger approve {first}` or `outrigger deny {first}` answers and goes on."
            )),
    )
}

/// The command that goes on from here; nothing where it answered, and any can.
pub(crate) fn next(
    state: &State,
    session: &SessionId,
    waiting: &[PendingApproval],
) -> Option<String> {
    match (waiting.first(), state.ended()) {
        (Some(first), _) => Some(format!("outrigger approve {}", first.id())),
        _ if state.is_cancelled() => Some(format!("outrigger sessions show {session}")),
        (None, Some(TurnEnd::Answered)) => None,
        (None, _) => Some(format!("outrigger sessions resume {session}")),
    }
}

/// How a session goes on whose model can't be asked.
fn other_model_hint(session: &SessionId) -> String {
    format!(
        "`outrigger sessions resume {session} --model NAME` goes on with another model; `outrigger models` lists those that there are."
    )
}

/// How a turn's end is told to who called.
pub(crate) fn ending(state: &State, session: &SessionId) -> Outcome {
    let fail = |kind, text: String| Err(Failure::new(kind, text));
    let resumable = |kind, text: &str, hint: &str| {
        Err(Failure::new(kind, text).hint(hint.to_owned()).hint(resume_hint(session)))
    };
    match state.ended() {
        Some(TurnEnd::Answered) => Ok(()),
        None => fail(Kind::AgentFailed, "the session waits for a message".to_owned()),
        Some(TurnEnd::Refused { reason }) => {
            fail(Kind::AgentFailed, format!("the model refused: {reason}"))
        }
        Some(TurnEnd::OutputLimit) => resumable(
            Kind::AgentFailed,
            "the model's answer was cut at its output limit",
            shortage::of_a_cut_answer(state),
        ),
        Some(TurnEnd::Empty) => resumable(
            Kind::AgentFailed,
            "the model said nothing and called no tool, also when it was asked once more",
            "Say more exactly what is wanted, or choose another model.",
        ),
        Some(TurnEnd::StepsExhausted) => resumable(
            Kind::BudgetExhausted,
            "the limit of steps is reached",
            "Allow more with --max-steps.",
        ),
        Some(TurnEnd::TimeExhausted) => resumable(
            Kind::BudgetExhausted,
            "the limit of time is reached",
            "Allow more with limits.turn_seconds_max in the configuration.",
        ),
        Some(TurnEnd::BudgetExhausted) => {
            let (text, hint) = shortage::told(state);
            resumable(Kind::BudgetExhausted, &text, &hint)
        }
        Some(TurnEnd::OutOfBudget(shortfall)) => {
            let account = shortfall.level();
            let hint = match &shortfall.cause {
                Cause::Limit(_) => format!("`outrigger budget set {account}` allows more; `outrigger budget show` says what is used."),
                Cause::Soft(_) => "A person did not let it go on; resumed, it asks again.".to_owned(),
                Cause::Unpriced => "Begin a new session after the price is in a file that budget.prices names; docs/how-to/budgets.md shows one.".to_owned(),
                Cause::Stopped { .. } => format!("`outrigger budget allow {account}` lets things start again."),
            };
            resumable(Kind::BudgetExhausted, &shortfall.to_string(), &hint)
        }
        Some(TurnEnd::ModelFailed { fault, detail }) => {
            let kind = if *fault == ModelFault::Auth { Kind::Auth } else { Kind::ModelFailed };
            let failure = Failure::new(kind, detail.clone());
            Err(match fault {
                // The same request would be refused again.
                ModelFault::Auth | ModelFault::Invalid => failure.hint(other_model_hint(session)),
                _ => failure,
            }
            .hint(resume_hint(session)))
        }
        Some(TurnEnd::SandboxFailed { detail }) => {
            Err(Failure::new(Kind::SandboxUnavailable, detail.clone())
                .hint("`outrigger doctor` says what this machine offers and what is missing.")
                .hint(resume_hint(session)))
        }
        Some(TurnEnd::Interrupted) => {
            Err(Failure::new(Kind::Interrupted, "interrupted").hint(resume_hint(session)))
        }
        Some(TurnEnd::Cancelled) => fail(Kind::AgentFailed, "the session was cancelled".to_owned()),
    }
}
