//! A fake sandbox that was made and not destroyed: its disk, its life and how long
//! it is kept.
//!
//! Knows the time only as it is told. It must never wait.

use std::time::Duration;
use tokio::time::Instant;

use super::life::Life;
use super::tree::Tree;
use outrigger_sandbox::{
    CreateOutcome, CreateSpec, DiskOrigin, Error, Generation, LifecycleState, Lifetime,
    ListedSandbox, SandboxId, Suspend,
};

/// A sandbox with its disk, alive or not.
#[derive(Debug)]
pub(super) struct FakeSandbox {
    pub(super) tree: Tree,
    life: Option<Life>,
    suspended: Option<Suspend>,
    /// How often it went cold: a handle from before is lost.
    colds: u64,
    origin: DiskOrigin,
    lifetime: Lifetime,
    made: Instant,
    /// The last request.
    touched: Instant,
    made_at_ms: u64,
    used_at_ms: u64,
}

impl FakeSandbox {
    pub(super) fn new(tree: Tree, spec: &CreateSpec, now: Instant, now_ms: u64) -> Self {
        Self {
            tree,
            life: None,
            suspended: None,
            colds: 0,
            origin: spec.origin.clone(),
            lifetime: spec.lifetime,
            made: now,
            touched: now,
            made_at_ms: now_ms,
            used_at_ms: now_ms,
        }
    }

    /// Does everything that is due by now. Says whether there still is such a sandbox.
    pub(super) fn settle(&mut self, now: Instant) -> bool {
        if self.expires().is_some_and(|at| at <= now) {
            return false;
        }
        if let Some(life) = &mut self.life {
            life.advance(&mut self.tree, now);
            let idle_since = life.rested().max(self.touched);
            if let Some(idle_ms) = self.lifetime.idle_ms_max
                && life.running() == 0
                && idle_since + Duration::from_millis(idle_ms) <= now
            {
                self.suspend(Suspend::Cold);
            }
        }
        true
    }

    /// When it is destroyed by itself.
    pub(super) fn expires(&self) -> Option<Instant> {
        self.lifetime.age_ms_max.map(|age_ms| self.made + Duration::from_millis(age_ms))
    }

    /// Its life, if commands can run in it and it is still this one.
    pub(super) fn living(&self, generation: &Generation, colds: u64) -> Option<&Life> {
        let awake = self.colds == colds && self.suspended != Some(Suspend::Cold);
        self.life.as_ref().filter(|life| awake && life.generation == *generation)
    }

    /// Its life and its disk to act on, if commands can run in it and it is still this one.
    pub(super) fn living_mut(
        &mut self,
        generation: &Generation,
        colds: u64,
    ) -> Option<(&mut Life, &mut Tree)> {
        self.living(generation, colds)?;
        Some((self.life.as_mut()?, &mut self.tree))
    }

    /// Which life a handle stands for, unless it is dead or cold.
    pub(super) fn handle(&self) -> Option<(&Generation, u64)> {
        let awake = self.suspended != Some(Suspend::Cold);
        self.life.as_ref().filter(|_| awake).map(|life| (&life.generation, self.colds))
    }

    /// Whether it lives or is suspended.
    pub(super) fn has_life(&self) -> bool {
        self.life.is_some()
    }

    /// Demands that no command runs.
    pub(super) fn rest(&self) -> Result<(), Error> {
        match self.life.as_ref().map_or(0, Life::running) {
            0 => Ok(()),
            running => Err(Error::Busy { reason: format!("{running} commands run") }),
        }
    }

    /// Notes a request.
    pub(super) fn touch(&mut self, now: Instant, now_ms: u64) {
        self.touched = now;
        self.used_at_ms = now_ms;
    }

    /// Notes a request through a handle.
    pub(super) fn ask(&mut self, now: Instant) {
        self.touched = now;
    }

    /// Suspends it at least that deeply.
    pub(super) fn suspend(&mut self, how: Suspend) {
        let before = self.suspended;
        self.suspended = before.max(Some(how));
        if self.suspended != before && how == Suspend::Cold {
            self.colds += 1;
        }
    }

    /// Lets its processes go on.
    pub(super) fn thaw(&mut self) {
        if self.suspended == Some(Suspend::Frozen) {
            self.suspended = None;
        }
    }

    /// Ends any suspension, or begins the next life. What it found; nothing for a
    /// life that begins.
    pub(super) fn wake(&mut self, next: Option<Generation>) -> Option<CreateOutcome> {
        let suspended = self.suspended.take();
        if self.life.is_none() {
            self.life = next.map(|generation| Life::new(generation, self.touched));
            return None;
        }
        Some(match suspended {
            Some(Suspend::Cold) => CreateOutcome::Resumed,
            Some(Suspend::Frozen) | None => CreateOutcome::Attached,
        })
    }

    /// Ends its life as a lost host would.
    pub(super) fn die(&mut self) {
        self.life = None;
        self.suspended = None;
    }

    /// As it is listed.
    pub(super) fn listed(&self, id: &SandboxId) -> ListedSandbox {
        let state = match (&self.life, self.suspended) {
            (None, _) => LifecycleState::Dead,
            (Some(_), None) => LifecycleState::Running,
            (Some(_), Some(Suspend::Frozen)) => LifecycleState::Frozen,
            (Some(_), Some(Suspend::Cold)) => LifecycleState::Cold,
        };
        ListedSandbox {
            id: id.clone(),
            state,
            generation: self.life.as_ref().map(|life| life.generation.clone()),
            origin: self.origin.clone(),
            made_at_ms: self.made_at_ms,
            used_at_ms: self.used_at_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn state(fake: &FakeSandbox) -> String {
        fake.listed(&SandboxId::new("box").unwrap()).state.to_string()
    }

    #[test]
    fn idle_time_and_age_pass_by_the_time_it_is_told() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let lifetime = Lifetime { idle_ms_max: Some(100), age_ms_max: Some(1_000) };
        let spec = CreateSpec { lifetime, ..CreateSpec::default() };
        let mut fake = FakeSandbox::new(Tree::new(), &spec, start, 0);
        fake.wake(Some(Generation::new("g").unwrap()));
        let mut shown = String::new();
        for ms in [0, 99, 100, 150, 249, 250, 999, 1_000] {
            let there = fake.settle(at(ms));
            shown += &format!("{ms} {there} {}\n", state(&fake));
            if ms == 150 {
                fake.touch(at(ms), ms);
                shown += &format!("woken: {:?}\n", fake.wake(None));
            }
        }
        expect![[r"
            0 true running
            99 true running
            100 true cold
            150 true cold
            woken: Some(Resumed)
            249 true running
            250 true cold
            999 true cold
            1000 false cold
        "]]
        .assert_eq(&shown);
    }

    #[test]
    fn a_handle_from_before_a_cold_time_is_lost() {
        let generation = Generation::new("g").unwrap();
        let mut fake = FakeSandbox::new(Tree::new(), &CreateSpec::default(), Instant::now(), 0);
        fake.wake(Some(generation.clone()));
        fake.suspend(Suspend::Frozen);
        assert!(fake.living(&generation, 0).is_some());
        fake.suspend(Suspend::Cold);
        fake.suspend(Suspend::Cold);
        assert!(fake.handle().is_none() && fake.living(&generation, 1).is_none());
        fake.wake(None);
        assert!(fake.living(&generation, 0).is_none());
        assert_eq!(fake.handle(), Some((&generation, 1)));
    }
}
