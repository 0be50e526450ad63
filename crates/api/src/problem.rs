//! What is said where something could not be done: RFC 9457, `application/problem+json`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProblemDetails {
    /// A URI of the kind of problem, `about:blank` where the code says all.
    #[serde(rename = "type")]
    pub uri: String,
    /// The kind of problem, in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The kind of problem, for programs.
    pub code: ProblemCode,
    /// What was wrong, where.
    pub detail: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// The id of the request, which the server's log has as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Kinds of problems. They are stable; more may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemCode {
    /// The request has something wrong in it.
    InvalidRequest,
    /// Nobody is logged in, or not any more.
    Unauthenticated,
    /// The request comes from another site, or to another name, than this server's.
    WrongOrigin,
    /// There is no such thing, or it is not yours.
    NotFound,
    /// It can't be done to this as it stands now.
    Conflict,
    /// The address takes no such method.
    MethodNotAllowed,
    /// Somebody else changed it since it was looked at.
    PreconditionFailed,
    /// It has to be said which version is changed.
    PreconditionRequired,
    /// It has more bytes than are taken.
    TooLarge,
    /// The rules forbid it.
    Denied,
    /// A budget has no room for it.
    BudgetExhausted,
    /// The sandbox could not be reached.
    SandboxUnavailable,
    /// The model could not be reached.
    ProviderError,
    /// There are too many requests.
    RateLimited,
    /// Something is wrong in the server.
    Internal,
    /// Nothing is at that path of the sandbox.
    FileNotFound,
    /// The sandbox's user may not do that there.
    PermissionDenied,
    /// There is a folder where a file was meant.
    IsDirectory,
    /// There is a file where a folder was meant.
    NotADirectory,
    /// The path is malformed, leads out, or names what is neither file nor folder.
    InvalidPath,
    /// There is one already.
    AlreadyExists,
    /// The disk of the sandbox is full.
    NoSpace,
}
