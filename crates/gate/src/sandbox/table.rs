//! The flows of a sandbox, counted.
//!
//! Owns the rows and what a caller has not seen of them. Rows of refusals are counted apart
//! from the others: a flood of refused hosts displaces nothing that was reached.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::flow::{Flow, Flows, Refusal};
use crate::limits;
use crate::rule::cut;

/// What came of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    /// The name of the grant.
    Granted(String),
    Refused(Refusal),
}

type Key = (String, u16, Outcome);

/// All flows of one kind.
#[derive(Debug)]
pub(crate) struct Row {
    requests: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    first_ms: u64,
    path: Mutex<Option<String>>,
    allowance: Arc<AtomicU64>,
}

/// The flows of a sandbox.
#[derive(Debug)]
pub(crate) struct Table {
    lost: AtomicU64,
    /// How many bytes may still be sent.
    allowance: Arc<AtomicU64>,
    rows: Mutex<Rows>,
}

#[derive(Debug, Default)]
struct Rows {
    rows: HashMap<Key, Arc<Row>>,
    refused: usize,
}

impl Row {
    fn new(allowance: Arc<AtomicU64>) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            requests: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            first_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            path: Mutex::new(None),
            allowance,
        }
    }

    /// Counts bytes before they are sent. Whether they may be.
    #[must_use]
    pub(crate) fn sent(&self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let take = |left: u64| left.checked_sub(bytes);
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        let may = self.allowance.fetch_update(set, read, take).is_ok();
        if may {
            self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        } else {
            // What is cut off is not followed by something smaller.
            self.allowance.store(0, Ordering::Relaxed);
        }
        may
    }

    /// Whether nothing more may be sent.
    pub(crate) fn is_spent(&self) -> bool {
        self.allowance.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// What came since it was taken last; nothing if nothing did.
    fn take(&self, (host, port, outcome): &Key) -> Option<Flow> {
        let requests = self.requests.swap(0, Ordering::Relaxed);
        let sent_bytes = self.sent_bytes.swap(0, Ordering::Relaxed);
        let received_bytes = self.received_bytes.swap(0, Ordering::Relaxed);
        if (requests, sent_bytes, received_bytes) == (0, 0, 0) {
            return None;
        }
        let (grant, refusal) = match outcome {
            Outcome::Granted(name) => (Some(name.clone()), None),
            Outcome::Refused(refusal) => (None, Some(*refusal)),
        };
        Some(Flow {
            host: host.clone(),
            port: *port,
            grant,
            refusal,
            requests,
            sent_bytes,
            received_bytes,
            first_ms: self.first_ms,
            path: lock(&self.path).take(),
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Table {
    fn default() -> Self {
        let allowance = Arc::new(AtomicU64::new(u64::MAX));
        Self { lost: AtomicU64::new(0), allowance, rows: Mutex::default() }
    }
}

impl Table {
    /// How many bytes may be sent from now on, those among them that were not taken yet.
    pub(crate) fn allow(&self, sent_bytes_max: Option<u64>) {
        let rows = lock(&self.rows);
        let untold = rows.rows.values().map(|row| row.sent_bytes.load(Ordering::Relaxed));
        let untold: u64 = untold.sum();
        let left = sent_bytes_max.map_or(u64::MAX, |most| most.saturating_sub(untold));
        self.allowance.store(left, Ordering::Relaxed);
    }

    /// Counts a request. The row is for its bytes; without one the table is full.
    pub(crate) fn count(
        &self,
        host: &str,
        port: u16,
        outcome: Outcome,
        path: Option<&str>,
    ) -> Option<Arc<Row>> {
        let row = self.row((host.to_owned(), port, outcome));
        if let Some(row) = &row {
            row.requests.fetch_add(1, Ordering::Relaxed);
            if let Some(path) = path {
                *lock(&row.path) = Some(cut(path).to_owned());
            }
        } else {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        row
    }

    fn row(&self, key: Key) -> Option<Arc<Row>> {
        let mut rows = lock(&self.rows);
        if let Some(row) = rows.rows.get(&key) {
            return Some(Arc::clone(row));
        }
        let refused = matches!(key.2, Outcome::Refused(_));
        let full = if refused {
            rows.refused >= limits::REFUSED_ROWS_MAX
        } else {
            rows.rows.len() - rows.refused >= limits::GRANTED_ROWS_MAX
        };
        if full {
            return None;
        }
        rows.refused += usize::from(refused);
        let row = Arc::new(Row::new(Arc::clone(&self.allowance)));
        rows.rows.insert(key, Arc::clone(&row));
        Some(row)
    }

    /// Takes what came since it was taken last, the oldest rows first.
    pub(crate) fn take(&self) -> Flows {
        let mut rows = lock(&self.rows);
        let mut flows: Vec<Flow> =
            rows.rows.iter().filter_map(|(key, row)| row.take(key)).collect();
        flows.sort_by(|a, b| (a.first_ms, &a.host, a.port).cmp(&(b.first_ms, &b.host, b.port)));
        // What nobody counts in any more makes room.
        rows.rows.retain(|_, row| Arc::strong_count(row) > 1);
        let refused = |key: &&Key| matches!(key.2, Outcome::Refused(_));
        rows.refused = rows.rows.keys().filter(refused).count();
        Flows { flows, lost: self.lost.swap(0, Ordering::Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_is_told_once() {
        let table = Table::default();
        let granted = || Outcome::Granted("g".to_owned());
        let row = table.count("a", 1, granted(), None).unwrap();
        table.count("b", 2, Outcome::Refused(Refusal::Path), Some("/x")).unwrap();
        assert_eq!(table.take().flows.len(), 2);
        assert!(table.take().flows.is_empty());
        assert!(row.sent(5));
        let second = table.take();
        assert_eq!(second.flows.len(), 1);
        assert_eq!((second.flows[0].requests, second.flows[0].sent_bytes), (0, 5));
    }

    #[test]
    fn refusals_leave_room_for_what_is_reached() {
        let table = Table::default();
        for host in 0..2000 {
            table.count(&host.to_string(), 1, Outcome::Refused(Refusal::NotGranted), None);
        }
        assert!(table.count("a", 1, Outcome::Granted("g".to_owned()), None).is_some());
        let flows = table.take();
        assert_eq!(flows.flows.len(), limits::REFUSED_ROWS_MAX + 1);
        assert_eq!(flows.lost, 2000 - limits::REFUSED_ROWS_MAX as u64);
    }
}
