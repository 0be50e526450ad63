//! A concurrent run: several hosts drive one session at the same moment, die and come back under
//! other rules, while the store, the backend and the model fail, the sandbox is lost,
//! and people stop, steer, answer late, twice and against each other. When it is over
//! the session must come to its end, or wait for a named reason.

use futures_util::future::{join_all, join3};
use outrigger_agent::{Author, Message, Park, SessionId};
use outrigger_engine::{Engine, Error, ResumeChange, workspace};
use outrigger_sandbox::{Snapshots, Suspend};
use outrigger_sandbox_testing::fake::Disk;
use std::time::Duration;

use crate::crash::Death;
use crate::invariants::{check, check_nothing_left};
use crate::rules::Kind;
use crate::tally::Happening;
use crate::world::{Harness, World, drive};
use crate::{Violation, limits, stopped};

fn moment(rng: &mut fastrand::Rng, most_ms: u64) -> Duration {
    Duration::from_millis(rng.u64(..most_ms))
}

/// Runs a session through a concurrent run.
pub(crate) async fn run(world: &World, mut rng: fastrand::Rng) -> Result<(), Violation> {
    if world.roots.len() > 1 {
        world.limit_all(&mut rng).await;
    }
    for round in 0..limits::STARTS_MAX {
        if round < limits::DISTURBED_ROUNDS {
            world.rage(&mut rng).await?;
        }
        let kind = Kind::any(&mut rng);
        let calm = world.harness(kind, Death::Never, None);
        let parks = join_all(world.roots.iter().map(|root| drive(&calm.engine, root))).await;
        let parks = match parks.into_iter().collect::<Result<Vec<_>, _>>() {
            Ok(parks) => parks,
            // What is on its way from before still gets in between.
            Err(Error::Contended(_)) => continue,
            Err(error) => return Err(Violation::Engine(workspace::explain(&error))),
        };
        world.witness.verdict()?;
        if parks.iter().any(|park| matches!(park, Park::Answers(_))) {
            world.answer_all(&mut rng).await?;
            continue;
        }
        if !world.witness.is_quiet() || round + 1 < limits::DISTURBED_ROUNDS {
            tokio::time::sleep(Duration::from_millis(limits::CONCURRENT_MS_MAX)).await;
            continue;
        }
        world.wait_for_those_below(&calm.engine).await?;
        check(world).await?;
        for session in world.witness.sessions() {
            let root = world.roots.iter().position(|root| *root == session);
            let park = root.and_then(|root| parks.get(root)).unwrap_or(&Park::Cancelled);
            stopped::check(&world.records(&session).await, park)?;
        }
        return Ok(());
    }
    Err(Violation::Livelock(limits::STARTS_MAX))
}

impl World {
    /// One round.
    async fn rage(&self, rng: &mut fastrand::Rng) -> Result<(), Violation> {
        let hosts = rng.usize(1..=limits::HOSTS_MAX);
        if hosts > 1 {
            self.witness.count(Happening::Hosts);
        }
        let hosts = join_all((0..hosts).map(|_| self.host(rng.fork())));
        let (hosts, (), person) =
            join3(hosts, self.weather(rng.fork()), self.meddle(rng.fork())).await;
        hosts.into_iter().collect::<Result<(), _>>().and(person)
    }

    /// Answers all that is asked, of any session.
    async fn answer_all(&self, rng: &mut fastrand::Rng) -> Result<(), Violation> {
        for session in self.witness.sessions() {
            let state = self.state(&session).await;
            if !self.roots.contains(&session) && state.asked().next().is_some() {
                self.witness.count(Happening::ChildWaited);
            }
            self.answer_somehow(&session, &state, rng).await?;
        }
        Ok(())
    }

