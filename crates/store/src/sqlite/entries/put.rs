//! Writes versions: the one way in which anything comes to stand at a path.
//!
//! Whoever plans a change checks everything first: what is put here can only fail with
//! the disk, and then nothing of the whole commit is kept.

use outrigger_agent::Digest;
use outrigger_policy::Principal;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection};

use super::look::Provenance;
use super::rows::{FILE, FOLDER, GONE, unsigned};
use crate::entries::{By, Error, Kept, Place, Redaction, State, Version};
use crate::sqlite::batch::number;
use crate::sqlite::fault;

/// The content, if it is new, the version, what stands at the path since, and the words of
/// it. What the index has of the path is taken out before its text is another one.
const PUT: &str = "INSERT INTO contents (bytes) SELECT $25 WHERE $25 IS NOT NULL; \
    INSERT INTO versions (shelf, path, revision, state, bytes, digest, executable, \
    content, author, via, at_ms, agent, session, seq, labels, message, review_by_ms, \
    origin_shelf, origin_path, origin_revision, accepted_by, redacted) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, \
    IIF($25 IS NULL, $8, (SELECT MAX(content) FROM contents)), $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, \
    $20, $21, $22) RETURNING version; \
    INSERT INTO search (search, rowid, shelf, path, text) SELECT 'delete', entry, shelf, path, text \
    FROM searched WHERE entry = (SELECT entry FROM entries WHERE shelf = $1 AND path = $2); \
    INSERT INTO entries (shelf, path, folder, state, revision, bytes, digest, executable, \
    modified_ms, review_by_ms, content, searchable, author, labels) \
    VALUES ($1, $2, $23, $4, $3, $5, $6, $7, $11, $17, \
    IIF($25 IS NULL, $8, (SELECT MAX(content) FROM contents)), $24, $9, $15) \
    ON CONFLICT (shelf, path) DO UPDATE SET state = excluded.state, \
    revision = excluded.revision, bytes = excluded.bytes, digest = excluded.digest, \
    executable = excluded.executable, modified_ms = excluded.modified_ms, \
    review_by_ms = excluded.review_by_ms, content = excluded.content, \
    searchable = excluded.searchable, author = excluded.author, labels = excluded.labels; \
    INSERT INTO search (rowid, shelf, path, text) SELECT entry, shelf, path, text \
    FROM searched WHERE entry = (SELECT entry FROM entries WHERE shelf = $1 AND path = $2)";

/// A version that is to be written.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) at: Place,
    /// The next one of the path.
    pub(super) revision: u64,
    pub(super) what: What,
    /// Of the file that it takes the place of.
    pub(super) replaces: Option<Provenance>,
    pub(super) author: Principal,
    pub(super) by: By,
    pub(super) accepted_by: Option<Principal>,
    pub(super) derived_from: Option<(Place, u64)>,
    pub(super) review_by_ms: Option<u64>,
}

/// What it puts at the path.
#[derive(Debug)]
pub(super) enum What {
    File(Body),
    Folder,
    Gone,
}

/// A file's content and what is kept of it in rows.
#[derive(Debug, Clone)]
pub(super) struct Body {
    pub(super) bytes: u64,
    pub(super) digest: Digest,
    pub(super) executable: bool,
    pub(super) searchable: bool,
    pub(super) source: Source,
}

/// Where a content is.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// It is new.
    New(Vec<u8>),
    /// In that row of contents already.
    Known(i64),
    /// Nowhere any more.
    Lost(Box<Redaction>),
}

impl Body {
    pub(super) fn new(bytes: Vec<u8>, executable: bool) -> Self {
        let digest = Digest::of(&bytes);
        let searchable = !bytes.contains(&0) && std::str::from_utf8(&bytes).is_ok();
        let length = bytes.len() as u64;
        Self { bytes: length, digest, executable, searchable, source: Source::New(bytes) }
    }

    /// What is to be stored of it.
    pub(super) fn new_bytes(&self) -> Option<Vec<u8>> {
        match &self.source {
            Source::New(bytes) => Some(bytes.clone()),
            Source::Known(_) | Source::Lost(_) => None,
        }
    }

