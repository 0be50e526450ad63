//! Reads that need no thread: of what the kernel has at hand.
//!
//! Owns the way that never waits. A path is looked up in what is cached alone, the
//! bytes are taken of what is in memory, and who holds a lease on the file is not
//! waited for. All else, every error among it, is for a thread, which does the whole
//! again: here is no second opinion on paths and permissions.

use outrigger_sandbox::{FileReply, is_within, limits as door};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::{ReadWriteFlags, preadv2};

use super::resolve::WRITABLE;
use crate::paths::WORKSPACE;
use crate::{limits, sys};

/// Whether a path has no part that leads elsewhere by its name.
fn is_plain(path: &str) -> bool {
    path.split('/').skip(1).all(|part| !matches!(part, "" | "." | ".."))
}

/// `Read`, if it can be done at once. `None` says nothing but that it can't.
pub(super) fn read(path: &str, offset: u64, bytes_max: u64) -> Option<FileReply> {
    let path = match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("{WORKSPACE}/{path}"),
    };
    let is_ours = WRITABLE.iter().any(|root| is_within(&path, root));
    if !is_ours || !is_plain(&path) || path.contains('\0') {
        return None;
    }
    let _rights = sys::AgentRights::take()?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let resolve = ResolveFlags::CACHED | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(CWD, &path, flags, Mode::empty(), resolve).ok()?;
    let stat = fstat(&file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let total_bytes = u64::try_from(stat.st_size).ok()?;
    let wanted = bytes_max.min(door::FILE_CHUNK_BYTES_MAX).min(total_bytes.saturating_sub(offset));
    let wanted =
        usize::try_from(wanted).ok().filter(|wanted| *wanted <= limits::QUICK_BYTES_MAX)?;
    let mut bytes = vec![0; wanted];
    if wanted > 0 {
        let mut parts = [std::io::IoSliceMut::new(&mut bytes)];
        let length = preadv2(&file, &mut parts, offset, ReadWriteFlags::NOWAIT).ok()?;
        // Less is what is in memory, or all that is left of a file that was cut just now.
        if length < wanted {
            return None;
        }
    }
    Some(FileReply::Bytes { bytes, total_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_are_quick() {
        for path in ["/tmp/a", "/workspace/a/b.c", "/tmp/..a", "/tmp/a..b/.c"] {
            assert!(is_plain(path), "{path}");
        }
        for path in ["/tmp/../etc", "/tmp//a", "/tmp/a/", "/tmp/./a", "/tmp/a/..", "/"] {
            assert!(!is_plain(path), "{path}");
        }
    }
}
