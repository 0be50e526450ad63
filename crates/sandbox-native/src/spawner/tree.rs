//! Trees of files that others wrote, and may have written to harm who looks.

pub(crate) mod copy;
pub(crate) mod fingerprint;
pub(crate) mod remove;
pub(crate) mod walk;
