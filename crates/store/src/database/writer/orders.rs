//! Orders about entries: those that wait are committed together, and each is answered.

use crate::sql;
use crate::sql::connection::DatabaseConnection;
use tokio::sync::oneshot;

use super::{Message, Thread, Writer, is_of_one};
use crate::database::changes::Changes;
use crate::entries::{self, Quotas};
use crate::sql::entries::{Answer, Order, Request};
use crate::sql::fault;
use crate::{Error, limits};

type Answers = Vec<Result<Answer, entries::Error>>;

impl Writer {
    /// Has an order performed and waits until it is durable.
    pub(in crate::database) async fn order(&self, order: Order) -> Result<Answer, entries::Error> {
        let (answer, answered) = oneshot::channel();
        let request = Box::new(Request { order, answer });
        self.queue.send(Message::Order(request)).await.map_err(|_| Error::Closed)?;
        let lost = |e| Err(Error::Uncertain { source: std::sync::Arc::new(e) }.into());
        answered.await.unwrap_or_else(lost)
    }
}

impl Thread {
    pub(super) async fn orders(&mut self, requests: Vec<Request>) {
        let (orders, answers): (Vec<Order>, Vec<_>) =
            requests.into_iter().map(|request| (request.order, request.answer)).unzip();
        // A caller that has gone away needs no answer: hence the unused results.
        match self.try_orders(&orders).await {
            Err(error) if answers.len() > 1 && is_of_one(&error) => {
                for (answer, order) in answers.into_iter().zip(orders.chunks(1)) {
                    let mut done = self.try_orders(order).await.map_err(entries::Error::Store);
                    let one = done.as_mut().map_or(None, Vec::pop);
                    let _ = answer.send(match (one, done) {
                        (Some(one), _) => one,
                        (None, Err(error)) => Err(error),
                        (None, Ok(_)) => Err(Error::Closed.into()),
                    });
                }
            }
            Err(error) => {
                for answer in answers {
                    let _ = answer.send(Err(error.clone().into()));
                }
            }
            Ok(done) => {
                for (answer, done) in answers.into_iter().zip(done) {
                    let _ = answer.send(done);
                }
            }
        }
    }

    async fn try_orders(&mut self, orders: &[Order]) -> Result<Answers, Error> {
        self.connection().await?;
        let Self { connection: Some(connection), changes, settings, .. } = self else {
            return Err(Error::Closed);
        };
        let result = commit(connection, changes, &settings.quotas, orders).await;
        let Ok(mut answers) = result else {
            // Closing takes back what was not committed. The next commit connects anew.
            self.disconnect().await;
            return result;
        };
        let destroyed = orders.iter().zip(&mut answers).filter(|(order, _)| order.work.destroys());
        let destroyed: Vec<_> = destroyed.filter_map(|(_, done)| done.as_mut().ok()).collect();
        if !destroyed.is_empty() {
            self.lingers = true;
            self.shred().await;
            for answer in destroyed {
                if let Answer::Changed(changed) = answer {
                    changed.lingers = self.lingers;
                }
            }
        }
        Ok(answers)
    }

    /// Clears the log of what was destroyed, if anything was and nobody reads it now.
    pub(super) async fn shred(&mut self) {
        if !self.lingers {
            return;
        }
        let wait = self.settings.busy_wait_ms;
        if let Ok(connection) = self.connection().await {
            self.lingers = shred(connection, wait).await.unwrap_or(true);
        }
    }
}

/// Performs all of it in one transaction, or none with an error. What was refused has its
/// own error, and changed nothing.
async fn commit(
    connection: &mut DatabaseConnection,
    changes: &Changes,
    quotas: &Quotas,
    orders: &[Order],
) -> Result<Answers, Error> {
    let begun = sql::query("BEGIN IMMEDIATE").execute(&mut *connection).await;
    begun.map_err(|e| fault::of("writing entries", e))?;
    let begun = changes.begin()?;
    let mut answers = Vec::with_capacity(orders.len());
    for order in orders {
        match order.perform(connection, quotas).await {
            Err(entries::Error::Store(error)) => return Err(error),
            answer => answers.push(answer),
        }
    }
    let committed = sql::query("COMMIT").execute(connection).await;
    committed.map_err(fault::of_commit)?;
    begun.end();
    Ok(answers)
}

/// Clears the log of what was deleted; whether others kept it from that. The writer waits
/// for them, but not for as long as for its own turn.
async fn shred(connection: &mut DatabaseConnection, busy_wait_ms: u64) -> Result<bool, Error> {
    let wrong = |e| fault::of("clearing the write-ahead log", e);
    if connection.is_postgres() {
        // It overwrites what was deleted in its own time, and its log goes on to who copies it.
        return Ok(true);
    }
    let wait = |ms: u64| format!("PRAGMA busy_timeout = {ms}");
    let short = wait(busy_wait_ms.min(limits::SHRED_WAIT_MS));
    sql::query(short).execute(&mut *connection).await.map_err(wrong)?;
    let cleared = sql::query_as("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut *connection);
    let cleared: Result<(i64, i64, i64), _> = cleared.await;
    sql::query(wait(busy_wait_ms)).execute(connection).await.map_err(wrong)?;
    Ok(cleared.map_err(wrong)?.0 != 0)
}
