//! Every limit that the checks hold the project to, with its unit in its name.

/// Production lines of a file from which on a warning is printed.
pub(crate) const FILE_LINES_SOFT_MAX: usize = 500;
/// Production lines of a file; more is an error.
pub(crate) const FILE_LINES_MAX: usize = 800;
/// Files above this many production lines make up the share that the summary watches.
pub(crate) const WATCHED_FILE_LINES_MAX: usize = 1_000;
/// Methods of a public trait.
pub(crate) const TRAIT_METHODS_MAX: usize = 8;
/// Files over which the methods of a type are spread.
pub(crate) const OBJECT_FILES_MAX: usize = 4;
/// Largest types that the summary shows.
pub(crate) const OBJECTS_SHOWN_MAX: usize = 10;
/// Characters of a commit's subject.
pub(crate) const SUBJECT_CHARS_MAX: usize = 72;
/// Lines of ARCHITECTURE.md: a map that is longer is no map.
pub(crate) const ARCHITECTURE_LINES_MAX: usize = 400;
/// Largest text file that is searched for machine paths and hosts.
pub(crate) const TEXT_BYTES_MAX: usize = 4 << 20;
/// Seeds within which the simulation has to miss a safeguard that was taken away.
pub(crate) const MUTANT_SEEDS_MAX: u32 = 1_000;
/// Seconds that the virtual machine of the attacks has from its start to its end.
pub(crate) const QEMU_SECONDS_MAX: u64 = 1_500;
/// From the start of a service of somebody else's until it answers.
pub(crate) const SERVICE_START_MS_MAX: u64 = 60_000;
/// From asking it to end until it is killed.
pub(crate) const SERVICE_END_MS_MAX: u64 = 30_000;
/// Between two looks at it.
pub(crate) const SERVICE_PAUSE_MS: u64 = 100;
/// Re-exports that are followed from a name to what it names.
pub(crate) const REEXPORTS_MAX: usize = 8;
/// How often the tests of each of others' projects are run, on the host and in a sandbox in turn.
pub(crate) const PROJECT_ROUNDS: u32 = 3;
/// Time in sandboxes over time on the host, of all projects together.
pub(crate) const PROJECTS_RATIO_PERCENT_MAX: u32 = 115;
/// One command of what is done once in a project, such as installing what it depends on.
pub(crate) const PROJECT_ONCE_SECONDS_MAX: u64 = 1_800;
/// One run of a project's tests. It is also the most that a model may ask for.
pub(crate) const PROJECT_COMMAND_SECONDS_MAX: u64 = 600;
/// One run of the program with it: packing what a project depends on comes to it.
pub(crate) const PROJECT_RUN_SECONDS_MAX: u64 = 900;
/// What is shown of the output of tests that fail.
pub(crate) const PROJECT_TAIL_LINES: u32 = 60;
/// Seconds that the whole suite in a browser has.
pub(crate) const BROWSER_SECONDS_MAX: u64 = 900;
/// Seconds that all seeds of what is made up from the contract have together.
pub(crate) const SCHEMATHESIS_SECONDS_MAX: u64 = 5_400;
/// How many seeds of it can be asked for.
pub(crate) const SCHEMATHESIS_SEEDS_MAX: i64 = 1_000;
