//! The one writer: a thread that takes what waits, commits it together, and
//! answers each caller.
//!
//! It has its own runtime, so that a commit is finished whatever becomes of the
//! runtime that asked for it. If it ends, every caller is told.

use std::path::{Path, PathBuf};

use outrigger_agent::{Seq, SessionId};
use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::{mpsc, oneshot};

use super::batch::{Batch, Request, Work};
use super::{Settings, open};
use crate::{Error, limits};

/// The handle of the writer's thread. Dropping the last one ends it, after what waits.
#[derive(Debug)]
pub(super) struct Writer {
    queue: mpsc::Sender<Message>,
}

enum Message {
    Request(Request),
    Close(oneshot::Sender<()>),
}

impl Writer {
    /// Starts the thread with its first connection.
    pub(super) fn start(
        path: &Path,
        settings: Settings,
        connection: SqliteConnection,
    ) -> Result<Self, Error> {
        let doing = "starting the journal's writer";
        let (queue, waiting) = mpsc::channel(limits::QUEUE_REQUESTS_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|e| Error::io(doing, e))?;
        let path = path.to_owned();
        let mut thread =
            Thread { path, settings, connection: Some(connection), batch: Batch::default() };
        std::thread::Builder::new()
            .name("journal-writer".to_owned())
            .spawn(move || runtime.block_on(thread.run(waiting)))
            .map_err(|e| Error::io(doing, e))?;
        Ok(Self { queue })
    }

    /// Has work done and waits until it is durable.
    pub(super) async fn perform(&self, session: SessionId, work: Work) -> Result<Seq, Error> {
        let (answer, answered) = oneshot::channel();
        let request = Request { session, work, answer };
        self.queue.send(Message::Request(request)).await.map_err(|_| Error::Closed)?;
        // The thread answers everything that it takes, unless it panics.
        answered.await.unwrap_or_else(|e| Err(Error::Uncertain { source: std::sync::Arc::new(e) }))
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
    path: PathBuf,
    settings: Settings,
    connection: Option<SqliteConnection>,
    batch: Batch,
}

impl Thread {
    async fn run(&mut self, mut waiting: mpsc::Receiver<Message>) {
        while let Some(message) = waiting.recv().await {
            let (requests, close) = collect(message, &mut waiting);
            if !requests.is_empty() {
                self.commit(requests).await;
            }
            if let Some(closed) = close {
                waiting.close();
                self.disconnect().await;
                let _ = closed.send(());
            }
        }
        self.disconnect().await;
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
                    let result = self.try_commit(work).await;
                    let _ = answer.send(result.and_then(only));
                }
            }
            Err(error) => {
                for answer in answers {
                    let _ = answer.send(Err(error.clone()));
                }
            }
            Ok(results) => {
                for (answer, result) in answers.into_iter().zip(results) {
                    let _ = answer.send(result);
                }
            }
        }
    }

    async fn try_commit(
        &mut self,
        work: &[(SessionId, Work)],
    ) -> Result<Vec<Result<Seq, Error>>, Error> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(open::writing(&self.path, self.settings).await?),
        };
        let result = self.batch.commit(connection, work).await;
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

fn only(results: Vec<Result<Seq, Error>>) -> Result<Seq, Error> {
    results.into_iter().next().expect("one request has one result")
}

/// Takes what waits, up to the limits of a commit.
fn collect(
    first: Message,
    waiting: &mut mpsc::Receiver<Message>,
) -> (Vec<Request>, Option<oneshot::Sender<()>>) {
    let mut requests = Vec::new();
    let mut bytes = 0;
    let mut next = Some(first);
    while let Some(message) = next {
        match message {
            Message::Close(closed) => return (requests, Some(closed)),
            Message::Request(request) => {
                bytes += request.work.bytes();
                requests.push(request);
            }
        }
        let full = requests.len() >= limits::BATCH_REQUESTS_MAX || bytes >= limits::BATCH_BYTES_MAX;
        next = if full { None } else { waiting.try_recv().ok() };
    }
    (requests, None)
}
