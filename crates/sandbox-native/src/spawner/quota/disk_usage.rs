//! How much is on the disks of living sandboxes.
//!
//! Owns the watch over their limits. Looking takes long, so it is done by processes of
//! their own, and only when the file system lost free space: one looks at all disks, at
//! each for a moment, and those that it was not done with have one each. So nothing that
//! a sandbox does to its tree delays the look at another. A sandbox above its limit has
//! its commands killed; one that goes on growing is killed itself.

mod deleted_files;
mod look;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use outrigger_sandbox::{Generation, SandboxId};
use serde::{Deserialize, Serialize};

use self::deleted_files::FileHolder;
use self::look::{MeasuredDisk, QuotaVerdict};
use crate::limits;
use crate::spawner::create::running::RunningSandbox;
use crate::spawner::event_loop::Spawner;
use crate::spawner::event_loop::poll::{Key, Source};
use crate::spawner::event_loop::task::Task;

/// An amount of disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Amount {
    bytes: u64,
    inodes: u64,
}

/// What is known of a disk against its limit.
#[derive(Debug, Default)]
pub(crate) struct QuotaState {
    /// What the last look found, if it was above the limit.
    over: Option<Amount>,
    /// Looks in a row that found it above the limit and growing.
    strikes: u32,
}

/// How much is on the disks of all living sandboxes, and who is looking.
#[derive(Debug)]
pub(crate) struct DiskUsage {
    /// The process that looks at all.
    round: Option<PendingTask<Vec<GuestId>>>,
    /// Those that look at one each.
    alone: BTreeMap<SandboxId, PendingTask<GuestId>>,
    /// Who is to be looked at alone, and has to wait for that.
    waiting: VecDeque<GuestId>,
    /// The most free space since the last look at all.
    free: Amount,
    checked: Instant,
    looked: Instant,
    /// The last look found one that grows above its limit.
    growing: bool,
}

/// Which disk, and under whom.
type GuestId = (SandboxId, Generation);

#[derive(Debug)]
struct PendingTask<T> {
    task: Task,
    key: Key,
    what: T,
}

impl DiskUsage {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            round: None,
            alone: BTreeMap::new(),
            waiting: VecDeque::new(),
            free: Amount::default(),
            checked: now,
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
    pub(crate) fn next_disk_check(&self) -> Option<Instant> {
        let idle = self.sandboxes.running.is_empty() || self.disk_usage.round.is_some();
        (!idle).then(|| self.disk_usage.looked + Duration::from_millis(limits::DISK_USAGE_TICK_MS))
    }

    /// Looks at the file system, and has disks looked at where something was written.
    pub(crate) fn watch(&mut self, now: Instant) {
        if self.next_disk_check().is_none_or(|at| at > now) {
            return;
        }
        self.disk_usage.looked = now;
        let Ok(free) = free(self.sandboxes.store.state()) else { return };
        let most = &mut self.disk_usage.free;
        most.bytes = most.bytes.max(free.bytes);
        most.inodes = most.inodes.max(free.inodes);
        let specs = || self.sandboxes.running.values().map(|running| &running.spec);
        let bytes = specs().map(|spec| spec.disk_bytes_max / 8).min().unwrap_or(u64::MAX);
        let inodes = specs().map(|spec| spec.disk_inodes_max / 8).min().unwrap_or(u64::MAX);
        let noticed =
            free.plus(bytes.min(limits::DISK_USAGE_BYTES), inodes.min(limits::DISK_USAGE_INODES));
        let long = now.duration_since(self.disk_usage.checked)
            >= Duration::from_millis(limits::DISK_USAGE_MS_MAX);
        if most.bytes >= noticed.bytes
            || most.inodes >= noticed.inodes
            || long
            || self.disk_usage.growing
        {
            self.disk_usage.free = free;
            self.disk_usage.checked = now;
            // What can't be looked at now is at the next time.
            let _ = self.begin_disk_check();
        }
    }

    fn disk(&self, id: &SandboxId, running: &RunningSandbox) -> MeasuredDisk {
        let (bytes, inodes) = (running.spec.disk_bytes_max, running.spec.disk_inodes_max);
        let served = running.guest.serves.clone();
        let holder = FileHolder { guest: running.guest.pid, owners: running.ids.owners(), served };
        let tree = self.sandboxes.store.disk(id).upper();
        MeasuredDisk { tree, most: Amount { bytes, inodes }, holder }
    }

