//! The connections that read.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::sql::connection::DatabaseConnection;
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

use super::place::DatabasePlace;
use crate::{Error, limits};

/// Connections that read, opened when they are first needed.
#[derive(Debug)]
pub(super) struct Readers {
    place: DatabasePlace,
    slots: [Mutex<Option<DatabaseConnection>>; limits::READERS],
    next: AtomicUsize,
}

/// A connection that reads, as long as a question takes.
#[derive(Debug)]
pub(super) enum Reader<'a> {
    /// One of those that are kept.
    Kept(MappedMutexGuard<'a, DatabaseConnection>),
    /// One that ends with the question. Whoever has a kept one may be a future that nobody polls
    /// before this very question is answered: without one more, both would wait for ever.
    Extra(Box<DatabaseConnection>),
}

impl Deref for Reader<'_> {
    type Target = DatabaseConnection;

    fn deref(&self) -> &DatabaseConnection {
        match self {
            Self::Kept(connection) => connection,
            Self::Extra(connection) => connection,
        }
    }
}

impl DerefMut for Reader<'_> {
    fn deref_mut(&mut self) -> &mut DatabaseConnection {
        match self {
            Self::Kept(connection) => connection,
            Self::Extra(connection) => connection,
        }
    }
}

impl Readers {
    pub(super) fn new(place: &DatabasePlace) -> Self {
        let slots = std::array::from_fn(|_| Mutex::new(None));
        Self { place: place.clone(), slots, next: AtomicUsize::new(0) }
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
            return Ok(Reader::Extra(Box::new(self.place.reading().await?)));
        };
        if slot.as_ref().is_none_or(DatabaseConnection::is_lost) {
            *slot = Some(self.place.reading().await?);
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
    use super::super::place::DatabaseAddress;
    use super::*;

    #[tokio::test]
    async fn who_keeps_a_connection_keeps_nobody_waiting_for_ever() {
        let directory = tempfile::tempdir().unwrap();
        let readers = Readers::new(
            &DatabasePlace::prepare(directory.path(), &DatabaseAddress::Sqlite).await.unwrap(),
        );
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
