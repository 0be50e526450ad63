//! Limits of the contract.

/// Sessions that a page of a list has at most.
pub const PAGE_SESSIONS_MAX: u32 = 200;
/// Sessions that a page of a list has where nobody says how many.
pub const PAGE_SESSIONS_DEFAULT: u32 = 50;
/// Seconds that a long poll waits at most for an event.
pub const WAIT_SECONDS_MAX: u32 = 30;
/// Bytes of a patch that an answer shows; the whole is a file of its own.
pub const PATCH_BYTES_MAX: usize = 2 << 20;
/// Events that are given at most of the end of a session.
pub const LAST_EVENTS_MAX: u32 = 200;
/// Bytes of a file of a workspace that are shown.
pub const FILE_BYTES_MAX: u64 = 512 << 10;
/// Names that are listed of a folder of a workspace.
pub const FOLDER_FILES_MAX: u32 = 2_000;
/// Files that a search finds where nobody says how many.
pub const HITS_DEFAULT: usize = 20;
/// Files that a search finds at most.
pub const HITS_MAX: usize = 100;
/// Seconds that an answer waits at most for the end of a command.
pub const EXEC_WAIT_SECONDS_MAX: u32 = 60;
/// Bytes that are kept at most of each stream of a command.
pub const EXEC_OUTPUT_BYTES_MAX: u64 = 4 << 20;
/// Characters of what a sandbox or a snapshot is for.
pub const SANDBOX_LABEL_CHARS_MAX: usize = 100;
/// After so long without use a sandbox is suspended where nobody says otherwise.
pub const SANDBOX_IDLE_SECONDS_DEFAULT: u64 = 900;
/// Flows that a page of what was reached has at most, but for those that were noted together.
pub const PAGE_FLOWS_MAX: u32 = 200;
/// Flows that it has where nobody says how many.
pub const PAGE_FLOWS_DEFAULT: u32 = 50;
/// What a limit of an account is at most: the largest whole number of JSON.
pub const ACCOUNT_LIMIT_MAX: u64 = (1 << 53) - 1;
