//! Operations that look at a tree: `Glob`, `Grep`, `Manifest`.

use std::io::Read;

use outrigger_sandbox::{
    EntryKind, FileError, FileErrorKind, FileReply, GrepMatch, GrepPattern, ManifestEntry,
    limits as door, text,
};
use rustix::fs::{OFlags, readlinkat};

use super::read::executable;
use super::resolve::{ResolvedPath, Symlinks};
use super::walk::{SearchDeadline, SkipPolicy, UnreadablePolicy, WalkEntry, walk};
use super::write::{SLOW, digest_of};
use crate::limits;

fn absolute(root: &ResolvedPath, relative: &str) -> String {
    if root.path == "/" { format!("/{relative}") } else { format!("{}/{relative}", root.path) }
}

/// `Glob`.
pub(super) fn glob(root: &str, pattern: &str, paths_max: u32) -> Result<FileReply, FileError> {
    let glob = text::Glob::new(pattern)?;
    let resolved = ResolvedPath::find(root, Symlinks::Followed)?;
    let (found, ended) = walk(
        &resolved,
        SkipPolicy::Search(glob.skip_list(&resolved.path)),
        UnreadablePolicy::Skipped,
        SearchDeadline::started(),
        |found| {
            matches!(found.kind, EntryKind::File | EntryKind::Link) && glob.matches(&found.relative)
        },
    )?;
    let wanted = paths_max.min(door::ENTRIES_MAX) as usize;
    let is_file = |path: &str| {
        ResolvedPath::find(path, Symlinks::Followed)
            .is_ok_and(|resolved| matches!(resolved.regular(), Ok(Some(_))))
    };
    let mut paths = found
        .into_iter()
        .map(|found| (found.kind, absolute(&resolved, &found.relative)))
        // A link counts as what it leads to.
        .filter(|(kind, path)| *kind == EntryKind::File || is_file(path))
        .map(|(_, path)| path);
    let kept: Vec<String> = paths.by_ref().take(wanted).collect();
    let truncated = ended || paths.next().is_some();
    Ok(FileReply::Paths { paths: kept, truncated })
}

/// The start of a file, and whether there is more of it.
fn contents(resolved: &ResolvedPath) -> Result<(Vec<u8>, bool), FileError> {
    let (file, _) = resolved.open(OFlags::RDONLY)?;
    let mut bytes = Vec::new();
    file.take(limits::GREP_FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| resolved.io(&error))?;
    let more = bytes.len() as u64 > limits::GREP_FILE_BYTES_MAX;
    Ok((bytes, more))
}

/// `Grep`.
pub(super) fn grep(
    root: &str,
    pattern: &GrepPattern,
    glob: Option<&str>,
    matches_max: u32,
) -> Result<FileReply, FileError> {
    let matcher = text::GrepMatcher::new(pattern)?;
    let glob = glob.map(text::Glob::new).transpose()?;
    let resolved = ResolvedPath::find(root, Symlinks::Followed)?;
    let until = SearchDeadline::started();
    let wanted = |relative: &str| glob.as_ref().is_none_or(|glob| glob.matches(relative));
    let single = match resolved.regular() {
        Ok(Some(_)) => true,
        Ok(None) => return Err(resolved.kernel(rustix::io::Errno::NOENT)),
        Err(error) if error.kind == FileErrorKind::IsDirectory => false,
        Err(error) => return Err(error),
    };
    let (paths, mut truncated) = if single {
        let name = resolved.path.rsplit('/').next().unwrap_or_default();
        (if wanted(name) { vec![resolved] } else { Vec::new() }, false)
    } else {
        let skips = match &glob {
            Some(glob) => glob.skip_list(&resolved.path),
            None => text::SkipList::beneath(&resolved.path),
        };
        let keep = |found: &WalkEntry| found.kind == EntryKind::File && wanted(&found.relative);
        let (found, ended) =
            walk(&resolved, SkipPolicy::Search(skips), UnreadablePolicy::Skipped, until, keep)?;
        (found.into_iter().map(|found| resolved.child(&found.relative)).collect(), ended)
    };
    let most = matches_max.min(door::MATCHES_MAX) as usize;
    let mut matches = Vec::new();
    for resolved in paths {
        if until.over() {
            truncated = true;
            break;
        }
        let (bytes, more) = match contents(&resolved) {
            Ok(read) => read,
            Err(error) if single => return Err(error),
            // Unreadable, or gone in between.
            Err(_) => continue,
        };
        if text::is_binary(&bytes) {
            continue;
        }
        truncated |= more;
        for (line, text) in matcher.lines(&bytes) {
            if matches.len() >= most {
                return Ok(FileReply::Matches { matches, truncated: true });
            }
            matches.push(GrepMatch { path: resolved.path.clone(), line, text });
        }
    }
    Ok(FileReply::Matches { matches, truncated })
}

