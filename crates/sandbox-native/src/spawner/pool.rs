//! Sandboxes that are kept ready.
//!
//! Owns those that live and have no name yet: each is like the last one that was made,
//! so that the next is made by a rename. They are nobody's: no list shows them, they
//! keep no spawner alive and end with it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use outrigger_sandbox::{Error, Generation, Isolation, Lifetime, Origin, SandboxId, Spec};

use super::about::{About, now_ms};
use super::backend;
use super::change::Make;
use super::layers::Layer;
use super::live::Living;
use super::origin::Stack;
use super::record;
use super::sandboxes::{Birth, Disk};
use super::serve::Spawner;
use super::waits::Source;
use crate::limits;

/// What sandboxes must have in common to be made ready before they are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    spec: Spec,
    read_only: Vec<PathBuf>,
    layers: Vec<Layer>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Pool {
    kind: Option<Kind>,
    most: usize,
    ready: Vec<Living>,
    /// Those that were told to end.
    ending: Vec<Living>,
}

impl Kind {
    fn of(make: &Make, layers: Vec<Layer>) -> Option<Self> {
        let Origin::Template(_) = make.spec.origin else { return None };
        // Both are no matter of how it is made.
        let spec = Spec {
            lifetime: Lifetime::default(),
            isolation_min: Isolation::Fake,
            ..make.spec.clone()
        };
        Some(Self { spec, read_only: make.read_only.clone(), layers })
    }
}

impl Pool {
    /// Layers that those which are ready stand on.
    pub(super) fn layers(&self) -> impl Iterator<Item = &Layer> {
        self.kind.iter().flat_map(|kind| &kind.layers)
    }

    /// The one of that name, if it ended. One that spoke without being asked is told to end.
    fn take_ended(&mut self, generation: &Generation) -> Option<Living> {
        for all in [&mut self.ready, &mut self.ending] {
            let Some(at) = all.iter().position(|living| living.generation == *generation) else {
                continue;
            };
            if all[at].has_ended() {
                return Some(all.swap_remove(at));
            }
            all[at].kill();
        }
        None
    }
}

impl Spawner {
    /// When there is one to be made ready.
    pub(super) fn rest(&self) -> Option<Duration> {
        let wanted = self.pool.kind.is_some() && self.pool.ready.len() < self.pool.most;
        let free = self.changes.is_empty() && self.sandboxes.has_room().is_ok();
        (wanted && free).then(|| Duration::from_millis(limits::WARM_REST_MS))
    }

    /// Notes what was made, so that the next one like it is ready.
    pub(super) fn expect_more(&mut self, make: &Make, layers: Vec<Layer>) {
        let kind = Kind::of(make, layers);
        if make.warm == 0 || kind.is_none() {
            return;
        }
        self.pool.most =
            usize::try_from(make.warm).map_or(limits::WARM_MAX, |warm| warm.min(limits::WARM_MAX));
        if kind != self.pool.kind {
            self.pool.kind = kind;
            for living in std::mem::take(&mut self.pool.ready) {
                living.kill();
                self.pool.ending.push(living);
            }
        }
    }

    /// Makes one ready. One that can't be made is not tried again until the next is asked for.
    pub(super) fn make_ready(&mut self) {
        if self.rest().is_some() && self.try_make_ready().is_err() {
            self.pool.most = 0;
        }
    }

    fn try_make_ready(&mut self) -> Result<(), Error> {
        let Some(kind) = self.pool.kind.clone() else { return Ok(()) };
        let Stack { template, layers } = self.sandboxes.stack_of(&kind.spec.origin)?;
        let (lowers, _) = self.sandboxes.store.stack(&layers)?;
        let generation = Self::fresh()?;
        let place = self.sandboxes.store.ready(&generation);
        self.sandboxes.begin_disk(&place, &template, &layers);
        let mut living = self
            .sandboxes
            .expect(Birth {
                place: &place,
                spec: &kind.spec,
                read_only: &kind.read_only,
                template: &template,
                lowers,
                generation: generation.clone(),
                kept: None,
            })?
            .await_birth()?;
        self.sandboxes.refill();
        // So that its file is there when it gets a name.
        let about = About {
            origin: kind.spec.origin.clone(),
            template,
            layers,
            sealing: None,
            made_at_ms: now_ms(),
            lifetime: Lifetime::default(),
        };
        let noted = record::fill(&place.about(), &about);
        let source = || Source::Ready(generation.clone());
        let awaited = living.await_by(&mut self.sandboxes.waits, source(), source());
        if let Err(error) = noted.and(awaited) {
            living.bury(&mut self.sandboxes.waits);
            return Err(backend("cannot wait", &error));
        }
        self.pool.ready.push(living);
        Ok(())
    }

    /// Gives one that is ready its name, if there is one like that.
    pub(super) fn adopt(
        &mut self,
        id: &SandboxId,
        make: &Make,
        about: &About,
    ) -> Option<Result<(), Error>> {
        let kind = Kind::of(make, about.layers.clone());
        if kind.is_none() || kind != self.pool.kind {
            return None;
        }
        let mut living = self.pool.ready.pop()?;
        if living.has_ended() {
            self.pool.ending.push(living);
            return None;
        }
        let from = self.sandboxes.store.ready(&living.generation);
        let place = self.sandboxes.store.disk(id);
        let named = record::fill(&from.about(), about)
            .and_then(|()| fs::rename(from.dir(), place.dir()))
            .and_then(|()| {
                let waits = &mut self.sandboxes.waits;
                living.await_by(waits, Source::Ended(id.clone()), Source::Said(id.clone()))
            });
        if let Err(error) = named {
            living.kill();
            self.pool.ending.push(living);
            return Some(Err(backend("cannot name the sandbox", &error)));
        }
        living.spec = make.spec.clone();
        living.active = std::time::Instant::now();
        let disk = Disk { about: Some(about.clone()), used_at_ms: about.made_at_ms, cold: None };
        self.sandboxes.disks.insert(id.clone(), disk);
        self.sandboxes.living.insert(id.clone(), living);
        Some(Ok(()))
    }

    /// One that was ready ended.
    pub(super) fn unready(&mut self, generation: &Generation) {
        let Some(living) = self.pool.take_ended(generation) else { return };
        self.sandboxes.release(&living.lease);
        living.bury(&mut self.sandboxes.waits);
        let place = self.sandboxes.store.ready(generation);
        if let Ok(Some(_)) = self.sandboxes.store.discard(place.dir()) {
            self.clean();
        }
    }

    /// Ends all of them.
    pub(super) fn dismiss(&mut self) {
        let pool = std::mem::take(&mut self.pool);
        for living in pool.ready.into_iter().chain(pool.ending) {
            living.bury(&mut self.sandboxes.waits);
        }
    }
}
