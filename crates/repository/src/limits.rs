//! Every limit of the crate, with its unit in its name.

/// Git's index: a million paths have about half as much.
pub const INDEX_BYTES_MAX: u64 = 256 << 20;
/// One file of ignore rules.
pub const IGNORE_BYTES_MAX: u64 = 1 << 20;
/// A file of git's own that names a folder.
pub const GIT_FILE_BYTES_MAX: u64 = 8 << 10;
/// All references of a repository in one file, or where a shallow clone was cut.
pub const REFS_BYTES_MAX: u64 = 64 << 20;
/// References of a repository that a sandbox gets.
pub const REFS_MAX: usize = 200_000;
/// Files, links and directories of one folder of dependencies.
pub const DEPENDENCY_FILES_MAX: u64 = 1_000_000;
/// Folders of what Python compiled that come along; where there are more, none does.
pub const CACHES_MAX: usize = 2_000;
/// Bytes of an archive that are written at once.
pub const WRITE_BYTES: usize = 1 << 20;
/// A file of a project that says which version of a tool it wants.
pub const VERSION_FILE_BYTES_MAX: u64 = 64 << 10;
/// A file that says which versions a project depends on.
pub const LOCK_FILE_BYTES_MAX: u64 = 64 << 20;
/// Files of Go's build cache that come along.
pub const GO_CACHE_FILES_MAX: usize = 200_000;
/// The path of a directory in its repository, from which commands begin.
pub const PREFIX_BYTES_MAX: usize = 1_024;
/// Pairs of a file that is gone and one that is new that are compared for a rename; among more,
/// only contents that are the same make one.
pub const RENAME_PAIRS_MAX: usize = 10_000;
/// How much of a file has to be in another one for that to be the file under another name;
/// git's own default.
pub const SIMILARITY_PERCENT_MIN: u64 = 50;
/// A file that is compared for a rename.
pub const RENAME_BYTES_MAX: usize = 1 << 20;
/// Hazards that one error names.
pub const TOLD_MAX: usize = 3;
/// Commits of a sandbox that are taken at once.
pub const COMMITS_MAX: usize = 1_000;
/// All objects that a sandbox gives for them.
pub const COMMITS_BYTES_MAX: u64 = 128 << 20;
/// Names in folders that are looked at for them.
pub const TREE_ENTRIES_MAX: u64 = 1_000_000;
/// Files and links that they change, each time that one does.
pub const COMMIT_CHANGES_MAX: usize = 100_000;
/// Packs of a repository in which objects are looked up, each of which is kept open meanwhile.
pub const PACKS_MAX: usize = 256;
/// Names that are tried for a session's branch.
pub const BRANCH_NAMES_MAX: u32 = 100;
/// Remotes of a repository that a sandbox is told of.
pub const REMOTES_MAX: usize = 16;
/// A path in an archive that comes from elsewhere.
pub const PATH_BYTES_MAX: usize = 4_095;
/// All contents of changes that are written back on another machine, before and after.
pub const CHANGES_BYTES_MAX: u64 = 256 << 20;
/// Files that they change.
pub const CHANGES_MAX: usize = 100_000;
/// All objects of a history that goes to another machine.
pub const HISTORY_BYTES_MAX: u64 = 64 << 20;
/// The files in which they are.
pub const HISTORY_FILES_MAX: usize = 10_000;
