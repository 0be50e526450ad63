//! A directory of this machine that a configuration names, with the line in which it does.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use toml::Spanned;

use crate::exit::{Failure, Kind, Outcome};

/// The number of the line that a place in a text is in, from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

/// A directory of this machine that sandboxes are shown.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Spanned<PathBuf>")]
pub(crate) struct HostDirectory {
    pub(crate) path: PathBuf,
    /// Where it stands in the text of its file.
    at: usize,
    /// The file and the line, for people.
    place: String,
}

impl From<Spanned<PathBuf>> for HostDirectory {
    fn from(found: Spanned<PathBuf>) -> Self {
        let at = found.span().start;
        Self { path: found.into_inner(), at, place: String::new() }
    }
}

impl HostDirectory {
    /// Says in which file it stands.
    pub(super) fn place(&mut self, text: &str, file: &Path) {
        self.place = format!("{}, line {}", file.display(), line_of(text, self.at));
    }

    /// Whether a sandbox can be shown it. Nothing of it would be seen otherwise, and nobody
    /// would say so.
    pub(crate) fn check(&self) -> Outcome {
        let wrong = |why: &str| {
            let text = format!("{}: read_only names {}, {why}", self.place, self.path.display());
            Err(Failure::new(Kind::Usage, text).hint("Correct it, or take it out."))
        };
        if !self.path.is_absolute() {
            return wrong("which is no absolute path");
        }
        match self.path.metadata() {
            Ok(_) => Ok(()),
            Err(error) => wrong(&format!("which can't be shown: {error}")),
        }
    }
}
