//! Commands in sandboxes.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

use crate::object;

/// Runs a command: either `argv` or `shell`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunCommand {
    /// A program and its arguments, as they are.
    pub argv: Option<Vec<String>>,
    /// A line for the sandbox's shell: `bash -c` where there is a bash, else `sh -c`.
    pub shell: Option<String>,
    /// Its name in the sandbox: the same again attaches to what it named first, whatever else is
    /// asked, and never runs it twice. One is made up if absent.
    #[schema(pattern = "^[A-Za-z0-9_-][A-Za-z0-9._-]*$", max_length = 128)]
    pub id: Option<String>,
    /// Where it runs, absolute or beneath `/workspace`.
    pub cwd: Option<String>,
    /// Variables beside those that every command has.
    pub env: BTreeMap<String, String>,
    /// What it reads on standard input, which is closed then.
    pub stdin: String,
    /// From its start until it is killed with all its processes, 1 to 86,400,000; 120,000 if absent.
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub deadline_ms: Option<u64>,
    /// Bytes that are kept of each stream, at most 4,194,304; 1,048,576 if absent. What comes after
    /// them is counted and dropped.
    #[schema(maximum = 4_194_304)]
    pub output_bytes_max: Option<u64>,
    /// Both streams in `stdout`, in the order in which they came.
    pub merged: bool,
    /// A terminal of this size, which takes input while the command runs.
    #[serde(deserialize_with = "object::maybe")]
    pub terminal: Option<TerminalDimensions>,
    /// Seconds that the answer waits for its end, at most 60, which is what it waits if absent.
    #[schema(maximum = 60)]
    pub wait: Option<u32>,
}

/// The reason with which a terminal is closed whose shell ended, but for its exit code behind it.
pub const SHELL_ENDED: &str = "the shell ended with ";

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalDimensions {
    /// Lines.
    #[schema(minimum = 1)]
    pub rows: u16,
    /// Characters of a line.
    #[schema(minimum = 1)]
    pub cols: u16,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExecInfo {
    /// Its name in the sandbox.
    pub id: String,
    /// Whether it ended.
    pub state: ExecState,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<ExecEnd>,
    /// Its exit code, 128 and the signal where one ended it; none if we killed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What it wrote, once it ended. What is no UTF-8 is U+FFFD.
    pub stdout: String,
    /// What it wrote there, once it ended.
    pub stderr: String,
    /// Bytes after the first `output_bytes_max`, which are gone.
    pub stdout_dropped_bytes: u64,
    /// Bytes after the first `output_bytes_max`, which are gone.
    pub stderr_dropped_bytes: u64,
    /// From its start to its end.
    pub wall_ms: u64,
    /// Processor time of it and the children that it waited for.
    pub cpu_ms: u64,
    /// The most memory that it had.
    pub peak_memory_bytes: u64,
}

/// Whether a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecState {
    /// It runs.
    Running,
    /// It ended.
    Ended,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecEnd {
    /// By itself.
    Exited,
    /// A signal that was not ours ended it.
    Signalled,
    /// The sandbox had no more memory.
    OutOfMemory,
    /// It ran to its deadline.
    Deadline,
    /// Somebody asked for its end.
    Killed,
    /// The disk of the sandbox was full.
    DiskFull,
}

/// A piece of output, in a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputFrame {
    /// The text; what is no UTF-8 is U+FFFD.
    pub text: String,
}

/// Gives a command with a terminal something to read, or another size.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExecInput {
    /// What is typed.
    #[schema(max_length = 65_536)]
    pub text: String,
    /// The new size.
    #[serde(deserialize_with = "object::maybe")]
    pub size: Option<TerminalDimensions>,
}
