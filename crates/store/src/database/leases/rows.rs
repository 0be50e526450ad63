//! Leases that are rows of PostgreSQL, and the one connection by which this process lives.
//!
//! Owns that connection. It holds a lock in the name of the process, and of its server: with the
//! connection the lock is gone, and what the process holds is free. PostgreSQL itself ends it when
//! nothing is heard over it for a while, so that a machine that stands still holds nothing either.
//! A process that comes back asks which sessions are still its own.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use outrigger_agent::SessionId;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::MissedTickBehavior;

use super::super::notices::Notices;
use super::super::postgres::{PostgresAddress, PostgresServer};
use super::purpose::LeasePurpose;
use crate::sql::connection::DatabaseConnection;
use crate::sql::{fault, leases};
use crate::{Error, limits};

fn wrong(error: sqlx::Error) -> Error {
    fault::of("asking who has a session", error)
}

/// A session that this process holds, unless it was taken for dead.
#[derive(Debug)]
pub(super) struct RowLease {
    session: SessionId,
    number: u64,
    lost: watch::Receiver<()>,
    requests: mpsc::UnboundedSender<Request>,
    /// With it the connection would end.
    _database: Arc<PostgresServer>,
}

impl RowLease {
    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    pub(super) fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut lost = self.lost.clone();
        // Nothing is ever sent: who holds it forgets it when it is lost.
        async move { while lost.changed().await.is_ok() {} }
    }
}

impl Drop for RowLease {
    fn drop(&mut self) {
        let (session, number) = (self.session.clone(), self.number);
        // Without anybody who hears it the connection is gone too.
        drop(self.requests.send(Request::Release(session, number)));
    }
}

/// Asks for leases.
#[derive(Debug)]
pub(super) struct RowLeases {
    requests: mpsc::UnboundedSender<Request>,
    database: Arc<PostgresServer>,
}

#[derive(Debug)]
enum Request {
    Take(SessionId, LeasePurpose, oneshot::Sender<Result<Option<RowLease>, Error>>),
    Release(SessionId, u64),
    Serve,
}

impl RowLeases {
    /// Begins to wait for requests. Nothing is opened before the first.
    pub(super) fn start(database: &Arc<PostgresServer>, who: (i64, i64)) -> Self {
        let (requests, waiting) = mpsc::unbounded_channel();
        let holder = LeaseHolder {
            address: database.address().clone(),
            connection: None,
            who,
            serves: false,
            held: HashMap::new(),
            last: 0,
            requests: requests.downgrade(),
            database: Arc::downgrade(database),
        };
        drop(database.sockets().spawn(holder.run(waiting)));
        Self { requests, database: Arc::clone(database) }
    }

    pub(super) async fn take(
        &self,
        session: &SessionId,
        purpose: LeasePurpose,
    ) -> Result<Option<RowLease>, Error> {
        for _ in 0..limits::LEASE_ROW_LOOKS_MAX {
            let (answer, answered) = oneshot::channel();
            let request = Request::Take(session.clone(), purpose, answer);
            self.requests.send(request).map_err(|_| Error::Closed)?;
            let taken = answered.await.unwrap_or(Err(Error::Closed))?;
            if taken.is_some() {
                return Ok(taken);
            }
            // One that only looks is done soon.
            tokio::time::sleep(Duration::from_millis(limits::LEASE_PAUSE_MS)).await;
        }
        Ok(None)
    }

    pub(super) fn serve(&self) {
        // Without anybody who hears it nothing is leased either.
        drop(self.requests.send(Request::Serve));
    }

    /// What other processes than that one change from now on.
    pub(super) fn listen(&self, process: i64) -> Notices {
        Notices::of(&self.database, process)
    }
}

struct HeldRow {
    number: u64,
    /// Dropped when it is lost.
    _lost: watch::Sender<()>,
}

