//! Writes versions: the one way in which anything comes to stand at a path.
//!
//! Whoever plans a change checks everything first: what is put here can only fail with
//! the disk, and then nothing of the whole commit is kept.

use crate::sql::connection::DatabaseConnection;
use crate::sql::text_vector::vector;
use crate::sql::{self, Query, SqlText};

use super::draft::{Body, Draft, What};
use super::look::content;
use super::rows::{FILE, FOLDER, GONE, unsigned};
use crate::entries::{Attribution, EntryAddress, Error, Version};
use crate::sql::fault;
use crate::sql::integer::number;

/// The content, if it is new, and the version.
macro_rules! put_version {
    () => {
        "INSERT INTO contents (bytes) SELECT $25 WHERE $25 IS NOT NULL; \
         INSERT INTO versions (scope, path, revision, state, bytes, digest, executable, \
         content, author, via, at_ms, agent, session, seq, labels, message, review_by_ms, \
         origin_scope, origin_path, origin_revision, accepted_by, redacted) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, \
         CASE WHEN $25 IS NULL THEN $8 ELSE (SELECT MAX(content) FROM contents) END, \
         $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22) RETURNING version; "
    };
}
/// What stands at the path since.
macro_rules! put_entry {
    () => {
        "INSERT INTO entries (scope, path, folder, state, revision, bytes, digest, executable, \
         modified_ms, review_by_ms, content, searchable, author, labels) \
         VALUES ($1, $2, $23, $4, $3, $5, $6, $7, $11, $17, \
         CASE WHEN $25 IS NULL THEN $8 ELSE (SELECT MAX(content) FROM contents) END, \
         $24, $9, $15) ON CONFLICT (scope, path) DO UPDATE SET state = excluded.state, \
         revision = excluded.revision, bytes = excluded.bytes, digest = excluded.digest, \
         executable = excluded.executable, modified_ms = excluded.modified_ms, \
         review_by_ms = excluded.review_by_ms, content = excluded.content, \
         searchable = excluded.searchable, author = excluded.author, labels = excluded.labels; "
    };
}
/// With the words of it. What SQLite's index has of the path is taken out before its text is
/// another one.
const PUT: SqlText = SqlText::Apart {
    sqlite: concat!(
        put_version!(),
        "INSERT INTO search (search, rowid, scope, path, text) \
         SELECT 'delete', entry, scope, path, text FROM searched \
         WHERE entry = (SELECT entry FROM entries WHERE scope = $1 AND path = $2); ",
        put_entry!(),
        "INSERT INTO search (rowid, scope, path, text) SELECT entry, scope, path, text \
         FROM searched WHERE entry = (SELECT entry FROM entries WHERE scope = $1 AND path = $2)"
    ),
    postgres: concat!(
        put_version!(),
        put_entry!(),
        "UPDATE entries SET words = CAST($26 AS TSVECTOR) WHERE scope = $1 AND path = $2"
    ),
};

fn wrong(error: sqlx::Error) -> Error {
    Error::Store(fault::of("writing entries", error))
}

pub(crate) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("labels, settings and redactions are plain data")
}

/// Writes a draft, and gives the version that it became.
pub(crate) async fn put(
    connection: &mut DatabaseConnection,
    draft: Draft,
) -> Result<Version, Error> {
    let (state, body) = match &draft.what {
        What::File(body) => (FILE, Some(body)),
        What::Folder => (FOLDER, None),
        What::Gone => (GONE, None),
    };
    let redacted = body.and_then(Body::redaction).map(json);
    let searchable = body.filter(|body| body.searchable && body.redaction().is_none());
    let words = match searchable.filter(|_| connection.is_postgres()) {
        Some(body) => content(connection, body).await?.map(|text| vector(&draft.at.path, &text)),
        None => None,
    };
    let query = sql::query(PUT)
        .bind(draft.at.memory_scope.to_string())
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
        .bind(searchable.is_some())
        .bind(body.and_then(Body::new_bytes))
        .bind(words);
    let rows: Vec<(i64,)> = query.of().fetch_all(connection).await.map_err(wrong)?;
    let number = rows.first().map_or(0, |(version,)| *version);
    Ok(draft.written(unsigned(number)?))
}

/// Via, time, agent, session, place in it, labels, message.
pub(crate) fn bind_by(query: Query, by: &Attribution) -> Query {
    query
        .bind(by.via.as_str())
        .bind(number(by.at_ms))
        .bind(by.agent.clone())
        .bind(by.session.as_ref().map(ToString::to_string))
        .bind(by.seq.map(|seq| number(seq.0)))
        .bind(json(&by.labels))
        .bind(by.message.clone())
}

/// Memory scope, path and revision that something was made from.
pub(crate) fn bind_origin(query: Query, origin: Option<&(EntryAddress, u64)>) -> Query {
    query
        .bind(origin.map(|(place, _)| place.memory_scope.to_string()))
        .bind(origin.map(|(place, _)| place.path.as_str().to_owned()))
        .bind(origin.map(|(_, revision)| number(*revision)))
}
