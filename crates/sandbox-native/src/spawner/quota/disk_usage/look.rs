//! One look at how much is on a disk.
//!
//! Owns what is counted.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use super::budget::Budget;
use super::deleted_files::{self, FileHolder};
use crate::limits;
use crate::spawner::quota::amount::Amount;
use crate::spawner::quota::quota_state::QuotaVerdict;
use crate::spawner::tree::walk::{self, TreeState};

/// A disk to look at.
#[derive(Debug)]
pub(super) struct MeasuredDisk {
    pub(super) tree: PathBuf,
    pub(super) most: Amount,
    pub(super) holder: FileHolder,
}

/// Why a walk ended early.
fn over() -> io::Error {
    io::ErrorKind::TimedOut.into()
}

/// What a tree takes, that its sandbox may be changing. `None`: the budget does not reach.
fn named(tree: &Path, budget: &mut Budget) -> io::Result<Option<Amount>> {
    let mut amount = Amount::default();
    let mut linked = HashSet::new();
    let top = match walk::open_top(tree) {
        Err(rustix::io::Errno::NOENT) => return Ok(Some(amount)),
        top => top?,
    };
    let entries = budget.entries;
    let walked = walk::walk(top, TreeState::InUse, entries, |entry| {
        if !budget.take() {
            return Err(over());
        }
        if entry.stat.st_nlink < 2 || linked.insert(entry.stat.st_ino) {
            let bytes = u64::try_from(entry.stat.st_blocks).unwrap_or(0) * 512;
            amount = amount.plus(bytes, 1);
        }
        Ok(())
    });
    match walked {
        Ok(whole) => Ok(whole.map(|()| amount)),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
        Err(error) => Err(error),
    }
}

/// Looks at one disk.
pub(super) fn look(disk: &MeasuredDisk, mut budget: Budget) -> io::Result<QuotaVerdict> {
    let Some(named) = named(&disk.tree, &mut budget)? else { return Ok(QuotaVerdict::Unfinished) };
    let Some(held) = deleted_files::held(&disk.holder, &mut budget)? else {
        return Ok(QuotaVerdict::Unfinished);
    };
    let amount = named.plus(held.bytes, held.inodes);
    Ok(if amount.exceeds(disk.most) { QuotaVerdict::Above(amount) } else { QuotaVerdict::Within })
}

/// Looks at many, each for a moment. Those to tell of, by number.
pub(super) fn round(disks: &[MeasuredDisk]) -> io::Result<Vec<u8>> {
    let mut told: Vec<(u32, QuotaVerdict)> = Vec::new();
    for (number, disk) in (0..).zip(disks) {
        // What can't be looked at in passing may be at leisure.
        let found = look(disk, Budget::turn()).unwrap_or(QuotaVerdict::Unfinished);
        if found != QuotaVerdict::Within && told.len() < limits::DISK_USAGE_FOUND_MAX {
            told.push((number, found));
        }
    }
    postcard::to_allocvec(&told).map_err(io::Error::other)
}

/// Looks at one until it is done or its long budget is over.
pub(super) fn alone(disk: &MeasuredDisk) -> io::Result<Vec<u8>> {
    let found = look(disk, Budget::alone(disk.most))?;
    postcard::to_allocvec(&found).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::time::{Duration, Instant};

    fn disk(tree: &Path, guest: u32) -> MeasuredDisk {
        let owner = std::fs::metadata(tree).unwrap().uid();
        let holder = FileHolder {
            guest: i32::try_from(guest).unwrap(),
            owners: owner..owner + 1,
            served: Vec::new(),
        };
        MeasuredDisk { tree: tree.to_owned(), most: Amount { bytes: 1 << 30, inodes: 100 }, holder }
    }

    #[test]
    fn a_tree_is_counted_once_for_each_inode() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("d/f"), vec![7; 100_000]).unwrap();
        std::fs::hard_link(dir.path().join("d/f"), dir.path().join("g")).unwrap();
        let until = Instant::now() + Duration::from_secs(600);
        let look = |tree: &Path| named(tree, &mut Budget { entries: 100, until }).unwrap();
        let mut found = look(dir.path()).unwrap();
        assert_eq!(found.inodes, 2);
        assert!((100_000..150_000).contains(&found.bytes), "{found:?}");
        found = look(&dir.path().join("gone")).unwrap();
        assert_eq!(found, Amount::default());
    }

    #[test]
    fn a_look_ends_with_its_budget() {
        let dir = tempfile::tempdir().unwrap();
        let one = disk(dir.path(), std::process::id());
        for number in 0..20 {
            std::fs::write(dir.path().join(number.to_string()), "x").unwrap();
        }
        let later = Instant::now() + Duration::from_secs(600);
        let table = [
            (20, later, Some(20)),
            (19, later, None),
            // Names that are many for so few files are no way around.
            (20, Instant::now(), None),
        ];
        for (entries, until, expected) in table {
            let found = named(dir.path(), &mut Budget { entries, until }).unwrap();
            assert_eq!(found.map(|found| found.inodes), expected);
        }
        let found = look(&one, Budget { entries: 19, until: later }).unwrap();
        assert_eq!(found, QuotaVerdict::Unfinished);
    }
}
