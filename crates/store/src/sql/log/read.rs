//! Reads the audit log as it is stored, for whoever verifies it.

use crate::sql;
use std::collections::BTreeSet;

use crate::sql::connection::DatabaseConnection;
use futures_util::{Stream, TryStreamExt};
use outrigger_agent::{Digest, Seq, SessionId};
use outrigger_audit::limits::COPY_LAG_CHECKPOINTS_MAX;
use outrigger_audit::{Corrections, LogEntry, LogVerifier, SessionLinks};

use crate::Error;
use crate::sql::fault;

pub(crate) fn wrong(error: sqlx::Error) -> Error {
    fault::of("reading the audit log", error)
}

/// At most two sessions whose names begin like that, also ones that only the log has.
pub(crate) async fn named(
    connection: &mut DatabaseConnection,
    beginning: &str,
) -> Result<Vec<SessionId>, Error> {
    const TEXT: &str = "SELECT session FROM sessions WHERE session >= $1 AND session < $2 \
        UNION SELECT session FROM log WHERE session >= $1 AND session < $2 \
        ORDER BY session LIMIT 2";
    let query = sql::query_as(TEXT).bind(beginning).bind(format!("{beginning}\u{10ffff}"));
    let rows: Vec<(String,)> = query.fetch_all(connection).await.map_err(wrong)?;
    let mut found: Vec<_> = rows.into_iter().filter_map(|(n,)| SessionId::new(n)).collect();
    // A whole name is meant, also where another one begins with it.
    if found.first().is_some_and(|first| first.as_str() == beginning) {
        found.truncate(1);
    }
    Ok(found)
}

/// The newest checkpoint: how many entries it covers, and its note.
pub(crate) async fn newest_checkpoint(
    connection: &mut DatabaseConnection,
) -> Result<Option<(u64, String)>, sqlx::Error> {
    const TEXT: &str = "SELECT size, note FROM checkpoints ORDER BY size DESC LIMIT 1";
    let row: Option<(i64, String)> = sql::query_as(TEXT).fetch_optional(connection).await?;
    Ok(row.map(|(size, note)| (u64::try_from(size).unwrap_or(0), note)))
}

/// The sizes of the newest checkpoints, as many as the copy may lag behind and one more.
pub(crate) async fn newest_sizes(connection: &mut DatabaseConnection) -> Result<Vec<u64>, Error> {
    const TEXT: &str = "SELECT size FROM checkpoints ORDER BY size DESC LIMIT $1";
    let query = sql::query_as(TEXT).bind(1 + COPY_LAG_CHECKPOINTS_MAX as i64);
    let rows: Vec<(i64,)> = query.fetch_all(connection).await.map_err(wrong)?;
    Ok(rows.into_iter().map(|(size,)| u64::try_from(size).unwrap_or(0)).collect())
}

/// Sessions that have events or a row, or that the log has. Gives names of rows that can be
/// none.
pub(crate) async fn sessions(
    connection: &mut DatabaseConnection,
    names: &mut BTreeSet<SessionId>,
) -> Result<Vec<String>, Error> {
    // From each name to the next one: a session may have a million events.
    const TEXT: &str = "WITH RECURSIVE named(session) AS (\
        SELECT MIN(session) FROM events UNION ALL \
        SELECT (SELECT MIN(session) FROM events WHERE session > named.session) \
        FROM named WHERE named.session IS NOT NULL) \
        SELECT session FROM named WHERE session IS NOT NULL \
        UNION SELECT session FROM sessions";
    const LOG: &str = "SELECT DISTINCT session FROM log";
    let mut logged = sql::query_as(LOG).fetch(&mut *connection);
    while let Some((name,)) = logged.try_next().await.map_err(wrong)? {
        // An entry with an impossible one is a gap, and told as one.
        let name: String = name;
        names.extend(SessionId::new(name));
    }
    drop(logged);
    let rows: Vec<(String,)> = sql::query_as(TEXT).fetch_all(connection).await.map_err(wrong)?;
    let mut impossible = Vec::new();
    for (name,) in rows {
        match SessionId::new(name.as_str()) {
            Some(session) => _ = names.insert(session),
            None => impossible.push(name),
        }
    }
    Ok(impossible)
}

type EntryRow = (i64, String, i64, String);

/// An entry and its number. One that is none stands for what it was put in for: a gap.
fn entry((number, session, seq, link): EntryRow) -> Option<(u64, LogEntry)> {
    let (session, link) = (SessionId::new(session)?, Digest::parse(&link)?);
    Some((number.try_into().ok()?, LogEntry { session, seq: Seq(seq.try_into().ok()?), link }))
}

/// Every entry of the log, in order.
pub(crate) fn entries(
    connection: &mut DatabaseConnection,
) -> impl Stream<Item = Result<LogEntry, Error>> {
    const TEXT: &str = "SELECT entry, session, seq, link FROM log ORDER BY entry";
    let rows = sql::query_as(TEXT).fetch(connection).map_err(wrong);
    rows.try_filter_map(async |row: EntryRow| Ok(entry(row).map(|(_, entry)| entry)))
}

/// Takes a check along the log and its checkpoints.
pub(crate) async fn along(
    connection: &mut DatabaseConnection,
    check: &mut LogVerifier,
) -> Result<(), Error> {
    const ENTRIES: &str = "SELECT entry, session, seq, link, note, edge FROM log \
        LEFT JOIN checkpoints ON size = entry + 1 ORDER BY entry";
    const BEHIND: &str = "SELECT size, note, edge FROM checkpoints \
        WHERE size > $1 OR size <= 0 ORDER BY size";
    type Row = (i64, String, i64, String, Option<String>, Option<String>);
    let mut rows = sql::query_as(ENTRIES).fetch(&mut *connection);
    while let Some(row) = rows.try_next().await.map_err(wrong)? {
        let (number, session, seq, link, note, edge): Row = row;
        let Some((number, entry)) = entry((number, session, seq, link)) else { continue };
        check.entry(number, &entry, note.as_deref().zip(edge.as_deref()))?;
    }
    drop(rows);
    let size = i64::try_from(check.size()).unwrap_or(i64::MAX);
    let mut rows = sql::query_as(BEHIND).bind(size).fetch(connection);
    while let Some((size, note, edge)) = rows.try_next().await.map_err(wrong)? {
        let (size, note, edge): (i64, String, String) = (size, note, edge);
        check.checkpoint(u64::try_from(size).unwrap_or(0), &note, &edge);
    }
    Ok(())
}

/// What the log has of a session.
pub(crate) async fn links(
    connection: &mut DatabaseConnection,
    session: &SessionId,
    corrections: &Corrections,
) -> Result<SessionLinks, Error> {
    const TEXT: &str =
        "SELECT entry, session, seq, link FROM log WHERE session = $1 ORDER BY entry";
    let mut chain = SessionLinks::default();
    let mut rows = sql::query_as(TEXT).bind(session.to_string()).fetch(connection);
    while let Some(row) = rows.try_next().await.map_err(wrong)? {
        if let Some((number, LogEntry { seq, link, .. })) = entry(row)
            && corrections.believes(number, seq)
        {
            chain.add(number, seq, link);
        }
    }
    for (number, seq, link) in corrections.entries.get(session).into_iter().flatten() {
        chain.add(*number, *seq, link.clone());
    }
    Ok(chain)
}
