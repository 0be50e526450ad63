//! Files of a sandbox: listed, read, written, removed.

use axum::Json;
use axum::body::Body;
use axum::extract::State as Extract;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use outrigger_api::limits::FOLDER_FILES_MAX;
use outrigger_api::{FileInfo, FileKind, FileList, MoveFile, ProblemCode};
use outrigger_sandbox::{EntryKind, FileOp, FileReply, ListEntry, Sandbox};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

use super::access::SandboxUse;
use super::command::fresh_exec;
use super::file_ops::{astray, done, invalid_path, piece, stat};
use super::file_writer::FileWriter;
use crate::files::PathQuery;
use crate::input::{Body as JsonBody, Name, QueryParams, pieces};
use crate::limits::SANDBOX_UPLOAD_BYTES_MAX;
use crate::login::Person;
use crate::problems::{ChangeProblems, ReadProblems};
use crate::{RequestError, Server};

/// Which file is written, and how.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct WriteQuery {
    /// In the sandbox, absolute or beneath `/workspace`.
    #[param(min_length = 1, example = "/workspace/notes.txt")]
    path: String,
    /// Whether it can be run as a program; as it was if absent.
    executable: Option<bool>,
}

/// Which part of a file is read.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it is a description")]
pub(crate) struct PartOfFile {
    /// One range of bytes (RFC 9110, 14.2).
    #[param(
        rename = "Range",
        pattern = r"^bytes=([0-9]+-[0-9]*|-[0-9]+)$",
        example = "bytes=0-1023"
    )]
    range: Option<String>,
}

/// What is in a folder of a sandbox.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files",
    operation_id = "list_sandbox_files", tag = "sandboxes",
    params(("id" = String, Path, description = "The sandbox"), PathQuery),
    responses(
        (status = 200, body = FileList),
        ReadProblems,
    ))]
pub(crate) async fn folder(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
    QueryParams(PathQuery { path }): QueryParams<PathQuery>,
) -> Result<Json<FileList>, RequestError> {
    let sandbox = server.opened(&person, &id, SandboxUse::Look).await?;
    let op = FileOp::List { path: path.clone(), entries_max: FOLDER_FILES_MAX };
    match sandbox.files(op).await? {
        FileReply::Entries { entries, truncated: more } => {
            let data = entries.into_iter().map(file_info).collect();
            Ok(Json(FileList { path, data, more }))
        }
        _ => Err(astray()),
    }
}

/// A name in a folder, as it is told.
#[must_use]
pub fn file_info(entry: ListEntry) -> FileInfo {
    FileInfo {
        name: entry.name,
        kind: match entry.kind {
            EntryKind::File => FileKind::File,
            EntryKind::Directory => FileKind::Folder,
            EntryKind::Link => FileKind::Link,
            EntryKind::Other => FileKind::Other,
        },
        bytes: entry.bytes,
        modified_ms: entry.modified_ms,
    }
}

/// What is at a path: a file, a folder, or a link, which is not followed.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files/info",
    operation_id = "get_sandbox_file", tag = "sandboxes",
    params(("id" = String, Path, description = "The sandbox"), PathQuery),
    responses(
        (status = 200, body = FileInfo),
        ReadProblems,
    ))]
pub(crate) async fn info(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
    QueryParams(PathQuery { path }): QueryParams<PathQuery>,
) -> Result<Json<FileInfo>, RequestError> {
    let sandbox = server.opened(&person, &id, SandboxUse::Look).await?;
    Ok(Json(file_info(stat(&*sandbox, &path).await?)))
}

/// Makes a folder, and those above it. One that is there already is fine.
#[utoipa::path(put, path = "/v1/sandboxes/{id}/files/folder",
    operation_id = "make_sandbox_folder", tag = "sandboxes",
    params(("id" = String, Path, description = "The sandbox"), PathQuery),
    responses(
        (status = 204, description = "It is there"),
        ChangeProblems,
    ))]
pub(crate) async fn make_folder(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
    QueryParams(PathQuery { path }): QueryParams<PathQuery>,
) -> Result<StatusCode, RequestError> {
    let sandbox = server.opened(&person, &id, SandboxUse::Drive).await?;
    done(&*sandbox, FileOp::MakeDir { id: fresh_exec("http"), path }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a file, or a folder with all that is in it, another path, in one step.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/files/move",
    operation_id = "move_sandbox_file", tag = "sandboxes", request_body = MoveFile,
    params(("id" = String, Path, description = "The sandbox")),
    responses(
        (status = 204, description = "It is there and not here"),
        ChangeProblems,
    ))]
pub(crate) async fn rename(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
    JsonBody(MoveFile { from, to }): JsonBody<MoveFile>,
) -> Result<StatusCode, RequestError> {
    let sandbox = server.opened(&person, &id, SandboxUse::Drive).await?;
    done(&*sandbox, FileOp::Move { id: fresh_exec("http"), path: from, to }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a file, or a folder with all that is in it.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}/files",
    operation_id = "remove_sandbox_file", tag = "sandboxes",
    params(("id" = String, Path, description = "The sandbox"), PathQuery),
    responses(
        (status = 204, description = "There is nothing any more"),
        ChangeProblems,
    ))]
