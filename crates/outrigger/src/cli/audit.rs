//! `outrigger audit`, as it is typed.

use clap::{Args, Subcommand};
use std::path::PathBuf;

use super::Output;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Check everything that is stored against its hashes and the signed log. Offline,
    /// and changes nothing. Exits with 16 if something is not as it was written.
    Verify(Verify),
    /// Cover everything with a signed checkpoint, and print it: whoever keeps it can
    /// show later that nothing before it was changed.
    Checkpoint {
        /// Write it there instead. A checkpoint that is there already must be one that the
        /// log continues; else it stays, and this exits with 16.
        #[arg(long = "to", visible_alias = "out", value_name = "FILE")]
        out: Option<PathBuf>,
        /// Print the verifying key instead of the checkpoint, or after `--to`.
        #[arg(long)]
        key: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Prove that an event is in the log: a file that is checked with nothing else at
    /// hand. It carries this event whole, and no other one.
    Prove {
        /// The session, or the beginning of its name.
        session: String,
        /// The event; the last one that a checkpoint covers, if none is named.
        #[arg(value_parser = clap::value_parser!(u64).range(1..))]
        seq: Option<u64>,
        /// Write it there instead of on standard output.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Leave the event's text out; its digest stays.
        #[arg(long)]
        without_text: bool,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Only this session, or the one whose name begins so; and the log.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// A checkpoint that somebody kept: the log must continue it. Can be given again.
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Vec<PathBuf>,
    /// Check this proof instead. No database is read.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["session", "against"])]
    pub(crate) proof: Option<PathBuf>,
    /// The verifying key that must have signed, or a file with it, instead of the one
    /// beside the database or in the proof.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl Audit {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Verify(verify) => verify.output,
            Self::Checkpoint { output, .. } | Self::Prove { output, .. } => *output,
        }
    }
}
