//! What an engine is told when the host does not do as it should.

use std::io;

use outrigger_sandbox::Error;

/// What was to be done, and why it was not.
pub(crate) fn backend(what: &str, error: &io::Error) -> Error {
    Error::Backend(format!("{what}: {error}"))
}
