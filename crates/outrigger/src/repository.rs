//! The person's directory at the edge: what goes wrong with it in words for a person, and
//! what it says itself to any agent.

use outrigger_agent::{Author, Message};
use outrigger_beneath::Dir;
use outrigger_repository::{Error, Grade, IndexProblem};
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::exit::{Failure, Kind};
use crate::limits;

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
        Error::Archive(_) => say(Kind::Storage)
            .hint("Free some disk space, or keep sessions elsewhere with --data-dir."),
        Error::Changed(_) => say(Kind::Conflict).hint("The changes are kept in the patch."),
        Error::Elsewhere { .. } => say(Kind::Denied),
        Error::Hazards(hazards) if hazards.iter().any(|it| it.grade == Grade::Refused) => {
            say(Kind::Denied).hint("Nobody can accept that. All changes are in the patch: read it before you take anything of it.")
        }
        Error::Hazards(_) => say(Kind::Denied).hint("All changes are in the patch."),
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

/// AGENTS.md at the root, or CLAUDE.md where there is none: what the repository's
/// authors say to any agent. It informs the model and gives it no rights.
pub(crate) fn guides(dir: &Path) -> Vec<Message> {
    let read = |name: &str| {
        let file = Dir::open(dir).ok()?.file(Path::new(name)).ok()?;
        let length = file.metadata().ok()?.len();
        let mut bytes = Vec::new();
        file.take(limits::GUIDE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if length > limits::GUIDE_BYTES_MAX {
            text.push_str("\n[cut here: the rest is in the file]\n");
        }
        Some(Message { author: Author::Untrusted(name.to_owned()), text })
    };
    ["AGENTS.md", "CLAUDE.md"].into_iter().find_map(read).into_iter().collect()
}