pub(crate) async fn remove(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
    QueryParams(PathQuery { path }): QueryParams<PathQuery>,
) -> Result<StatusCode, RequestError> {
    let sandbox = server.opened(&person, &id, SandboxUse::Drive).await?;
    done(&*sandbox, FileOp::Remove { id: fresh_exec("http"), path }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The bytes of a file, all of them or one range.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/files/content",
    operation_id = "read_sandbox_file", tag = "sandboxes",
    params(("id" = String, Path, description = "The sandbox"), PathQuery, PartOfFile),
    responses(
        (status = 200, body = String, content_type = "application/octet-stream"),
        (status = 206, body = String, content_type = "application/octet-stream", description = "The range"),
        (status = 416, description = "The file ends before the range", headers(("Content-Range" = String, description = "How long it is"))),
        ReadProblems,
    ))]
pub(crate) async fn read(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
    QueryParams(PathQuery { path }): QueryParams<PathQuery>,
    headers: HeaderMap,
) -> Result<Response, RequestError> {
    let sandbox = server.opened(&person, &id, SandboxUse::Look).await?;
    let (_, total) = piece(&*sandbox, &path, 0, 1).await?;
    let asked = headers.get(header::RANGE).and_then(|range| range.to_str().ok());
    let asked = asked.and_then(|range| byte_range(range, total));
    let (status, first, last) = match asked {
        None => (StatusCode::OK, 0, total),
        Some(Some((first, last))) => (StatusCode::PARTIAL_CONTENT, first, last),
        Some(None) => {
            let range = [(header::CONTENT_RANGE, format!("bytes */{total}"))];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, range).into_response());
        }
    };
    let mut response = Response::new(body(sandbox, path, (first, last)));
    *response.status_mut() = status;
    let plain = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        // What it is for a browser: nothing that it shows.
        (header::CONTENT_DISPOSITION, "attachment".to_owned()),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (header::CONTENT_LENGTH, (last - first).to_string()),
    ];
    let range = (status == StatusCode::PARTIAL_CONTENT)
        .then(|| (header::CONTENT_RANGE, format!("bytes {first}-{}/{total}", last - 1)));
    for (name, value) in plain.into_iter().chain(range) {
        let value = HeaderValue::from_str(&value).expect("digits and plain words");
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}

/// The first byte of a range, and the one after its last. Nothing where it is no range that we
/// know, which asks for the whole; `Some(None)` where the file has nothing there.
fn byte_range(asked: &str, total: u64) -> Option<Option<(u64, u64)>> {
    let (first, last) = asked.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last) = match (first, last) {
        ("", count) => (total.saturating_sub(count.parse().ok()?), total),
        (first, "") => (first.parse().ok()?, total),
        (first, last) => {
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            if last < first {
                return None;
            }
            (first, total.min(last.saturating_add(1)))
        }
    };
    Some((first < last).then_some((first, last)))
}

/// A file piece by piece. One that becomes shorter meanwhile ends the body early, which the client
/// sees by its length.
fn body(sandbox: Arc<dyn Sandbox>, path: String, (first, last): (u64, u64)) -> Body {
    let pieces = stream::try_unfold(first, move |at| {
        let (sandbox, path) = (Arc::clone(&sandbox), path.clone());
        async move {
            if at >= last {
                return Ok(None);
            }
            let (bytes, _) = piece(&*sandbox, &path, at, last - at).await?;
            let next = at + bytes.len() as u64;
            if bytes.is_empty() {
                let text = "the file became shorter while it was read";
                return Err(RequestError::new(ProblemCode::Conflict, text));
            }
            Ok(Some((bytes, next)))
        }
    });
    Body::from_stream(pieces)
}

/// Writes a file, with the folders above it. It is there whole or not at all. By one request at a
/// time.
#[utoipa::path(put, path = "/v1/sandboxes/{id}/files/content",
    operation_id = "write_sandbox_file", tag = "sandboxes",
    request_body(content = Option<String>, content_type = "application/octet-stream"),
    params(("id" = String, Path, description = "The sandbox"), WriteQuery),
    responses(
        (status = 204, description = "It is written"),
        ChangeProblems,
    ))]
pub(crate) async fn write(
    Extract(server): Extract<Server>,
    person: Person,
    Name(id): Name,
    QueryParams(query): QueryParams<WriteQuery>,
    body: Body,
) -> Result<StatusCode, RequestError> {
    if query.path.ends_with('/') {
        return Err(invalid_path(&query.path, "it names a folder, and a file is to be written"));
    }
    let sandbox = server.opened(&person, &id, SandboxUse::Drive).await?;
    let _turn = server.uploads.of(sandbox.id(), &query.path).await?;
    let writer = FileWriter::new(&*sandbox, query.path, query.executable);
    writer.write(pieces(body, SANDBOX_UPLOAD_BYTES_MAX)).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::byte_range;

    #[test]
    fn a_range_is_read_as_the_standard_has_it() {
        for (asked, wanted) in [
            ("bytes=0-0", Some(Some((0, 1)))),
            ("bytes=2-", Some(Some((2, 10)))),
            ("bytes=8-99", Some(Some((8, 10)))),
            ("bytes=-3", Some(Some((7, 10)))),
            ("bytes=-99", Some(Some((0, 10)))),
            ("bytes=10-", Some(None)),
            ("bytes=-0", Some(None)),
            ("bytes=3-2", None),
            ("bytes=0-1,3-4", None),
            ("lines=0-1", None),
        ] {
            assert_eq!(byte_range(asked, 10), wanted, "{asked}");
        }
        assert_eq!(byte_range("bytes=0-", 0), Some(None));
    }
}