/// `Manifest`.
pub(super) fn manifest(
    root: &str,
    after: Option<&str>,
    skip: &[String],
    entries_max: u32,
) -> Result<FileReply, FileError> {
    let resolved = ResolvedPath::find_unlocking(root, Symlinks::Followed)?;
    let until = SearchDeadline::started();
    let (found, ended) =
        walk(&resolved, SkipPolicy::These(skip), UnreadablePolicy::Refused, until, |found| {
            let beyond = after.is_none_or(|after| found.relative.as_str() > after);
            beyond && (found.kind != EntryKind::Directory || found.empty)
        })?;
    if ended {
        // A page of half a tree would be taken for the whole.
        let detail = "the tree is too large to list in time; ask for its parts";
        return Err(resolved.error(FileErrorKind::TooLarge, detail));
    }
    let wanted = entries_max.min(door::ENTRIES_MAX) as usize;
    let mut entries = Vec::new();
    let mut more = false;
    let first_until = until.at_least(limits::FIRST_DIGEST_MS);
    for found in found {
        let first = entries.is_empty();
        if entries.len() >= wanted || (until.over() && !first) {
            more = true;
            break;
        }
        let child = resolved.child(&found.relative);
        let until = if first { first_until } else { until };
        match describe(&child, found, until).map_err(|error| child.named(error))? {
            EntryResult::Entry(entry) => entries.push(entry),
            EntryResult::Gone => {}
            EntryResult::Late if first => {
                return Err(child.named(child.error(FileErrorKind::TooLarge, SLOW)));
            }
            EntryResult::Late => {
                more = true;
                break;
            }
        }
    }
    Ok(FileReply::Manifest { entries, more })
}

/// What became of a thing that a walk found.
enum EntryResult {
    Entry(ManifestEntry),
    /// It went away in between.
    Gone,
    /// The time is over.
    Late,
}

/// `Ok(None)` for what is not there.
fn unless_gone<T>(result: Result<T, FileError>) -> Result<Option<T>, FileError> {
    match result {
        Err(error) if error.kind == FileErrorKind::FileNotFound => Ok(None),
        done => done.map(Some),
    }
}

/// What a file, link or empty directory holds, or that it is none of them.
fn describe(
    resolved: &ResolvedPath,
    found: WalkEntry,
    until: SearchDeadline,
) -> Result<EntryResult, FileError> {
    let mut entry = ManifestEntry {
        path: found.relative,
        kind: found.kind,
        executable: false,
        bytes: 0,
        digest: Some(text::digest(b"")),
        target: None,
    };
    match found.kind {
        EntryKind::File => {
            let Some((file, stat)) = unless_gone(resolved.open_unlocking())? else {
                return Ok(EntryResult::Gone);
            };
            entry.executable = executable(&stat);
            entry.bytes = u64::try_from(stat.st_size).unwrap_or(0);
            entry.digest = match digest_of(resolved, &file, entry.bytes, until) {
                Ok(Some(digest)) => Some(digest),
                Ok(None) => return Ok(EntryResult::Late),
                // One huge file must not hide all others.
                Err(error) if error.kind == FileErrorKind::TooLarge => None,
                Err(error) => return Err(error),
            };
        }
        EntryKind::Link => {
            let target = unless_gone(resolved.unlocking(|| {
                let (dir, name) = resolved.parent()?;
                readlinkat(&dir, name, Vec::new()).map_err(|errno| resolved.kernel(errno))
            }))?;
            let Some(target) = target else { return Ok(EntryResult::Gone) };
            let target = target.to_string_lossy().into_owned();
            entry.digest = Some(text::digest(target.as_bytes()));
            entry.target = Some(target);
        }
        EntryKind::Directory => {
            if resolved.unlocking(|| resolved.stat())?.is_none() {
                return Ok(EntryResult::Gone);
            }
        }
        // Never opened, which would do something.
        EntryKind::Other => entry.digest = None,
    }
    Ok(EntryResult::Entry(entry))
}
