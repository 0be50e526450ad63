//! Many files at once, into a sandbox and out of it: as a tar archive.
//!
//! What is in an archive is hostile, in either direction. Paths are resolved in the sandbox, as all
//! others are; nothing is unpacked here.

use axum::body::Body;
use axum::extract::State as Extract;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, TryStreamExt as _, stream};
use outrigger_api::ProblemCode;
use outrigger_sandbox::{EntryKind, FileOp, ListEntry, ManifestEntry, Sandbox, list_tree};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use tokio::task::block_in_place;

use super::access::SandboxUse;
use super::command::fresh_exec;
use super::file_ops::{done, invalid_path, piece, stat};
use super::file_writer::FileWriter;
use crate::files::PathQuery;
use crate::input::{Name, QueryParams, pieces};
use crate::limits::{
    PIECE_BYTES, SANDBOX_ARCHIVE_FILES_MAX, SANDBOX_ARCHIVE_PATH_BYTES_MAX,
    SANDBOX_UPLOAD_BYTES_MAX,
};
use crate::login::Person;
use crate::problems::{ChangeProblems, ReadProblems};
use crate::{RequestError, Server};

fn too_many() -> RequestError {
    let text = format!("{SANDBOX_ARCHIVE_FILES_MAX} files are the most at once");
    RequestError::new(ProblemCode::TooLarge, text)
        .hint("Pack them with tar in the sandbox, and read the archive.")
}

/// A folder as a tar archive, its files by their paths in it; a file alone by its name. What is
/// neither file, link nor folder is left out.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/archive",
    operation_id = "read_sandbox_archive", tag = "sandboxes",
    params(("id" = String, Path, description = "The sandbox"), PathQuery),
    responses(
        (status = 200, body = String, content_type = "application/x-tar"),
        ReadProblems,
    ))]
pub(crate) async fn read(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
    QueryParams(PathQuery { path }): QueryParams<PathQuery>,
) -> Result<Response, RequestError> {
    let sandbox = server.opened(&person, &id, SandboxUse::Look).await?;
    let found = stat(&*sandbox, &path).await?;
    let (root, entries) = match found.kind {
        EntryKind::Directory => {
            let entries = list_tree(&*sandbox, &path, SANDBOX_ARCHIVE_FILES_MAX).await?;
            (path, entries.ok_or_else(too_many)?)
        }
        EntryKind::File | EntryKind::Link | EntryKind::Other => {
            alone(&*sandbox, path, found).await?
        }
    };
    let packing = Packing {
        sandbox,
        root,
        modified_s: server.now_ms() / 1_000,
        waiting: entries.into(),
        file: None,
        is_over: false,
    };
    let packed = packed(packing);
    let headers = [
        (header::CONTENT_TYPE, "application/x-tar"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"files.tar\""),
    ];
    Ok((headers, Body::from_stream(packed)).into_response())
}

/// A file, or what a link leads to, as all that there is of the folder in which it is.
async fn alone(
    sandbox: &dyn Sandbox,
    path: String,
    found: ListEntry,
) -> Result<(String, Vec<ManifestEntry>), RequestError> {
    let (_, bytes) = piece(sandbox, &path, 0, 0).await?;
    let (root, name) = path.rsplit_once('/').unwrap_or((".", &path));
    let entry = ManifestEntry {
        path: name.to_owned(),
        kind: EntryKind::File,
        executable: found.executable,
        bytes,
        digest: None,
        target: None,
    };
    Ok((root.to_owned(), vec![entry]))
}

/// What is to be packed.
struct Packing {
    sandbox: Arc<dyn Sandbox>,
    root: String,
    /// When files are said to have been changed: a listing of a tree has no times.
    modified_s: u64,
    waiting: VecDeque<ManifestEntry>,
    /// The file that is being packed: its path, how much of it was, and its length.
    file: Option<(String, u64, u64)>,
    is_over: bool,
}

fn packed(packing: Packing) -> impl Stream<Item = Result<Vec<u8>, RequestError>> + Send {
    stream::try_unfold(packing, async |mut packing| {
        let bytes = packing.next().await?;
        Ok(bytes.map(|bytes| (bytes, packing)))
    })
}

