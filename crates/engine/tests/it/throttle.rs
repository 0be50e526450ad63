//! A provider that takes no more requests: the turn waits, whoever drives it, and asks again.

use async_trait::async_trait;
use outrigger_agent::{ModelFault, Reply, TurnEnd};
use outrigger_model::{Description, Error, Frames, Model, ProviderFailure, Request};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::model::{FakeModel, done, run};
use crate::world::{World, drive, session};

/// Refuses as often as it is told, after its first reply, and notes when it was asked.
#[derive(Debug)]
struct ThrottledModel {
    model: FakeModel,
    began: Instant,
    refusals_ms: Mutex<Vec<u64>>,
    asked_s: Mutex<Vec<u64>>,
}

impl ThrottledModel {
    fn new(refusals_ms: &[u64]) -> Arc<Self> {
        Arc::new(Self {
            model: FakeModel::new(&[run("true"), done()]),
            began: Instant::now(),
            refusals_ms: Mutex::new(refusals_ms.iter().rev().copied().collect()),
            asked_s: Mutex::default(),
        })
    }

    fn asked_s(&self) -> Vec<u64> {
        self.asked_s.lock().unwrap().clone()
    }
}

#[async_trait]
impl Model for ThrottledModel {
    fn describe(&self) -> &Description {
        self.model.describe()
    }

    async fn reply(&self, request: &Request<'_>, frames: &dyn Frames) -> Result<Reply, Error> {
        self.asked_s.lock().unwrap().push(self.began.elapsed().as_secs());
        if request.items.len() > 1
            && let Some(retry_after_ms) = self.refusals_ms.lock().unwrap().pop()
        {
            let cause = ProviderFailure {
                provider: "told".to_owned(),
                attempts: 1,
                status: Some(429),
                message: "slow down".to_owned(),
                retry_after_ms: Some(retry_after_ms),
            };
            return Err(Error::Provider { fault: ModelFault::RateLimited, cause });
        }
        self.model.reply(request, frames).await
    }
}

#[tokio::test(start_paused = true)]
async fn the_wait_outlives_the_driver() {
    let world = World::new().await;
    let model = ThrottledModel::new(&[0, 0, 300_000]);
    let engine = world.engine_on(Arc::new(world.journal.clone()), Arc::clone(&model) as _);
    let session = session("s1");
    let mut spec = world.spec();
    spec.turn.wall_ms_max = 3_600_000;
    engine.open(&session, spec, vec![crate::world::said("go")]).await.unwrap();
    // Each driver is killed in the middle of a wait.
    for killed_after_s in [30, 60, 200] {
        let poke = Notify::new();
        let driving = outrigger_engine::drive(&engine, &session, &poke);
        let killed = tokio::time::timeout(Duration::from_secs(killed_after_s), driving).await;
        assert!(killed.is_err(), "{killed:?}");
    }
    let state = engine.state(&session).await.unwrap();
    assert!(state.in_turn() && state.throttled_until_ms().is_some());
    drive(&engine, &session).await;
    let [first, again @ ..] = &model.asked_s()[..] else { panic!("nobody was asked") };
    let waits: Vec<u64> = again.iter().map(|at| at - first).collect();
    assert_eq!(waits, [0, 60, 180, 480], "once each, when the time has come");
    let state = engine.state(&session).await.unwrap();
    assert_eq!(state.ended(), Some(&TurnEnd::Answered));
}

#[tokio::test(start_paused = true)]
async fn a_person_stops_the_wait() {
    let world = World::new().await;
    let model = ThrottledModel::new(&[600_000]);
    let engine = world.engine_on(Arc::new(world.journal.clone()), Arc::clone(&model) as _);
    let session = session("s1");
    let mut spec = world.spec();
    spec.turn.wall_ms_max = 3_600_000;
    engine.open(&session, spec, vec![crate::world::said("go")]).await.unwrap();
    let stopping = async {
        tokio::time::sleep(Duration::from_secs(30)).await; // poll: none; the clock is paused, this is a person
        engine.interrupt(&session, "person:test").await.unwrap();
    };
    tokio::join!(drive(&engine, &session), stopping);
    let state = engine.state(&session).await.unwrap();
    assert_eq!(state.ended(), Some(&TurnEnd::Interrupted));
    assert_eq!(model.asked_s().len(), 2);
}
