//! A file in which a project says which version of a tool it wants.

use std::io::Read;
use std::path::{Path, PathBuf};

use outrigger_beneath::Dir;

use crate::limits;

/// Such a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VersionFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl VersionFile {
    /// The nearest of one of these names, in a directory or above it; not above the home.
    pub(crate) fn nearest(dir: &Path, home: &Path, names: &[&str]) -> Option<Self> {
        let beneath_home = dir.starts_with(home);
        let above = dir.ancestors().take_while(|above| !beneath_home || above.starts_with(home));
        above
            .flat_map(|above| names.iter().map(move |name| (above, *name)))
            .find_map(|(above, name)| Self::read(above, name))
    }

    /// The one of that name in a directory, if it is a plain file and not too long.
    pub(crate) fn read(dir: &Path, name: &str) -> Option<Self> {
        let mut text = String::new();
        let file = Dir::open(dir).ok()?.file(Path::new(name)).ok()?;
        let read = file.take(limits::VERSION_FILE_BYTES_MAX).read_to_string(&mut text);
        read.ok().map(|_| Self { path: dir.join(name), text })
    }

    /// Its lines, without what is a remark.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.text
            .lines()
            .map(|line| line.split('#').next().unwrap_or_default().trim())
            .filter(|line| !line.is_empty())
    }
}
