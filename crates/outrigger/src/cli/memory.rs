//! `outrigger memory`, as it is typed.

use clap::{Args, Subcommand, ValueEnum, value_parser};
use std::num::NonZeroU32;
use std::path::PathBuf;

use super::Output;

/// A file or folder, as sessions see it.
#[derive(Debug, Clone, Args)]
pub(crate) struct At {
    /// As sessions see it: `/memory/user/…`, `/memory/group/NAME/…`, `/memory/organisation/…`,
    /// and the same below `/skills`. A path without a slash before it is one of
    /// `/memory/user`.
    pub(crate) path: String,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Memory {
    /// List a folder.
    Ls {
        /// As sessions see it; without one, all that is yours to see.
        path: Option<String>,
        /// Also what is in the folders below it.
        #[arg(long, short)]
        recursive: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Print a file.
    Cat {
        #[command(flatten)]
        at: At,
        /// An older version of it.
        #[arg(long, value_name = "N")]
        revision: Option<u64>,
        #[command(flatten)]
        output: Output,
    },
    /// Open a file in `$VISUAL` or `$EDITOR` and write back what comes of it. If somebody
    /// else changed it meanwhile, both are kept and you are asked to bring them together.
    Edit {
        #[command(flatten)]
        at: At,
        /// Why, for whoever reads its history.
        #[arg(long, short = 'm', value_name = "TEXT")]
        message: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Write a file from another one, or from standard input. What is there is replaced
    /// only at the revision that you name.
    Put {
        #[command(flatten)]
        at: At,
        /// Where the content comes from; `-` or nothing: standard input.
        from: Option<PathBuf>,
        /// The revision that you looked at; without one, the file must be new.
        #[arg(long, value_name = "N")]
        replaces: Option<u64>,
        /// Have it listed as stale from this time on, in days from now.
        #[arg(long, value_name = "DAYS", value_parser = value_parser!(u64).range(1..=36_500))]
        review_in: Option<u64>,
        /// Why, for whoever reads its history.
        #[arg(long, short = 'm', value_name = "TEXT")]
        message: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Remove a file, or an empty folder. Its history stays, and `revert` brings it back.
    Rm {
        #[command(flatten)]
        at: At,
        #[command(flatten)]
        output: Output,
    },
    /// Show the versions of a file: who wrote each, when, in which session, and why.
    History {
        #[command(flatten)]
        at: At,
        #[command(flatten)]
        output: Output,
    },
    /// Show what changed from one version to another.
    Diff {
        #[command(flatten)]
        at: At,
        /// The older version; without one, the one before the newer.
        #[arg(long, value_name = "N")]
        from: Option<u64>,
        /// The newer version; without one, the newest.
        #[arg(long, value_name = "N")]
        to: Option<u64>,
        #[command(flatten)]
        output: Output,
    },
    /// Show for each line of a file who wrote it, and when.
    Blame {
        #[command(flatten)]
        at: At,
        #[command(flatten)]
        output: Output,
    },
    /// Make an older version the newest again.
    Revert {
        #[command(flatten)]
        at: At,
        /// The version that comes back.
        #[arg(long, value_name = "N")]
        to: u64,
        #[command(flatten)]
        output: Output,
    },
    /// Destroy the content of versions for good, wherever it was copied to. That it was
    /// there, and who destroyed it, stays.
    Redact {
        #[command(flatten)]
        at: At,
        /// Only this version; without one, all.
        #[arg(long, value_name = "N")]
        revision: Option<u64>,
        /// What becomes of versions that are no copies and still have a part of it, because
        /// they were edited: without, you are asked.
        #[arg(long, value_enum, value_name = "WHAT")]
        derived: Option<Derived>,
        /// What whoever asks for it is told.
        #[arg(long, short = 'm', value_name = "TEXT")]
        why: String,
        #[command(flatten)]
        output: Output,
    },
    /// Let go of the contents of old versions of a file, or of everything in a folder. That
    /// they were there, and who wrote them, stays.
    Prune {
        #[command(flatten)]
        at: At,
        /// How many versions of each file keep their content; the newest always does.
        #[arg(long, value_name = "N")]
        keep: NonZeroU32,
        #[command(flatten)]
        output: Output,
    },
    /// Find files by words, best first.
    Search {
        /// Words that must all be there; `"…"` one after the other, `word*` a beginning.
        #[arg(required = true)]
        words: Vec<String>,
        /// How many files.
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
        #[command(flatten)]
        output: Output,
    },
    /// List files that should have been looked at again by now.
    Stale {
        #[command(flatten)]
        output: Output,
    },
    /// Show what holds for each of the shelves that are yours to see, or say it for one.
    Shelf(Shelf),
    /// What waits to be accepted for shelves that need reviews, and what became of it.
    #[command(subcommand)]
    Proposals(Proposals),
}

/// What becomes of versions that still have a part of what is redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Derived {
    /// They stay.
    Leave,
    /// They are redacted as well.
    Destroy,
}

/// What holds for a shelf; what is not said stays as it is.
#[derive(Debug, Args)]
pub(crate) struct Shelf {
    /// Its folder, for example `/memory/organisation`; without one, all are shown.
    pub(crate) path: Option<String>,
    /// Whether changes are made by accepted proposals only.
    #[arg(long, value_name = "BOOL", requires = "path")]
    pub(crate) review: Option<bool>,
    /// The group whose members review; `-`: everybody who sees the shelf.
    #[arg(long, value_name = "GROUP", requires = "path")]
    pub(crate) reviewers: Option<String>,
    /// Whether reviewers may accept what they wrote themselves.
    #[arg(long, value_name = "BOOL", requires = "path")]
    pub(crate) own: Option<bool>,
    /// Of how many versions of a file the contents are kept; 0: of all.
    #[arg(long, value_name = "N", requires = "path")]
    pub(crate) keep_versions: Option<u32>,
    /// For how many days contents are kept that are not the newest; 0: for ever.
    #[arg(long, value_name = "DAYS", requires = "path", value_parser = value_parser!(u64).range(..=36_500))]
    pub(crate) keep_days: Option<u64>,
    /// Let go now of contents that are not to be kept.
    #[arg(long, requires = "path")]
    pub(crate) prune: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The verbs of proposals.
#[derive(Debug, Subcommand)]
pub(crate) enum Proposals {
    /// List them.
    Ls {
        /// Also those that were decided.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Show one, with what it would change and what was said of it.
    Show {
        /// Its number.
        number: u64,
        #[command(flatten)]
        output: Output,
    },
    /// Let it become what stands there.
    Accept {
        /// Its number.
        number: u64,
        #[command(flatten)]
        output: Output,
    },
    /// Refuse it.
    Reject {
        /// Its number.
        number: u64,
        /// Why, for its author.
        #[arg(long, short = 'm', value_name = "TEXT", default_value = "")]
        reason: String,
        #[command(flatten)]
        output: Output,
    },
    /// Take back what you proposed.
    Withdraw {
        /// Its number.
        number: u64,
        #[command(flatten)]
        output: Output,
    },
    /// Say something of it.
    Comment {
        /// Its number.
        number: u64,
        /// What.
        text: String,
        #[command(flatten)]
        output: Output,
    },
}

impl Memory {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Ls { output, .. }
            | Self::Cat { output, .. }
            | Self::Edit { output, .. }
            | Self::Put { output, .. }
            | Self::Rm { output, .. }
            | Self::History { output, .. }
            | Self::Diff { output, .. }
            | Self::Blame { output, .. }
            | Self::Revert { output, .. }
            | Self::Redact { output, .. }
            | Self::Prune { output, .. }
            | Self::Search { output, .. }
            | Self::Stale { output, .. } => *output,
            Self::Shelf(shelf) => shelf.output,
            Self::Proposals(asked) => asked.output(),
        }
    }
}

impl Proposals {
    fn output(&self) -> Output {
        match self {
            Self::Ls { output, .. }
            | Self::Show { output, .. }
            | Self::Accept { output, .. }
            | Self::Reject { output, .. }
            | Self::Withdraw { output, .. }
            | Self::Comment { output, .. } => *output,
        }
    }
}
