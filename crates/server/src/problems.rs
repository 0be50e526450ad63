//! Which problems a request may be answered with, for the contract: `error.rs` makes them.
//!
//! One list for what reads and one for what changes, so that no handler has one of its own that
//! nobody keeps up.

use outrigger_api::ProblemDetails;
use utoipa::IntoResponses;

/// Of a request that changes nothing.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is a description")]
pub(crate) enum ReadProblems {
    /// Something in it is wrong
    #[response(status = 400, content_type = "application/problem+json")]
    InvalidRequest(ProblemDetails),
    /// Nobody is logged in
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthenticated(ProblemDetails),
    /// It comes by another name than the server's
    #[response(status = 403, content_type = "application/problem+json")]
    WrongOrigin(ProblemDetails),
    /// There is no such thing, or it is somebody else's
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(ProblemDetails),
    /// It is not there any more
    #[response(status = 409, content_type = "application/problem+json")]
    Conflict(ProblemDetails),
    /// It is too large
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(ProblemDetails),
    /// A sandbox could not be reached
    #[response(status = 503, content_type = "application/problem+json")]
    SandboxUnavailable(ProblemDetails),
}

/// Of a request that changes something: then nothing is changed.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is a description")]
pub(crate) enum ChangeProblems {
    /// Something in it is wrong
    #[response(status = 400, content_type = "application/problem+json")]
    InvalidRequest(ProblemDetails),
    /// Nobody is logged in
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthenticated(ProblemDetails),
    /// A budget has no room for it
    #[response(status = 402, content_type = "application/problem+json")]
    BudgetExhausted(ProblemDetails),
    /// The rules forbid it, or it comes from elsewhere
    #[response(status = 403, content_type = "application/problem+json")]
    Denied(ProblemDetails),
    /// There is no such thing, or it is somebody else's
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(ProblemDetails),
    /// It can't be done as things stand
    #[response(status = 409, content_type = "application/problem+json")]
    Conflict(ProblemDetails),
    /// Somebody else changed it since it was looked at
    #[response(status = 412, content_type = "application/problem+json")]
    PreconditionFailed(ProblemDetails),
    /// It has to be said which version is changed
    #[response(status = 428, content_type = "application/problem+json")]
    PreconditionRequired(ProblemDetails),
    /// It is too large
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(ProblemDetails),
    /// There are too many of them
    #[response(status = 429, content_type = "application/problem+json")]
    RateLimited(ProblemDetails),
    /// The model could not be reached
    #[response(status = 502, content_type = "application/problem+json")]
    ProviderError(ProblemDetails),
    /// A sandbox could not be reached
    #[response(status = 503, content_type = "application/problem+json")]
    SandboxUnavailable(ProblemDetails),
}
