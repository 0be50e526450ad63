//! The person's directory at the edge: what goes wrong with it in words for a person.

use outrigger_repository::{CommitProblem, Error, Grade, IndexProblem};
use std::io::ErrorKind;
use std::path::Path;

use crate::exit::{Failure, Kind};

/// What is done about a file that can't be read.
const READABLE: &str = "Make it readable, or list it in .gitignore to leave it out.";

/// What went wrong with a directory.
pub(crate) fn failed(dir: &Path, error: &Error) -> Failure {
    let say = |kind| Failure::from_error(kind, error);
    match error {
        Error::Directory { kind, .. } => {
            let is_absent = *kind == ErrorKind::NotFound;
            say(if is_absent { Kind::NotFound } else { Kind::Usage })
                .hint("Name a directory that you may read with --dir.")
        }
        Error::Unreadable { .. } | Error::Read { .. } => say(Kind::Usage).hint(READABLE),
        Error::TooLong { .. } => say(Kind::Usage).hint("No person writes one as long. Remove it."),
        Error::GitDir { .. } => say(Kind::Usage)
            .hint("Mend it, or remove it: then everything that is not ignored is copied."),
        Error::Index { source: IndexProblem::Split, .. } => say(Kind::Usage).hint(
            "`git update-index --no-split-index` makes it one, in a repository that you trust.",
        ),
        Error::Index { .. } => say(Kind::Usage)
            .hint("`git status` tells more, in a repository that you trust: it runs what the repository says."),
        Error::TooLarge(more) => {
            let text = format!("{} is too large to copy: {more}", dir.display());
            let key = match more {
                outrigger_repository::TooLarge::Bytes(_) => "mib_max",
                _ => "files_max",
            };
            Failure::new(Kind::Usage, text).hint(format!("Leave large files out with .gitignore, name a smaller directory with --dir, or raise workspace.{key} in the configuration."))
        }
        Error::Shorter(_) => say(Kind::Conflict).hint("Try again when nothing writes it."),
        Error::Archive(source) if source.kind() == std::io::ErrorKind::InvalidData => {
            say(Kind::Usage)
        }
        Error::Archive(_) => say(Kind::Storage)
            .hint("Free some disk space, or keep sessions elsewhere with --data-dir."),
        Error::Changed(_) => say(Kind::Conflict).hint("The changes are kept in the patch."),
        Error::Elsewhere { .. } => say(Kind::Denied),
        Error::Hazards(hazards) if hazards.iter().any(|it| it.grade == Grade::Refused) => {
            say(Kind::Denied).hint("Nobody can accept that. All changes are in the patch: read it before you take anything of it.")
        }
        Error::Hazards(_) => say(Kind::Denied).hint("All changes are in the patch."),
        Error::Commits(CommitProblem::Packs(_) | CommitProblem::Taken(_)) => {
            say(Kind::Conflict).hint("No branch was made. All changes are in the patch.")
        }
        Error::Commits(_) => {
            say(Kind::Denied).hint("No branch was made. All changes are in the patch.")
        }
        Error::Write { path, source } => {
            let kind = match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Kind::Storage,
                _ => Kind::Conflict,
            };
            Failure::new(kind, format!("{}: {source}", dir.join(path).display())).hint(
                "The changes are kept in the patch; running the same again goes on where it stopped.",
            )
        }
    }
}
