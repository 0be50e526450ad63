//! Why a request is not done, and how that is told.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use outrigger_api::{ProblemCode, ProblemDetails};
use outrigger_engine::Error as EngineError;
use outrigger_sandbox::{Error as SandboxError, FileErrorKind};
use outrigger_store::{Error as StoreError, Retry};

/// How a program logs in. An answer with the status 401 has to say it (RFC 9110, 15.5.2); a
/// browser does not ask for a password because of it.
pub(crate) const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer");

/// Why a request is not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct RequestError {
    /// What kind of problem it is.
    pub code: ProblemCode,
    /// What was wrong, where.
    pub detail: String,
    /// What to do about it.
    pub hints: Vec<String>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

impl RequestError {
    /// One without hints, which comes again where the request does.
    #[must_use]
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), hints: Vec::new(), retryable: false }
    }

    /// With what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// There is no such thing, or it is somebody else's, which is told the same way.
    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(ProblemCode::NotFound, what)
    }

    /// Of an error, with all that it comes from.
    pub(crate) fn of(code: ProblemCode, error: &dyn std::error::Error) -> Self {
        let mut detail = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            detail.push_str(&format!(": {error}"));
            source = error.source();
        }
        Self::new(code, detail)
    }
}

/// The status and the words of a kind of problem.
fn kind(code: ProblemCode) -> (StatusCode, &'static str) {
    match code {
        ProblemCode::InvalidRequest => (StatusCode::BAD_REQUEST, "the request is wrong"),
        ProblemCode::Unauthenticated => (StatusCode::UNAUTHORIZED, "nobody is logged in"),
        ProblemCode::WrongOrigin => (StatusCode::FORBIDDEN, "the request comes from elsewhere"),
        ProblemCode::NotFound => (StatusCode::NOT_FOUND, "there is no such thing"),
        ProblemCode::Conflict => (StatusCode::CONFLICT, "it can't be done as it stands now"),
        ProblemCode::MethodNotAllowed => {
            (StatusCode::METHOD_NOT_ALLOWED, "the address takes no such method")
        }
        ProblemCode::PreconditionFailed => {
            (StatusCode::PRECONDITION_FAILED, "it was changed since it was looked at")
        }
        ProblemCode::PreconditionRequired => {
            (StatusCode::PRECONDITION_REQUIRED, "it is not said which version is changed")
        }
        ProblemCode::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "it is too large"),
        ProblemCode::Denied => (StatusCode::FORBIDDEN, "the rules forbid it"),
        ProblemCode::BudgetExhausted => (StatusCode::PAYMENT_REQUIRED, "a budget has no room"),
        ProblemCode::SandboxUnavailable => {
            (StatusCode::SERVICE_UNAVAILABLE, "the sandbox can't be reached")
        }
        ProblemCode::ProviderError => (StatusCode::BAD_GATEWAY, "the model can't be reached"),
        ProblemCode::RateLimited => (StatusCode::TOO_MANY_REQUESTS, "there are too many requests"),
        ProblemCode::Internal => {
            (StatusCode::INTERNAL_SERVER_ERROR, "something is wrong in the server")
        }
        ProblemCode::FileNotFound => (StatusCode::NOT_FOUND, "there is nothing at that path"),
        ProblemCode::PermissionDenied => {
            (StatusCode::FORBIDDEN, "the sandbox's user may not do that")
        }
        ProblemCode::IsDirectory => (StatusCode::BAD_REQUEST, "there is a folder"),
        ProblemCode::NotADirectory => (StatusCode::BAD_REQUEST, "there is no folder"),
        ProblemCode::InvalidPath => (StatusCode::BAD_REQUEST, "the path is none"),
        ProblemCode::AlreadyExists => (StatusCode::CONFLICT, "there is one already"),
        ProblemCode::NoSpace => (StatusCode::CONFLICT, "the disk of the sandbox is full"),
    }
}

impl IntoResponse for RequestError {
    fn into_response(self) -> Response {
        let (status, title) = kind(self.code);
        let problem = ProblemDetails {
            uri: "about:blank".to_owned(),
            title: title.to_owned(),
            status: status.as_u16(),
            code: self.code,
            detail: self.detail,
            hints: self.hints,
            retryable: self.retryable,
            request_id: None,
        };
        // `requests.rs` writes it down, with the id of the request.
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (status, [(header::CONTENT_TYPE, kind)]).into_response();
        response.extensions_mut().insert(problem);
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, CHALLENGE);
        }
        response
    }
}

