//! Disks that are made ahead.
//!
//! Owns the numbers by which the process that makes them and the spawner that takes them
//! agree without a word: the one makes them in order and the other takes them so, by a
//! rename. To make one is to wait for the disk, which knows little of the place that a new
//! tree gets.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::maker::Maker;
use super::random_name;
use super::root::lay;
use super::store::{Place, private, spread};

/// See the module.
#[derive(Debug)]
pub(super) struct Spares {
    maker: Maker,
    /// What was taken.
    row: Row,
}

/// Directories by their number.
#[derive(Debug, Clone)]
struct Row {
    dir: PathBuf,
    next: u64,
}

impl Spares {
    /// Starts a stock of its own in a directory. To be called by the spawner.
    pub(super) fn start(above: &Path) -> io::Result<Self> {
        let row = Row::new(above.join(random_name()?))?;
        let mut made = row.clone();
        match Maker::start(&[], |_| made.make()) {
            Ok(maker) => Ok(Self { maker, row }),
            Err(error) => {
                row.remove();
                Err(error)
            }
        }
    }

    /// Puts one where none is, if one waits.
    pub(super) fn take(&mut self, to: &Path) {
        if self.row.take(to) {
            self.maker.took();
        }
    }

    /// Asks for what is missing.
    pub(super) fn refill(&mut self) -> io::Result<()> {
        self.maker.refill()
    }

    /// Deletes those that nobody took.
    pub(super) fn dismiss(self) {
        self.maker.end();
        self.row.remove();
    }
}

/// Where those are that are whole. Not among those that are being made: the kernel locks a
/// directory for as long as it waits for the disk to make something in it.
const WHOLE: &str = "whole";

impl Row {
    fn new(dir: PathBuf) -> io::Result<Self> {
        private(&dir.join(WHOLE))?;
        spread(&dir);
        Ok(Self { dir, next: 0 })
    }

    /// Where the next is when it is whole.
    fn whole(&self) -> PathBuf {
        self.dir.join(WHOLE).join(self.next.to_string())
    }

    /// A failure ends who makes them: whoever needs a disk then makes it and tells why it can't.
    fn make(&mut self) -> io::Result<()> {
        let place = Place::at(self.dir.join(self.next.to_string()));
        private(place.dir())?;
        lay(&place.blank())?;
        fs::rename(place.dir(), self.whole())?;
        self.next += 1;
        Ok(())
    }

    fn remove(&self) {
        // What is left is deleted by the next spawner.
        let _ = fs::remove_dir_all(&self.dir);
    }

    fn take(&mut self, to: &Path) -> bool {
        let taken = fs::rename(self.whole(), to).is_ok();
        self.next += u64::from(taken);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_taken_in_the_order_in_which_they_are_made() {
        let dir = tempfile::tempdir().unwrap();
        let taken = |number: u64| Place::at(dir.path().join(format!("taken-{number}")));
        let mut taking = Row::new(dir.path().join("row")).unwrap();
        let mut making = taking.clone();
        assert!(!taking.take(taken(0).dir()), "none waits");
        for _ in 0..3 {
            making.make().unwrap();
        }
        for number in 0..3 {
            assert!(taking.take(taken(number).dir()), "{number}");
            assert!(taken(number).blank().join("workspace").is_dir());
        }
        assert!(!taking.take(taken(3).dir()), "none waits");
        making.make().unwrap();
        // What is there stays as it is.
        assert!(!taking.take(taken(0).dir()));
        assert!(taking.take(taken(3).dir()));
    }
}
