//! Writes a session's changes back, all or nothing as far as a file system can.

use outrigger_engine::workspace::{Change, File};
use outrigger_sandbox::EntryKind;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use crate::exit::{Failure, Kind, Outcome};

/// Checks every file first: nothing is written if one of them is not as it was
/// when the session began, or would not stay within the directory. Deletions come
/// first, so that a file can take the place of a directory and the other way round.
pub(crate) fn apply(dir: &Path, changes: &[Change]) -> Outcome {
    let (removed, written): (Vec<&Change>, Vec<&Change>) =
        changes.iter().partition(|change| change.after.is_none());
    let paths: BTreeSet<&str> = removed.iter().map(|change| change.path.as_str()).collect();
    let mut conflicts = Vec::new();
    for change in changes {
        let Place { full, beneath_removed } = place(dir, &change.path, &paths)?;
        if let Some(after) = &change.after {
            stays_within(&change.path, after)?;
        }
        let failed = |error| unwritable(&full, &error);
        let found = if beneath_removed { None } else { read(&full).map_err(failed)? };
        let emptied = || change.before.is_none() && empties(dir, &change.path, &paths);
        if found != change.before && found != change.after && !emptied() {
            conflicts.push(change.path.clone());
        }
    }
    if !conflicts.is_empty() {
        let list = conflicts.join(", ");
        return Err(Failure::new(
            Kind::Conflict,
            format!("nothing was written back, because these changed meanwhile: {list}"),
        )
        .hint("The changes are kept in the patch."));
    }
    for change in removed.into_iter().chain(written) {
        let Place { full, .. } = place(dir, &change.path, &BTreeSet::new())?;
        write(dir, &full, change).map_err(|error| unwritable(&full, &error))?;
    }
    Ok(())
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Kind::Storage,
        _ => Kind::Conflict,
    };
    Failure::new(kind, format!("{}: {error}", path.display()))
        .hint("The changes are kept in the patch; running the same again goes on where it stopped.")
}

/// Where a path of a sandbox is in the directory.
struct Place {
    full: PathBuf,
    /// What stands there in place of a directory is itself removed.
    beneath_removed: bool,
}

/// Paths come out of a sandbox: they may only name something beneath the
/// directory, and not through a link.
fn place(dir: &Path, path: &str, removed: &BTreeSet<&str>) -> Outcome<Place> {
    let refused =
        |why: &str| Failure::new(Kind::Denied, format!("`{path}` was not written back: {why}"));
    let relative = Path::new(path);
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if path.is_empty() || !plain {
        return Err(refused("it is no path beneath the directory"));
    }
    let full = dir.join(relative);
    let mut parent = PathBuf::new();
    for part in relative.parent().unwrap_or(Path::new("")).components() {
        parent.push(part);
        if fs::symlink_metadata(dir.join(&parent)).is_ok_and(|meta| !meta.is_dir()) {
            if parent.to_str().is_some_and(|parent| removed.contains(parent)) {
                return Ok(Place { full, beneath_removed: true });
            }
            return Err(refused("a part of its path is a link or a file"));
        }
    }
    Ok(Place { full, beneath_removed: false })
}

/// Whether a path is a directory of which nothing is left after the removals.
fn empties(dir: &Path, path: &str, removed: &BTreeSet<&str>) -> bool {
    let Ok(entries) = fs::read_dir(dir.join(path)) else { return false };
    entries.into_iter().all(|entry| {
        let Ok(entry) = entry else { return false };
        let (name, kind) = (entry.file_name(), entry.file_type());
        let Some(inner) = name.to_str().map(|name| format!("{path}/{name}")) else { return false };
        match kind {
            Ok(kind) if kind.is_dir() => empties(dir, &inner, removed),
            Ok(_) => removed.contains(inner.as_str()),
            Err(_) => false,
        }
    })
}

/// A link that a sandbox made may not lead out of the directory. It may go up only
/// at its beginning: after a name, which may be a link itself, `..` leads anywhere.
fn stays_within(path: &str, after: &File) -> Outcome {
    if after.kind != EntryKind::Link {
        return Ok(());
    }
    let target = String::from_utf8_lossy(&after.contents).into_owned();
    let mut above = Path::new(path).components().count().saturating_sub(1);
    let mut named = false;
    let within = Path::new(&target).components().all(|part| match part {
        Component::Normal(_) => {
            named = true;
            true
        }
        Component::CurDir => true,
        Component::ParentDir if named || above == 0 => false,
        Component::ParentDir => {
            above -= 1;
            true
        }
        Component::RootDir | Component::Prefix(_) => false,
    });
    if within {
        return Ok(());
    }
    let text = format!(
        "`{path}` was not written back: it links to `{target}`, which may be outside the directory"
    );
    Err(Failure::new(Kind::Denied, text))
}

fn read(path: &Path) -> io::Result<Option<File>> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if meta.is_symlink() {
        let contents = fs::read_link(path)?.into_os_string().into_encoded_bytes();
        return Ok(Some(File { kind: EntryKind::Link, executable: false, contents }));
    }
    let kind = if meta.is_file() { EntryKind::File } else { EntryKind::Other };
    let contents = if meta.is_file() { fs::read(path)? } else { Vec::new() };
    let executable = meta.is_file() && meta.permissions().mode() & 0o111 != 0;
    Ok(Some(File { kind, executable, contents }))
}

fn write(dir: &Path, full: &Path, change: &Change) -> io::Result<()> {
    let Some(after) = &change.after else {
        match fs::remove_file(full) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        return remove_empty(dir, full);
    };
    let parent = full.parent().unwrap_or(dir);
    fs::create_dir_all(parent)?;
    // Beside the target, so that the rename is atomic; a leftover of a crash is replaced.
    let temporary = parent.join(format!(".outrigger-{}.tmp", std::process::id()));
    drop(fs::remove_file(&temporary));
    match after.kind {
        EntryKind::Link => symlink(String::from_utf8_lossy(&after.contents).as_ref(), &temporary)?,
        EntryKind::File | EntryKind::Directory | EntryKind::Other => {
            // Only a file's: every link has 0777.
            let kept = fs::symlink_metadata(full).ok().filter(fs::Metadata::is_file);
            let kept = kept.map_or(0o644, |meta| meta.permissions().mode());
            let executable =
                if after.executable { kept | (kept & 0o444) >> 2 } else { kept & !0o111 };
            let mode = executable & 0o777;
            let mut file =
                fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
            file.write_all(&after.contents)?;
            file.set_permissions(fs::Permissions::from_mode(mode))?;
            file.sync_all()?;
        }
    }
    fs::rename(&temporary, full)
}

/// Git knows no empty directories, so those that a deletion leaves go as well.
fn remove_empty(dir: &Path, full: &Path) -> io::Result<()> {
    let mut parent = full.parent();
    while let Some(path) = parent.filter(|path| *path != dir && path.starts_with(dir)) {
        if fs::remove_dir(path).is_err() {
            break;
        }
        parent = path.parent();
    }
    Ok(())
}
