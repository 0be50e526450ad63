//! `outrigger memory`: what sessions and people wrote down, with its history.

mod change;
mod context;
pub(crate) mod edit;
mod list;
mod past;
pub(crate) mod print;
mod proposals;
mod redact;
mod scope;

use clap::{Args, Subcommand, value_parser};
use outrigger_server::entries::version;
use outrigger_store::entries::{ChangeRequest, EntryFile, EntryPrecondition, Error, Which};
use std::io::Read;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::limits;
use crate::paths::Paths;
use crate::session::now_ms;
use change::make;
use edit::OwnFile;
use print::print_contents;
pub(crate) use proposals::Proposals;
use redact::DerivedFlag;
use scope::Scope;

pub(super) use context::MemoryContext;

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
    #[command(alias = "show")]
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
    #[command(alias = "write")]
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
        derived: Option<DerivedFlag>,
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
    /// Show what holds for each of the memory scopes that are yours to see, or say it for one.
    Scope(Scope),
    /// What waits to be accepted for memory scopes that need reviews, and what became of it.
    #[command(subcommand)]
    Proposals(Proposals),
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
            Self::Scope(scope) => scope.output,
            Self::Proposals(asked) => asked.output(),
        }
    }
}

pub(crate) async fn execute(paths: &Paths, asked: Memory) -> Outcome<u8> {
    let memory = MemoryContext::open(paths, asked.output()).await?;
    match asked {
        Memory::Ls { path, recursive, .. } => list::ls(&memory, path.as_deref(), recursive).await?,
        Memory::Cat { at, revision, .. } => cat(&memory, &at.path, revision).await?,
        Memory::Edit { at, message, output } => {
            let file = OwnFile { memory: &memory, at: memory.place(&at.path)? };
            edit::edit(&file, (message, &memory.keys), output).await?;
        }
        Memory::Put { at, from, replaces, review_in, message, .. } => {
            let bytes = given(from.as_deref())?;
            let review_by_ms = review_in.map(|days| now_ms() + days * limits::DAY_MS);
            let file = EntryFile { review_by_ms, ..EntryFile::of(bytes) };
            let expected = replaces.map_or(EntryPrecondition::Absent, EntryPrecondition::Revision);
            let at = memory.place(&at.path)?;
            let change = ChangeRequest::Write { at, expected, file };
            make(&memory, change, message).await?;
        }
        Memory::Rm { at, .. } => remove(&memory, &at.path).await?,
        Memory::History { at, .. } => past::history(&memory, &at.path).await?,
        Memory::Diff { at, from, to, .. } => past::diff(&memory, &at.path, from, to).await?,
        Memory::Blame { at, .. } => past::blame(&memory, &at.path).await?,
        Memory::Revert { at, to, .. } => {
            let at = memory.place(&at.path)?;
            let expected = match memory.entries.stat(&memory.scope, &at).await {
                Ok(node) => EntryPrecondition::Revision(node.revision),
                Err(Error::Absent) => EntryPrecondition::Absent,
                Err(error) => return Err(memory.failed(&at, error)),
            };
            make(&memory, ChangeRequest::Revert { at, to, expected }, None).await?;
        }
        Memory::Redact { at, revision, derived, why, .. } => {
            let at = memory.place(&at.path)?;
            let which = revision.map_or(Which::All, Which::Revision);
            redact::redact(&memory, at, which, (derived, why)).await?;
        }
        Memory::Prune { at, keep, .. } => {
            scope::prune(&memory, &memory.place(&at.path)?, Some(keep)).await?;
        }
        Memory::Search { words, limit, .. } => {
            list::search(&memory, words.join(" "), limit).await?
        }
        Memory::Stale { .. } => list::stale(&memory).await?,
        Memory::Scope(asked) => scope::execute(&memory, asked).await?,
        Memory::Proposals(asked) => proposals::execute(&memory, asked).await?,
    }
    Ok(0)
}

/// What is written, from a file or from standard input.
pub(super) fn given(from: Option<&Path>) -> Outcome<Vec<u8>> {
    let most = outrigger_store::limits::ENTRY_BYTES_MAX;
    let mut bytes = Vec::new();
    let named = from.filter(|path| *path != Path::new("-"));
    let read = match named {
        Some(path) => std::fs::File::open(path)
            .and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes)),
        None => std::io::stdin().lock().take(most as u64 + 1).read_to_end(&mut bytes),
    };
    let name = named.map_or_else(|| "standard input".to_owned(), |path| path.display().to_string());
    read.map_err(|error| Failure::new(Kind::Usage, format!("{name}: {error}")))?;
    if bytes.len() > most {
        let text = format!("{name} has more than {most} bytes, the most that a file can have");
        return Err(Failure::new(Kind::Usage, text));
    }
    Ok(bytes)
}

async fn cat(memory: &MemoryContext, path: &str, revision: Option<u64>) -> Outcome {
    let at = memory.place(path)?;
    let read = memory.read(&at, revision).await?;
    print_contents(&version(&read.version), read.bytes, memory.output)
}

async fn remove(memory: &MemoryContext, path: &str) -> Outcome {
    let at = memory.place(path)?;
    let node = memory.entries.stat(&memory.scope, &at).await;
    let node = node.map_err(|error| memory.failed(&at, error))?;
    let change = match node.folder {
        true => ChangeRequest::RemoveFolder { at },
        false => ChangeRequest::Remove { at, revision: node.revision },
    };
    make(memory, change, None).await
}