struct LeaseHolder {
    address: PostgresAddress,
    connection: Option<DatabaseConnection>,
    /// This process and its server.
    who: (i64, i64),
    serves: bool,
    held: HashMap<SessionId, HeldRow>,
    last: u64,
    // Weak, so that it ends with whoever could ask for anything.
    requests: mpsc::WeakUnboundedSender<Request>,
    database: Weak<PostgresServer>,
}

impl LeaseHolder {
    async fn run(mut self, mut waiting: mpsc::UnboundedReceiver<Request>) {
        let mut pings = tokio::time::interval(Duration::from_millis(limits::LEASE_PING_MS));
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                request = waiting.recv() => match request {
                    Some(request) => self.perform(request).await,
                    None => return,
                },
                _ = pings.tick(), if self.serves || !self.held.is_empty() => {
                    // What fails is tried again at the next.
                    drop(self.live().await);
                }
            }
        }
    }

    async fn perform(&mut self, request: Request) {
        match request {
            Request::Take(session, purpose, answer) => {
                let taken = self.take(session, purpose).await;
                // Whoever does not wait any more gives it back.
                drop(answer.send(taken));
            }
            Request::Release(session, number) => {
                if self.held.get(&session).is_none_or(|held| held.number != number) {
                    return;
                }
                self.held.remove(&session);
                let process = self.who.0;
                let release = async |connection: &mut DatabaseConnection| {
                    leases::release(connection, &session, process).await
                };
                // What can't be given back now is when this process lives again.
                drop(self.within(release).await);
            }
            Request::Serve => {
                self.serves = true;
                self.connection = None;
                drop(self.live().await);
            }
        }
    }

    async fn take(
        &mut self,
        session: SessionId,
        purpose: LeasePurpose,
    ) -> Result<Option<RowLease>, Error> {
        let requests = self.requests.upgrade().ok_or(Error::Closed)?;
        let database = self.database.upgrade().ok_or(Error::Closed)?;
        if self.held.contains_key(&session) {
            return Ok(None);
        }
        let (who, moves) = (self.who, purpose == LeasePurpose::Drive);
        let take = async |connection: &mut DatabaseConnection| {
            leases::take(connection, &session, who, moves).await
        };
        if !self.within(take).await? {
            return Ok(None);
        }
        self.last += 1;
        let (number, (tell, lost)) = (self.last, watch::channel(()));
        self.held.insert(session.clone(), HeldRow { number, _lost: tell });
        Ok(Some(RowLease { session, number, lost, requests, _database: database }))
    }

    /// Says that this process lives, and makes the connection anew where it is gone.
    async fn live(&mut self) -> Result<(), Error> {
        let process = self.who.0;
        self.within(async |connection| leases::live_still(connection, process).await).await
    }

    /// Does something over the connection. One that gives no answer in time is as good as lost.
    async fn within<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut DatabaseConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, Error> {
        let most = Duration::from_millis(limits::LEASE_ANSWER_MS_MAX);
        let done = tokio::time::timeout(most, async {
            self.connect().await?;
            let connection = self.connection.as_mut().ok_or(Error::Closed)?;
            work(connection).await.map_err(wrong)
        });
        let done = done.await.unwrap_or_else(|late| {
            Err(Error::io("asking who has a session", std::io::Error::other(late)))
        });
        if done.is_err() {
            self.connection = None;
        }
        done
    }

    async fn connect(&mut self) -> Result<(), Error> {
        if self.connection.is_some() {
            return Ok(());
        }
        let mut connection = self.address.leasing().await?;
        let (process, server) = self.who;
        leases::live(&mut connection, process).await.map_err(wrong)?;
        if self.serves {
            leases::live(&mut connection, server).await.map_err(wrong)?;
        }
        // From here on nobody takes anything from this process; what was taken is lost.
        let rows = leases::held(&mut connection, process).await.map_err(wrong)?;
        self.held.retain(|session, _| rows.contains(session));
        for session in rows.iter().filter(|session| !self.held.contains_key(session)) {
            leases::release(&mut connection, session, process).await.map_err(wrong)?;
        }
        self.connection = Some(connection);
        Ok(())
    }
}
