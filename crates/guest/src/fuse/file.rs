//! What is held here of a file.
//!
//! Owns three things that may differ: the contents at a revision as the tree gave them, a
//! working copy that handles of this sandbox write together, and which of them the pages
//! are of that the kernel has. Nothing here asks anybody.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;
use std::time::{Duration, Instant};

use outrigger_sandbox::{ExpectedRevision, limits as door};

use super::requests::Errno;
use crate::limits;

/// A file as it was at a revision.
#[derive(Debug, Clone)]
pub(super) struct Contents {
    pub(super) revision: u64,
    pub(super) bytes: Rc<Vec<u8>>,
    /// When it was last used, to be let go of before others.
    pub(super) tick: u64,
}

/// Of what the kernel has pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pages {
    /// Nobody knows, so they are not to be used.
    Unknown,
    Revision(u64),
    /// The working copy.
    Copy,
}

/// What all working copies take together, in bytes.
pub(super) type Total = Rc<Cell<usize>>;

/// What one of them takes, given back with it.
#[derive(Debug)]
struct Charge {
    total: Total,
    own: usize,
}

impl Charge {
    fn set(&mut self, bytes: usize) -> Result<(), Errno> {
        let others = self.total.get() - self.own;
        if bytes > self.own && others + bytes > limits::COPIES_BYTES_MAX {
            return Err(libc::ENOSPC);
        }
        self.total.set(others + bytes);
        self.own = bytes;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.total.set(self.total.get() - self.own);
    }
}

/// What handles of this sandbox write.
#[derive(Debug)]
pub(super) struct WorkingCopy {
    /// What it was made from.
    pub(super) base: ExpectedRevision,
    pub(super) bytes: Rc<Vec<u8>>,
    /// Whether it is another than what it was made from.
    pub(super) changed: bool,
    /// Whether something was written to it, beyond its making or cutting.
    pub(super) written: bool,
    /// Everything since it was made was added after so many bytes.
    pub(super) appended: Option<usize>,
    /// Counts its changes.
    pub(super) edits: u64,
    charge: Charge,
}

/// The one commit at a time.
#[derive(Debug, Default)]
pub(super) struct Commit {
    pub(super) running: bool,
    /// How many ended, and how the last one did.
    pub(super) ended: u64,
    pub(super) last: Option<Errno>,
    pub(super) wakers: Vec<Waker>,
}

/// What is held of a file.
#[derive(Debug)]
pub(super) struct File {
    /// Open handles, and those of them that write.
    pub(super) handles: u32,
    pub(super) writers: u32,
    pub(super) contents: Option<Contents>,
    pub(super) copy: Option<WorkingCopy>,
    pages: Pages,
    /// Since when the kernel is told how long that is.
    told: Option<Instant>,
    /// The open file with whose opening the kernel drops the pages that it had before, as
    /// long as it may not have done that yet. Whoever opens meanwhile must not use them.
    pub(super) dropping: Option<u64>,
    /// Counts how often another's state took the place of what handles write to.
    pub(super) epoch: u64,
    /// Revisions that this sandbox opened, each with when, oldest first.
    opened: VecDeque<(u64, u64)>,
    /// Who wrote here last, and when.
    pub(super) written: Option<(u32, u64)>,
    pub(super) commit: Commit,
}

impl Default for File {
    fn default() -> Self {
        Self {
            handles: 0,
            writers: 0,
            contents: None,
            copy: None,
            pages: Pages::Unknown,
            told: None,
            dropping: None,
            epoch: 0,
            opened: VecDeque::new(),
            written: None,
            commit: Commit::default(),
        }
    }
}

impl WorkingCopy {
    pub(super) fn new(
        base: ExpectedRevision,
        bytes: Rc<Vec<u8>>,
        total: &Total,
    ) -> Result<Self, Errno> {
        let appended = Some(bytes.len());
        let mut charge = Charge { total: Rc::clone(total), own: 0 };
        charge.set(bytes.len())?;
        Ok(Self { base, bytes, changed: false, written: false, appended, edits: 0, charge })
    }

    /// Takes another state of the file for its beginning. Nothing of it may be changed.
    pub(super) fn renew(
        &mut self,
        base: ExpectedRevision,
        bytes: Rc<Vec<u8>>,
    ) -> Result<(), Errno> {
        self.charge.set(bytes.len())?;
        (self.base, self.appended, self.bytes) = (base, Some(bytes.len()), bytes);
        Ok(())
    }

