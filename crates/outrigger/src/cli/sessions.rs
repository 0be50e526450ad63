//! `outrigger sessions`, as it is typed.

use clap::Subcommand;
use std::path::PathBuf;

use super::{Apply, Limits, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List sessions, newest first.
    Ls {
        /// At most so many.
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        limit: usize,
        /// Also the subagents that sessions started.
        #[arg(long, short = 'a')]
        all: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Show a session: its steps, its answer, what it spent.
    Show {
        /// The session, or the beginning of its name.
        session: String,
        #[command(flatten)]
        output: Output,
    },
    /// Print a session's events.
    Logs {
        /// The session, or the beginning of its name.
        session: String,
        /// Go on as they happen, until the session waits or ends.
        #[arg(long, short)]
        follow: bool,
        /// Only events after this one.
        #[arg(long, default_value_t = 0, value_name = "SEQ")]
        since: u64,
        #[command(flatten)]
        output: Output,
    },
    /// Say something in a session that waits, and let it go on with that.
    Say {
        /// The session, or the beginning of its name.
        session: String,
        /// What to say.
        text: String,
        #[command(flatten)]
        apply: Apply,
        #[command(flatten)]
        output: Output,
    },
    /// Go on with a session that was killed, stopped or reached a limit.
    Resume {
        /// The session, or the beginning of its name.
        session: String,
        #[command(flatten)]
        apply: Apply,
        #[command(flatten)]
        limits: Limits,
        #[command(flatten)]
        output: Output,
    },
    /// List the moments of a session that it can be forked at or taken back to.
    Moments {
        /// The session, or the beginning of its name.
        session: String,
        #[command(flatten)]
        output: Output,
    },
    /// Begin another session where this one stood: its conversation, its files, what it
    /// spent and what waits for a person.
    Fork {
        /// The session, or the beginning of its name.
        session: String,
        /// The moment, as `moments` names it; without, the last one.
        #[arg(long, value_name = "SEQ")]
        at: Option<u64>,
        #[command(flatten)]
        output: Output,
    },
    /// Take a session back to where it stood before; what it spent stays spent. Files
    /// that were written back to the directory stay as they are.
    Rewind {
        /// The session, or the beginning of its name.
        session: String,
        /// The moment, as `moments` names it; without, the one before.
        #[arg(long, value_name = "SEQ")]
        to: Option<u64>,
        #[command(flatten)]
        output: Output,
    },
    /// Write a session and its subagents into one file: events with their chain, and the
    /// contents that they name. The disks of its sandboxes are not in it.
    Export {
        /// The session, or the beginning of its name.
        session: String,
        /// Where it is written; a file that is there is left as it is.
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Take in sessions from a file, if all of it verifies and none of them is here. Whoever
    /// made the file can have made them up: the chain says only that they are whole.
    Import {
        /// What `outrigger sessions export` wrote.
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Remove sessions that are over, with their subagents, patches and what is kept of
    /// their disks. The audit log says that they were removed; what they wrote to memory
    /// and what they spent stays.
    Rm {
        /// The sessions, or the beginnings of their names.
        #[arg(required = true, value_name = "ID")]
        sessions: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
    /// End a session for good: running commands are killed, its sandbox is deleted.
    Cancel {
        /// The session, or the beginning of its name.
        session: String,
        #[command(flatten)]
        output: Output,
    },
}

impl Sessions {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Ls { output, .. }
            | Self::Show { output, .. }
            | Self::Logs { output, .. }
            | Self::Say { output, .. }
            | Self::Resume { output, .. }
            | Self::Moments { output, .. }
            | Self::Fork { output, .. }
            | Self::Rewind { output, .. }
            | Self::Export { output, .. }
            | Self::Import { output, .. }
            | Self::Rm { output, .. }
            | Self::Cancel { output, .. } => *output,
        }
    }
}
