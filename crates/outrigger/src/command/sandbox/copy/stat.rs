//! What is at a path in a sandbox.

use outrigger_sandbox::{Error, FileErrorKind, FileOp, FileReply, ListEntry, Sandbox};

use crate::exit::{Failure, Kind, Outcome};
use crate::sandbox::failed;

/// What is at a path in the sandbox, if anything is.
pub(super) async fn stat(sandbox: &dyn Sandbox, path: &str) -> Outcome<Option<ListEntry>> {
    match sandbox.files(FileOp::Stat { path: path.to_owned() }).await {
        Ok(FileReply::Entry(entry)) => Ok(Some(entry)),
        Err(Error::File(error)) if error.kind == FileErrorKind::FileNotFound => Ok(None),
        Err(error) => Err(failed(&error)),
        Ok(_) => Err(astray()),
    }
}

pub(super) fn astray() -> Failure {
    Failure::new(Kind::SandboxUnavailable, "the sandbox's answer is not one to what was asked")
}
