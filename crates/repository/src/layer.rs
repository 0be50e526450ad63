//! A tar archive that becomes a layer of a sandbox.
//!
//! Owns its headers: everything in it stands in one folder and belongs to one user.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::limits;
use crate::modified;
use crate::scratch::nameless;

/// Builds one.
pub(crate) struct LayerBuilder<'a, W: Write> {
    top: &'a Path,
    owner: u64,
    builder: tar::Builder<W>,
}

impl<'a, W: Write> LayerBuilder<'a, W> {
    /// In `top`, of the user `owner`.
    pub(crate) fn new(archive: W, top: &'a Path, owner: u64) -> Self {
        Self { top, owner, builder: tar::Builder::new(archive) }
    }

    /// A folder, with when it was changed in seconds since 1970 and nanoseconds.
    pub(crate) fn folder(
        &mut self,
        path: &Path,
        mode: u32,
        modified: (i64, i64),
    ) -> io::Result<()> {
        let (inside, mut header) = self.entry(path, tar::EntryType::Directory, mode);
        modified::set(&mut self.builder, &mut header, modified)?;
        self.builder.append_data(&mut header, inside, io::empty())
    }

    /// A file of so many bytes. Says how many of them were missing.
    pub(crate) fn file(
        &mut self,
        path: &Path,
        (mode, modified): (u32, (i64, i64)),
        (contents, bytes): (impl Read, u64),
    ) -> io::Result<u64> {
        let (inside, mut header) = self.entry(path, tar::EntryType::Regular, mode);
        header.set_size(bytes);
        modified::set(&mut self.builder, &mut header, modified)?;
        let mut contents = contents.take(bytes);
        self.builder.append_data(&mut header, inside, &mut contents)?;
        Ok(contents.limit())
    }

    pub(crate) fn link(
        &mut self,
        path: &Path,
        target: &Path,
        modified: (i64, i64),
    ) -> io::Result<()> {
        let (inside, mut header) = self.entry(path, tar::EntryType::Symlink, 0o777);
        modified::set(&mut self.builder, &mut header, modified)?;
        self.builder.append_link(&mut header, inside, target)
    }

    fn entry(&self, path: &Path, kind: tar::EntryType, mode: u32) -> (PathBuf, tar::Header) {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_uid(self.owner);
        header.set_gid(self.owner);
        header.set_mode(mode);
        header.set_size(0);
        (self.top.join(path), header)
    }

    /// Ends it.
    pub(crate) fn finish(self) -> io::Result<W> {
        self.builder.into_inner()
    }
}

impl<'a> LayerBuilder<'a, BufWriter<File>> {
    /// In a file without a name.
    pub(crate) fn begin(scratch: &Path, top: &'a Path, owner: u64) -> io::Result<Self> {
        let file = BufWriter::with_capacity(limits::WRITE_BYTES, nameless(scratch)?);
        Ok(Self::new(file, top, owner))
    }

    /// The file, at its beginning.
    pub(crate) fn end(self) -> io::Result<File> {
        let mut archive = self.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        archive.rewind()?;
        Ok(archive)
    }
}
