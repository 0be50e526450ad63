//! Files without a name that the processes of a sandbox keep alive.
//!
//! Owns where they are looked for: among open descriptors, of threads too, which can
//! have their own, and among what is mapped. What waits in a socket to be received is
//! in neither, and is not seen. Only what is told by the kernel of each process is
//! read, nothing of what is in the files.

use std::collections::HashSet;
use std::ffi::CStr;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, PROC_SUPER_MAGIC, RawMode, StatxFlags, fstatfs,
    makedev, openat, statx,
};
use rustix::io::Errno;

use super::budget::Budget;
use crate::spawner::quota::amount::Amount;

/// Magic numbers of file systems in memory, which is bounded by itself (statfs(2)).
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x9584_58f6];

/// Whose processes, and whose files.
#[derive(Debug)]
pub(super) struct FileHolder {
    /// The guest, as the spawner knows it.
    pub(super) guest: i32,
    /// Owners of what the sandbox makes, as the spawner sees them. A file of the host's
    /// that was deleted while a sandbox runs it is not the sandbox's.
    pub(super) owners: Range<u32>,
    /// File systems that the guest serves, of which nothing is on a disk.
    pub(super) served: Vec<u64>,
}

struct Search<'a> {
    owners: &'a Range<u32>,
    served: &'a [u64],
    budget: &'a mut Budget,
    seen: HashSet<(u64, u64)>,
    amount: Amount,
}

/// What a process that is on its way out is found to be.
fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM | Errno::NOTDIR)
}

fn dir(above: impl AsFd, name: &CStr) -> rustix::io::Result<Option<OwnedFd>> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    match openat(above, name, flags, Mode::empty()) {
        Err(error) if is_gone(error) => Ok(None),
        opened => opened.map(Some),
    }
}

/// How much they are. `None`: the budget does not reach.
pub(super) fn held(holder: &FileHolder, budget: &mut Budget) -> io::Result<Option<Amount>> {
    // Its own view of itself has all of its processes and none else.
    let path = format!("/proc/{}/root/proc", holder.guest);
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let proc = match openat(CWD, path, flags, Mode::empty()) {
        Err(error) if is_gone(error) => return Ok(Some(Amount::default())),
        opened => opened?,
    };
    if fstatfs(&proc)?.f_type != PROC_SUPER_MAGIC {
        return Err(io::Error::other("what should be the processes of a sandbox is not"));
    }
    let (owners, seen, amount) = (&holder.owners, HashSet::new(), Amount::default());
    let served = &holder.served[..];
    let mut search = Search { owners, served, budget, seen, amount };
    let whole = search.each(proc.as_fd(), |search, process, _| {
        let Some(process) = dir(&proc, process)? else { return Ok(true) };
        if let Some(mapped) = dir(&process, c"map_files")?
            && !search.files(&mapped)?
        {
            return Ok(false);
        }
        let Some(threads) = dir(&process, c"task")? else { return Ok(true) };
        search.each(threads.as_fd(), |search, thread, _| {
            let Some(thread) = dir(&threads, thread)? else { return Ok(true) };
            match dir(&thread, c"fd")? {
                Some(open) => search.files(&open),
                None => Ok(true),
            }
        })
    })?;
    Ok(whole.then_some(search.amount))
}

impl Search<'_> {
    /// Does something for each number in a directory, as long as that goes on; says
    /// whether it went to the end.
    fn each(
        &mut self,
        dir: BorrowedFd<'_>,
        mut act: impl FnMut(&mut Self, &CStr, BorrowedFd<'_>) -> io::Result<bool>,
    ) -> io::Result<bool> {
        let entries = match Dir::read_from(dir) {
            Err(error) if is_gone(error) => return Ok(true),
            entries => entries?,
        };
        for entry in entries {
            let entry = match entry {
                Err(error) if is_gone(error) => break,
                entry => entry?,
            };
            let name = entry.file_name();
            if !name.to_bytes().first().is_some_and(u8::is_ascii_hexdigit) {
                continue;
            }
            if !self.budget.take() || !act(self, name, dir)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Counts what the links in a directory lead to.
    fn files(&mut self, links: &OwnedFd) -> io::Result<bool> {
        self.each(links.as_fd(), |search, name, dir| {
            // Mapped files are looked at with rights on the host alone.
            // Nobody is asked who could make this wait: a guest, for what it serves.
            let found = statx(dir, name, AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS);
            let Ok(stat) = found else { return Ok(true) };
            let mode = RawMode::from(stat.stx_mode);
            let file = FileType::from_raw_mode(mode) == FileType::RegularFile;
            let device = makedev(stat.stx_dev_major, stat.stx_dev_minor);
            let key = (device, stat.stx_ino);
            if !file
                || stat.stx_nlink > 0
                || search.served.contains(&device)
                || !search.owners.contains(&stat.stx_uid)
                || search.seen.contains(&key)
            {
                return Ok(true);
            }
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let Ok(place) = openat(dir, name, flags, Mode::empty()) else { return Ok(true) };
            let kind = fstatfs(&place)?.f_type as u64;
            search.seen.insert(key);
            if !IN_MEMORY.contains(&kind) {
                let bytes = stat.stx_blocks.saturating_mul(512);
                search.amount = search.amount.plus(bytes, 1);
            }
            Ok(true)
        })
    }
}
