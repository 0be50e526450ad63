//! A storm: several hosts drive one session at the same moment, die and come back under
//! other rules, while the store, the backend and the model fail, the sandbox is lost,
//! and people stop, steer, answer late, twice and against each other. When it is over
//! the session must come to its end, or wait for a named reason.

use futures_util::future::{join_all, join3};
use outrigger_agent::{Author, Message, Park};
use outrigger_engine::{Engine, Error, workspace};
use outrigger_sandbox::fake::Disk;
use outrigger_sandbox::{Snapshots, Suspend};
use std::time::Duration;

use crate::crash::Death;
use crate::invariants::check;
use crate::rules::Kind;
use crate::tally::Happening;
use crate::world::{Harness, World, drive};
use crate::{Violation, limits, stopped};

fn moment(rng: &mut fastrand::Rng, most_ms: u64) -> Duration {
    Duration::from_millis(rng.u64(..most_ms))
}

/// Runs a session through a storm.
pub(crate) async fn run(world: &World, mut rng: fastrand::Rng) -> Result<(), Violation> {
    for round in 0..limits::STARTS_MAX {
        if round < limits::STORMY_ROUNDS {
            world.rage(&mut rng).await?;
        }
        let kind = Kind::any(&mut rng);
        let calm = world.harness(kind, Death::Never, None);
        let park = drive(&calm.engine, &world.session).await;
        let park = match park {
            Ok(park) => park,
            // What is on its way from before still gets in between.
            Err(Error::Contended(_)) => continue,
            Err(error) => return Err(Violation::Engine(workspace::explain(&error))),
        };
        world.witness.verdict()?;
        if let Park::Answers(_) = &park {
            let state = calm.engine.state(&world.session).await;
            let state = state.map_err(|error| Violation::Engine(workspace::explain(&error)))?;
            world.answer_somehow(&state, &mut rng).await?;
            continue;
        }
        if !world.witness.is_quiet() || round + 1 < limits::STORMY_ROUNDS {
            tokio::time::sleep(Duration::from_millis(limits::STORM_MS_MAX)).await;
            continue;
        }
        let records = world.records().await;
        check(world, &records).await?;
        return stopped::check(&records, &park);
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

    /// A host that drives the session, dies and is started again.
    async fn host(&self, mut rng: fastrand::Rng) -> Result<(), Violation> {
        for _ in 0..rng.u64(1..=limits::LIVES_MAX) {
            tokio::time::sleep(moment(&mut rng, limits::MOMENT_MS_MAX / 4)).await;
            let kind = if rng.bool() { self.kind } else { Kind::any(&mut rng) };
            let Harness { engine, journal } = self.harness(kind, Death::Never, Some(&mut rng));
            let life = drive(&engine, &self.session);
            let ended = if rng.bool() {
                tokio::time::timeout(moment(&mut rng, limits::STORM_MS_MAX), life).await.ok()
            } else {
                Some(life.await)
            };
            match ended {
                None => self.witness.count(Happening::KilledBetween),
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
            tokio::time::sleep(moment(&mut rng, limits::STORM_MS_MAX / 2)).await;
            let engine = self.bystander();
            let by = "person:other";
            let meddled = match rng.u8(..8) {
                0..3 => self.steer(&engine).await,
                3..5 => engine.interrupt(&self.session, by).await,
                5..7 => engine.resume(&self.session, by, None, None).await,
                _ => engine.cancel(&self.session, by, "simulated").await,
            };
            match meddled {
                Ok(()) | Err(Error::Ended(_) | Error::Contended(_)) => {}
                Err(error) => return Err(Violation::Engine(workspace::explain(&error))),
            }
        }
        Ok(())
    }

    async fn steer(&self, engine: &Engine) -> Result<(), Error> {
        let author = Author::Person("person:other".to_owned());
        let message = Message { author, text: "wait, this too".to_owned() };
        engine.say(&self.session, message).await?;
        self.witness.count(Happening::Steered);
        Ok(())
    }
}
