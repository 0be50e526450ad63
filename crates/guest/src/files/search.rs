//! Operations that look at a tree: `Glob`, `Grep`, `Manifest`.

use std::io::Read;

use outrigger_sandbox::{
    EntryKind, FileError, FileErrorKind, FileReply, GrepMatch, GrepPattern, ManifestEntry,
    limits as door, text,
};
use rustix::fs::{OFlags, readlinkat};

use super::place::{Last, Place};
use super::read::executable;
use super::walk::{Found, Git, Unreadable, Until, walk};
use super::write::{SLOW, digest_of};
use crate::limits;

fn git(skips: bool) -> Git {
    if skips { Git::Skipped } else { Git::Entered }
}

fn absolute(root: &Place, relative: &str) -> String {
    if root.path == "/" { format!("/{relative}") } else { format!("{}/{relative}", root.path) }
}

/// `Glob`.
pub(super) fn glob(root: &str, pattern: &str, paths_max: u32) -> Result<FileReply, FileError> {
    let glob = text::Glob::new(pattern)?;
    let place = Place::find(root, Last::Followed)?;
    let (found, ended) = walk(
        &place,
        git(glob.skips_git(&place.path)),
        Unreadable::Skipped,
        Until::started(),
        |found| {
            matches!(found.kind, EntryKind::File | EntryKind::Link) && glob.matches(&found.relative)
        },
    )?;
    let wanted = paths_max.min(door::ENTRIES_MAX) as usize;
    let is_file = |path: &str| {
        Place::find(path, Last::Followed).is_ok_and(|place| matches!(place.regular(), Ok(Some(_))))
    };
    let mut paths = found
        .into_iter()
        .map(|found| (found.kind, absolute(&place, &found.relative)))
        // A link counts as what it leads to.
        .filter(|(kind, path)| *kind == EntryKind::File || is_file(path))
        .map(|(_, path)| path);
    let kept: Vec<String> = paths.by_ref().take(wanted).collect();
    let truncated = ended || paths.next().is_some();
    Ok(FileReply::Paths { paths: kept, truncated })
}

/// The start of a file, and whether there is more of it.
fn contents(place: &Place) -> Result<(Vec<u8>, bool), FileError> {
    let (file, _) = place.open(OFlags::RDONLY)?;
    let mut bytes = Vec::new();
    file.take(limits::GREP_FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| place.io(&error))?;
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
    let place = Place::find(root, Last::Followed)?;
    let until = Until::started();
    let wanted = |relative: &str| glob.as_ref().is_none_or(|glob| glob.matches(relative));
    let single = match place.regular() {
        Ok(Some(_)) => true,
        Ok(None) => return Err(place.kernel(rustix::io::Errno::NOENT)),
        Err(error) if error.kind == FileErrorKind::IsDirectory => false,
        Err(error) => return Err(error),
    };
    let (places, mut truncated) = if single {
        let name = place.path.rsplit('/').next().unwrap_or_default();
        (if wanted(name) { vec![place] } else { Vec::new() }, false)
    } else {
        let skips = glob
            .as_ref()
            .map_or_else(|| text::skips_git(&place.path), |glob| glob.skips_git(&place.path));
        let keep = |found: &Found| found.kind == EntryKind::File && wanted(&found.relative);
        let (found, ended) = walk(&place, git(skips), Unreadable::Skipped, until, keep)?;
        (found.into_iter().map(|found| place.child(&found.relative)).collect(), ended)
    };
    let most = matches_max.min(door::MATCHES_MAX) as usize;
    let mut matches = Vec::new();
    for place in places {
        if until.over() {
            truncated = true;
            break;
        }
        let (bytes, more) = match contents(&place) {
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
            matches.push(GrepMatch { path: place.path.clone(), line, text });
        }
    }
    Ok(FileReply::Matches { matches, truncated })
}

/// `Manifest`.
pub(super) fn manifest(
    root: &str,
    after: Option<&str>,
    entries_max: u32,
) -> Result<FileReply, FileError> {
    let place = Place::find_unlocking(root, Last::Followed)?;
    let until = Until::started();
    let (found, ended) = walk(&place, Git::Entered, Unreadable::Refused, until, |found| {
        let beyond = after.is_none_or(|after| found.relative.as_str() > after);
        beyond && (found.kind != EntryKind::Directory || found.empty)
    })?;
    if ended {
        // A page of half a tree would be taken for the whole.
        let detail = "the tree is too large to list in time; ask for its parts";
        return Err(place.error(FileErrorKind::TooLarge, detail));
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
        let child = place.child(&found.relative);
        let until = if first { first_until } else { until };
        match describe(&child, found, until).map_err(|error| child.named(error))? {
            Described::Entry(entry) => entries.push(entry),
            Described::Gone => {}
            Described::Late if first => {
                return Err(child.named(child.error(FileErrorKind::TooLarge, SLOW)));
            }
            Described::Late => {
                more = true;
                break;
            }
        }
    }
    Ok(FileReply::Manifest { entries, more })
}

/// What became of a thing that a walk found.
enum Described {
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
fn describe(place: &Place, found: Found, until: Until) -> Result<Described, FileError> {
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
            let Some((file, stat)) = unless_gone(place.open_unlocking())? else {
                return Ok(Described::Gone);
            };
            entry.executable = executable(&stat);
            entry.bytes = u64::try_from(stat.st_size).unwrap_or(0);
            entry.digest = match digest_of(place, &file, entry.bytes, until) {
                Ok(Some(digest)) => Some(digest),
                Ok(None) => return Ok(Described::Late),
                // One huge file must not hide all others.
                Err(error) if error.kind == FileErrorKind::TooLarge => None,
                Err(error) => return Err(error),
            };
        }
        EntryKind::Link => {
            let target = unless_gone(place.unlocking(|| {
                let (dir, name) = place.parent()?;
                readlinkat(&dir, name, Vec::new()).map_err(|errno| place.kernel(errno))
            }))?;
            let Some(target) = target else { return Ok(Described::Gone) };
            let target = target.to_string_lossy().into_owned();
            entry.digest = Some(text::digest(target.as_bytes()));
            entry.target = Some(target);
        }
        EntryKind::Directory => {
            if place.unlocking(|| place.stat())?.is_none() {
                return Ok(Described::Gone);
            }
        }
        // Never opened, which would do something.
        EntryKind::Other => entry.digest = None,
    }
    Ok(Described::Entry(entry))
}
