//! How much is on the disks of living sandboxes.
//!
//! Owns the watch over their limits. Looking takes long, so it is done by processes of
//! their own, and only when the file system lost free space: one looks at all disks, at
//! each for a moment, and those that it was not done with have one each. So nothing that
//! a sandbox does to its tree delays the look at another. A sandbox above its limit has
//! its commands killed; one that goes on growing is killed itself.

mod held;
mod look;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use outrigger_sandbox::{Generation, SandboxId};
use serde::{Deserialize, Serialize};

use self::held::Holder;
use self::look::{Disk, Found};
use super::live::Living;
use super::serve::Spawner;
use super::task::Task;
use super::waits::{Key, Source};
use crate::limits;

/// An amount of disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Amount {
    bytes: u64,
    inodes: u64,
}

/// What is known of a disk.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// What the last survey found, if it was above the limit.
    over: Option<Amount>,
    /// Surveys in a row that found it above the limit and growing.
    strikes: u32,
}

/// The watch.
#[derive(Debug)]
pub(super) struct Survey {
    /// The process that looks at all.
    round: Option<Running<Vec<Life>>>,
    /// Those that look at one each.
    alone: BTreeMap<SandboxId, Running<Life>>,
    /// Who is to be looked at alone, and has to wait for that.
    waiting: VecDeque<Life>,
    /// The most free space since the last survey.
    free: Amount,
    surveyed: Instant,
    looked: Instant,
    /// The last survey found one that grows above its limit.
    growing: bool,
}

/// Which disk, and under whom.
type Life = (SandboxId, Generation);

#[derive(Debug)]
struct Running<T> {
    task: Task,
    key: Key,
    what: T,
}

impl Survey {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            round: None,
            alone: BTreeMap::new(),
            waiting: VecDeque::new(),
            free: Amount::default(),
            surveyed: now,
            looked: now,
            growing: false,
        }
    }

    /// Whether a disk is being looked at alone, or is to be.
    fn has(&self, id: &SandboxId) -> bool {
        self.alone.contains_key(id) || self.waiting.iter().any(|(waiting, _)| waiting == id)
    }
}

/// What is free on the file system of a path.
fn free(path: &Path) -> io::Result<Amount> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(Amount { bytes: stat.f_bfree.saturating_mul(stat.f_frsize), inodes: stat.f_ffree })
}

impl Amount {
    /// Whether either is more than that of another.
    fn exceeds(self, most: Self) -> bool {
        self.bytes > most.bytes || self.inodes > most.inodes
    }

    fn plus(self, bytes: u64, inodes: u64) -> Self {
        Self { bytes: self.bytes.saturating_add(bytes), inodes: self.inodes.saturating_add(inodes) }
    }
}

impl Spawner {
    /// When the file system is to be looked at.
    pub(super) fn next_survey(&self) -> Option<Instant> {
        let idle = self.sandboxes.living.is_empty() || self.survey.round.is_some();
        (!idle).then(|| self.survey.looked + Duration::from_millis(limits::SURVEY_TICK_MS))
    }

    /// Looks at the file system, and has disks looked at where something was written.
    pub(super) fn watch(&mut self, now: Instant) {
        if self.next_survey().is_none_or(|at| at > now) {
            return;
        }
        self.survey.looked = now;
        let Ok(free) = free(self.sandboxes.store.state()) else { return };
        let most = &mut self.survey.free;
        most.bytes = most.bytes.max(free.bytes);
        most.inodes = most.inodes.max(free.inodes);
        let specs = || self.sandboxes.living.values().map(|living| &living.spec);
        let bytes = specs().map(|spec| spec.disk_bytes_max / 8).min().unwrap_or(u64::MAX);
        let inodes = specs().map(|spec| spec.disk_inodes_max / 8).min().unwrap_or(u64::MAX);
        let noticed = free.plus(bytes.min(limits::SURVEY_BYTES), inodes.min(limits::SURVEY_INODES));
        let long = now.duration_since(self.survey.surveyed)
            >= Duration::from_millis(limits::SURVEY_MS_MAX);
        if most.bytes >= noticed.bytes
            || most.inodes >= noticed.inodes
            || long
            || self.survey.growing
        {
            self.survey.free = free;
            self.survey.surveyed = now;
            // What can't be looked at now is at the next time.
            let _ = self.begin_survey();
        }
    }