    /// Writes at a place; what is between it and the end becomes zeros.
    pub(super) fn write(&mut self, offset: usize, data: &[u8], at_end: bool) -> Result<(), Errno> {
        let end = offset.checked_add(data.len()).ok_or(libc::EFBIG)?;
        if end > door::TREE_FILE_BYTES_MAX {
            return Err(libc::EFBIG);
        }
        self.charge.set(end.max(self.bytes.len()))?;
        let bytes = Rc::make_mut(&mut self.bytes);
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset..end].copy_from_slice(data);
        if !at_end {
            self.appended = None;
        }
        (self.changed, self.written) = (true, true);
        self.edits += 1;
        Ok(())
    }

    /// Makes it so long.
    pub(super) fn resize(&mut self, length: usize) -> Result<(), Errno> {
        if length > door::TREE_FILE_BYTES_MAX {
            return Err(libc::EFBIG);
        }
        if length != self.bytes.len() {
            self.charge.set(length)?;
            Rc::make_mut(&mut self.bytes).resize(length, 0);
            self.appended = None;
            self.changed = true;
            self.edits += 1;
        }
        Ok(())
    }

    /// Puts what was added after another beginning. `false`: it can't be.
    pub(super) fn rebase(&mut self, base: ExpectedRevision, beginning: &[u8]) -> Result<(), Errno> {
        let from = self.appended.ok_or(libc::ESTALE)?;
        let added = self.bytes.get(from..).unwrap_or_default();
        if beginning.len() + added.len() > door::TREE_FILE_BYTES_MAX {
            return Err(libc::EFBIG);
        }
        self.charge.set(beginning.len() + added.len())?;
        // Made and never written to: what others made is as good.
        self.changed = !added.is_empty() || (base == ExpectedRevision::Absent && self.changed);
        self.bytes = Rc::new([beginning, added].concat());
        (self.base, self.appended) = (base, Some(beginning.len()));
        Ok(())
    }
}

impl File {
    /// Whether it must be kept although the kernel forgot it.
    pub(super) fn is_used(&self) -> bool {
        self.handles > 0 || self.copy.is_some() || self.commit.running
    }

    /// Whether it is other here than outside.
    pub(super) fn is_changed(&self) -> bool {
        self.copy.as_ref().is_some_and(|copy| copy.changed)
    }

    /// How long it is here, if it is other than outside.
    pub(super) fn changed(&self) -> Option<usize> {
        self.copy.as_ref().filter(|copy| copy.changed).map(|copy| copy.bytes.len())
    }

    /// Whether it is nowhere but here.
    pub(super) fn is_new(&self) -> bool {
        self.copy.as_ref().is_some_and(|copy| copy.base == ExpectedRevision::Absent)
    }

    /// What is read here.
    pub(super) fn bytes(&self) -> Option<&Rc<Vec<u8>>> {
        let contents = self.contents.as_ref().map(|contents| &contents.bytes);
        self.copy.as_ref().map(|copy| &copy.bytes).or(contents)
    }

    /// Of what the kernel has pages.
    pub(super) fn pages(&self) -> Pages {
        self.pages
    }

    /// The kernel has pages of that from now on.
    pub(super) fn has_pages(&mut self, pages: Pages) {
        if self.pages != pages {
            (self.pages, self.told) = (pages, None);
        }
    }

    /// The kernel is told how long it is. Gives for how long it was told the same.
    pub(super) fn tell(&mut self, now: Instant) -> Duration {
        now.saturating_duration_since(*self.told.get_or_insert(now))
    }

    /// The newest revision whose bytes are here, or, for who only reads, in the kernel.
    pub(super) fn held(&self, writes: bool) -> Option<u64> {
        let contents = self.contents.as_ref().map(|contents| contents.revision);
        let copy = self.copy.as_ref().and_then(|copy| match copy.base {
            ExpectedRevision::Revision(revision) => Some(revision),
            ExpectedRevision::Absent => None,
        });
        let pages = match self.pages {
            Pages::Revision(revision) if !writes => Some(revision),
            Pages::Revision(_) | Pages::Unknown | Pages::Copy => None,
        };
        contents.max(copy).or(pages)
    }

    /// Notes that this sandbox knows a revision, since when.
    pub(super) fn note_opened(&mut self, revision: u64, tick: u64) {
        self.opened.retain(|(known, _)| *known != revision);
        if self.opened.len() >= limits::OPENED_MAX {
            self.opened.pop_front();
        }
        self.opened.push_back((revision, tick));
    }

    /// The newest revision that this sandbox knew at a time.
    pub(super) fn opened_until(&self, tick: u64) -> Option<u64> {
        let mut until = self.opened.iter().rev().filter(|(_, at)| *at <= tick);
        until.next().map(|(revision, _)| *revision)
    }

