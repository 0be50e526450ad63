//! Statements about who drives which session, and which are to be driven.
//!
//! Who lives is what advisory locks PostgreSQL still holds: it lets go of them with the connection
//! of who took them. SQLite's sessions are held by locks of files, and have no process in their row.

use crate::sql;
use crate::sql::SqlText;
use crate::sql::connection::DatabaseConnection;
use outrigger_agent::{Seq, SessionId};
use std::collections::BTreeSet;

use super::fault;
use super::integer::{number, unsigned};
use crate::{Error, limits};

/// Where changes are told to every server that listens.
pub(crate) const CHANNEL: &str = "outrigger";

/// The keys of the locks of this database that somebody holds: 64 bits, in two columns.
macro_rules! alive {
    () => {
        "(SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks \
            WHERE locktype = 'advisory' AND objsubid = 1 AND granted \
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
    };
}

/// As long as the connection lives, so does who has this number.
const LIVE: &str = "SELECT pg_advisory_lock_shared($1)";
/// Whatever is asked over the connection says so.
const LIVE_STILL: &str = "SELECT COUNT(*) FROM driven WHERE process = $1";
/// Not if another process has it that lives, nor if it is at home at another server that lives.
const TAKE: &str = concat!(
    "INSERT INTO driven (session, server, process) VALUES ($1, COALESCE($2, 0), $3) \
        ON CONFLICT (session) DO UPDATE SET server = COALESCE($2, driven.server), process = $3 \
        WHERE (driven.process IS NULL OR driven.process NOT IN ",
    alive!(),
    ") AND (driven.server = $4 OR driven.server NOT IN ",
    alive!(),
    ")"
);
const RELEASE: &str = "UPDATE driven SET process = NULL WHERE session = $1 AND process = $2";
/// What a process holds nobody takes before the commit.
const HELD_UNTIL_COMMIT: &str = "SELECT session FROM driven WHERE process = $1 \
    AND session = ANY(string_to_array($2, ' ')) FOR SHARE";
const HELD: &str = "SELECT session FROM driven WHERE process = $1";
const IS_HELD: &str = concat!(
    "SELECT COUNT(*) FROM driven WHERE session = $1 AND process IS NOT NULL AND process IN ",
    alive!()
);
const IS_ELSEWHERE: &str = concat!(
    "SELECT COUNT(*) FROM driven WHERE session = $1 AND server <> $2 AND server IN ",
    alive!()
);
const DUE: SqlText = SqlText::Apart {
    sqlite: "SELECT session, server, wakes FROM driven \
        WHERE due_ms <= $1 AND $2 = $2 ORDER BY due_ms, session LIMIT $3",
    postgres: concat!(
        "SELECT session, server, wakes FROM driven WHERE due_ms <= $1 \
            AND (process IS NULL OR process NOT IN ",
        alive!(),
        ") AND (server = $2 OR server NOT IN ",
        alive!(),
        ") ORDER BY due_ms, session LIMIT $3"
    ),
};
const WAKES: &str = "SELECT wakes FROM driven WHERE session = $1";
const WAKE: &str = "INSERT INTO driven (session, due_ms, wakes) VALUES ($1, 0, 1) \
    ON CONFLICT (session) DO UPDATE SET due_ms = 0, wakes = driven.wakes + 1";
const SETTLE: &str = "UPDATE driven SET due_ms = $2 WHERE session = $1 AND wakes = $3";
const TELL: &str = "SELECT pg_notify('outrigger', $1)";

fn asking(error: sqlx::Error) -> Error {
    fault::of("asking who has a session", error)
}

/// A session that a server is to drive, and that nobody drives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueSession {
    /// The session.
    pub session: SessionId,
    /// Another server that drove it last and has its sandboxes, and does not live now.
    pub left_by: Option<i64>,
    /// How often it was woken.
    pub wakes: u64,
}

/// A change of what is to be driven.
#[derive(Debug)]
pub(crate) enum DueChange {
    /// A server is to drive it.
    Wake { session: SessionId, process: i64 },
    /// It waits until then, unless somebody woke it meanwhile.
    Settle { session: SessionId, wakes: u64, due_ms: Option<u64> },
}

/// Changes what is to be driven. Gives whether anything changed.
pub(crate) async fn change(
    connection: &mut DatabaseConnection,
    change: DueChange,
) -> Result<bool, Error> {
    let done = match change {
        DueChange::Wake { session, process } => {
            let done = sql::query(WAKE).bind(session.to_string()).execute(connection).await;
            let done = done.map_err(fault::of_commit)?;
            tell(connection, process, &[(session, Seq(0))]).await?;
            done
        }
        DueChange::Settle { session, wakes, due_ms } => {
            let query = sql::query(SETTLE).bind(session.to_string()).bind(due_ms.map(number));
            query.bind(number(wakes)).execute(connection).await.map_err(fault::of_commit)?
        }
    };
    Ok(done > 0)
}

/// Tells servers that listen where sessions stand, when what was begun is committed. At place 0
/// one is to be driven. SQLite tells nobody.
pub(crate) async fn tell(
    connection: &mut DatabaseConnection,
    process: i64,
    heads: &[(SessionId, Seq)],
) -> Result<(), Error> {
    if !connection.is_postgres() {
        return Ok(());
    }
    let wrong = |e| fault::of("telling other servers", e);
    for some in heads.chunks(limits::NOTIFIED_SESSIONS_MAX) {
        let mut text = process.to_string();
        some.iter().for_each(|(session, seq)| text.push_str(&format!("\n{session} {seq}")));
        sql::query(TELL).bind(text).execute(connection).await.map_err(wrong)?;
    }
    Ok(())
}

