//! Whom to answer.

/// Whom to answer: a connection and a number on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) connection: u64,
    pub(crate) request: u64,
}
