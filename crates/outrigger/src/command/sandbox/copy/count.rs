//! How much went over so far.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::show;

/// What went over so far.
#[derive(Debug, Default)]
pub(crate) struct Count {
    files: AtomicU64,
    bytes: AtomicU64,
    /// What there is to go over, once it is known.
    bytes_total: AtomicU64,
}

impl Count {
    pub(crate) fn piece(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn total(&self, bytes: u64) {
        self.bytes_total.store(bytes, Ordering::Relaxed);
    }

    /// So many bytes of files went over, whatever was about them on the way.
    pub(crate) fn settle(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn taken(&self) -> (u64, u64) {
        (self.files.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    pub(super) fn words(&self) -> String {
        let (files, bytes) = self.taken();
        let total = self.bytes_total.load(Ordering::Relaxed).max(bytes);
        format!("copied {} · {} of {} MiB", show::count(files, "file"), bytes >> 20, total >> 20)
    }
}
