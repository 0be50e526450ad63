//! What a command is and what became of it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::{ExecId, limits};

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// A program and its arguments, passed as they are. The program is looked up
    /// in the PATH of the command's environment.
    Argv(Vec<Vec<u8>>),
    /// A line for the sandbox's shell: `bash -c` where there is a bash, else `sh -c`.
    Shell(String),
}

/// How the two output streams are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Streams {
    /// Apart, each with its own cap.
    #[default]
    Separate,
    /// Both in `stdout`, in order of arrival; `stderr` stays empty.
    Merged,
}

/// A request to run a command. See [`crate::Sandbox::execute`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execute {
    /// Chosen by the caller; repeating it re-attaches.
    pub id: ExecId,
    /// What to run.
    pub command: Command,
    /// Working directory, absolute or relative to the workspace. Default: the workspace.
    pub cwd: Option<String>,
    /// Variables beside the sandbox's own constructed few (PATH, HOME, USER,
    /// LANG, TMPDIR, WORKSPACE).
    pub env: BTreeMap<String, String>,
    /// Given on standard input, which is then closed. At most [`limits::STDIN_BYTES_MAX`].
    #[serde(with = "serde_bytes")]
    pub stdin: Vec<u8>,
    /// From the start to the kill of the whole process tree, in milliseconds, 1 to [`limits::DEADLINE_MS_MAX`].
    pub deadline_ms: u64,
    /// Cap of stdout, or of the merged stream, at most [`limits::OUTPUT_BYTES_MAX`].
    /// What comes after it is read, counted and dropped.
    pub stdout_bytes_max: u64,
    /// Cap of stderr.
    pub stderr_bytes_max: u64,
    /// Whether the streams are kept apart.
    pub streams: Streams,
    /// If the output grows beyond this many bytes, the whole of it (to
    /// [`limits::SPILL_BYTES_MAX`]) is kept in a file inside the sandbox that
    /// commands and file operations can read; [`ExecOutcome::spill`] names it.
    pub spill_after_bytes: Option<u64>,
    /// A terminal for the command's standard streams. All output is then merged, in
    /// the terminal's own form, and standard input stays open: after `stdin` come
    /// the bytes of [`crate::Sandbox::input`].
    pub terminal: Option<TerminalSize>,
}

/// Size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters of a line.
    pub columns: u16,
}

/// What is given to a running command with a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// Bytes as if typed, at most [`limits::INPUT_BYTES_MAX`]. Answered when the
    /// terminal took them, so that a command that does not read slows its typist.
    Bytes(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The window changed.
    Size(TerminalSize),
}

impl Execute {
    /// A request with every default, to be adjusted by the caller.
    #[must_use]
    pub fn new(id: ExecId, command: Command) -> Self {
        Self {
            id,
            command,
            cwd: None,
            env: BTreeMap::new(),
            stdin: Vec::new(),
            deadline_ms: limits::DEADLINE_MS_DEFAULT,
            stdout_bytes_max: limits::OUTPUT_BYTES_DEFAULT,
            stderr_bytes_max: limits::OUTPUT_BYTES_DEFAULT,
            streams: Streams::Separate,
            spill_after_bytes: None,
            terminal: None,
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// It exited with this code.
    Exited(i32),
    /// A signal that we did not send ended it.
    Signalled(i32),
    /// The kernel killed it for memory.
    OutOfMemory,
    /// Its deadline passed and its tree was killed.
    Deadline,
    /// [`crate::Sandbox::kill`] was called for it.
    Killed,
    /// The limit of the sandbox's disk was passed and its tree was killed.
    DiskFull,
}

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecOutcome {
    /// The first bytes of stdout (or of both, merged), up to the cap.
    #[serde(with = "serde_bytes")]
    pub stdout: Vec<u8>,
    /// The first bytes of stderr, up to the cap.
    #[serde(with = "serde_bytes")]
    pub stderr: Vec<u8>,
    /// Bytes of stdout after the cap, read and dropped. Exact.
    pub stdout_dropped_bytes: u64,
    /// Bytes of stderr after the cap, read and dropped. Exact.
    pub stderr_dropped_bytes: u64,
    /// How it ended.
    pub end: End,
    /// A path inside the sandbox that has the whole output, if it was asked for and needed.
    pub spill: Option<String>,
    /// From start to end.
    pub wall_ms: u64,
    /// User and system time of the process and its waited-for children.
    pub cpu_ms: u64,
    /// Largest resident set of one process of the tree, or of its cgroup where there is one.
    pub peak_memory_bytes: u64,
}

impl ExecOutcome {
    /// The outcome of a command that was killed before it came.
    #[must_use]
    pub fn never_ran() -> Self {
        Self {
            stdout: Vec::new(),
            stderr: Vec::new(),
            stdout_dropped_bytes: 0,
            stderr_dropped_bytes: 0,
            end: End::Killed,
            spill: None,
            wall_ms: 0,
            cpu_ms: 0,
            peak_memory_bytes: 0,
        }
    }

    /// The exit code as a shell would give it, where there is one: 128 + n for a signal.
    /// Nothing for a deadline or a kill, whose code would be invented.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        match self.end {
            End::Exited(code) => Some(code),
            End::Signalled(signal) => Some(128 + signal),
            End::OutOfMemory => Some(137),
            End::Deadline | End::Killed | End::DiskFull => None,
        }
    }
}

/// A piece of output while the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output<'a> {
    /// From stdout, or from either when merged.
    Stdout(&'a [u8]),
    /// From stderr.
    Stderr(&'a [u8]),
}
