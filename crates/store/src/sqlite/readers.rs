//! The connections that read.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

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

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        let slots = std::array::from_fn(|_| Mutex::new(None));
        Self { path: path.to_owned(), slots, next: AtomicUsize::new(0) }
    }

    pub(super) async fn connection(&self) -> Result<MappedMutexGuard<'_, SqliteConnection>, Error> {
        let mut slot = match self.slots.iter().find_map(|slot| slot.try_lock().ok()) {
            Some(slot) => slot,
            None => {
                let turn = self.next.fetch_add(1, Ordering::Relaxed);
                self.slots[turn % limits::READERS].lock().await
            }
        };
        if slot.is_none() {
            *slot = Some(open::reading(&self.path).await?);
        }
        Ok(MutexGuard::map(slot, |slot| slot.as_mut().expect("it was opened above")))
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
