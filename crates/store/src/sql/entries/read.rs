//! Queries about entries that change nothing.
//!
//! Must never look for a memory scope by another name than [`key`] gives.

use crate::sql;
use crate::sql::connection::DatabaseConnection;
use crate::sql::row::DatabaseRow;
use outrigger_agent::SessionId;
use outrigger_policy::{MemoryScope, Scope};

use super::rows::{Columns, damaged, key, node_columns, version_columns, wrong};
use crate::entries::{
    ContentState, Contents, EntryAddress, EntryListing, EntryPath, EntryStat, EntryState, Error,
    Version,
};
use crate::limits;
use crate::sql::integer::number;

/// Author and labels of what is listed, unless it is the reader's own and carries none.
macro_rules! origin_columns {
    () => {
        ", CASE WHEN e.labels <> '[]' OR e.author <> $5 THEN e.author END, \
         CASE WHEN e.labels <> '[]' OR e.author <> $5 THEN e.labels END"
    };
}
const STAT: &str = concat!(
    "SELECT ",
    node_columns!(),
    " FROM entries e WHERE e.scope = $1 AND e.path = $2 AND e.state < 2"
);
const LIST: &str = concat!(
    "SELECT ",
    node_columns!(),
    origin_columns!(),
    " FROM entries e WHERE e.scope = $1 AND e.folder = $2 AND e.path > $3 AND e.state < 2 \
     ORDER BY e.path LIMIT $4"
);
const LIST_DEEP: &str = concat!(
    "SELECT ",
    node_columns!(),
    origin_columns!(),
    " FROM entries e WHERE e.scope = $1 AND e.path < $2 AND e.path > $3 AND e.state < 2 \
     ORDER BY e.path LIMIT $4"
);
const LIST_ALL: &str = concat!(
    "SELECT ",
    node_columns!(),
    origin_columns!(),
    " FROM entries e WHERE e.scope = $1 AND e.path > $3 AND e.state < 2 ORDER BY e.path LIMIT $4"
);
const STALE: &str = concat!(
    "SELECT ",
    node_columns!(),
    ", NULL, NULL FROM entries e WHERE e.scope = $1 AND e.state = 0 AND e.review_by_ms IS NOT NULL \
     AND e.review_by_ms <= $2 ORDER BY e.review_by_ms, e.path LIMIT $3"
);
const NEWEST: &str = concat!(
    "SELECT ",
    version_columns!(),
    ", c.bytes FROM entries e \
     JOIN versions v ON v.scope = e.scope AND v.path = e.path AND v.revision = e.revision \
     LEFT JOIN contents c ON c.content = v.content WHERE e.scope = $1 AND e.path = $2"
);
const REVISION: &str = concat!(
    "SELECT ",
    version_columns!(),
    ", c.bytes FROM versions v LEFT JOIN contents c ON c.content = v.content \
     WHERE v.scope = $1 AND v.path = $2 AND v.revision = $3"
);
const HISTORY: &str = concat!(
    "SELECT ",
    version_columns!(),
    " FROM versions v WHERE v.scope = $1 AND v.path = $2 AND v.revision < $3 \
     ORDER BY v.revision DESC LIMIT $4"
);
const OF_SESSION: &str = concat!(
    "SELECT ",
    version_columns!(),
    " FROM versions v WHERE v.session = $1 AND v.version > $2 ORDER BY v.version LIMIT $3"
);

pub(crate) async fn stat(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    at: &EntryAddress,
) -> Result<EntryStat, Error> {
    let row = sql::query(STAT).bind(key(scope, &at.memory_scope)).bind(at.path.as_str().to_owned());
    let row = row.fetch_optional(connection).await.map_err(wrong)?;
    match row {
        Some(row) => Ok(Columns::of(&row).node()?.1),
        None if at.path.is_root() && scope.sees(&at.memory_scope) => Ok(root()),
        None => Err(Error::Absent),
    }
}

fn root() -> EntryStat {
    let (revision, bytes, modified_ms) = (0, 0, 0);
    let (digest, review_by_ms) = (None, None);
    let (folder, executable, redacted) = (true, false, false);
    EntryStat { folder, revision, bytes, digest, modified_ms, executable, review_by_ms, redacted }
}

