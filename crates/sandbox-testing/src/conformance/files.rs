//! File operations: what they do, what they refuse, and what they find.

pub(super) mod errors;
pub(super) mod read;
pub(super) mod search;
pub(super) mod transfer;
pub(super) mod write;
