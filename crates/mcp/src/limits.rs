//! Every limit of the client, with its unit in its name.

/// From the start of a connection until it is given up.
pub const CONNECT_MS_MAX: u64 = 15_000;
/// From the request for the tools to their last page.
pub const LIST_MS_MAX: u64 = 15_000;
/// How long what a server said of its tools is taken as what it says.
pub const LIST_FRESH_MS: u64 = 60_000;
/// Pages of a list of tools.
pub const PAGES_MAX: usize = 32;
/// All that a server says of its tools.
pub const LIST_BYTES_MAX: usize = 4 << 20;
/// One event of a stream. Answers that are no stream have the protocol library's own
/// limit, which is 16 MiB.
pub const EVENT_BYTES_MAX: usize = 4 << 20;
/// Calls of one server under way at once.
pub const CALLS_MAX: usize = 16;
/// Requests of a server that wait for their answer to be sent. Whoever asks for more is
/// hung up on.
pub const OWED_MAX: usize = 64;
/// Attempts at getting on with an answer whose stream broke.
pub const STREAM_RETRIES_MAX: usize = 2;
/// Between these.
pub const STREAM_RETRY_MS: u64 = 500;
/// From the wish to end a connection until it is dropped.
pub const CLOSE_MS_MAX: u64 = 1_000;
/// Of the question how a program ended, whose connection did.
pub const WHY_MS_MAX: u64 = 5_000;
/// All that a program writes to its standard output while it is asked once.
pub const PROGRAM_BYTES_MAX: u64 = 16 << 20;
/// Sessions whose programs of one server live at once. In each session there is one of each
/// server, in a sandbox of its own, whose limits of memory and processes hold for it.
pub const PROGRAMS_MAX: usize = 16;
/// Each of the short commands that begin a program, look after it and end it.
pub const SCRIPT_MS_MAX: u64 = 10_000;
/// What a person is shown of the last line that it writes to its standard error.
pub const COMPLAINT_CHARS_MAX: usize = 200;
/// What is kept of what it writes to its standard error.
pub const COMPLAINT_BYTES_MAX: u64 = 64 << 10;
/// What is under way to or from a program at once.
pub const PIPE_BYTES: usize = 64 << 10;
