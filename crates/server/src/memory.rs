//! Memory and skills: listed, read, searched, changed.

use axum::Json;
use axum::extract::State as Extract;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use outrigger_api::limits::{HITS_DEFAULT, HITS_MAX};
use outrigger_api::{
    ChangedEntry, EntryBlame, EntryContent, EntryDiff, EntryHistory, EntryHit, EntryHits,
    EntryList, ProblemCode, RevertEntry, WriteEntry,
};
use outrigger_engine::{path_of, place_of};
use outrigger_policy::{AccessAction, MemoryKind, Scope};
use outrigger_store::entries::{
    Attribution, ChangeRequest, Comparison, EntryAddress, EntryFile, EntryPath, EntryPrecondition,
    Error, Search, Submission, blame as lines_of, compare, list_all, submit,
};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::headers::{Removal, Replacement};
use crate::input::{Body, QueryParams};
use crate::login::Person;
use crate::problems::{ChangeProblems, ReadProblems};
use crate::{RequestError, Server, Services, convert};

/// Which folder.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FolderQuery {
    /// As sessions see it, for example `/memory/user`; all that is yours to see if absent.
    #[param(example = "/memory/user")]
    path: Option<String>,
    /// Also what is in the folders below it.
    #[serde(default)]
    recursive: bool,
}

/// Which file.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EntryQuery {
    /// As sessions see it, for example `/memory/user/notes.md`.
    #[param(example = "/memory/user/notes.md")]
    path: String,
}

/// Which version of a file.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RevisionQuery {
    /// As sessions see it, for example `/memory/user/notes.md`.
    #[param(example = "/memory/user/notes.md")]
    path: String,
    /// The newest if absent.
    revision: Option<u64>,
}

/// Which page of a history.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryQuery {
    /// As sessions see it, for example `/memory/user/notes.md`.
    #[param(example = "/memory/user/notes.md")]
    path: String,
    /// Only versions before this one.
    before: Option<u64>,
}

/// Which two versions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DiffQuery {
    /// As sessions see it, for example `/memory/user/notes.md`.
    #[param(example = "/memory/user/notes.md")]
    path: String,
    /// The older one, 0 for nothing; the one before the newer if absent.
    from: Option<u64>,
    /// The newer one; the newest if absent.
    to: Option<u64>,
}

/// What is looked for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchQuery {
    /// Words that must all be there; `"…"` one after the other, `word*` a beginning.
    #[param(min_length = 1, max_length = 1_024, example = "notes")]
    words: String,
    /// How many files at most, from 1 to 100: what is beyond is the nearest of them.
    limit: Option<usize>,
}

/// What is in a folder; a file lists itself.
#[utoipa::path(get, path = "/v1/memory",
    operation_id = "list_entries", tag = "memory", params(FolderQuery), responses(
    (status = 200, body = EntryList),
    ReadProblems,
))]
pub(crate) async fn list(
    Extract(server): Extract<Server>,
    person: Person,
    QueryParams(query): QueryParams<FolderQuery>,
) -> Result<Json<EntryList>, RequestError> {
    let scope = scope(&server, &person)?;
    let roots = match &query.path {
        Some(path) => vec![place(path, &scope)?],
        None => scope
            .all_memory_scopes()
            .map(|memory_scope| EntryAddress { memory_scope, path: EntryPath::ROOT })
            .collect(),
    };
    let mut data = Vec::new();
    for root in roots {
        let found = match list_all(&*server.parts.entries, &scope, &root, query.recursive).await {
            // A file lists itself.
            Err(Error::NotFolder) => {
                let node = server.parts.entries.stat(&scope, &root).await;
                node.map(|node| vec![(root.path.clone(), node)])
            }
            found => found,
        };
        let found = found.map_err(|error| failed(&root, error))?.into_iter();
        data.extend(
            found.map(|(path, node)| convert::entry(&EntryAddress { path, ..root.clone() }, &node)),
        );
    }
    Ok(Json(EntryList { data }))
}

