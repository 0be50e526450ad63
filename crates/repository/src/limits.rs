//! Every limit of the crate, with its unit in its name.

/// Git's index: a million paths have about half as much.
pub const INDEX_BYTES_MAX: u64 = 256 << 20;
/// One file of ignore rules.
pub const IGNORE_BYTES_MAX: u64 = 1 << 20;
/// A file of git's own that names a folder.
pub const GIT_FILE_BYTES_MAX: u64 = 8 << 10;
/// Looking for the smallest diff of one file; a larger one is taken after that.
pub const DIFF_MS_MAX: u64 = 2_000;
/// All references of a repository in one file, or where a shallow clone was cut.
pub const REFS_BYTES_MAX: u64 = 64 << 20;
/// References of a repository that a sandbox gets.
pub const REFS_MAX: usize = 200_000;
/// Files, links and directories of one folder of dependencies.
pub const DEPENDENCY_FILES_MAX: u64 = 1_000_000;
/// Bytes of an archive that are written at once.
pub const WRITE_BYTES: usize = 1 << 20;
/// A file of a project that says which version of a tool it wants.
pub const VERSION_FILE_BYTES_MAX: u64 = 64 << 10;
/// Hazards that one error names.
pub const TOLD_MAX: usize = 3;
