//! A sandbox at the edge: what goes wrong with it in words for a person.

use outrigger_engine::EgressError;
use outrigger_sandbox::{Error, FileError, FileErrorKind, SandboxId};

use crate::exit::{Failure, Kind};

/// What an error of a sandbox means for the one who typed.
pub(crate) fn failed(error: &Error) -> Failure {
    let kind = match error {
        Error::Invalid(_) | Error::CannotStart { .. } | Error::Unsupported { .. } => Kind::Usage,
        Error::Absent { .. } => Kind::NotFound,
        Error::File(file) => return file_failed(file),
        Error::Busy { .. } | Error::Altered { .. } | Error::Forgotten { .. } => Kind::Conflict,
        Error::Unavailable { .. } => return no_sandbox(error),
        Error::Lost { .. } | Error::Backend(_) => Kind::SandboxUnavailable,
    };
    let failure = Failure::from_error(kind, error);
    match error {
        Error::Busy { .. } => failure.hint("Wait for the command, or end it."),
        Error::Altered { .. } => failure.hint(
            "Nothing was started over it. `outrigger sandbox rm` deletes it; `create --from` makes one of a snapshot.",
        ),
        _ => failure,
    }
}

/// The error of a machine that makes no sandboxes.
pub(crate) fn no_sandbox(error: &Error) -> Failure {
    Failure::from_error(Kind::SandboxUnavailable, error)
        .hint("`outrigger doctor` says what this machine offers and what is missing.")
}

/// The error of a sandbox whose way out can't be opened.
pub(crate) fn no_network(id: &SandboxId, error: &EgressError) -> Failure {
    let text = format!("the network of `{id}` can't be opened: {error}");
    Failure::new(Kind::SandboxUnavailable, text)
}

/// What a file error means for the one who typed.
fn file_failed(error: &FileError) -> Failure {
    let kind = match error.kind {
        FileErrorKind::FileNotFound => Kind::NotFound,
        FileErrorKind::Conflict | FileErrorKind::AlreadyExists => Kind::Conflict,
        FileErrorKind::NoSpace | FileErrorKind::Io => Kind::Storage,
        FileErrorKind::PermissionDenied => Kind::Denied,
        _ => Kind::Usage,
    };
    Failure::from_error(kind, error)
}