/// A file. Its `ETag` is what a change of it names.
#[utoipa::path(get, path = "/v1/memory/content",
    operation_id = "get_entry", tag = "memory", params(RevisionQuery), responses(
    (status = 200, body = EntryContent, headers(("ETag" = String, description = "Its version"))),
    ReadProblems,
))]
pub(crate) async fn content(
    Extract(server): Extract<Server>,
    person: Person,
    QueryParams(query): QueryParams<RevisionQuery>,
) -> Result<Response, RequestError> {
    let scope = scope(&server, &person)?;
    let at = place(&query.path, &scope)?;
    let read = server.parts.entries.read(&scope, &at, query.revision).await;
    let read = read.map_err(|error| failed(&at, error))?;
    let version = convert::version(&read.version);
    let tag = HeaderValue::from_str(&format!("\"{}\"", version.revision));
    let text = String::from_utf8(read.bytes).ok();
    let tag = tag.map(|tag| [(header::ETAG, tag)]).ok();
    Ok((tag, Json(EntryContent { version, text })).into_response())
}

/// Writes a file. Where changes are reviewed it is proposed.
#[utoipa::path(put, path = "/v1/memory/content",
    operation_id = "write_entry", tag = "memory", params(EntryQuery, Replacement),
    request_body = WriteEntry,
    responses(
        (status = 200, body = ChangedEntry),
        ChangeProblems,
    ))]
pub(crate) async fn write(
    Extract(server): Extract<Server>,
    person: Person,
    QueryParams(query): QueryParams<EntryQuery>,
    headers: HeaderMap,
    Body(said): Body<WriteEntry>,
) -> Result<Json<ChangedEntry>, RequestError> {
    server.permit(&person, AccessAction::WriteMemory)?;
    let scope = scope(&server, &person)?;
    let (at, expected) = (place(&query.path, &scope)?, precondition(&headers)?);
    if at.memory_scope.kind == MemoryKind::Agents {
        server.parts.agents.check(&at, &said.text)?;
    }
    // A program stays one when its text is another.
    let before = server.parts.entries.stat(&scope, &at).await;
    let before = before.is_ok_and(|before| before.executable);
    let executable = said.executable.unwrap_or(before);
    let file = EntryFile { executable, ..EntryFile::of(said.text) };
    let change = ChangeRequest::Write { at: at.clone(), expected, file };
    made(&server, &scope, &at, change, said.message).await
}

/// Removes a file. Its history stays.
#[utoipa::path(delete, path = "/v1/memory/content",
    operation_id = "remove_entry", tag = "memory", params(EntryQuery, Removal),
    responses(
        (status = 200, body = ChangedEntry),
        ChangeProblems,
    ))]
pub(crate) async fn remove(
    Extract(server): Extract<Server>,
    person: Person,
    QueryParams(query): QueryParams<EntryQuery>,
    headers: HeaderMap,
) -> Result<Json<ChangedEntry>, RequestError> {
    server.permit(&person, AccessAction::WriteMemory)?;
    let scope = scope(&server, &person)?;
    let at = place(&query.path, &scope)?;
    let EntryPrecondition::Revision(revision) = precondition(&headers)? else {
        return Err(unsaid());
    };
    let change = ChangeRequest::Remove { at: at.clone(), revision };
    made(&server, &scope, &at, change, None).await
}

/// Makes an older version the newest again.
#[utoipa::path(post, path = "/v1/memory/revert",
    operation_id = "revert_entry", tag = "memory", params(Replacement),
    request_body = RevertEntry,
    responses(
        (status = 200, body = ChangedEntry),
        ChangeProblems,
    ))]
