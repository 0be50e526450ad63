//! Contents that are destroyed, or let go of: on purpose, and where a memory scope does not keep
//! them.

mod doomed;
mod prune;
mod redact;
mod related;
mod runs;

pub(crate) use prune::prune;
pub(crate) use redact::redact;