impl Packing {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, RequestError> {
        if let Some((path, at, length)) = self.file.take() {
            let (mut bytes, _) = piece(&*self.sandbox, &path, at, length - at).await?;
            if bytes.is_empty() {
                let text = format!("{path} became shorter while it was read");
                return Err(RequestError::new(ProblemCode::Conflict, text));
            }
            let at = at + bytes.len() as u64;
            if at < length {
                self.file = Some((path, at, length));
            } else {
                // To a whole block.
                let rest = usize::try_from(length.wrapping_neg() % 512).unwrap_or_default();
                bytes.resize(bytes.len() + rest, 0);
            }
            return Ok(Some(bytes));
        }
        let Some(entry) = self.waiting.pop_front() else {
            // Two blocks of nothing are the end of an archive.
            let end = (!self.is_over).then(|| vec![0; 1_024]);
            self.is_over = true;
            return Ok(end);
        };
        let mut builder = tar::Builder::new(Vec::new());
        let told = |error: io::Error| RequestError::of(ProblemCode::Internal, &error);
        let mut header = tar::Header::new_gnu();
        header.set_mode(if entry.executable { 0o755 } else { 0o644 });
        header.set_size(0);
        header.set_mtime(self.modified_s);
        match entry.kind {
            EntryKind::Other => return Ok(Some(Vec::new())),
            EntryKind::Directory => {
                header.set_entry_type(tar::EntryType::Directory);
                header.set_mode(0o755);
                builder.append_data(&mut header, format!("{}/", entry.path), io::empty())
            }
            EntryKind::Link => {
                header.set_entry_type(tar::EntryType::Symlink);
                let target = entry.target.unwrap_or_default();
                builder.append_link(&mut header, &entry.path, target)
            }
            EntryKind::File => {
                header.set_size(entry.bytes);
                let path = format!("{}/{}", self.root.trim_end_matches('/'), entry.path);
                self.file = (entry.bytes > 0).then_some((path, 0, entry.bytes));
                // The header alone: its bytes follow as they come.
                builder.append_data(&mut header, &entry.path, io::empty())
            }
        }
        .map_err(told)?;
        // Without the end that a builder writes.
        Ok(Some(std::mem::take(builder.get_mut())))
    }
}

/// Something in an archive that was sent.
struct ArchiveItem {
    path: String,
    kind: ArchiveItemKind,
}

#[derive(Clone)]
enum ArchiveItemKind {
    Folder,
    Link(String),
    File { at: u64, bytes: u64, executable: bool },
}

/// Unpacks a tar archive into a folder of a sandbox, over what is there. Nothing is undone where
/// it fails half-way.
#[utoipa::path(put, path = "/v1/sandboxes/{id}/archive",
    operation_id = "write_sandbox_archive", tag = "sandboxes",
    request_body(content = Option<String>, content_type = "application/x-tar"),
    params(("id" = String, Path, description = "The sandbox"), PathQuery),
    responses(
        (status = 204, description = "Everything is there"),
        ChangeProblems,
    ))]
