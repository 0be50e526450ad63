//! Who drives which session. The embedded host: one task per runnable session.

use async_trait::async_trait;
use outrigger_agent::{Park, SessionId};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, watch};

use crate::driver::step;
use crate::sandbox::suspend;
use crate::{Engine, Error, TaskKind, Tasks, limits};

/// Sees to it that sessions are driven. Pokes are at-least-once and harmless.
#[async_trait]
pub trait Host: Send + Sync + Debug {
    /// Something was appended to the session: it is driven until it waits again.
    ///
    /// # Errors
    /// [`Error::TooManySessions`].
    fn poke(&self, session: &SessionId) -> Result<(), Error>;

    /// Waits until the session waits for something, or its driver was stopped.
    ///
    /// # Errors
    /// What stopped its driver.
    async fn parked(&self, session: &SessionId) -> Result<Park, Arc<Error>>;
}

type Ending = Option<Result<Park, Arc<Error>>>;

/// How a driver is told that something was appended.
#[derive(Debug, Default)]
struct Poke {
    wake: Notify,
    /// Set by a poke, taken by the driver when it parks: a poke that comes while
    /// it is parking is not lost.
    pending: AtomicBool,
}

#[derive(Debug, Clone)]
struct DriverHandle {
    poke: Arc<Poke>,
    ending: watch::Receiver<Ending>,
}

type DriverTable = Arc<Mutex<HashMap<SessionId, DriverHandle>>>;

const TABLE: &str = "no driver panics while it holds the table";

/// Drives sessions in this process.
#[derive(Debug)]
pub struct EmbeddedHost {
    engine: Engine,
    tasks: Tasks,
    drivers: DriverTable,
    after: AfterPark,
}

/// What a host does with a session that waits, after it said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterPark {
    Leave,
    Suspend,
}

impl EmbeddedHost {
    /// A host without sessions. Who waits for one still has use for its sandboxes, and
    /// calls [`suspend`](crate::suspend) or [`discard`](crate::discard) when not any more.
    #[must_use]
    pub fn new(engine: Engine) -> Self {
        Self { engine, tasks: Tasks::default(), drivers: Arc::default(), after: AfterPark::Leave }
    }

    /// A host without sessions, which calls [`suspend`](crate::suspend) by itself, right after it
    /// said that a session waits.
    #[must_use]
    pub fn suspending(engine: Engine) -> Self {
        Self { after: AfterPark::Suspend, ..Self::new(engine) }
    }
}

#[async_trait]
impl Host for EmbeddedHost {
    fn poke(&self, session: &SessionId) -> Result<(), Error> {
        let mut drivers = self.drivers.lock().expect(TABLE);
        if let Some(running) = drivers.get(session)
            && running.ending.borrow().is_none()
        {
            running.poke.pending.store(true, Ordering::Release);
            running.poke.wake.notify_one();
            return Ok(());
        }
        if drivers.len() >= limits::SESSIONS_MAX {
            drivers.retain(|_, driver| driver.ending.borrow().is_none());
        }
        if drivers.len() >= limits::SESSIONS_MAX {
            return Err(Error::TooManySessions(drivers.len()));
        }
        let (tell, ending) = watch::channel(None);
        let poke = Arc::new(Poke::default());
        drivers.insert(session.clone(), DriverHandle { poke: Arc::clone(&poke), ending });
        let (engine, session, table) =
            (self.engine.clone(), session.clone(), Arc::clone(&self.drivers));
        let after = self.after;
        self.tasks.spawn(TaskKind::Driver, async move {
            drive_while_poked(&engine, &session, &poke, &table, &tell).await;
            if after == AfterPark::Suspend {
                // What went wrong is told to who listens, and tried again the next time.
                drop(suspend::suspend(&engine, &session).await);
            }
        });
        Ok(())
    }

    async fn parked(&self, session: &SessionId) -> Result<Park, Arc<Error>> {
        let ending = {
            let drivers = self.drivers.lock().expect(TABLE);
            drivers.get(session).map(|driver| driver.ending.clone())
        };
        let mut ending = ending.ok_or_else(|| Arc::new(Error::NotFound(session.clone())))?;
        let lost = || Arc::new(Error::Driver(session.clone()));
        let ended = ending.wait_for(Option::is_some).await.map_err(|_| lost())?.clone();
        ended.ok_or_else(lost)?
    }
}

async fn drive_while_poked(
    engine: &Engine,
    session: &SessionId,
    poke: &Poke,
    table: &DriverTable,
    tell: &watch::Sender<Ending>,
) {
    loop {
        poke.pending.store(false, Ordering::Release);
        let ending = step::drive(engine, session, &poke.wake).await.map_err(Arc::new);
        // Pokes take the same lock, so that each is seen here or starts a new driver.
        let _table = table.lock().expect(TABLE);
        if ending.is_ok() && poke.pending.load(Ordering::Acquire) {
            continue;
        }
        // Nobody waiting is fine.
        drop(tell.send(Some(ending)));
        return;
    }
}
