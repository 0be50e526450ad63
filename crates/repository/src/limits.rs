//! Every limit of the crate, with its unit in its name.

/// Git's index: a million paths have about half as much.
pub const INDEX_BYTES_MAX: u64 = 256 << 20;
/// One file of ignore rules.
pub const IGNORE_BYTES_MAX: u64 = 1 << 20;
/// A file of git's own that names a folder.
pub const GIT_FILE_BYTES_MAX: u64 = 8 << 10;
/// Looking for the smallest diff of one file; a larger one is taken after that.
pub const DIFF_MS_MAX: u64 = 2_000;
/// Hazards that one error names.
pub const TOLD_MAX: usize = 3;
