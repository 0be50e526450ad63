//! Every limit of the crate, with its unit in its name.

/// Names that are tried for a file that is not whole yet, should others stand there already.
pub const DRAFT_NAMES_MAX: u64 = 1_000;
