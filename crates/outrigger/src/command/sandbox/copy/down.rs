//! Out of a sandbox: pieces of files, through its own door.

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
use super::target::{CopiedFile, CopyTarget};
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::sandbox::failed;

/// Copies, and gives what was left out.
pub(super) async fn copy(
    sandbox: Arc<dyn Sandbox>,
    from: &str,
    to: &Path,
    count: &Arc<Count>,
) -> Outcome<Vec<String>> {
    let source = source(&*sandbox, from).await?;
    let target = CopyTarget::new(from, to)?;
    if source.kind == EntryKind::Directory {
        return directory(&sandbox, from, &target, count).await;
    }
    // A link is followed by the sandbox, as far as it stays inside.
    file(&*sandbox, from, target.file(source.executable)?, count).await?;
    Ok(Vec::new())
}

/// Writes a file to standard output.
pub(super) async fn copy_output(sandbox: &dyn Sandbox, from: &str, count: &Count) -> Outcome {
    if source(sandbox, from).await?.kind == EntryKind::Directory {
        let text = format!("{from} is a directory");
        return Err(Failure::new(Kind::Usage, text).hint("Name a file, or a directory to copy to."));
    }
    each_piece(sandbox, from, count, print).await
}

/// Writes a piece of a file to standard output.
pub(crate) fn print(bytes: &[u8]) -> Outcome {
    match io::stdout().lock().write_all(bytes) {
        // A reader that has gone has what it wanted.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Kind::Storage, format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// What is to be copied. What is neither file, link nor directory is not.
async fn source(sandbox: &dyn Sandbox, from: &str) -> Outcome<outrigger_sandbox::ListEntry> {
    match stat(sandbox, from).await? {
        None => Err(nothing_at(from)),
        Some(entry) if entry.kind == EntryKind::Other => {
            let text = format!("{from} is no file: it is a FIFO, a device or a socket");
            Err(Failure::new(Kind::Usage, text))
        }
        Some(entry) => Ok(entry),
    }
}

/// The error of a path at which nothing is.
pub(crate) fn nothing_at(from: &str) -> Failure {
    Failure::new(Kind::NotFound, format!("there is nothing at {from} in the sandbox"))
}

async fn directory(
    sandbox: &Arc<dyn Sandbox>,
    from: &str,
    target: &CopyTarget,
    count: &Arc<Count>,
) -> Outcome<Vec<String>> {
    let tree = target.directory()?;
    let entries = manifest(&**sandbox, from).await?;
    count.total(entries.iter().map(|entry| entry.bytes).sum());
    let (mut links, mut left_out, mut fetching) = (Vec::new(), Vec::new(), JoinSet::new());
    for entry in entries {
        let path = PathBuf::from(&entry.path);
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            tree.folder(parent)?;
        }
        let inside = format!("{}/{}", from.trim_end_matches('/'), entry.path);
        match entry.kind {
            EntryKind::Directory => tree.folder(&path)?,
            EntryKind::Other => left_out.push(format!("{inside}: a FIFO, device or socket")),
            EntryKind::Link => links.push((path, entry.target.unwrap_or_default(), inside)),
            EntryKind::File => {
                if fetching.len() >= limits::COPIES_AT_ONCE_MAX
                    && let Some(fetched) = fetching.join_next().await
                {
                    fetched.map_err(|error| Failure::from_error(Kind::Storage, &error))??;
                }
                let (sandbox, count) = (Arc::clone(sandbox), Arc::clone(count));
                let tree = tree.clone();
                fetching.spawn(async move {
                    let begun = tree.file(&path, entry.executable)?;
                    file(&*sandbox, &inside, begun, &count).await
                });
            }
        }
    }
    while let Some(fetched) = fetching.join_next().await {
        fetched.map_err(|error| Failure::from_error(Kind::Storage, &error))??;
    }
    left_out.append(&mut tree.link(links, count)?);
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

async fn file(sandbox: &dyn Sandbox, from: &str, mut begun: CopiedFile, count: &Count) -> Outcome {
    each_piece(sandbox, from, count, |bytes| begun.write(bytes)).await?;
    begun.put()
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
