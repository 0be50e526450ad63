//! How much is on the disks of living sandboxes.
//!
//! Owns the watch over their limits. Looking at every disk takes long, so it is done
//! by a process of its own, and only when the file system lost free space. A sandbox
//! above its limit has its commands killed; one that goes on growing is killed itself.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outrigger_sandbox::SandboxId;
use serde::{Deserialize, Serialize};

use super::serve::Spawner;
use super::task::Task;
use super::waits::{Key, Source};
use super::walk::{self, Tree};
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
    running: Option<Running>,
    /// The most free space since the last survey.
    free: Amount,
    surveyed: Instant,
    looked: Instant,
    /// The last survey found one that grows above its limit.
    growing: bool,
}

#[derive(Debug)]
struct Running {
    task: Task,
    key: Key,
    ids: Vec<SandboxId>,
}

/// A disk to look at.
#[derive(Debug)]
struct Disk {
    tree: PathBuf,
    most: Amount,
}

impl Survey {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let free = Amount::default();
        Self { running: None, free, surveyed: now, looked: now, growing: false }
    }
}

/// What is free on the file system of a path.
fn free(path: &Path) -> io::Result<Amount> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(Amount { bytes: stat.f_bfree.saturating_mul(stat.f_frsize), inodes: stat.f_ffree })
}

/// What a tree takes, that its sandbox may be changing.
fn amount(tree: &Path) -> io::Result<Amount> {
    let mut amount = Amount::default();
    let mut linked = HashSet::new();
    walk::walk(walk::open_top(tree)?, Tree::InUse, u64::MAX, |entry| {
        if entry.stat.st_nlink < 2 || linked.insert(entry.stat.st_ino) {
            amount.bytes += u64::try_from(entry.stat.st_blocks).unwrap_or(0) * 512;
            amount.inodes += 1;
        }
        Ok(())
    })?;
    Ok(amount)
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

/// Those above their limit, by number.
fn above(disks: &[Disk]) -> io::Result<Vec<u8>> {
    let mut found: Vec<(u32, Amount)> = Vec::new();
    for (number, disk) in (0..).zip(disks) {
        // One that just went away is nothing to look at.
        let Ok(amount) = amount(&disk.tree) else { continue };
        if amount.exceeds(disk.most) && found.len() < limits::SURVEY_FOUND_MAX {
            found.push((number, amount));
        }
    }
    postcard::to_allocvec(&found).map_err(io::Error::other)
}

impl Spawner {
    /// When the file system is to be looked at.
    pub(super) fn next_survey(&self) -> Option<Instant> {
        let idle = self.sandboxes.living.is_empty() || self.survey.running.is_some();
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

    fn begin_survey(&mut self) -> io::Result<()> {
        let (mut ids, mut disks) = (Vec::new(), Vec::new());
        for (id, living) in &self.sandboxes.living {
            let (bytes, inodes) = (living.spec.disk_bytes_max, living.spec.disk_inodes_max);
            ids.push(id.clone());
            let tree = self.sandboxes.store.disk(id).upper();
            disks.push(Disk { tree, most: Amount { bytes, inodes } });
        }
        let task = Task::start(|| above(&disks))?;
        let key = self.sandboxes.waits.add(task.ended(), Source::Survey)?;
        self.survey.running = Some(Running { task, key, ids });
        Ok(())
    }

    /// A survey ended.
    pub(super) fn surveyed(&mut self) {
        let Some(Running { task, key, ids }) = self.survey.running.take() else { return };
        self.sandboxes.waits.remove(key, task.ended());
        let told = task.finish().ok();
        let Some(found) =
            told.and_then(|told| postcard::from_bytes::<Vec<(u32, Amount)>>(&told).ok())
        else {
            return;
        };
        let mut growing = false;
        let mut ended = Vec::new();
        for (number, id) in (0..).zip(&ids) {
            let Some(living) = self.sandboxes.living.get_mut(id) else { continue };
            let Some((_, amount)) = found.iter().find(|(found, _)| *found == number) else {
                living.usage = Usage::default();
                continue;
            };
            let usage = &mut living.usage;
            let grown = usage.over.is_none_or(|last| {
                amount.exceeds(last.plus(limits::SURVEY_GROWTH_BYTES, limits::SURVEY_GROWTH_INODES))
            });
            usage.over = Some(*amount);
            usage.strikes = if grown { usage.strikes + 1 } else { 0 };
            growing |= grown;
            if !grown {
                continue;
            }
            // A guest that can't be told is as one that goes on.
            let told = living.tell_disk_full();
            if told.is_err() || living.usage.strikes >= limits::SURVEY_STRIKES_MAX {
                ended.push(id);
            }
        }
        for id in ended {
            self.kill(id);
        }
        self.survey.growing = growing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_counted_once_for_each_inode() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("d/f"), vec![7; 100_000]).unwrap();
        std::fs::hard_link(dir.path().join("d/f"), dir.path().join("g")).unwrap();
        let found = amount(dir.path()).unwrap();
        assert_eq!(found.inodes, 2);
        assert!((100_000..150_000).contains(&found.bytes), "{found:?}");
    }
}