impl From<EngineError> for RequestError {
    fn from(error: EngineError) -> Self {
        let code = match &error {
            EngineError::Journal { source, .. } => return Self::from(source.clone()),
            EngineError::Blob(source) => return Self::from(source.clone()),
            EngineError::NotFound(_) => ProblemCode::NotFound,
            EngineError::MessageTooLarge { .. } | EngineError::PicturesTooLarge { .. } => {
                ProblemCode::TooLarge
            }
            EngineError::Picture(_)
            | EngineError::SeesNoPictures(_)
            | EngineError::TooManyPictures { .. } => ProblemCode::InvalidRequest,
            EngineError::NotEntitled { .. } | EngineError::Forbidden(_) => ProblemCode::Denied,
            EngineError::TooManySessions(_) => ProblemCode::RateLimited,
            EngineError::Contended(_)
            | EngineError::Busy(_)
            | EngineError::Ended(_)
            | EngineError::Subagent { .. }
            | EngineError::SubagentsRun(_)
            | EngineError::Unanswerable { .. }
            | EngineError::NoCheckpoint { .. } => ProblemCode::Conflict,
            EngineError::Workspace(_) | EngineError::NoSuchSandbox(_) | EngineError::Sandbox(_) => {
                ProblemCode::SandboxUnavailable
            }
            EngineError::Rules(_) | EngineError::Driver(_) => ProblemCode::Internal,
        };
        let retryable = matches!(code, ProblemCode::RateLimited | ProblemCode::SandboxUnavailable);
        Self { retryable, ..Self::of(code, &error) }
    }
}

impl From<StoreError> for RequestError {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::NotFound { .. } => ProblemCode::NotFound,
            StoreError::Conflict { .. } | StoreError::Superseded { .. } => ProblemCode::Conflict,
            StoreError::TooLarge { .. } => ProblemCode::TooLarge,
            StoreError::Budget(_) => ProblemCode::BudgetExhausted,
            _ => ProblemCode::Internal,
        };
        Self { retryable: error.retry() == Retry::Later, ..Self::of(code, &error) }
    }
}

fn of_file(kind: FileErrorKind) -> ProblemCode {
    match kind {
        FileErrorKind::FileNotFound => ProblemCode::FileNotFound,
        FileErrorKind::PermissionDenied | FileErrorKind::ReadOnly => ProblemCode::PermissionDenied,
        FileErrorKind::IsDirectory => ProblemCode::IsDirectory,
        FileErrorKind::NotADirectory => ProblemCode::NotADirectory,
        FileErrorKind::InvalidPath => ProblemCode::InvalidPath,
        FileErrorKind::AlreadyExists => ProblemCode::AlreadyExists,
        FileErrorKind::TooLarge => ProblemCode::TooLarge,
        FileErrorKind::NoSpace => ProblemCode::NoSpace,
        FileErrorKind::Conflict | FileErrorKind::NotEmpty => ProblemCode::Conflict,
        FileErrorKind::InvalidArgument => ProblemCode::InvalidRequest,
        FileErrorKind::Io => ProblemCode::SandboxUnavailable,
    }
}

impl From<SandboxError> for RequestError {
    fn from(error: SandboxError) -> Self {
        let code = match &error {
            SandboxError::File(file) => of_file(file.kind),
            SandboxError::Invalid(_)
            | SandboxError::CannotStart { .. }
            | SandboxError::Unsupported { .. } => ProblemCode::InvalidRequest,
            SandboxError::Absent { .. } => ProblemCode::NotFound,
            SandboxError::Busy { .. }
            | SandboxError::Altered { .. }
            | SandboxError::Forgotten { .. } => ProblemCode::Conflict,
            SandboxError::Unavailable { .. }
            | SandboxError::Lost { .. }
            | SandboxError::Backend(_) => ProblemCode::SandboxUnavailable,
        };
        let retryable = matches!(error, SandboxError::Lost { .. } | SandboxError::Backend(_));
        let is_busy = matches!(error, SandboxError::Busy { .. });
        let told = Self { retryable, ..Self::of(code, &error) };
        if is_busy { told.hint("Wait for the command, or kill it.") } else { told }
    }
}
