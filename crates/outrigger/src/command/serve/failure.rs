//! Errors of this program as the server tells them, and the other way.

use outrigger_api::ProblemCode;
use outrigger_server::RequestError;

use crate::exit::{Failure, Kind};

/// As who asked the server is told.
pub(super) fn told(failure: Failure) -> RequestError {
    let code = match failure.kind {
        Kind::Usage => ProblemCode::InvalidRequest,
        Kind::NotFound => ProblemCode::NotFound,
        Kind::Conflict | Kind::WaitsForApproval => ProblemCode::Conflict,
        Kind::BudgetExhausted => ProblemCode::BudgetExhausted,
        Kind::Denied => ProblemCode::Denied,
        Kind::SandboxUnavailable => ProblemCode::SandboxUnavailable,
        Kind::Auth | Kind::ModelFailed => ProblemCode::ProviderError,
        Kind::AgentFailed
        | Kind::Storage
        | Kind::AuditFailed
        | Kind::ServerFailed
        | Kind::Interrupted => ProblemCode::Internal,
    };
    let retryable = matches!(code, ProblemCode::SandboxUnavailable | ProblemCode::ProviderError);
    let error = RequestError { retryable, ..RequestError::new(code, failure.message) };
    failure.hints.into_iter().fold(error, RequestError::hint)
}

/// As who asked the server is told, where it is none of their fault.
pub(super) fn of_server(failure: Failure) -> RequestError {
    RequestError { code: ProblemCode::Internal, ..told(failure) }
}

/// As who began the server is told.
pub(super) fn of_request(error: RequestError) -> Failure {
    let failure = Failure::new(Kind::Storage, error.detail);
    error.hints.into_iter().fold(failure, Failure::hint)
}