pub(crate) async fn list(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    folder: &EntryAddress,
    deep: bool,
    after: Option<&EntryPath>,
) -> Result<EntryListing, Error> {
    let is_folder = stat(connection, scope, folder).await?.folder;
    if !is_folder {
        return Err(Error::NotFolder);
    }
    let path = folder.path.as_str();
    // Everything below a folder begins with its path and a slash, which is before `0`.
    let (text, bound, begin) = match (deep, path) {
        (false, path) => (LIST, path.to_owned(), String::new()),
        (true, "") => (LIST_ALL, String::new(), String::new()),
        (true, path) => (LIST_DEEP, format!("{path}0"), format!("{path}/")),
    };
    let after = after.map_or("", EntryPath::as_str).to_owned().max(begin);
    let query = sql::query(text).bind(key(scope, &folder.memory_scope)).bind(bound).bind(after);
    let query = query.bind(limits::PAGE_ENTRIES_MAX as i64 + 1);
    let query = query.bind(scope.person().to_string());
    listed(&query.fetch_all(connection).await.map_err(wrong)?, scope)
}

pub(crate) async fn stale(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    memory_scope: &MemoryScope,
    at_ms: u64,
) -> Result<EntryListing, Error> {
    let query = sql::query(STALE).bind(key(scope, memory_scope)).bind(number(at_ms));
    let query = query.bind(limits::PAGE_ENTRIES_MAX as i64 + 1);
    listed(&query.fetch_all(connection).await.map_err(wrong)?, scope)
}

fn listed(rows: &[DatabaseRow], scope: &Scope) -> Result<EntryListing, Error> {
    let more = rows.len() > limits::PAGE_ENTRIES_MAX;
    let mut listed = EntryListing { more, ..EntryListing::default() };
    for row in rows.iter().take(limits::PAGE_ENTRIES_MAX) {
        let mut columns = Columns::of(row);
        let (path, node) = columns.node()?;
        if let Some(labels) = columns.origin_for(&scope.person())? {
            listed.labels.insert(path.clone(), labels);
        }
        listed.entries.push((path, node));
    }
    Ok(listed)
}

pub(crate) async fn read(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    at: &EntryAddress,
    revision: Option<u64>,
) -> Result<Contents, Error> {
    let key = key(scope, &at.memory_scope);
    let query = match revision {
        None => sql::query(NEWEST).bind(key).bind(at.path.as_str().to_owned()),
        Some(revision) => {
            let query = sql::query(REVISION).bind(key).bind(at.path.as_str().to_owned());
            query.bind(number(revision))
        }
    };
    let row = query.fetch_optional(connection).await.map_err(wrong)?;
    let Some(row) = row else {
        let is_root = at.path.is_root() && scope.sees(&at.memory_scope);
        return Err(if is_root { Error::Folder } else { Error::Absent });
    };
    let mut columns = Columns::of(&row);
    let version = columns.version()?;
    let bytes: Option<Vec<u8>> = columns.take()?;
    match (&version.state, &version.kept, bytes) {
        (EntryState::Folder, ..) => Err(Error::Folder),
        (EntryState::Gone, ..) => Err(Error::Absent),
        (EntryState::File { .. }, ContentState::Whole, Some(bytes)) => {
            Ok(Contents { version, bytes })
        }
        (EntryState::File { .. }, ContentState::Redacted(redaction), _) => {
            Err(Error::Redacted(Box::new(redaction.clone())))
        }
        (EntryState::File { .. }, ContentState::Pruned, _) => Err(Error::Pruned),
        (EntryState::File { .. }, ContentState::Whole, None) => {
            Err(damaged("a file's content is missing"))
        }
    }
}

pub(crate) async fn history(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    at: &EntryAddress,
    before: Option<u64>,
) -> Result<Vec<Version>, Error> {
    let before = before.unwrap_or(u64::MAX);
    let query = sql::query(HISTORY).bind(key(scope, &at.memory_scope));
    let query = query.bind(at.path.as_str().to_owned()).bind(number(before));
    let query = query.bind(limits::PAGE_VERSIONS_MAX as i64);
    let versions = versions(&query.fetch_all(connection).await.map_err(wrong)?)?;
    // Revisions have no gaps: before any other than the first, something is there.
    if versions.is_empty() && before > 1 { Err(Error::Absent) } else { Ok(versions) }
}

pub(crate) async fn changes_of(
    connection: &mut DatabaseConnection,
    session: &SessionId,
    after: u64,
) -> Result<Vec<Version>, Error> {
    let query = sql::query(OF_SESSION).bind(session.to_string()).bind(number(after));
    let query = query.bind(limits::PAGE_VERSIONS_MAX as i64);
    versions(&query.fetch_all(connection).await.map_err(wrong)?)
}

fn versions(rows: &[DatabaseRow]) -> Result<Vec<Version>, Error> {
    rows.iter().map(|row| Columns::of(row).version()).collect()
}
