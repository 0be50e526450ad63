//! How much is on the disks of living sandboxes.
//!
//! Owns the watch over their limits. Looking takes long, so it is done by processes of
//! their own, and only when the file system lost free space: one looks at all disks, at
//! each for a moment, and those that it was not done with have one each. So nothing that
//! a sandbox does to its tree delays the look at another. A sandbox above its limit has
//! its commands killed; one that goes on growing is killed itself.

mod budget;
mod deleted_files;
mod look;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use outrigger_sandbox::{Generation, SandboxId};

use self::deleted_files::FileHolder;
use self::look::MeasuredDisk;
use super::amount::Amount;
use super::quota_state::QuotaVerdict;
use crate::limits;
use crate::spawner::create::running::RunningGuest;
use crate::spawner::event_loop::poll::{Key, Source};
use crate::spawner::event_loop::task::Task;
use crate::spawner::lifecycle::sandboxes::Sandboxes;
use crate::spawner::store::Store;

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

    /// When the file system is to be looked at.
    pub(crate) fn next_check(&self, sandboxes: &Sandboxes) -> Option<Instant> {
        let idle = sandboxes.running.is_empty() || self.round.is_some();
        (!idle).then(|| self.looked + Duration::from_millis(limits::DISK_USAGE_TICK_MS))
    }

    /// Looks at the file system, and has disks looked at where something was written.
    pub(crate) fn watch(&mut self, sandboxes: &mut Sandboxes, now: Instant) {
        if self.next_check(sandboxes).is_none_or(|at| at > now) {
            return;
        }
        self.looked = now;
        let Ok(free) = free(sandboxes.store.state()) else { return };
        let most = &mut self.free;
        most.bytes = most.bytes.max(free.bytes);
        most.inodes = most.inodes.max(free.inodes);
        let specs = || sandboxes.running.values().map(|running| &running.request.spec);
        let bytes = specs().map(|spec| spec.disk_bytes_max / 8).min().unwrap_or(u64::MAX);
        let inodes = specs().map(|spec| spec.disk_inodes_max / 8).min().unwrap_or(u64::MAX);
        let noticed =
            free.plus(bytes.min(limits::DISK_USAGE_BYTES), inodes.min(limits::DISK_USAGE_INODES));
        let long =
            now.duration_since(self.checked) >= Duration::from_millis(limits::DISK_USAGE_MS_MAX);
        if most.bytes >= noticed.bytes || most.inodes >= noticed.inodes || long || self.growing {
            self.free = free;
            self.checked = now;
            // What can't be looked at now is at the next time.
            let _ = self.begin_round(sandboxes);
        }
    }

    fn begin_round(&mut self, sandboxes: &mut Sandboxes) -> io::Result<()> {
        let running = sandboxes.running.iter().filter(|(id, _)| !self.has(id));
        let (what, disks): (Vec<GuestId>, Vec<MeasuredDisk>) = running
            .map(|(id, running)| {
                ((id.clone(), running.generation.clone()), disk(&sandboxes.store, id, running))
            })
            .unzip();
        let task = Task::start(|| look::round(&disks))?;
        let key = sandboxes.poller.add(task.ended(), Source::DiskUsage)?;
        self.round = Some(PendingTask { task, key, what });
        Ok(())
    }

    /// The look at all ended.
    pub(crate) fn round_ended(&mut self, sandboxes: &mut Sandboxes) {
        let Some(PendingTask { task, key, what }) = self.round.take() else { return };
        sandboxes.poller.remove(key, task.ended());
        let told = task.finish().ok();
        let Some(found) =
            told.and_then(|told| postcard::from_bytes::<Vec<(u32, QuotaVerdict)>>(&told).ok())
        else {
            return;
        };
        let found: BTreeMap<u32, QuotaVerdict> = found.into_iter().collect();
        self.growing = false;
        for (number, life) in (0..).zip(what) {
            match found.get(&number) {
                Some(QuotaVerdict::Unfinished) => self.waiting.push_back(life),
                Some(found) => self.judge(sandboxes, &life, *found),
                None => self.judge(sandboxes, &life, QuotaVerdict::Within),
            }
        }
        self.look_alone(sandboxes);
    }

    /// Begins to look at those who wait for it.
    fn look_alone(&mut self, sandboxes: &mut Sandboxes) {
        while self.alone.len() < limits::DISK_USAGE_ALONE_MAX {
            let Some(what) = self.waiting.pop_front() else { return };
            let Some(running) = sandboxes.running.get(&what.0) else { continue };
            let disk = disk(&sandboxes.store, &what.0, running);
            // What can't be looked at now is at the next time.
            let Ok(task) = Task::start(|| look::alone(&disk)) else { return };
            let source = Source::Look(what.0.clone());
            let Ok(key) = sandboxes.poller.add(task.ended(), source) else { return };
            self.alone.insert(what.0.clone(), PendingTask { task, key, what });
        }
    }

    /// The look at one ended.
    pub(crate) fn look_ended(&mut self, sandboxes: &mut Sandboxes, id: &SandboxId) {
        let Some(PendingTask { task, key, what }) = self.alone.remove(id) else { return };
        sandboxes.poller.remove(key, task.ended());
        let told = task.finish().ok();
        if let Some(found) = told.and_then(|told| postcard::from_bytes::<QuotaVerdict>(&told).ok())
        {
            self.judge(sandboxes, &what, found);
        }
        self.look_alone(sandboxes);
    }

    /// Draws the consequence of a look.
    fn judge(
        &mut self,
        sandboxes: &mut Sandboxes,
        (id, generation): &GuestId,
        found: QuotaVerdict,
    ) {
        let running = sandboxes.running.get_mut(id);
        let Some(running) = running.filter(|running| running.generation == *generation) else {
            return;
        };
        if !running.quota.note(found) {
            return;
        }
        self.growing = true;
        // A guest that can't be told is as one that goes on.
        if running.tell_disk_full().is_err() || running.quota.is_lost() {
            sandboxes.kill(id);
        }
    }
}

/// What is free on the file system of a path.
fn free(path: &Path) -> io::Result<Amount> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(Amount { bytes: stat.f_bfree.saturating_mul(stat.f_frsize), inodes: stat.f_ffree })
}

/// The disk of a guest, as it is to be looked at.
fn disk(store: &Store, id: &SandboxId, running: &RunningGuest) -> MeasuredDisk {
    let spec = &running.request.spec;
    let most = Amount { bytes: spec.disk_bytes_max, inodes: spec.disk_inodes_max };
    let (owners, served) = (running.ids.owners(), running.serves.clone());
    let holder = FileHolder { guest: running.pid, owners, served };
    MeasuredDisk { tree: store.disk(id).upper(), most, holder }
}