pub(crate) async fn write(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
    QueryParams(PathQuery { path }): QueryParams<PathQuery>,
    body: Body,
) -> Result<StatusCode, RequestError> {
    let sandbox = server.opened(&person, &id, SandboxUse::Drive).await?;
    let told = |error: io::Error| RequestError::of(ProblemCode::Internal, &error);
    let mut archive = outrigger_repository::nameless(&server.parts.scratch).map_err(told)?;
    let mut pieces = pieces(body, SANDBOX_UPLOAD_BYTES_MAX);
    while let Some(piece) = pieces.try_next().await? {
        block_in_place(|| archive.write_all(&piece)).map_err(told)?;
    }
    archive.rewind().map_err(told)?;
    let items = block_in_place(|| items(&archive))?;
    // So that a folder that can't be one is told before anything is changed.
    done(&*sandbox, FileOp::MakeDir { id: fresh_exec("http"), path: path.clone() }).await?;
    stat(&*sandbox, &path).await?;
    for item in items {
        let at = format!("{}/{}", path.trim_end_matches('/'), item.path);
        put(&*sandbox, &archive, at, item.kind).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

async fn put(
    sandbox: &dyn Sandbox,
    archive: &File,
    path: String,
    kind: ArchiveItemKind,
) -> Result<(), RequestError> {
    let id = fresh_exec("http");
    match kind {
        ArchiveItemKind::Folder => done(sandbox, FileOp::MakeDir { id, path }).await,
        ArchiveItemKind::Link(target) => done(sandbox, FileOp::Link { id, path, target }).await,
        ArchiveItemKind::File { at, bytes, executable } => {
            let writer = FileWriter::new(sandbox, path, Some(executable));
            writer.write(contents(archive, at, at + bytes)).await
        }
    }
}

/// A part of the archive, piece by piece.
fn contents(
    archive: &File,
    first: u64,
    end: u64,
) -> impl Stream<Item = Result<Vec<u8>, RequestError>> {
    stream::try_unfold(first, move |at| async move {
        let most = usize::try_from(end - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        if most == 0 {
            return Ok(None);
        }
        let mut buffer = vec![0; most];
        let read = block_in_place(|| archive.read_at(&mut buffer, at));
        let read = read.map_err(|error| refused(&error))?;
        if read == 0 {
            return Err(refused(&io::ErrorKind::UnexpectedEof.into()));
        }
        buffer.truncate(read);
        Ok(Some((buffer, at + read as u64)))
    })
}

fn refused(error: &io::Error) -> RequestError {
    let text = format!("the body is no tar archive: {error}");
    RequestError::new(ProblemCode::InvalidRequest, text)
        .hint("It is one without compression: `tar --create --file -`.")
}

/// A path as it is told beneath the folder.
fn plain(said: &str) -> &str {
    said.trim_start_matches("./").trim_end_matches('/')
}

/// What is in an archive, links last, so that nothing is written through one of them.
fn items(archive: &File) -> Result<Vec<ArchiveItem>, RequestError> {
    let (mut items, mut links, mut files) = (Vec::new(), Vec::new(), HashMap::new());
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries_with_seek().map_err(|error| refused(&error))? {
        let entry = entry.map_err(|error| refused(&error))?;
        let raw = entry.path_bytes();
        let said = String::from_utf8_lossy(&raw).into_owned();
        if raw.len() > SANDBOX_ARCHIVE_PATH_BYTES_MAX || std::str::from_utf8(&raw).is_err() {
            return Err(invalid_path(&said, "its name is too long, or no UTF-8"));
        }
        if said.starts_with('/') || said.split('/').any(|part| part == "..") {
            return Err(invalid_path(&said, "it leads out of the folder"));
        }
        let path = plain(&said).to_owned();
        if path.is_empty() || path == "." {
            continue;
        }
        let kind = match entry.header().entry_type() {
            tar::EntryType::Regular | tar::EntryType::Continuous => ArchiveItemKind::File {
                at: entry.raw_file_position(),
                bytes: entry.size(),
                executable: entry.header().mode().map_err(|error| refused(&error))? & 0o100 != 0,
            },
            tar::EntryType::Directory => ArchiveItemKind::Folder,
            tar::EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default();
                ArchiveItemKind::Link(String::from_utf8_lossy(&target).into_owned())
            }
            // Another name of a file that came before becomes a file like it.
            tar::EntryType::Link => {
                let target = entry.link_name_bytes().unwrap_or_default();
                let target = String::from_utf8_lossy(&target);
                let file = files.get(plain(&target)).cloned();
                file.ok_or_else(|| invalid_path(&said, "it links to no file before it"))?
            }
            tar::EntryType::XGlobalHeader => continue,
            other => {
                let what = format!("an entry of the kind {other:?} is not taken");
                return Err(invalid_path(&said, &what));
            }
        };
        if items.len() + links.len() >= SANDBOX_ARCHIVE_FILES_MAX {
            return Err(too_many());
        }
        if matches!(kind, ArchiveItemKind::File { .. }) {
            files.insert(path.clone(), kind.clone());
        }
        let is_link = matches!(kind, ArchiveItemKind::Link(_));
        if is_link { &mut links } else { &mut items }.push(ArchiveItem { path, kind });
    }
    items.append(&mut links);
    Ok(items)
}