    fn disk(&self, id: &SandboxId, living: &Living) -> Disk {
        let (bytes, inodes) = (living.spec.disk_bytes_max, living.spec.disk_inodes_max);
        let served = living.born.serves.clone();
        let holder = Holder { guest: living.born.pid, owners: living.lease.owners(), served };
        let tree = self.sandboxes.store.disk(id).upper();
        Disk { tree, most: Amount { bytes, inodes }, holder }
    }

    fn begin_survey(&mut self) -> io::Result<()> {
        let living = self.sandboxes.living.iter().filter(|(id, _)| !self.survey.has(id));
        let (what, disks): (Vec<Life>, Vec<Disk>) = living
            .map(|(id, living)| ((id.clone(), living.generation.clone()), self.disk(id, living)))
            .unzip();
        let task = Task::start(|| look::round(&disks))?;
        let key = self.sandboxes.waits.add(task.ended(), Source::Survey)?;
        self.survey.round = Some(Running { task, key, what });
        Ok(())
    }

    /// The look at all ended.
    pub(super) fn surveyed(&mut self) {
        let Some(Running { task, key, what }) = self.survey.round.take() else { return };
        self.sandboxes.waits.remove(key, task.ended());
        let told = task.finish().ok();
        let Some(found) =
            told.and_then(|told| postcard::from_bytes::<Vec<(u32, Found)>>(&told).ok())
        else {
            return;
        };
        let found: BTreeMap<u32, Found> = found.into_iter().collect();
        self.survey.growing = false;
        for (number, life) in (0..).zip(what) {
            match found.get(&number) {
                Some(Found::Unfinished) => self.survey.waiting.push_back(life),
                Some(found) => self.judge(&life, *found),
                None => self.judge(&life, Found::Within),
            }
        }
        self.look_alone();
    }

    /// Begins to look at those who wait for it.
    fn look_alone(&mut self) {
        while self.survey.alone.len() < limits::SURVEYS_ALONE_MAX {
            let Some(what) = self.survey.waiting.pop_front() else { return };
            let Some(living) = self.sandboxes.living.get(&what.0) else { continue };
            let disk = self.disk(&what.0, living);
            // What can't be looked at now is at the next time.
            let Ok(task) = Task::start(|| look::alone(&disk)) else { return };
            let source = Source::Look(what.0.clone());
            let Ok(key) = self.sandboxes.waits.add(task.ended(), source) else { return };
            self.survey.alone.insert(what.0.clone(), Running { task, key, what });
        }
    }

    /// The look at one ended.
    pub(super) fn looked(&mut self, id: &SandboxId) {
        let Some(Running { task, key, what }) = self.survey.alone.remove(id) else { return };
        self.sandboxes.waits.remove(key, task.ended());
        let told = task.finish().ok();
        if let Some(found) = told.and_then(|told| postcard::from_bytes::<Found>(&told).ok()) {
            self.judge(&what, found);
        }
        self.look_alone();
    }

    /// Draws the consequence of a look.
    fn judge(&mut self, (id, generation): &Life, found: Found) {
        let living = self.sandboxes.living.get_mut(id);
        let Some(living) = living.filter(|living| living.generation == *generation) else { return };
        let usage = &mut living.usage;
        let grown = match found {
            Found::Within => return *usage = Usage::default(),
            Found::Above(amount) => {
                let last = usage.over.replace(amount);
                last.is_none_or(|last| {
                    let (bytes, inodes) =
                        (limits::SURVEY_GROWTH_BYTES, limits::SURVEY_GROWTH_INODES);
                    amount.exceeds(last.plus(bytes, inodes))
                })
            }
            // Nobody has so much in so few files, or on a disk so slow, without meaning to.
            Found::Unfinished => true,
        };
        usage.strikes = if grown { usage.strikes + 1 } else { 0 };
        if !grown {
            return;
        }
        self.survey.growing = true;
        // A guest that can't be told is as one that goes on.
        if living.tell_disk_full().is_err() || living.usage.strikes >= limits::SURVEY_STRIKES_MAX {
            self.kill(id);
        }
    }
}
