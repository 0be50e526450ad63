//! Every limit of what a model may ask for and sees, with its unit in its name.

/// Deadline of a command whose call names none.
pub const TIMEOUT_MS_DEFAULT: u64 = 120_000;
/// Longest deadline that a model may ask for.
pub const TIMEOUT_MS_MAX: u64 = 600_000;

/// What a model sees of a command's output, the cut's own words apart.
pub const EXECUTE_BYTES_MAX: usize = 30_000;
/// Output beyond this is kept whole in the sandbox. A byte that is no UTF-8 is
/// shown in three, so below a third of [`EXECUTE_BYTES_MAX`] nothing is ever cut.
pub const SPILL_AFTER_BYTES: u64 = EXECUTE_BYTES_MAX as u64 / 3;

/// Lines that `read_file` gives when its call names no limit, and at most.
pub const READ_LINES_MAX: u64 = 2_000;
/// What `read_file` gives, line numbers included, its notes apart.
pub const READ_BYTES_MAX: usize = 50_000;
/// What `read_file` fetches of a file before long lines are cut.
pub const FETCH_BYTES_MAX: u64 = 1 << 20;
/// Longest line that `read_file` and `grep` show; the rest is cut and marked.
pub const LINE_CHARS_MAX: usize = 2_000;

/// Entries that `ls` shows, and paths that `glob` shows.
pub const PATHS_MAX: u32 = 1_000;
/// Matches that `grep` shows.
pub const MATCHES_MAX: u32 = 1_000;
/// What `ls`, `glob` and `grep` give, their notes apart.
pub const LISTING_BYTES_MAX: usize = 30_000;

/// What a model sees of a subagent's answer.
pub const ANSWER_BYTES_MAX: usize = 60_000;

/// Tools that one server outside may have.
pub const OUTSIDE_TOOLS_MAX: usize = 128;
/// Characters of a tool's name as models call it, as providers have it.
pub const TOOL_NAME_CHARS_MAX: usize = 64;
/// Characters of the name of a tool outside that are shown.
pub const OUTSIDE_NAME_CHARS_MAX: usize = 128;
/// Characters of a description of a tool outside, or of a part of it, that a model is told.
pub const DESCRIPTION_CHARS_MAX: usize = 4_096;
/// All that a tool outside says of itself.
pub const SCHEMA_BYTES_MAX: usize = 64 << 10;
/// What a model sees of an answer from outside, where nothing else was said.
pub const OUTSIDE_BYTES_DEFAULT: usize = 30_000;

/// Served files of which a session's knowledge is kept; beyond it has to read again.
pub const SEEN_REVISIONS_MAX: usize = 10_000;
/// How often an edit is made again because the file moved in between.
pub const EDIT_ATTEMPTS_MAX: u32 = 16;
/// What a conflict shows of the file as it is.
pub const CONFLICT_BYTES_MAX: usize = 8 << 10;
/// Served names that one `glob` or `grep` looks at.
pub const SEARCH_ENTRIES_MAX: usize = 200_000;
/// Served bytes that one `grep` looks at.
pub const SEARCH_BYTES_MAX: usize = 256 << 20;
