//! Out of a sandbox.
//!
//! What comes is hostile: everything is made beneath one handle, links last, and nothing is
//! ever followed. Only a regular file is replaced.

use outrigger_beneath::{self as beneath, Dir, Draft, words};
use outrigger_sandbox::{
    EntryKind, Error, FileErrorKind, FileOp, FileReply, ManifestEntry, Sandbox, limits as door,
    list_tree,
};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinSet;

use super::count::Count;
use super::stat::{astray, stat};
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::sandbox::failed;

/// Copies, and gives what was left out.
pub(super) async fn copy(
    sandbox: Arc<dyn Sandbox>,
    from: &str,
    to: &Path,
    count: Arc<Count>,
) -> Outcome<Vec<String>> {
    let into = to.is_dir() || to.as_os_str().as_encoded_bytes().ends_with(b"/");
    let name = from.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name = if matches!(name, "" | "." | "..") { "workspace" } else { name };
    let target = if into { to.join(name) } else { to.to_owned() };
    let source = source(&*sandbox, from).await?;
    let around = Dir::around(&target).map_err(|error| here(Path::new(""), &error))?;
    let (dir, name) = around.ok_or_else(|| {
        let text = format!("{} names no file", target.display());
        Failure::new(Kind::Usage, text)
    })?;
    if source.kind == EntryKind::Directory {
        return directory(&sandbox, from, (&dir, &name, &target), &count).await;
    }
    replaceable(&dir, &name, &target)?;
    // A link is followed by the sandbox, as far as it stays inside.
    let above = target.parent().unwrap_or(Path::new(""));
    file(&*sandbox, from, (&dir, &name, above), source.executable, &count).await?;
    Ok(Vec::new())
}

/// Writes a file to standard output.
pub(super) async fn copy_output(
    sandbox: &dyn Sandbox,
    from: &str,
    count: &Count,
) -> Outcome<Vec<String>> {
    if source(sandbox, from).await?.kind == EntryKind::Directory {
        let text = format!("{from} is a directory");
        return Err(Failure::new(Kind::Usage, text).hint("Name a file, or a directory to copy to."));
    }
    let put = |bytes: &[u8]| match io::stdout().lock().write_all(bytes) {
        // A reader that has gone has what it wanted.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Kind::Storage, format!("standard output: {error}")))
        }
        _ => Ok(()),
    };
    each_piece(sandbox, from, count, put).await?;
    Ok(Vec::new())
}

/// What is to be copied. What is neither file, link nor directory is not.
async fn source(sandbox: &dyn Sandbox, from: &str) -> Outcome<outrigger_sandbox::ListEntry> {
    match stat(sandbox, from).await? {
        None => {
            let text = format!("there is nothing at {from} in the sandbox");
            Err(Failure::new(Kind::NotFound, text))
        }
        Some(entry) if entry.kind == EntryKind::Other => {
            let text = format!("{from} is no file: it is a FIFO, a device or a socket");
            Err(Failure::new(Kind::Usage, text))
        }
        Some(entry) => Ok(entry),
    }
}

/// Nothing may stand there but a regular file.
fn replaceable(dir: &Dir, name: &Path, target: &Path) -> Outcome {
    let above = target.parent().unwrap_or(Path::new(""));
    let stat = dir.stat(name).map_err(|error| here(above, &error))?;
    let Some(stat) = stat.filter(|stat| !stat.is_file()) else { return Ok(()) };
    let text = format!("{} is {}", target.display(), words(stat.kind));
    Err(Failure::new(Kind::Conflict, text)
        .hint("Only a file is replaced. Name another one, or `-` for standard output."))
}

/// What the host said of something beneath a folder.
fn here(above: &Path, error: &beneath::Error) -> Failure {
    let kind = match error {
        beneath::Error::Outside(path) => {
            let text = format!("the sandbox gave `{}` for a name", path.display());
            return Failure::new(Kind::Denied, text);
        }
        beneath::Error::Link(_) | beneath::Error::NoFile { .. } => Kind::Conflict,
        beneath::Error::Io { source, .. } => match source.kind() {
            io::ErrorKind::AlreadyExists => Kind::Conflict,
            io::ErrorKind::NotFound => Kind::NotFound,
            _ => Kind::Storage,
        },
    };
    match error {
        beneath::Error::Io { path, source } => {
            Failure::new(kind, format!("{}: {source}", above.join(path).display()))
        }
        error => Failure::from_error(kind, error),
    }
}

