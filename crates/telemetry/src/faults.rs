//! What went wrong, as `error.type` says it: a word of a short list, never what somebody said.

use outrigger_agent::{CallFault, Failure, ModelFault, Outcome, Product, Status, TurnEnd};

/// Of an effect.
pub(crate) fn of_outcome(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Done(Product::Output(output)) => of_status(output.status),
        Outcome::Done(Product::Reply(_) | Product::Sandbox(_)) => None,
        Outcome::Failed(failure) => Some(of_failure(failure)),
        Outcome::Cancelled => Some("cancelled"),
        Outcome::Unknown { .. } => Some("unknown_outcome"),
    }
}

fn of_status(status: Status) -> Option<&'static str> {
    match status {
        Status::Ok => None,
        Status::Error => Some("tool_error"),
        Status::Denied => Some("denied"),
        Status::Unknown => Some("unknown_outcome"),
    }
}

fn of_failure(failure: &Failure) -> &'static str {
    match failure {
        Failure::Model { fault, .. } => of_model(*fault),
        Failure::Call(fault) => of_call(fault),
        Failure::Denied { .. } => "denied",
        Failure::Sandbox { .. } => "sandbox_unavailable",
        Failure::Budget => "budget_exhausted",
    }
}

fn of_model(fault: ModelFault) -> &'static str {
    match fault {
        ModelFault::Auth => "auth",
        ModelFault::Invalid => "invalid_request",
        ModelFault::ContextTooLong => "context_too_long",
        ModelFault::RateLimited => "rate_limited",
        ModelFault::Unavailable => "unavailable",
        ModelFault::Garbled => "garbled",
        ModelFault::Script => "script",
    }
}

fn of_call(fault: &CallFault) -> &'static str {
    match fault {
        CallFault::Malformed { .. } => "malformed_call",
        CallFault::Cut => "cut_call",
        CallFault::Duplicated => "duplicated_call",
        CallFault::Unknown { .. } => "unknown_tool",
        CallFault::Oversized { .. } => "oversized_call",
        CallFault::Cyclic { .. } => "cyclic_call",
        CallFault::TooMany => "too_many_calls",
    }
}

/// Of a turn.
pub(crate) fn of_turn(end: &TurnEnd) -> Option<&'static str> {
    match end {
        TurnEnd::Answered => None,
        TurnEnd::Refused { .. } => Some("refused"),
        TurnEnd::OutputLimit => Some("output_limit"),
        TurnEnd::Empty => Some("empty_answer"),
        TurnEnd::StepsExhausted => Some("steps_exhausted"),
        TurnEnd::TimeExhausted => Some("time_exhausted"),
        TurnEnd::BudgetExhausted | TurnEnd::OutOfBudget(_) => Some("budget_exhausted"),
        TurnEnd::ModelFailed { fault, .. } => Some(of_model(*fault)),
        TurnEnd::SandboxFailed { .. } => Some("sandbox_unavailable"),
        TurnEnd::Interrupted => Some("interrupted"),
        TurnEnd::Cancelled => Some("cancelled"),
    }
}
