//! The one writer: a thread that takes what waits, commits it together, and
//! answers each caller.
//!
//! It has its own runtime, so that a commit is finished whatever becomes of the
//! runtime that asked for it. If it ends, every caller is told.

mod orders;
mod rows;
mod upkeep;

pub(super) use rows::RowChange;

use crate::sql;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::sql::connection::DatabaseConnection;
use outrigger_agent::{AccountId, Seq, SessionId};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::changes::Changes;
use super::place::DatabasePlace;
use super::settings::Settings;
use crate::sql::accounts::{self, recount};
use crate::sql::entries;
use crate::sql::fault;
use crate::sql::journal::batch::{Batch, CommitOutcome, JournalWrite, Request};
use crate::sql::journal::import::Import;
use crate::sql::log::anchor::{LogAppend, SessionSelection, behind};
use crate::sql::log::read::newest_checkpoint;
use crate::{Account, Error, TermsChange, limits};

/// The handle of the writer's thread. Dropping the last one ends it, after what waits.
#[derive(Debug)]
pub(super) struct Writer {
    queue: mpsc::Sender<Message>,
}

enum Message {
    Request(Request),
    Order(Box<entries::Request>),
    Checkpoint(oneshot::Sender<Result<String, Error>>),
    Terms(AccountId, TermsChange, oneshot::Sender<Result<Account, Error>>),
    Row(RowChange, oneshot::Sender<Result<bool, Error>>),
    Recount(oneshot::Sender<Result<(), Error>>),
    Remove(SessionId, Seq, oneshot::Sender<Result<(), Error>>),
    Compact(oneshot::Sender<Result<(), Error>>),
    Import(Box<Import>, oneshot::Sender<Result<(), Error>>),
    Close(oneshot::Sender<()>),
}

impl Writer {
    /// Starts the thread with its first connection.
    pub(super) fn start(
        batch: Batch,
        place: &DatabasePlace,
        settings: Settings,
        connection: DatabaseConnection,
        changes: Arc<Changes>,
    ) -> Result<Self, Error> {
        let doing = "starting the journal's writer";
        let (queue, waiting) = mpsc::channel(limits::QUEUE_REQUESTS_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|e| Error::io(doing, e))?;
        let place = place.clone();
        let connection = Some(connection);
        let (uncovered, lingers) = (CheckpointBacklog::default(), false);
        let mut thread = Thread { place, settings, connection, changes, batch, uncovered, lingers };
        std::thread::Builder::new()
            .name("journal-writer".to_owned())
            .spawn(move || runtime.block_on(thread.run(waiting)))
            .map_err(|e| Error::io(doing, e))?;
        Ok(Self { queue })
    }

    /// Has work done and waits until it is durable.
    pub(super) async fn perform(
        &self,
        session: SessionId,
        work: JournalWrite,
    ) -> Result<Seq, Error> {
        let (answer, answered) = oneshot::channel();
        let request = Request { session, work, answer };
        self.queue.send(Message::Request(request)).await.map_err(|_| Error::Closed)?;
        // The thread answers everything that it takes, unless it panics.
        answered.await.unwrap_or_else(|e| Err(Error::Uncertain { source: std::sync::Arc::new(e) }))
    }

