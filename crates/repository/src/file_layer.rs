//! Files that were taken out of a sandbox, as a layer of other ones.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, BufWriter};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use outrigger_sandbox::EntryKind;

use crate::File;
use crate::layer::LayerBuilder;

/// Builds one. Everything in it was changed at the same time, and belongs to one user.
pub struct FileLayer {
    layer: LayerBuilder<'static, BufWriter<std::fs::File>>,
    folders: BTreeSet<PathBuf>,
    owned: Vec<PathBuf>,
    modified: (i64, i64),
}

impl std::fmt::Debug for FileLayer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FileLayer").field("folders", &self.folders).finish_non_exhaustive()
    }
}

impl FileLayer {
    /// One of the user `owner`, whose folders are `owned` and what lies beneath them.
    ///
    /// # Errors
    /// If no file can be made in `scratch`.
    pub fn new(scratch: &Path, owner: u64, owned: &[&Path], modified_s: i64) -> io::Result<Self> {
        let layer = LayerBuilder::begin(scratch, Path::new(""), owner)?;
        let owned = owned.iter().map(|path| (*path).to_owned()).collect();
        Ok(Self { layer, folders: BTreeSet::new(), owned, modified: (modified_s, 0) })
    }

    /// Adds a file or link, with the folders above it, by its path from the root.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn add(&mut self, path: &Path, file: &File) -> io::Result<()> {
        let above: Vec<&Path> = path.ancestors().skip(1).collect();
        for folder in above.into_iter().rev() {
            let is_owned = self.owned.iter().any(|owned| folder.starts_with(owned));
            if is_owned && self.folders.insert(folder.to_owned()) {
                self.layer.folder(folder, 0o755, self.modified)?;
            }
        }
        if file.kind == EntryKind::Link {
            let target = Path::new(OsStr::from_bytes(&file.contents));
            return self.layer.link(path, target, self.modified);
        }
        let mode = if file.executable { 0o755 } else { 0o644 };
        let contents = (file.contents.as_slice(), file.contents.len() as u64);
        self.layer.file(path, (mode, self.modified), contents).map(drop)
    }

    /// The archive, at its beginning.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn finish(self) -> io::Result<std::fs::File> {
        self.layer.end()
    }
}