async fn directory(
    sandbox: &Arc<dyn Sandbox>,
    from: &str,
    (dir, name, to): (&Dir, &Path, &Path),
    count: &Arc<Count>,
) -> Outcome<Vec<String>> {
    let above = to.parent().unwrap_or(Path::new(""));
    // New, so that nothing of somebody else's stands in it.
    let made = dir.make_dir(name, 0o777);
    made.map_err(|error| here(above, &error).hint("Name a directory that is not there yet."))?;
    let root = Arc::new(dir.dir(name).map_err(|error| here(above, &error))?);
    let entries = manifest(&**sandbox, from).await?;
    count.total(entries.iter().map(|entry| entry.bytes).sum());
    let (mut links, mut left_out, mut fetching) = (Vec::new(), Vec::new(), JoinSet::new());
    for entry in entries {
        let path = PathBuf::from(&entry.path);
        let make = |path: &Path| root.make_dirs(path, 0o777).map_err(|error| here(to, &error));
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            make(parent)?;
        }
        let inside = format!("{}/{}", from.trim_end_matches('/'), entry.path);
        match entry.kind {
            EntryKind::Directory => drop(make(&path)?),
            EntryKind::Other => left_out.push(format!("{inside}: a FIFO, device or socket")),
            EntryKind::Link => links.push((path, entry.target.unwrap_or_default(), inside)),
            EntryKind::File => {
                if fetching.len() >= limits::COPIES_AT_ONCE_MAX
                    && let Some(fetched) = fetching.join_next().await
                {
                    fetched.map_err(|error| Failure::from_error(Kind::Storage, &error))??;
                }
                let (sandbox, count) = (Arc::clone(sandbox), Arc::clone(count));
                let (root, to) = (Arc::clone(&root), to.to_owned());
                fetching.spawn(async move {
                    file(&*sandbox, &inside, (&root, &path, &to), entry.executable, &count).await
                });
            }
        }
    }
    while let Some(fetched) = fetching.join_next().await {
        fetched.map_err(|error| Failure::from_error(Kind::Storage, &error))??;
    }
    for (path, target, inside) in links {
        if outrigger_repository::leads_out(&path, &target) {
            left_out
                .push(format!("{inside}: a link to {target}, which leads out of the directory"));
            continue;
        }
        root.link(Path::new(&target), &path).map_err(|error| here(to, &error))?;
        count.file();
    }
    Ok(left_out)
}

async fn manifest(sandbox: &dyn Sandbox, root: &str) -> Outcome<Vec<ManifestEntry>> {
    let most = limits::COPIED_FILES_MAX;
    let all = list_tree(sandbox, root, most).await.map_err(|error| failed(&error))?;
    all.ok_or_else(|| {
        Failure::new(Kind::Usage, format!("more than {most} files at once"))
            .hint("Pack them with tar in the sandbox, and copy the archive.")
    })
}

/// Writes a file beside its name and renames it, so that it is there whole or not at all.
async fn file(
    sandbox: &dyn Sandbox,
    from: &str,
    (dir, path, above): (&Dir, &Path, &Path),
    executable: bool,
    count: &Count,
) -> Outcome {
    let mut draft = Draft::begin(dir, path, executable).map_err(|error| here(above, &error))?;
    let put = |bytes: &[u8]| {
        let written = draft.file().write_all(bytes);
        written.map_err(|error| {
            Failure::new(Kind::Storage, format!("{}: {error}", above.join(path).display()))
        })
    };
    each_piece(sandbox, from, count, put).await?;
    draft.put().map_err(|error| here(above, &error))
}

/// Gives the pieces of a file in the sandbox to somebody, in order.
async fn each_piece(
    sandbox: &dyn Sandbox,
    from: &str,
    count: &Count,
    mut put: impl FnMut(&[u8]) -> Outcome,
) -> Outcome {
    let mut offset = 0;
    loop {
        let (path, bytes_max) = (from.to_owned(), door::FILE_CHUNK_BYTES_MAX);
        let reply = sandbox.files(FileOp::Read { path, offset, bytes_max }).await;
        let (bytes, total) = match reply {
            Ok(FileReply::Bytes { bytes, total_bytes }) => (bytes, total_bytes),
            Ok(_) => return Err(astray()),
            Err(Error::File(error)) if error.kind == FileErrorKind::IsDirectory => {
                let text = format!("{from} is a link to a directory");
                return Err(Failure::new(Kind::Usage, text).hint("Name the directory itself."));
            }
            Err(error) => return Err(failed(&error)),
        };
        put(&bytes)?;
        offset += bytes.len() as u64;
        count.piece(bytes.len());
        if bytes.is_empty() || offset >= total {
            count.file();
            return Ok(());
        }
    }
}