    /// A stop that took too long goes on behind the session that is over: subagents end
    /// all the same, and what is left of them is collected.
    async fn wait_for_those_below(&self, engine: &Engine) -> Result<(), Violation> {
        for _ in 0..limits::ENDINGS_MAX {
            if self.witness.open_below().is_none() && self.witness.is_quiet() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(limits::CONCURRENT_MS_MAX)).await;
        }
        // What was used in this very millisecond is left alone.
        tokio::time::sleep(Duration::from_millis(limits::CONCURRENT_MS_MAX)).await;
        outrigger_engine::gc(engine, 0).await;
        check_nothing_left(self).await
    }

    /// A session to do something with: mostly the one that people began.
    fn somebody(&self, rng: &mut fastrand::Rng) -> SessionId {
        let below = self.witness.below();
        if below.is_empty() || rng.bool() {
            return self.roots[rng.usize(..self.roots.len())].clone();
        }
        below[rng.usize(..below.len())].clone()
    }

    /// A host that drives the session, dies and is started again.
    async fn host(&self, mut rng: fastrand::Rng) -> Result<(), Violation> {
        for _ in 0..rng.u64(1..=limits::LIVES_MAX) {
            tokio::time::sleep(moment(&mut rng, limits::MOMENT_MS_MAX / 4)).await;
            let kind = if rng.bool() { self.kind } else { Kind::any(&mut rng) };
            let Harness { engine, journal } = self.harness(kind, Death::Never, Some(&mut rng));
            let session = self.somebody(&mut rng);
            if !self.roots.contains(&session) {
                self.witness.count(Happening::ChildDriven);
            }
            let life = drive(&engine, &session);
            let ended = if rng.bool() {
                tokio::time::timeout(moment(&mut rng, limits::CONCURRENT_MS_MAX), life).await.ok()
            } else {
                Some(life.await)
            };
            match ended {
                None => journal.kill(Happening::KilledBetween),
                Some(Ok(_) | Err(Error::Contended(_))) => {}
                Some(Err(Error::Journal { .. })) if journal.was_disturbed() => {}
                Some(Err(error)) => return Err(Violation::Engine(workspace::explain(&error))),
            }
        }
        Ok(())
    }

    /// What befalls the sandbox.
    async fn weather(&self, mut rng: fastrand::Rng) {
        for _ in 0..rng.u8(..3) {
            tokio::time::sleep(moment(&mut rng, limits::MOMENT_MS_MAX)).await;
            match rng.u8(..5) {
                0 => self.lose(Disk::Kept),
                1 => self.lose(Disk::Dropped),
                2 => self.suspend(Suspend::Frozen).await,
                3 => self.suspend(Suspend::Cold).await,
                _ => {
                    self.lose_snapshots().await;
                    self.lose(Disk::Dropped);
                }
            }
        }
    }

    async fn lose_snapshots(&self) {
        let kept = Snapshots::list(&self.sandboxes).await.unwrap_or_default();
        for snapshot in kept {
            self.witness.count(Happening::LostSnapshots);
            drop(self.sandboxes.remove(&snapshot.name).await);
        }
    }

    /// People who say something, stop the turn, let it go on, or end the session.
    async fn meddle(&self, mut rng: fastrand::Rng) -> Result<(), Violation> {
        for _ in 0..rng.u8(..3) {
            tokio::time::sleep(moment(&mut rng, limits::CONCURRENT_MS_MAX / 2)).await;
            let engine = self.bystander();
            let by = "person:other";
            let session = self.somebody(&mut rng);
            if self.roots.len() > 1 && rng.bool() {
                self.switch(true).await;
                tokio::time::sleep(moment(&mut rng, limits::CONCURRENT_MS_MAX / 2)).await;
                self.switch(false).await;
            }
            let meddled = match rng.u8(..8) {
                0..3 => self.steer(&engine, &session).await,
                3..5 => engine.interrupt(&session, by).await,
                5..7 => engine.resume(&session, by, ResumeChange::default()).await,
                _ => engine.cancel(&session, by, "simulated").await,
            };
            match meddled {
                Ok(()) if !self.roots.contains(&session) => {
                    self.witness.count(Happening::ChildMeddled);
                }
                Ok(()) | Err(Error::Ended(_) | Error::Contended(_) | Error::Subagent { .. }) => {}
                Err(error) => return Err(Violation::Engine(workspace::explain(&error))),
            }
        }
        Ok(())
    }

    async fn steer(&self, engine: &Engine, session: &SessionId) -> Result<(), Error> {
        let author = Author::Person("person:other".to_owned());
        let message = Message::new(author, "wait, this too".to_owned());
        engine.say(session, message).await?;
        self.witness.count(Happening::Steered);
        Ok(())
    }
}
