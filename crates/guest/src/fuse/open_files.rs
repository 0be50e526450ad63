//! Files that are open.

use std::collections::HashMap;

use super::requests::Errno;

/// An open file.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenFile {
    pub(super) node: u64,
    pub(super) writes: bool,
    pub(super) appends: bool,
    /// What was written by it, or by others of its file, was refused and is lost.
    pub(super) stale: bool,
    /// That of its file when it was opened.
    pub(super) epoch: u64,
    /// The kernel drops pages of before when it has the answer, and was not seen to have it.
    pub(super) drops: bool,
}

/// Open files by the numbers that the kernel knows them by.
#[derive(Debug, Default)]
pub(super) struct OpenFiles(HashMap<u64, OpenFile>);

impl OpenFiles {
    pub(super) fn insert(&mut self, handle: u64, file: OpenFile) {
        self.0.insert(handle, file);
    }

    /// The open file of a number. Whoever uses it has the answer to its opening, so that
    /// [`OpenFile::drops`] is set in what is given here once at most.
    pub(super) fn used(&mut self, handle: u64) -> Result<OpenFile, Errno> {
        let file = self.0.get_mut(&handle).ok_or(libc::EBADF)?;
        let used = *file;
        file.drops = false;
        Ok(used)
    }

    pub(super) fn remove(&mut self, handle: u64) -> Option<OpenFile> {
        self.0.remove(&handle)
    }

    /// What was written to a file is lost, for all that have it open to write.
    pub(super) fn refuse(&mut self, node: u64) {
        let writers = self.0.values_mut().filter(|file| file.node == node && file.writes);
        writers.for_each(|file| file.stale = true);
    }
}
