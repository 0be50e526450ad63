//! A store that is busy or full for a while, or does not say whether it stored: what is
//! known already is held, and nothing is bought or done twice.

use async_trait::async_trait;
use outrigger_agent::{Event, Outcome, Seq, SessionId};
use outrigger_engine::{LiveOutput, Notice, Warning};
use outrigger_model::{Description, Error as ModelError, Frames, Model, Request};
use outrigger_store::{
    Before, CachedSnapshot, Error, Journal, Memory, Page, SessionRow, SessionSnapshot,
    SessionSummary, VerifiedSession, load_all,
};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use crate::model::{FakeModel, done, run};
use crate::world::{World, drive};

/// What a store says instead of doing what it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Busy,
    NoSpace,
    /// It stored it.
    UncertainStored,
    /// It did not.
    UncertainLost,
}

/// A journal that says so to the first appends with an outcome, so often.
#[derive(Debug)]
struct Away {
    inner: Memory,
    says: Says,
    left: AtomicU32,
    /// Reads fail as well until so many failed.
    reads_left: AtomicU32,
}

fn take(left: &AtomicU32) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

impl Away {
    fn error(&self) -> Error {
        let source = Arc::new(io::Error::other("told to"));
        match self.says {
            Says::Busy => Error::Busy { doing: "testing", source },
            Says::NoSpace => Error::NoSpace { doing: "testing", source },
            Says::UncertainStored | Says::UncertainLost => Error::Uncertain { source },
        }
    }

    fn readable(&self) -> Result<(), Error> {
        if take(&self.reads_left) {
            let source = Arc::new(io::Error::other("told to"));
            return Err(Error::Busy { doing: "testing", source });
        }
        Ok(())
    }
}

#[async_trait]
impl Journal for Away {
    async fn append(
        &self,
        session: &SessionId,
        after: Seq,
        at_ms: u64,
        events: &[Event],
        summary: SessionSummary,
    ) -> Result<Seq, Error> {
        let settles = events.iter().any(|event| matches!(event, Event::Settled { .. }));
        if settles && take(&self.left) {
            if self.says == Says::UncertainStored {
                self.inner.append(session, after, at_ms, events, summary).await?;
            }
            return Err(self.error());
        }
        self.inner.append(session, after, at_ms, events, summary).await
    }

    async fn load(&self, session: &SessionId, after: Seq) -> Result<Page, Error> {
        self.readable()?;
        self.inner.load(session, after).await
    }

    async fn head(&self, session: &SessionId) -> Result<Seq, Error> {
        self.readable()?;
        self.inner.head(session).await
    }

    async fn sessions(
        &self,
        before: Option<Before>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, Error> {
        self.inner.sessions(before, limit).await
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionRow>, Error> {
        self.inner.session(session).await
    }

    async fn keep_snapshot(
        &self,
        session: &SessionId,
        snapshot: SessionSnapshot,
    ) -> Result<(), Error> {
        self.inner.keep_snapshot(session, snapshot).await
    }

    async fn snapshot(&self, session: &SessionId, version: u32) -> Result<CachedSnapshot, Error> {
        self.inner.snapshot(session, version).await
    }

    async fn verify(&self, session: &SessionId) -> Result<VerifiedSession, Error> {
        self.inner.verify(session).await
    }
}

/// Counts how often it is asked.
#[derive(Debug)]
struct Paid {
    inner: FakeModel,
    asked: Mutex<u32>,
}

#[async_trait]
impl Model for Paid {
    fn describe(&self) -> &Description {
        self.inner.describe()
    }

    async fn reply(
        &self,
        request: &Request<'_>,
        frames: &dyn Frames,
    ) -> Result<outrigger_agent::Reply, ModelError> {
        *self.asked.lock().unwrap() += 1;
        self.inner.reply(request, frames).await
    }
}

/// Plays a session with two replies and a command while the store is away; says how often
/// the model was asked, and whether anybody was told.
async fn played(says: Says, left: u32, reads_left: u32) -> (World, u32, bool) {
    let world = World::new().await;
    let steps = [run("append log x"), done()];
    let model = Arc::new(Paid { inner: FakeModel::new(&steps), asked: Mutex::default() });
    let (left, reads_left) = (AtomicU32::new(left), AtomicU32::new(reads_left));
    let away = Away { inner: world.journal.clone(), says, left, reads_left };
    let engine = world.engine_on(Arc::new(away), Arc::clone(&model) as _);
    let mut heard = engine.feed().listen();
    let session = world.open(&engine, "s1").await;
    drive(&engine, &session).await;
    let mut told = false;
    while let Ok((_, notice)) = heard.try_recv() {
        told |= matches!(notice, Notice::Warning(Warning::StoreAway { .. }));
        assert!(!matches!(notice, Notice::Live(_, LiveOutput::Retrying { .. })));
    }
    let asked = *model.asked.lock().unwrap();
    (world, asked, told)
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_was_paid_for_and_a_command_that_ran_are_held() {
    for (says, left, tells) in [
        (Says::Busy, 40, true),
        (Says::NoSpace, 40, true),
        (Says::UncertainStored, 3, false),
        (Says::UncertainLost, 3, false),
    ] {
        for reads_left in [0, 3] {
            let (world, asked, told) = played(says, left, reads_left).await;
            assert_eq!(asked, 2, "{says:?}: each reply is bought once");
            assert_eq!(told, tells || reads_left > 0, "{says:?}");
            let session = crate::world::session("s1");
            let mut settled = Vec::new();
            load_all(&world.journal, &session, Seq(0), |record| {
                if let Event::Settled { effect, outcome, .. } = record.event {
                    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
                    settled.push(effect);
                }
            })
            .await
            .unwrap();
            let mut once = settled.clone();
            once.dedup();
            assert_eq!(settled, once, "{says:?}: nothing is settled twice");
            assert_eq!(settled.len(), 4, "{says:?}: two replies, a sandbox, a command");
            let log = world.spy.inner.peek(&crate::world::work(&session), "/workspace/log");
            assert_eq!(log.as_deref(), Some(&b"x"[..]), "{says:?}: it ran once");
        }
    }
}