    /// Covers everything with a checkpoint, and gives the newest one.
    pub(super) async fn checkpoint(&self) -> Result<String, Error> {
        let (answer, answered) = oneshot::channel();
        self.queue.send(Message::Checkpoint(answer)).await.map_err(|_| Error::Closed)?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    /// Changes what holds for an account.
    pub(super) async fn set_terms(
        &self,
        account: AccountId,
        change: TermsChange,
    ) -> Result<Account, Error> {
        let (answer, answered) = oneshot::channel();
        let message = Message::Terms(account, change, answer);
        self.queue.send(message).await.map_err(|_| Error::Closed)?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    /// Changes what is kept one row at a time. Gives whether anything changed.
    pub(super) async fn change_row(&self, change: RowChange) -> Result<bool, Error> {
        let (answer, answered) = oneshot::channel();
        let message = Message::Row(change, answer);
        self.queue.send(message).await.map_err(|_| Error::Closed)?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    /// Counts all accounts anew.
    pub(super) async fn recount(&self) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        self.queue.send(Message::Recount(answer)).await.map_err(|_| Error::Closed)?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    /// Ends the thread after what waits, and its connection.
    pub(super) async fn close(&self) {
        let (closed, wait) = oneshot::channel();
        if self.queue.send(Message::Close(closed)).await.is_ok() {
            // An error means that it has ended by itself.
            let _ = wait.await;
        }
    }
}

struct Thread {
    place: DatabasePlace,
    settings: Settings,
    connection: Option<DatabaseConnection>,
    changes: Arc<Changes>,
    batch: Batch,
    uncovered: CheckpointBacklog,
    /// Whether the log still has bytes of what was destroyed.
    lingers: bool,
}

/// What this process wrote and no checkpoint covers yet.
#[derive(Debug, Default)]
struct CheckpointBacklog {
    sessions: BTreeSet<SessionId>,
    events: u64,
    /// When it must be covered.
    due: Option<Instant>,
}

impl CheckpointBacklog {
    fn of(&mut self, done: &CommitOutcome) {
        // Whoever is covered in the same transaction may have waited since before it.
        if let Some(added) = &done.added {
            added.sessions().for_each(|session| _ = self.sessions.remove(session));
        }
        if !done.uncovered.is_empty() {
            self.events += done.events;
            let due = Instant::now() + Duration::from_millis(limits::ANCHOR_MS_MAX);
            self.due.get_or_insert(due);
        }
        self.sessions.extend(done.uncovered.iter().cloned());
        if self.sessions.is_empty() {
            *self = Self::default();
        }
    }

    fn is_due(&self) -> bool {
        self.events >= limits::ANCHOR_EVENTS_MAX
            || self.due.is_some_and(|due| due <= Instant::now())
    }
}

impl Thread {
    async fn run(&mut self, mut waiting: mpsc::Receiver<Message>) {
        // What other processes left is looked for after a while, so that short ones never pay.
        let mut scan = Instant::now() + Duration::from_millis(limits::ANCHOR_MS_MAX);
        loop {
            let due = self.uncovered.due.map_or(scan, |due| due.min(scan));
            let message = match tokio::time::timeout_at(due, waiting.recv()).await {
                Ok(None) => break,
                Ok(Some(message)) => Some(message),
                Err(_) => None,
            };
            if let Some(message) = message {
                self.take(message, &mut waiting).await;
            }
            if self.uncovered.is_due() {
                // What stands in the way is told to whoever asks for a checkpoint.
                let _ = self.cover_own().await;
            }
            if scan <= Instant::now() {
                let _ = self.cover_all().await;
                self.shred().await;
                scan = Instant::now() + Duration::from_millis(limits::ANCHOR_SCAN_MS);
            }
        }
        self.disconnect().await;
    }

    async fn take(&mut self, message: Message, waiting: &mut mpsc::Receiver<Message>) {
        let RequestBatch { requests, orders, other } = collect(message, waiting);
        if !requests.is_empty() {
            self.commit(requests).await;
        }
        if !orders.is_empty() {
            self.orders(orders).await;
        }
        match other {
            None | Some(Message::Request(_) | Message::Order(_)) => {}
            Some(Message::Checkpoint(answer)) => {
                let newest = self.checkpoint().await;
                let _ = answer.send(newest);
            }
            Some(Message::Terms(account, change, answer)) => {
                let set = self.set_terms(&account, change).await;
                if set.is_err() {
                    self.disconnect().await;
                }
                let _ = answer.send(set);
            }
            Some(Message::Row(change, answer)) => {
                let changed = match self.connection().await {
                    Ok(connection) => change.perform(connection).await,
                    Err(error) => Err(error),
                };
                if changed.is_err() {
                    self.disconnect().await;
                }
                let _ = answer.send(changed);
            }
            Some(Message::Recount(answer)) => {
                let counted = self.recount().await;
                if counted.is_err() {
                    self.disconnect().await;
                }
                let _ = answer.send(counted);
            }
            Some(Message::Remove(session, head, answer)) => {
                let removed = self.remove(&session, head).await;
                let _ = answer.send(removed);
            }
            Some(Message::Import(import, answer)) => {
                let taken = self.import(&import).await;
                let _ = answer.send(taken);
            }
            Some(Message::Compact(answer)) => {
                let done = self.compact().await;
                let _ = answer.send(done);
            }
            Some(Message::Close(closed)) => {
                waiting.close();
                let _ = self.cover_own().await;
                self.disconnect().await;
                let _ = closed.send(());
            }
        }
    }

    async fn connection(&mut self) -> Result<&mut DatabaseConnection, Error> {
        if self.connection.as_ref().is_some_and(DatabaseConnection::is_lost) {
            self.disconnect().await;
        }
        match &mut self.connection {
            Some(connection) => Ok(connection),
            none => Ok(none.insert(self.place.writing(self.settings).await?)),
        }
    }

    /// Covers what this process wrote.
    async fn cover_own(&mut self) -> Result<(), Error> {
        let own = std::mem::take(&mut self.uncovered);
        let sessions: Vec<SessionId> = own.sessions.into_iter().collect();
        for some in sessions.chunks(limits::HEADS_MAX) {
            self.cover(SessionSelection::These(some)).await?;
        }
        Ok(())
    }

    /// Covers what anybody wrote.
    async fn cover_all(&mut self) -> Result<(), Error> {
        self.uncovered = CheckpointBacklog::default();
        while self.cover(SessionSelection::All).await? > 0 {}
        Ok(())
    }

    /// Covers sessions in a transaction of its own, and says how many it were. Looks
    /// before it takes the write lock: mostly there is nothing.
    async fn cover(&mut self, asked: SessionSelection<'_>) -> Result<usize, Error> {
        let connection = self.connection().await?;
        if behind(connection, asked).await?.is_empty() {
            return Ok(0);
        }
        let covered = self.try_cover(asked).await;
        if covered.is_err() {
            self.disconnect().await;
        }
        let (count, added) = covered?;
        self.copy(added).await;
        Ok(count)
    }

    async fn try_cover(
        &mut self,
        asked: SessionSelection<'_>,
    ) -> Result<(usize, Option<LogAppend>), Error> {
        let wrong = |e| fault::of("writing the audit log", e);
        self.connection().await?;
        let Self { connection: Some(connection), batch, .. } = self else {
            return Err(Error::Closed);
        };
        sql::query("BEGIN IMMEDIATE").execute(&mut *connection).await.map_err(wrong)?;
        let entries = behind(connection, asked).await?;
        let count = entries.len();
        let mut added = None;
        if count > 0 {
            added = Some(batch.anchor.add(connection, &mut batch.texts, entries).await?);
        }
        sql::query("COMMIT").execute(connection).await.map_err(fault::of_commit)?;
        Ok((count, added))
    }

    async fn copy(&mut self, added: Option<LogAppend>) {
        if let (Some(added), Some(connection)) = (added, &mut self.connection) {
            self.batch.anchor.copy(connection, &added).await;
        }
    }

    async fn checkpoint(&mut self) -> Result<String, Error> {
        self.cover_all().await?;
        let connection = self.connection().await?;
        let newest = newest_checkpoint(connection).await;
        let newest = newest.map_err(|e| fault::of("reading the newest checkpoint", e))?;
        let none = || Error::NotFound { what: "event that a checkpoint could cover".to_owned() };
        newest.map(|(_, note)| note).ok_or_else(none)
    }

    async fn set_terms(
        &mut self,
        account: &AccountId,
        change: TermsChange,
    ) -> Result<Account, Error> {
        let wrong = |e| fault::of("writing accounts", e);
        self.connection().await?;
        let Self { connection: Some(connection), batch, .. } = self else {
            return Err(Error::Closed);
        };
        sql::query("BEGIN IMMEDIATE").execute(&mut *connection).await.map_err(wrong)?;
        let names = std::iter::once(account);
        let mut book = accounts::read(connection, &mut batch.texts, &[], names).await?;
        let set = book.set_terms(account, change);
        accounts::write(connection, &mut batch.texts, &book).await?;
        sql::query("COMMIT").execute(connection).await.map_err(fault::of_commit)?;
        Ok(set)
    }

    async fn recount(&mut self) -> Result<(), Error> {
        let wrong = |e| fault::of("writing accounts", e);
        self.connection().await?;
        let Self { connection: Some(connection), batch, .. } = self else {
            return Err(Error::Closed);
        };
        sql::query("BEGIN IMMEDIATE").execute(&mut *connection).await.map_err(wrong)?;
        let mut book = recount::read(connection).await?;
        book.recount();
        accounts::write(connection, &mut batch.texts, &book).await?;
        sql::query("COMMIT").execute(connection).await.map_err(fault::of_commit)?;
        Ok(())
    }

    async fn commit(&mut self, requests: Vec<Request>) {
        let (answers, work): (Vec<_>, Vec<_>) = requests
            .into_iter()
            .map(|Request { session, work, answer }| (answer, (session, work)))
            .unzip();
        // A caller that has gone away needs no answer: hence the unused results.
        match self.try_commit(&work).await {
            Err(error) if answers.len() > 1 && is_of_one(&error) => {
                for (answer, work) in answers.into_iter().zip(work.chunks(1)) {
                    match self.try_commit(work).await {
                        Ok(done) => self.answer(vec![answer], done).await,
                        Err(error) => _ = answer.send(Err(error)),
                    }
                }
            }
            Err(error) => {
                for answer in answers {
                    let _ = answer.send(Err(error.clone()));
                }
            }
            Ok(done) => self.answer(answers, done).await,
        }
    }

    async fn answer(
        &mut self,
        answers: Vec<oneshot::Sender<Result<Seq, Error>>>,
        done: CommitOutcome,
    ) {
        self.uncovered.of(&done);
        let CommitOutcome { results, added, .. } = done;
        for (answer, result) in answers.into_iter().zip(results) {
            let _ = answer.send(result);
        }
        self.copy(added).await;
    }

    async fn try_commit(
        &mut self,
        work: &[(SessionId, JournalWrite)],
    ) -> Result<CommitOutcome, Error> {
        self.connection().await?;
        let Self { connection: Some(connection), batch, .. } = self else {
            return Err(Error::Closed);
        };
        let result = batch.commit(connection, work).await;
        if result.is_err() {
            // Closing takes back what was not committed. The next commit connects anew.
            self.disconnect().await;
        }
        result
    }

    async fn disconnect(&mut self) {
        if let Some(connection) = self.connection.take() {
            // The connection is gone in any case.
            let _ = connection.close().await;
        }
    }
}

/// Whether an error may come from one request of many, so that the others succeed without it.
fn is_of_one(error: &Error) -> bool {
    matches!(error, Error::Damaged { .. } | Error::NoSpace { .. })
}

/// What waited.
#[derive(Default)]
struct RequestBatch {
    requests: Vec<Request>,
    orders: Vec<entries::Request>,
    other: Option<Message>,
}

/// Takes what waits, up to the limits of a commit, or up to something else.
fn collect(first: Message, waiting: &mut mpsc::Receiver<Message>) -> RequestBatch {
    let mut collected = RequestBatch::default();
    let mut bytes = 0;
    let mut next = Some(first);
    while let Some(message) = next {
        match message {
            Message::Request(request) => {
                bytes += request.work.bytes();
                collected.requests.push(request);
            }
            Message::Order(request) => {
                bytes += request.order.work.bytes();
                collected.orders.push(*request);
            }
            other @ (Message::Close(_)
            | Message::Checkpoint(_)
            | Message::Terms(..)
            | Message::Row(..)
            | Message::Recount(_)
            | Message::Remove(..)
            | Message::Compact(_)
            | Message::Import(..)) => {
                collected.other = Some(other);
                break;
            }
        }
        let full = collected.requests.len() >= limits::BATCH_REQUESTS_MAX
            || collected.orders.len() >= limits::BATCH_CHANGES_MAX
            || bytes >= limits::BATCH_BYTES_MAX;
        next = if full { None } else { waiting.try_recv().ok() };
    }
    collected
}
