//! What a store does wrong that it may do: it is slow, it fails, it does not know
//! whether it has stored, it is torn by a death. What is on its way to it when its
//! process dies comes about all the same.

use outrigger_agent::Seq;
use outrigger_store::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::limits;
use crate::store::{Batch, Store};
use crate::tally::Happening;

/// The faults of the store as one process meets them; each process has its own.
#[derive(Debug)]
pub(crate) struct Disorder {
    rng: Mutex<fastrand::Rng>,
    struck: AtomicBool,
}

/// What becomes of one append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Sound,
    Fails,
    /// Stored, and nobody knows.
    UncertainStored,
    /// Not stored, and nobody knows.
    UncertainLost,
    /// The process dies in it, and so many events of it are stored.
    Torn(usize),
}

impl Disorder {
    pub(crate) fn new(rng: fastrand::Rng) -> Self {
        Self { rng: Mutex::new(rng), struck: AtomicBool::new(false) }
    }

    /// Whether it ever gave an error.
    pub(crate) fn struck(&self) -> bool {
        self.struck.load(Ordering::Relaxed)
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.rng.lock().expect("nobody panics who draws"))
    }

    fn delay(&self) -> Duration {
        Duration::from_millis(self.draw(|rng| match rng.u8(..16) {
            0..8 => 0,
            8..15 => rng.u64(..limits::STORE_MS_MAX),
            _ => rng.u64(..limits::STORE_SLOW_MS_MAX),
        }))
    }

    /// Reads are slow, so that others write meanwhile.
    pub(crate) async fn read(&self) {
        let wait = self.draw(|rng| if rng.bool() { 0 } else { rng.u64(..limits::STORE_MS_MAX) });
        tokio::time::sleep(Duration::from_millis(wait)).await;
    }

    /// Appends. `Err` if the process dies in it.
    pub(crate) async fn append(
        &self,
        store: &Store,
        batch: Batch,
    ) -> Result<Result<Seq, Error>, ()> {
        let events = batch.events.len();
        let (session, said) = (batch.session.clone(), batch.events.clone());
        let fate = self.draw(|rng| match rng.u8(..) {
            0..6 => Fate::Fails,
            6..12 => Fate::UncertainStored,
            12..18 => Fate::UncertainLost,
            18..24 => Fate::Torn(rng.usize(..=events)),
            _ => Fate::Sound,
        });
        let (before, after) = (self.delay(), self.delay());
        let appended = match fate {
            Fate::Fails | Fate::UncertainLost => {
                tokio::time::sleep(before).await;
                None
            }
            Fate::Torn(stored) => {
                let batch = Self::cut(store, batch, stored);
                Some(Self::send(store, before, batch).await)
            }
            Fate::Sound | Fate::UncertainStored => Some(Self::send(store, before, batch).await),
        };
        tokio::time::sleep(after).await;
        let uncertain = |how| {
            store.witness.count(how);
            Err(Error::Uncertain { source: Arc::new(SimulatedFault) })
        };
        if matches!(fate, Fate::Fails | Fate::UncertainLost) {
            store.witness.refused(&session, &said, store.life.number);
        }
        self.struck.fetch_or(fate != Fate::Sound, Ordering::Relaxed);
        Ok(match (fate, appended) {
            (Fate::Torn(_), _) => return Err(()),
            (Fate::UncertainStored, Some(Ok(_))) => uncertain(Happening::UncertainStored),
            (Fate::UncertainLost, _) => uncertain(Happening::UncertainLost),
            (_, Some(appended)) => appended,
            (_, None) => {
                store.witness.count(Happening::AppendFailed);
                Err(Error::NoSpace { doing: "simulating", source: Arc::new(SimulatedFault) })
            }
        })
    }

    /// Where an account is limited, what is charged to it and the events that say so are
    /// stored together or not at all: nothing less is promised of a store.
    fn cut(store: &Store, mut batch: Batch, events: usize) -> Batch {
        let whole = events == batch.events.len();
        if !whole && store.witness.is_limited() {
            batch.events.clear();
            batch.summary.charge = None;
        }
        batch.events.truncate(events);
        batch
    }

    /// On its way it needs its process no more.
    async fn send(store: &Store, before: Duration, batch: Batch) -> Result<Seq, Error> {
        let mut orphan = Orphan { store: store.clone(), waits: true };
        let there = store.clone();
        let sent = store.detach(async move {
            tokio::time::sleep(before).await;
            there.write(batch).await
        });
        let stored = sent.await.map_err(|_| Error::Closed)?;
        orphan.waits = false;
        stored
    }
}

/// Notes that nobody waits any more for an append that is on its way.
struct Orphan {
    store: Store,
    waits: bool,
}

impl Drop for Orphan {
    fn drop(&mut self) {
        if self.waits {
            self.store.witness.count(Happening::LandedLate);
        }
    }
}

/// Whose fault it is.
#[derive(Debug, thiserror::Error)]
#[error("simulated")]
struct SimulatedFault;