    fn begin_disk_check(&mut self) -> io::Result<()> {
        let running = self.sandboxes.running.iter().filter(|(id, _)| !self.disk_usage.has(id));
        let (what, disks): (Vec<GuestId>, Vec<MeasuredDisk>) = running
            .map(|(id, running)| ((id.clone(), running.generation.clone()), self.disk(id, running)))
            .unzip();
        let task = Task::start(|| look::round(&disks))?;
        let key = self.sandboxes.poller.add(task.ended(), Source::DiskUsage)?;
        self.disk_usage.round = Some(PendingTask { task, key, what });
        Ok(())
    }

    /// The look at all ended.
    pub(crate) fn disks_checked(&mut self) {
        let Some(PendingTask { task, key, what }) = self.disk_usage.round.take() else { return };
        self.sandboxes.poller.remove(key, task.ended());
        let told = task.finish().ok();
        let Some(found) =
            told.and_then(|told| postcard::from_bytes::<Vec<(u32, QuotaVerdict)>>(&told).ok())
        else {
            return;
        };
        let found: BTreeMap<u32, QuotaVerdict> = found.into_iter().collect();
        self.disk_usage.growing = false;
        for (number, life) in (0..).zip(what) {
            match found.get(&number) {
                Some(QuotaVerdict::Unfinished) => self.disk_usage.waiting.push_back(life),
                Some(found) => self.judge(&life, *found),
                None => self.judge(&life, QuotaVerdict::Within),
            }
        }
        self.look_alone();
    }

    /// Begins to look at those who wait for it.
    fn look_alone(&mut self) {
        while self.disk_usage.alone.len() < limits::DISK_USAGE_ALONE_MAX {
            let Some(what) = self.disk_usage.waiting.pop_front() else { return };
            let Some(running) = self.sandboxes.running.get(&what.0) else { continue };
            let disk = self.disk(&what.0, running);
            // What can't be looked at now is at the next time.
            let Ok(task) = Task::start(|| look::alone(&disk)) else { return };
            let source = Source::Look(what.0.clone());
            let Ok(key) = self.sandboxes.poller.add(task.ended(), source) else { return };
            self.disk_usage.alone.insert(what.0.clone(), PendingTask { task, key, what });
        }
    }

    /// The look at one ended.
    pub(crate) fn looked(&mut self, id: &SandboxId) {
        let Some(PendingTask { task, key, what }) = self.disk_usage.alone.remove(id) else {
            return;
        };
        self.sandboxes.poller.remove(key, task.ended());
        let told = task.finish().ok();
        if let Some(found) = told.and_then(|told| postcard::from_bytes::<QuotaVerdict>(&told).ok())
        {
            self.judge(&what, found);
        }
        self.look_alone();
    }

    /// Draws the consequence of a look.
    fn judge(&mut self, (id, generation): &GuestId, found: QuotaVerdict) {
        let running = self.sandboxes.running.get_mut(id);
        let Some(running) = running.filter(|running| running.generation == *generation) else {
            return;
        };
        let quota = &mut running.quota;
        let grown = match found {
            QuotaVerdict::Within => return *quota = QuotaState::default(),
            QuotaVerdict::Above(amount) => {
                let last = quota.over.replace(amount);
                last.is_none_or(|last| {
                    let (bytes, inodes) =
                        (limits::DISK_USAGE_GROWTH_BYTES, limits::DISK_USAGE_GROWTH_INODES);
                    amount.exceeds(last.plus(bytes, inodes))
                })
            }
            // Nobody has so much in so few files, or on a disk so slow, without meaning to.
            QuotaVerdict::Unfinished => true,
        };
        quota.strikes = if grown { quota.strikes + 1 } else { 0 };
        if !grown {
            return;
        }
        self.disk_usage.growing = true;
        // A guest that can't be told is as one that goes on.
        if running.tell_disk_full().is_err()
            || running.quota.strikes >= limits::DISK_USAGE_STRIKES_MAX
        {
            self.kill(id);
        }
    }
}
