//! The connections that read.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

use super::open;
use crate::{Error, limits};

/// Connections that read, opened when they are first needed.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    slots: [Mutex<Option<SqliteConnection>>; limits::READERS],
    next: AtomicUsize,
}

/// A connection that reads, as long as a question takes.
#[derive(Debug)]
pub(super) enum Reader<'a> {
    /// One of those that are kept.
    Kept(MappedMutexGuard<'a, SqliteConnection>),
    /// One that ends with the question. Whoever has a kept one may be a future that nobody polls
    /// before this very question is answered: without one more, both would wait for ever.
    Extra(Box<SqliteConnection>),
}

impl Deref for Reader<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        match self {
            Self::Kept(connection) => connection,
            Self::Extra(connection) => connection,
        }
    }
}

impl DerefMut for Reader<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        match self {
            Self::Kept(connection) => connection,
            Self::Extra(connection) => connection,
        }
    }
}

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        let slots = std::array::from_fn(|_| Mutex::new(None));
        Self { path: path.to_owned(), slots, next: AtomicUsize::new(0) }
    }

    /// A connection for one question. Where none is given back for a while, it is one more.
    pub(super) async fn connection(&self) -> Result<Reader<'_>, Error> {
        let slot = match self.slots.iter().find_map(|slot| slot.try_lock().ok()) {
            Some(slot) => Some(slot),
            None => {
                let turn = self.next.fetch_add(1, Ordering::Relaxed);
                let most = Duration::from_millis(limits::READER_WAIT_MS_MAX);
                tokio::time::timeout(most, self.slots[turn % limits::READERS].lock()).await.ok()
            }
        };
        let Some(mut slot) = slot else {
            return Ok(Reader::Extra(Box::new(open::reading(&self.path).await?)));
        };
        if slot.is_none() {
            *slot = Some(open::reading(&self.path).await?);
        }
        let kept = MutexGuard::map(slot, |slot| slot.as_mut().expect("it was opened above"));
        Ok(Reader::Kept(kept))
    }

    /// Closes the connections, each when it is free.
    pub(super) async fn close(&self) {
        for slot in &self.slots {
            if let Some(connection) = slot.lock().await.take() {
                // The connection is gone in any case.
                let _ = connection.close().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_keeps_a_connection_keeps_nobody_waiting_for_ever() {
        let directory = tempfile::tempdir().unwrap();
        let readers = Readers::new(&open::prepare(directory.path()).await.unwrap());
        let mut kept = Vec::new();
        for _ in 0..limits::READERS {
            kept.push(readers.connection().await.unwrap());
        }
        assert!(kept.iter().all(|it| matches!(it, Reader::Kept(_))));
        assert!(matches!(readers.connection().await.unwrap(), Reader::Extra(_)));
        drop(kept);
        assert!(matches!(readers.connection().await.unwrap(), Reader::Kept(_)));
    }
}
