//! Walking a tree: bounded in entries and time, never through a link.

use std::time::{Duration, Instant};

use outrigger_sandbox::limits as door;
use outrigger_sandbox::text::SkipList;
use outrigger_sandbox::{EntryKind, FileError, FileErrorKind};
use rustix::fs::{AtFlags, Dir, FileType, statat};
use rustix::io::Errno;

use super::read::entry_kind;
use super::resolve::{NO_FILES, ResolvedPath};

/// One thing that was found.
#[derive(Debug, Clone)]
pub(super) struct WalkEntry {
    /// Relative to the root of the walk.
    pub(super) relative: String,
    pub(super) kind: EntryKind,
    /// A directory with nothing in it.
    pub(super) empty: bool,
}

/// Which directories a walk passes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SkipPolicy<'a> {
    /// What a search passes over, wherever it is.
    Search(SkipList),
    /// Those with these paths from the root of the walk.
    These(&'a [String]),
}

impl SkipPolicy<'_> {
    fn skips(self, name: &str, relative: &str) -> bool {
        match self {
            Self::Search(list) => list.skips(name),
            Self::These(paths) => paths.iter().any(|path| path == relative),
        }
    }
}

/// What a walk does with a directory that it can't read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnreadablePolicy {
    /// Passes over it, for those who look for something.
    Skipped,
    /// Unlocks it where the sandbox's user owns it, and fails otherwise with an
    /// error that names it, for those who take what is not found for deleted.
    Refused,
}

/// A clock for one search.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchDeadline(Instant);

impl SearchDeadline {
    pub(super) fn started() -> Self {
        Self(Instant::now() + Duration::from_millis(door::WALK_MS_MAX))
    }

    /// A deadline that is not over before this many milliseconds from now.
    pub(super) fn at_least(self, ms: u64) -> Self {
        Self(self.0.max(Instant::now() + Duration::from_millis(ms)))
    }

    pub(super) fn over(self) -> bool {
        Instant::now() >= self.0
    }
}

/// Finds everything beneath a directory that `keep` keeps, sorted by relative path.
/// Says whether a limit ended it. Directories that can't be read are dealt with as
/// asked for, but the first is always an error.
pub(super) fn walk(
    root: &ResolvedPath,
    skip: SkipPolicy<'_>,
    unreadable: UnreadablePolicy,
    until: SearchDeadline,
    mut keep: impl FnMut(&WalkEntry) -> bool,
) -> Result<(Vec<WalkEntry>, bool), FileError> {
    let mut found = Vec::new();
    let mut seen = 0;
    let mut stack = vec![(root.clone(), String::new())];
    let mut first = true;
    while let Some((resolved, prefix)) = stack.pop() {
        let strict = unreadable == UnreadablePolicy::Refused;
        let opened = if strict { resolved.directory_unlocking() } else { resolved.directory() };
        let dir = match opened {
            Ok(dir) => dir,
            Err(error) if first => return Err(error),
            // It went away in between.
            Err(error) if error.kind == FileErrorKind::FileNotFound => continue,
            Err(error) if strict => return Err(resolved.named(error)),
            Err(_) => continue,
        };
        first = false;
        let mut empty = true;
        for entry in Dir::read_from(&dir).map_err(|errno| resolved.kernel(errno))? {
            let entry = match entry {
                Ok(entry) => entry,
                Err(errno) if strict => return Err(resolved.named(resolved.kernel(errno))),
                Err(_) => continue,
            };
            let bytes = entry.file_name();
            if bytes == c"." || bytes == c".." {
                continue;
            }
            empty = false;
            seen += 1;
            if seen > door::WALK_ENTRIES_MAX || (seen % 256 == 0 && until.over()) {
                found.sort_unstable_by(|a: &WalkEntry, b: &WalkEntry| a.relative.cmp(&b.relative));
                return Ok((found, true));
            }
            // A name that is no UTF-8 can't be asked for through this door.
            let Ok(name) = bytes.to_str() else { continue };
            let kind = match entry.file_type() {
                FileType::Unknown => match statat(&dir, bytes, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => entry_kind(stat.st_mode),
                    Err(errno) if strict && errno != Errno::NOENT => {
                        return Err(resolved.named(resolved.kernel(errno)));
                    }
                    Err(_) => continue,
                },
                known => entry_kind(known.as_raw_mode()),
            };
            let relative =
                if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
            if kind == EntryKind::Directory {
                let child = resolved.child(name);
                if !skip.skips(name, &relative) && !NO_FILES.contains(&child.path.as_str()) {
                    stack.push((child, relative));
                }
                continue;
            }
            let entry = WalkEntry { relative, kind, empty: false };
            if keep(&entry) {
                found.push(entry);
            }
        }
        let entry = WalkEntry { relative: prefix, kind: EntryKind::Directory, empty };
        if empty && !entry.relative.is_empty() && keep(&entry) {
            found.push(entry);
        }
    }
    found.sort_unstable_by(|a, b| a.relative.cmp(&b.relative));
    Ok((found, false))
}
