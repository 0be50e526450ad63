//! The fingerprint of a tree at rest.
//!
//! Owns what it covers: all that can't change without a change of the time that the
//! kernel notes for every inode (`ctime`), so contents are not read. The times of the
//! top directory are left out, because a rename of the tree changes them.

use std::ffi::CStr;
use std::io;
use std::path::Path;

use rustix::fs::{FileType, Stat, readlinkat};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::walk::{self, TreeState};

/// SHA-256 over every entry of a tree, in the order of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self(bytes.try_into().ok()?))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

struct Sum(Sha256);

/// Takes the fingerprint of a tree that nobody changes meanwhile. `None`: it has more
/// entries than that.
pub(crate) fn take(tree: &Path, entries_max: u64) -> io::Result<Option<Fingerprint>> {
    let top = walk::open_top(tree)?;
    let mut sum = Sum(Sha256::new());
    let stat = rustix::fs::fstat(&top)?;
    for number in [stat.st_mode, stat.st_uid, stat.st_gid] {
        sum.0.update(number.to_le_bytes());
    }
    let whole = walk::walk(top, TreeState::AtRest, entries_max, |entry| {
        sum.entry(entry.depth, entry.name, entry.stat);
        if FileType::from_raw_mode(entry.stat.st_mode) == FileType::Symlink {
            let target = readlinkat(entry.dir, entry.name, Vec::new())?;
            sum.bytes(target.to_bytes());
        }
        Ok(())
    })?;
    Ok(whole.map(|()| Fingerprint(sum.0.finalize().into())))
}

impl Sum {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Its depth tells of which directory it is, because they come in order.
    fn entry(&mut self, depth: usize, name: &CStr, stat: &Stat) {
        self.0.update((depth as u64).to_le_bytes());
        self.bytes(name.to_bytes());
        for number in [stat.st_mode, stat.st_uid, stat.st_gid] {
            self.0.update(number.to_le_bytes());
        }
        // The size of a directory is the file system's own business.
        let size = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => 0,
            _ => stat.st_size,
        };
        self.0.update(size.to_le_bytes());
        self.0.update(stat.st_rdev.to_le_bytes());
        // The kernel gives whiteouts one inode with many names, which it takes away again.
        if FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0 {
            return;
        }
        self.0.update(stat.st_mtime.to_le_bytes());
        self.0.update(stat.st_mtime_nsec.to_le_bytes());
        self.0.update(stat.st_ctime.to_le_bytes());
        self.0.update(stat.st_ctime_nsec.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn of(tree: &Path) -> Fingerprint {
        take(tree, u64::MAX).unwrap().unwrap()
    }

    #[test]
    fn every_change_shows_and_a_rename_of_the_tree_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        let mut deep = tree.clone();
        for _ in 0..200 {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "x").unwrap();
        fs::write(tree.join("e"), "after the deep one").unwrap();
        std::os::unix::fs::symlink("target", tree.join("link")).unwrap();
        let before = of(&tree);
        assert_eq!(of(&tree), before);
        let moved = dir.path().join("moved");
        fs::rename(&tree, &moved).unwrap();
        assert_eq!(of(&moved), before);
        fs::rename(&moved, &tree).unwrap();
        let changes: [&dyn Fn(); 6] = [
            &|| fs::write(deep.join("file"), "y").unwrap(),
            &|| fs::set_permissions(tree.join("e"), fs::Permissions::from_mode(0o600)).unwrap(),
            &|| fs::write(tree.join("new"), "").unwrap(),
            &|| fs::remove_file(tree.join("new")).unwrap(),
            &|| {
                fs::remove_file(tree.join("link")).unwrap();
                std::os::unix::fs::symlink("other", tree.join("link")).unwrap();
            },
            &|| fs::set_permissions(&tree, fs::Permissions::from_mode(0o700)).unwrap(),
        ];
        let mut last = before;
        for (number, change) in changes.iter().enumerate() {
            change();
            let now = of(&tree);
            assert_ne!(now, last, "change {number}");
            last = now;
        }
    }

    #[test]
    fn a_tree_above_the_budget_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(take(dir.path(), 2).unwrap(), None);
        assert!(take(dir.path(), 3).unwrap().is_some());
    }
}