pub(crate) async fn revert(
    Extract(server): Extract<Server>,
    person: Person,
    headers: HeaderMap,
    Body(said): Body<RevertEntry>,
) -> Result<Json<ChangedEntry>, RequestError> {
    server.permit(&person, AccessAction::WriteMemory)?;
    let scope = scope(&server, &person)?;
    let (at, expected) = (place(&said.path, &scope)?, precondition(&headers)?);
    let change = ChangeRequest::Revert { at: at.clone(), to: said.to, expected };
    made(&server, &scope, &at, change, None).await
}

/// The versions of a file, newest first.
#[utoipa::path(get, path = "/v1/memory/history",
    operation_id = "get_entry_history", tag = "memory", params(HistoryQuery), responses(
    (status = 200, body = EntryHistory),
    ReadProblems,
))]
pub(crate) async fn history(
    Extract(server): Extract<Server>,
    person: Person,
    QueryParams(query): QueryParams<HistoryQuery>,
) -> Result<Json<EntryHistory>, RequestError> {
    let scope = scope(&server, &person)?;
    let at = place(&query.path, &scope)?;
    let page = server.parts.entries.history(&scope, &at, query.before).await;
    let page = page.map_err(|error| failed(&at, error))?;
    let more = page.last().is_some_and(|version| version.revision > 1);
    Ok(Json(EntryHistory { data: page.iter().map(convert::version).collect(), more }))
}

/// What changed from one version to another.
#[utoipa::path(get, path = "/v1/memory/diff",
    operation_id = "get_entry_diff", tag = "memory", params(DiffQuery), responses(
    (status = 200, body = EntryDiff),
    ReadProblems,
))]
pub(crate) async fn diff(
    Extract(server): Extract<Server>,
    person: Person,
    QueryParams(query): QueryParams<DiffQuery>,
) -> Result<Json<EntryDiff>, RequestError> {
    let scope = scope(&server, &person)?;
    let at = place(&query.path, &scope)?;
    let entries = &server.parts.entries;
    let compared = compare(&**entries, &scope, &at, query.from, query.to).await;
    let Comparison { from, older, newer } = compared.map_err(|error| failed(&at, error))?;
    let to = newer.version.revision;
    let path = path_of(&at);
    let names = [from, to].map(|revision| format!("{path} r{revision}"));
    let diff = outrigger_repository::diff(&older, &newer.bytes, [&names[0], &names[1]]);
    let diff = diff.ok_or_else(|| failed(&at, Error::NotText))?;
    Ok(Json(EntryDiff { path, from, to, diff }))
}

/// Who wrote each line of a file.
#[utoipa::path(get, path = "/v1/memory/blame",
    operation_id = "get_entry_blame", tag = "memory", params(EntryQuery), responses(
    (status = 200, body = EntryBlame),
    ReadProblems,
))]
pub(crate) async fn blame(
    Extract(server): Extract<Server>,
    person: Person,
    QueryParams(query): QueryParams<EntryQuery>,
) -> Result<Json<EntryBlame>, RequestError> {
    let scope = scope(&server, &person)?;
    let at = place(&query.path, &scope)?;
    let lines = lines_of(&*server.parts.entries, &scope, &at).await;
    let lines = lines.map_err(|error| failed(&at, error))?.into_iter().map(convert::line).collect();
    Ok(Json(EntryBlame { path: path_of(&at), lines }))
}

/// Files that have all of some words, best first.
#[utoipa::path(get, path = "/v1/memory/search",
    operation_id = "search_entries", tag = "memory", params(SearchQuery), responses(
    (status = 200, body = EntryHits),
    ReadProblems,
))]
pub(crate) async fn search(
    Extract(server): Extract<Server>,
    person: Person,
    QueryParams(query): QueryParams<SearchQuery>,
) -> Result<Json<EntryHits>, RequestError> {
    let scope = scope(&server, &person)?;
    let limit = query.limit.unwrap_or(HITS_DEFAULT).clamp(1, HITS_MAX);
    let search = Search { words: query.words, memory_scopes: Vec::new(), limit };
    let found = server.parts.entries.search(&scope, &search).await;
    let found = found.map_err(|error| told("`words`", error))?;
    let hit = |hit: outrigger_store::entries::Hit| EntryHit {
        entry: convert::entry(&hit.place, &hit.node),
        snippet: hit.snippet,
    };
    Ok(Json(EntryHits { data: found.into_iter().map(hit).collect() }))
}

