//! Every limit of the door, with its unit in its name.

/// Longest [`SandboxId`](crate::SandboxId), [`ExecId`](crate::ExecId) or [`Generation`](crate::Generation).
pub const ID_BYTES_MAX: usize = 128;

/// Default cap of each output stream of a command.
pub const OUTPUT_BYTES_DEFAULT: u64 = 1 << 20;
/// Largest cap that a caller may ask for, per stream.
pub const OUTPUT_BYTES_MAX: u64 = 64 << 20;
/// Largest file that keeps the full output of one command inside the sandbox.
pub const SPILL_BYTES_MAX: u64 = 64 << 20;

/// Default deadline of a command.
pub const DEADLINE_MS_DEFAULT: u64 = 120_000;
/// Longest deadline of a command: one day.
pub const DEADLINE_MS_MAX: u64 = 24 * 3_600_000;
/// From deadline, kill or cancel until the last process of the tree is gone.
pub const KILL_MS_MAX: u64 = 2_000;
/// From the exit of a command until its call ends although a child holds stdout open.
pub const DRAIN_MS_MAX: u64 = 200;

/// Argument vector and environment together. Linux refuses a single string above 128 KiB.
pub const ARGV_BYTES_MAX: usize = 2 << 20;
/// Standard input of one command.
pub const STDIN_BYTES_MAX: usize = 16 << 20;
/// One input for a command's terminal.
pub const INPUT_BYTES_MAX: usize = 64 << 10;
/// Finished commands and changing file operations that a guest remembers, oldest forgotten first.
pub const FINISHED_EXECS_MAX: usize = 4_096;
/// Kept output of all finished commands together; beyond it the oldest output is dropped first.
pub const KEPT_OUTPUT_BYTES_MAX: usize = 32 << 20;
/// What one life of a sandbox hands over to the next, all together. The guest writes
/// no more, and neither side reads more.
pub const HANDED_OVER_BYTES_MAX: u64 = 256 << 20;
/// One text of an error that a guest remembers as an outcome; the rest is cut off.
pub const OUTCOME_TEXT_BYTES_MAX: usize = PATH_BYTES_MAX;
/// Commands running at once in one sandbox.
pub const RUNNING_EXECS_MAX: usize = 128;

/// Longest path.
pub const PATH_BYTES_MAX: usize = 4_096;
/// Bytes that one read returns or one write carries; larger files go in pieces.
pub const FILE_CHUNK_BYTES_MAX: u64 = 4 << 20;
/// Largest file that `edit` rewrites.
pub const EDIT_FILE_BYTES_MAX: u64 = 16 << 20;
/// Entries that one `list`, `glob` or `manifest` returns.
pub const ENTRIES_MAX: u32 = 10_000;
/// Matches that one `grep` returns.
pub const MATCHES_MAX: u32 = 10_000;
/// Files that one `glob` or `grep` looks at before it stops and says so.
pub const WALK_ENTRIES_MAX: u64 = 1_000_000;
/// Time that one `glob`, `grep` or `manifest` takes before it stops and says so.
pub const WALK_MS_MAX: u64 = 20_000;
/// Largest file whose contents a `manifest` or a precondition takes the digest of.
pub const MANIFEST_FILE_BYTES_MAX: u64 = 1 << 30;
/// Longest line that `grep` and `read_lines` return; the rest is cut and marked.
pub const LINE_BYTES_MAX: usize = 16 << 10;

/// One frame of the wire between host and guest.
pub const FRAME_BYTES_MAX: usize = 72 << 20;

/// Largest file of a tree that is served into a sandbox.
pub const TREE_FILE_BYTES_MAX: usize = 1 << 20;
/// Names that one page of a folder of a served tree holds.
pub const TREE_PAGE_ENTRIES_MAX: usize = 1_000;
/// Longest name in a served tree, as on Linux.
pub const TREE_NAME_BYTES_MAX: usize = 255;
/// Operations on served trees that one sandbox has its host perform at once.
pub const TREE_OPS_MAX: usize = 32;
/// For how long a guest looks again and again whether programs ask more of a tree, and a host
/// whether the guest does: to be woken on a core that sleeps takes longer than most answers.
pub const SPIN_US_MAX: u64 = 300;
/// Away for so long, somebody else wanted the core, and is left it.
pub const SPIN_LOST_US: u64 = 25;
/// Of so many times at which that was of no use, it is tried once.
pub const SPINS_SKIPPED_MAX: u32 = 16;
/// What one of them may take; after it the program that asked is told of an I/O error.
pub const TREE_MS_MAX: u64 = 10_000;
/// Trees that are served into one sandbox.
pub const SERVED_MAX: usize = 8;

/// Ports beside [`crate::capture::PORTS`] at which connections of one sandbox are taken.
pub const CAPTURED_PORTS_MAX: usize = 16;
/// Connections of one sandbox that are carried at once; a further one waits to be accepted.
pub const RELAY_FLOWS_MAX: usize = 128;
/// What one side of a carried connection sends before the other side gives it more room.
pub const RELAY_WINDOW_BYTES: usize = 256 << 10;
/// What of it is sent in one frame.
pub const RELAY_PIECE_BYTES: usize = 64 << 10;

/// Longest pattern of a `glob` or `grep`.
pub const PATTERN_BYTES_MAX: usize = 4 << 10;
/// Memory of one compiled regular expression, and again of its cache.
pub const REGEX_BYTES_MAX: usize = 4 << 20;
/// Places of a repeated text that the error of an `edit` names.
pub const NAMED_LINES_MAX: usize = 10;
/// Symbolic links that one path may lead through, as on Linux.
pub const LINKS_MAX: u32 = 40;
/// Idle time and age that a sandbox can be given: ten years.
pub const LIFETIME_MS_MAX: u64 = 10 * 365 * 24 * 3_600_000;

/// What is held at once of bytes that are only summed up.
pub const PIECE_BYTES: usize = 16 << 10;

/// The period in which the CPU of a sandbox is measured out, in microseconds.
pub const CPU_PERIOD_US: u64 = 10_000;
/// The longest that Linux takes; a sandbox with little CPU has a longer one.
pub const CPU_PERIOD_US_MAX: u64 = 1_000_000;
/// The least CPU in a period that Linux takes, in microseconds.
pub const CPU_QUOTA_US_MIN: u64 = 1_000;