    /// The row of its content, if it has one already.
    fn known_content(&self) -> Option<i64> {
        match self.source {
            Source::Known(content) => Some(content),
            Source::New(_) | Source::Lost(_) => None,
        }
    }

    pub(super) fn redaction(&self) -> Option<&Redaction> {
        match &self.source {
            Source::Lost(redaction) => Some(redaction),
            Source::New(_) | Source::Known(_) => None,
        }
    }
}

fn wrong(error: sqlx::Error) -> Error {
    Error::Store(fault::of("writing entries", error))
}

pub(super) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("labels, settings and redactions are plain data")
}

/// Writes a draft, and gives the version that it became.
pub(super) async fn put(connection: &mut SqliteConnection, draft: Draft) -> Result<Version, Error> {
    let (state, body) = match &draft.what {
        What::File(body) => (FILE, Some(body)),
        What::Folder => (FOLDER, None),
        What::Gone => (GONE, None),
    };
    let redacted = body.and_then(Body::redaction).map(json);
    let query = sqlx::query_as(PUT)
        .bind(draft.at.shelf.to_string())
        .bind(draft.at.path.as_str().to_owned())
        .bind(number(draft.revision))
        .bind(state)
        .bind(number(body.map_or(0, |body| body.bytes)))
        .bind(body.map(|body| body.digest.to_string()))
        .bind(body.is_some_and(|body| body.executable))
        .bind(body.and_then(Body::known_content));
    let query = bind_by(query.bind(draft.author.to_string()), &draft.by)
        .bind(draft.review_by_ms.map(number));
    let query = bind_origin(query, draft.derived_from.as_ref())
        .bind(draft.accepted_by.as_ref().map(ToString::to_string))
        .bind(redacted)
        .bind(draft.at.path.folder().map(|folder| folder.as_str().to_owned()))
        .bind(body.is_some_and(|body| body.searchable && body.redaction().is_none()))
        .bind(body.and_then(Body::new_bytes));
    let rows: Vec<(i64,)> = query.fetch_all(connection).await.map_err(wrong)?;
    let number = rows.first().map_or(0, |(version,)| *version);
    Ok(draft.written(unsigned(number)?))
}

impl Draft {
    fn written(self, number: u64) -> Version {
        let Self { at, revision, what, author, by, accepted_by, derived_from, .. } = self;
        let redaction = match &what {
            What::File(body) => body.redaction().cloned(),
            What::Folder | What::Gone => None,
        };
        let state = match what {
            What::File(Body { bytes, digest, executable, .. }) => {
                State::File { bytes, digest, executable }
            }
            What::Folder => State::Folder,
            What::Gone => State::Gone,
        };
        let kept = redaction.map_or(Kept::Whole, Kept::Redacted);
        let place = at;
        Version {
            number,
            place,
            revision,
            state,
            author,
            by,
            accepted_by,
            derived_from,
            review_by_ms: self.review_by_ms,
            kept,
        }
    }
}

type Query<'q, O> = sqlx::query::QueryAs<'q, Sqlite, O, SqliteArguments>;

/// Via, time, agent, session, place in it, labels, message.
pub(super) fn bind_by<'q, O>(query: Query<'q, O>, by: &By) -> Query<'q, O> {
    query
        .bind(by.via.as_str())
        .bind(number(by.at_ms))
        .bind(by.agent.clone())
        .bind(by.session.as_ref().map(ToString::to_string))
        .bind(by.seq.map(|seq| number(seq.0)))
        .bind(json(&by.labels))
        .bind(by.message.clone())
}

/// Shelf, path and revision that something was made from.
pub(super) fn bind_origin<'q, O>(
    query: Query<'q, O>,
    origin: Option<&(Place, u64)>,
) -> Query<'q, O> {
    query
        .bind(origin.map(|(place, _)| place.shelf.to_string()))
        .bind(origin.map(|(place, _)| place.path.as_str().to_owned()))
        .bind(origin.map(|(_, revision)| number(*revision)))
}
