//! Every limit of the reader, with its unit in its name.

/// A command that is longer is opaque.
pub const COMMAND_BYTES_MAX: usize = 64 << 10;
/// Groups, substitutions and quotes inside each other.
pub const DEPTH_MAX: usize = 24;
/// Words of all commands together.
pub const WORDS_MAX: usize = 20_000;
/// `sh -c` inside `sh -c`.
pub const NESTED_SCRIPTS_MAX: usize = 4;
/// What one word may become by braces and by the values of variables.
pub const ALTERNATIVES_MAX: usize = 64;
/// All characters of these alternatives, for one command.
pub const EXPANDED_CHARS_MAX: usize = 1 << 20;
/// Variables inside the values of variables.
pub const VALUES_DEEP_MAX: usize = 4;
/// Directories that a command may be in.
pub const DIRECTORIES_MAX: usize = 8;
/// Here-documents of one line.
pub const DOCUMENTS_MAX: usize = 16;