    /// Has what handles write to begin from what was just seen, if nothing was written
    /// yet. `false`: its bytes are not here.
    pub(super) fn catch_up(&mut self, revision: u64) -> Result<bool, Errno> {
        let base = ExpectedRevision::Revision(revision);
        match &mut self.copy {
            Some(copy) if !copy.changed && copy.base != base => {
                let contents = self.contents.as_ref().filter(|c| c.revision == revision);
                let Some(contents) = contents else { return Ok(false) };
                copy.renew(base, Rc::clone(&contents.bytes))?;
                self.epoch += 1;
                Ok(true)
            }
            Some(_) | None => Ok(true),
        }
    }

    /// Another revision is what is held, byte for byte.
    pub(super) fn rename(&mut self, before: u64, now: u64) {
        if let Some(contents) = self.contents.as_mut().filter(|c| c.revision == before) {
            contents.revision = now;
        }
        let base = ExpectedRevision::Revision(before);
        if let Some(copy) = self.copy.as_mut().filter(|copy| copy.base == base) {
            copy.base = ExpectedRevision::Revision(now);
        }
        if self.pages == Pages::Revision(before) {
            self.has_pages(Pages::Revision(now));
        }
    }

    /// The kernel does to its pages what was done to the working copy.
    pub(super) fn follow(&mut self) {
        let base = self.copy.as_ref().map(|copy| copy.base);
        let same = match self.pages {
            Pages::Copy => true,
            Pages::Revision(revision) => base == Some(ExpectedRevision::Revision(revision)),
            Pages::Unknown => false,
        };
        self.has_pages(if same { Pages::Copy } else { Pages::Unknown });
    }

    /// Lets the working copy go; what was written to it is lost.
    pub(super) fn drop_copy(&mut self) {
        (self.copy, self.contents) = (None, None);
        self.has_pages(Pages::Unknown);
    }

    /// Wakes those who wait for a commit.
    pub(super) fn end_commit(&mut self, result: Result<(), Errno>) {
        self.commit.running = false;
        self.commit.ended += 1;
        self.commit.last = result.err();
        self.commit.wakers.drain(..).for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(text: &str) -> WorkingCopy {
        let bytes = Rc::new(text.as_bytes().to_vec());
        WorkingCopy::new(ExpectedRevision::Revision(1), bytes, &Total::default()).unwrap()
    }

    #[test]
    fn copies_are_bounded_together_and_give_back_what_they_took() {
        let total = Total::default();
        let most = door::TREE_FILE_BYTES_MAX;
        let make = || {
            let mut copy =
                WorkingCopy::new(ExpectedRevision::Absent, Rc::default(), &total).unwrap();
            copy.resize(most).map(|()| copy)
        };
        let mut all: Vec<WorkingCopy> = std::iter::from_fn(|| make().ok()).collect();
        assert_eq!(all.len(), limits::COPIES_BYTES_MAX / most);
        assert_eq!(make().err(), Some(libc::ENOSPC));
        all.pop();
        make().unwrap();
        drop(all);
        assert_eq!(total.get(), 0);
    }

    #[test]
    fn what_was_added_moves_to_another_beginning_and_nothing_else_does() {
        let mut added = copy("a\n");
        added.write(2, b"b\n", true).unwrap();
        added.rebase(ExpectedRevision::Revision(2), b"a\nx\n").unwrap();
        added.write(6, b"c\n", true).unwrap();
        added.rebase(ExpectedRevision::Revision(3), b"y\n").unwrap();
        assert_eq!(*added.bytes, b"y\nb\nc\n");
        let mut written = copy("abc");
        written.write(5, b"z", false).unwrap();
        assert_eq!(*written.bytes, b"abc\0\0z");
        assert_eq!(written.rebase(ExpectedRevision::Absent, b""), Err(libc::ESTALE));
        let mut cut = copy("abc");
        cut.resize(3).unwrap();
        assert!(!cut.changed);
        cut.resize(1).unwrap();
        assert_eq!((cut.changed, cut.written, cut.appended), (true, false, None));
        let most = door::TREE_FILE_BYTES_MAX;
        assert_eq!(cut.write(most, b"x", false), Err(libc::EFBIG));
        assert_eq!(cut.resize(most + 1), Err(libc::EFBIG));
        cut.resize(most).unwrap();
    }

    #[test]
    fn what_was_known_at_a_time_is_the_newest_of_that_time() {
        let mut file = File::default();
        for (revision, tick) in [(1, 10), (2, 20), (1, 30)] {
            file.note_opened(revision, tick);
        }
        assert_eq!(file.opened_until(9), None);
        assert_eq!(file.opened_until(25), Some(2));
        assert_eq!(file.opened_until(30), Some(1));
    }
}