/// As whom a person looks at memory. For a program that speaks for nobody there is none.
pub(crate) fn scope(server: &Server, person: &Person) -> Result<Scope, RequestError> {
    let directory = server.parts.host.directory()?;
    let scope = person.name.parse().ok().and_then(|who| directory.authenticate(&who));
    scope.ok_or_else(|| RequestError::not_found(format!("{} has no memory", person.name)))
}

pub(crate) fn place(path: &str, scope: &Scope) -> Result<EntryAddress, RequestError> {
    place_of(path, scope).ok_or_else(|| {
        RequestError::not_found(format!("{path}: nothing is there")).hint(
            "Paths begin with /memory, /skills or /agents, then user, group/NAME or organisation.",
        )
    })
}

/// Which version a change names.
pub(crate) fn precondition(headers: &HeaderMap) -> Result<EntryPrecondition, RequestError> {
    let said = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default().trim());
    match (said(header::IF_MATCH), said(header::IF_NONE_MATCH)) {
        (Some(tag), None) => {
            let number = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
            let number = number.and_then(|number| number.parse().ok());
            number.map(EntryPrecondition::Revision).ok_or_else(|| {
                let text = "`If-Match` is no `ETag` of a file of memory, such as \"3\"";
                RequestError::new(ProblemCode::InvalidRequest, text)
            })
        }
        (None, Some("*")) => Ok(EntryPrecondition::Absent),
        _ => Err(unsaid()),
    }
}

fn unsaid() -> RequestError {
    let text = "it is not said which version is changed";
    RequestError::new(ProblemCode::PreconditionRequired, text)
        .hint("Give the `ETag` of what you looked at as `If-Match`, or `If-None-Match: *` for a new file.")
}

/// Makes a change, or proposes it where it has to be reviewed.
pub(crate) async fn made(
    server: &Server,
    scope: &Scope,
    at: &EntryAddress,
    change: ChangeRequest,
    message: Option<String>,
) -> Result<Json<ChangedEntry>, RequestError> {
    let by = Attribution { message, ..Attribution::person(server.now_ms()) };
    let Services { entries, reviews, .. } = &*server.parts;
    let done = submit(&**entries, &**reviews, scope, change, by).await;
    let (revision, proposal) = match done.map_err(|error| failed(at, error))? {
        Submission::Changed(made) => (made.version().map(|version| version.revision), None),
        Submission::Proposed(id) => (None, Some(id.0)),
    };
    Ok(Json(ChangedEntry { path: path_of(at), revision, proposal }))
}

/// An error about a place.
pub(crate) fn failed(at: &EntryAddress, error: Error) -> RequestError {
    told(&path_of(at), error)
}

/// An error about something.
pub(crate) fn told(what: &str, error: Error) -> RequestError {
    let code = match &error {
        Error::Absent | Error::Pruned | Error::Redacted(_) => ProblemCode::NotFound,
        Error::Conflict(_) | Error::Exists => ProblemCode::PreconditionFailed,
        Error::NotEmpty | Error::Decided { .. } => ProblemCode::Conflict,
        Error::Related(_)
        | Error::NeedsReview
        | Error::NotReviewer
        | Error::NotAuthor
        | Error::Root => ProblemCode::Denied,
        Error::Quota(_) | Error::TooLarge { .. } => ProblemCode::TooLarge,
        Error::Store(source) => return RequestError::from(source.clone()),
        _ => ProblemCode::InvalidRequest,
    };
    RequestError::new(code, format!("{what}: {error}"))
}
