//! Fills a sandbox's workspace from a tar archive.

use futures_util::{StreamExt, TryStreamExt, stream};
use outrigger_agent::Workspace;
use outrigger_repository::modified_ns;
use outrigger_sandbox::{
    ContentDigest, ExecId, FileOp, FileReply, Precondition, Sandbox, WriteMode,
    limits as sandbox_limits,
};
use outrigger_store::Blobs;
use sha2::Digest as _;
use std::io::Read;
use tokio::sync::mpsc;

use super::Error;
use crate::limits;

/// Says which archive a workspace was filled from. Written last, so that its absence means that filling was not finished.
const MARK: &str = "/home/agent/.outrigger-workspace";

/// What filling found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    /// A workspace that was not filled to the end, filled now.
    Fresh,
    /// Filled before, from this archive or another: left as it is.
    Kept,
}

/// One file or link of an archive.
struct Entry {
    path: String,
    body: Body,
}

enum Body {
    File { contents: Vec<u8>, executable: bool, modified_ns: Option<i64> },
    Link { target: String },
    Directory,
}

/// Fills the workspace, unless it was filled before. Safe to repeat after a crash:
/// `attempt` names this attempt at it, and what one before it wrote is written again.
///
/// # Errors
/// A missing or damaged archive, or a file that the sandbox refuses.
pub async fn import(
    blobs: &dyn Blobs,
    content: &Workspace,
    attempt: &str,
    sandbox: &dyn Sandbox,
) -> Result<ImportOutcome, Error> {
    if marked(sandbox).await?.is_some() {
        return Ok(ImportOutcome::Kept);
    }
    let archive = blobs.open(&content.archive).await.map_err(Error::Blob)?;
    let (send, receive) = mpsc::channel(limits::COPIES_MAX);
    let reading = tokio::task::spawn_blocking(move || read(archive, &send));
    let entries = stream::unfold(receive, |mut receive| async {
        receive.recv().await.map(|entry| (entry, receive))
    });
    let copying = entries
        .map(Ok::<Entry, Error>)
        .try_for_each_concurrent(limits::COPIES_MAX, |entry| write(sandbox, entry, attempt));
    copying.await?;
    reading.await.map_err(|panic| Error::Archive(std::io::Error::other(panic)))??;
    let mark = format!("{}\n", content.archive.as_str()).into_bytes();
    let mark = Body::File { contents: mark, executable: false, modified_ns: None };
    write(sandbox, Entry { path: MARK.to_owned(), body: mark }, attempt).await?;
    Ok(ImportOutcome::Fresh)
}

/// Whether a workspace holds nothing.
pub(crate) async fn is_empty(sandbox: &dyn Sandbox) -> Result<bool, Error> {
    let path = ".".to_owned();
    match sandbox.files(FileOp::List { path, entries_max: 1 }).await {
        Ok(FileReply::Entries { entries, .. }) => Ok(entries.is_empty()),
        Ok(_) => Err(Error::Protocol),
        Err(source) => Err(Error::Sandbox { path: "the workspace".to_owned(), source }),
    }
}

/// Whether a workspace was filled to the end. Changes of one that was not mean nothing.
pub async fn is_filled(content: &Workspace, sandbox: &dyn Sandbox) -> bool {
    marked(sandbox).await.is_ok_and(|found| found.is_some_and(|found| is_of(&found, content)))
}

fn is_of(mark: &str, content: &Workspace) -> bool {
    mark.lines().next() == Some(content.archive.as_str())
}

async fn marked(sandbox: &dyn Sandbox) -> Result<Option<String>, Error> {
    let (path, bytes_max) = (MARK.to_owned(), limits::MARK_BYTES_MAX);
    match sandbox.files(FileOp::Read { path, offset: 0, bytes_max }).await {
        Ok(FileReply::Bytes { bytes, .. }) => Ok(String::from_utf8(bytes).ok()),
        Ok(_) => Err(Error::Protocol),
        Err(outrigger_sandbox::Error::File(_)) => Ok(None),
        // Not known is not absent: work would be written over.
        Err(source) => Err(Error::Sandbox { path: MARK.to_owned(), source }),
    }
}

fn read(archive: Box<dyn Read + Send>, send: &mpsc::Sender<Entry>) -> Result<(), Error> {
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().map_err(Error::Archive)? {
        let mut entry = entry.map_err(Error::Archive)?;
        let path = entry.path().map_err(Error::Archive)?.to_string_lossy().into_owned();
        if path.starts_with('/') || path.split('/').any(|part| part == "..") {
            return Err(Error::Path(path));
        }
        let kind = entry.header().entry_type();
        let body = if kind.is_symlink() {
            let target = entry.link_name().map_err(Error::Archive)?.unwrap_or_default();
            Body::Link { target: target.to_string_lossy().into_owned() }
        } else if kind.is_dir() {
            Body::Directory
        } else {
            let mode = entry.header().mode().map_err(Error::Archive)?;
            let modified_ns = modified_ns(&mut entry).map_err(Error::Archive)?;
            let mut contents = Vec::new();
            entry.read_to_end(&mut contents).map_err(Error::Archive)?;
            Body::File { contents, executable: mode & 0o111 != 0, modified_ns }
        };
        if send.blocking_send(Entry { path, body }).is_err() {
            // Who copies has stopped, and says why.
            return Ok(());
        }
    }
    Ok(())
}

async fn write(sandbox: &dyn Sandbox, entry: Entry, attempt: &str) -> Result<(), Error> {
    let Entry { path, body } = entry;
    let ops = match body {
        Body::Link { target } => {
            vec![FileOp::Link { id: id(&path, attempt, 0), path: path.clone(), target }]
        }
        Body::Directory => vec![FileOp::MakeDir { id: id(&path, attempt, 0), path: path.clone() }],
        Body::File { contents, executable, modified_ns } => {
            pieces(&path, attempt, &contents, (executable, modified_ns))
        }
    };
    let done = stream::iter(ops).map(Ok).try_for_each(|op| async {
        let source = match sandbox.files(op).await {
            Ok(_) => return Ok(()),
            Err(source) => source,
        };
        Err(Error::Sandbox { path: path.clone(), source })
    });
    done.await
}

fn pieces(
    path: &str,
    attempt: &str,
    contents: &[u8],
    (executable, modified_ns): (bool, Option<i64>),
) -> Vec<FileOp> {
    let size = usize::try_from(sandbox_limits::FILE_CHUNK_BYTES_MAX).unwrap_or(usize::MAX);
    let mut pieces: Vec<&[u8]> = contents.chunks(size).collect();
    if pieces.is_empty() {
        pieces.push(&[]);
    }
    let op = |(index, piece): (usize, &[u8])| FileOp::Write {
        id: id(path, attempt, index),
        path: path.to_owned(),
        contents: piece.to_vec(),
        mode: if index == 0 { WriteMode::Replace } else { WriteMode::Append },
        executable: Some(executable),
        modified_ns,
        precondition: Precondition::None,
    };
    pieces.into_iter().enumerate().map(op).collect()
}

/// Another one in each attempt: the guest remembers only so many, and what it has
/// forgotten it refuses. An attempt begins each file anew, so repeating is harmless.
fn id(path: &str, attempt: &str, index: usize) -> ExecId {
    let ContentDigest(digest) =
        ContentDigest(sha2::Sha256::digest(format!("{attempt}\0{path}")).into());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    ExecId::new(format!("import.{}.{index}", &hex[..40]))
        .expect("hexadecimal digits, numbers and dots are plain")
}