/// What was told, unless the process of that number did. What is no message of ours says nothing.
pub(crate) fn told(text: &str, process: i64) -> Vec<(SessionId, Seq)> {
    let mut lines = text.lines();
    if lines.next().and_then(|from| from.parse().ok()).is_none_or(|from: i64| from == process) {
        return Vec::new();
    }
    let heads = lines.filter_map(|line| line.split_once(' '));
    let heads = heads.map(|(session, seq)| Some((SessionId::new(session)?, seq.parse().ok()?)));
    heads.flatten().map(|(session, seq)| (session, Seq(seq))).collect()
}

/// What is to be driven by now and nobody drives: by the server of that number, or by a server
/// that does not live.
pub(crate) async fn due(
    connection: &mut DatabaseConnection,
    now_ms: u64,
    server: i64,
) -> Result<Vec<DueSession>, Error> {
    let query = sql::query_as(DUE).bind(number(now_ms)).bind(server).bind(limits::DUE_SESSIONS_MAX);
    let rows: Vec<(String, i64, i64)> = query
        .fetch_all(connection)
        .await
        .map_err(|e| fault::of("reading which sessions are to be driven", e))?;
    let of_row = |(session, last, wakes): (String, i64, i64)| {
        let session = SessionId::new(session)?;
        let left_by = Some(last).filter(|last| *last != 0 && *last != server);
        Some(DueSession { session, left_by, wakes: unsigned(wakes).ok()? })
    };
    Ok(rows.into_iter().filter_map(of_row).collect())
}

/// How often a session was woken.
pub(crate) async fn wakes(
    connection: &mut DatabaseConnection,
    session: &SessionId,
) -> Result<u64, Error> {
    let query = sql::query_as(WAKES).bind(session.to_string());
    let row: Option<(i64,)> = query
        .fetch_optional(connection)
        .await
        .map_err(|e| fault::of("reading whether a session was woken", e))?;
    row.map_or(Ok(0), |(wakes,)| unsigned(wakes))
}

/// Whether a process that lives holds a session.
pub(crate) async fn is_held(
    connection: &mut DatabaseConnection,
    session: &SessionId,
) -> Result<bool, Error> {
    let query = sql::query_as(IS_HELD).bind(session.to_string());
    let (count,): (i64,) = query.fetch_one(connection).await.map_err(asking)?;
    Ok(count > 0)
}

/// Whether a session is at home at another server than that one, which lives.
pub(crate) async fn is_elsewhere(
    connection: &mut DatabaseConnection,
    session: &SessionId,
    server: i64,
) -> Result<bool, Error> {
    let query = sql::query_as(IS_ELSEWHERE).bind(session.to_string()).bind(server);
    let (count,): (i64,) = query.fetch_one(connection).await.map_err(asking)?;
    Ok(count > 0)
}

/// Whoever has this number lives as long as the connection.
pub(crate) async fn live(connection: &mut DatabaseConnection, who: i64) -> Result<(), sqlx::Error> {
    sql::query(LIVE).bind(who).execute(connection).await.map(drop)
}

/// Says that whoever has this number lives.
pub(crate) async fn live_still(
    connection: &mut DatabaseConnection,
    who: i64,
) -> Result<(), sqlx::Error> {
    sql::query(LIVE_STILL).bind(who).fetch_one(connection).await.map(drop)
}

/// Takes a session for a process of a server, and with `moves` to that server. Gives whether it
/// was free.
pub(crate) async fn take(
    connection: &mut DatabaseConnection,
    session: &SessionId,
    (process, server): (i64, i64),
    moves: bool,
) -> Result<bool, sqlx::Error> {
    let query = sql::query(TAKE).bind(session.to_string()).bind(moves.then_some(server));
    Ok(query.bind(process).bind(server).execute(connection).await? > 0)
}

/// Gives a session back.
pub(crate) async fn release(
    connection: &mut DatabaseConnection,
    session: &SessionId,
    process: i64,
) -> Result<(), sqlx::Error> {
    let query = sql::query(RELEASE).bind(session.to_string()).bind(process);
    query.execute(connection).await.map(drop)
}

/// The sessions that a process holds.
pub(crate) async fn held(
    connection: &mut DatabaseConnection,
    process: i64,
) -> Result<Vec<SessionId>, sqlx::Error> {
    let query = sql::query_as(HELD).bind(process);
    let rows: Vec<(String,)> = query.fetch_all(connection).await?;
    Ok(rows.into_iter().filter_map(|(session,)| SessionId::new(session)).collect())
}

/// Which of these sessions a process holds, and goes on holding until what was begun is committed.
/// Only in PostgreSQL.
pub(crate) async fn held_until_commit(
    connection: &mut DatabaseConnection,
    process: i64,
    sessions: &BTreeSet<SessionId>,
) -> Result<BTreeSet<SessionId>, Error> {
    if sessions.is_empty() {
        return Ok(BTreeSet::new());
    }
    let names: Vec<&str> = sessions.iter().map(SessionId::as_str).collect();
    let query = sql::query_as(HELD_UNTIL_COMMIT).bind(process).bind(names.join(" "));
    let rows: Vec<(String,)> = query.fetch_all(connection).await.map_err(asking)?;
    Ok(rows.into_iter().filter_map(|(session,)| SessionId::new(session)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_by_everybody_else() {
        let session = |name: &str| SessionId::new(name).unwrap();
        let text = "-7\na 3\nb 0\n\nc\nd x";
        assert_eq!(told(text, 8), [(session("a"), Seq(3)), (session("b"), Seq(0))]);
        assert_eq!(told(text, -7), []);
        assert_eq!(told("hello", 8), []);
    }
}
