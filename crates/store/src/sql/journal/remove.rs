//! Removes a session on purpose: its rows go, and the log says that they did.
//!
//! Owns that both happen in one transaction. A session of which no removal can be signed
//! stays: its absence would be taken for the work of somebody else.

use crate::sql;
use crate::sql::connection::DatabaseConnection;
use outrigger_agent::{Digest, Seq, SessionId};
use outrigger_audit::LogEntry;

use super::batch::Batch;
use crate::Error;
use crate::sql::fault;
use crate::sql::log::anchor::LogAppend;

const HEAD: &str = "SELECT head_seq, head_link FROM sessions WHERE session = $1";
/// What it is charged stays: what was spent stays spent.
const GONE: [&str; 5] = [
    "DELETE FROM events WHERE session = $1",
    "DELETE FROM snapshots WHERE session = $1",
    "DELETE FROM sessions WHERE session = $1",
    "DELETE FROM driven WHERE session = $1",
    "DELETE FROM usage WHERE holder = 'session:' || $1",
];

/// Removes a session that is at `head`.
pub(crate) async fn remove(
    connection: &mut DatabaseConnection,
    batch: &mut Batch,
    session: &SessionId,
    head: Seq,
) -> Result<LogAppend, Error> {
    let wrong = |e| fault::of("removing a session", e);
    sql::query("BEGIN IMMEDIATE").execute(&mut *connection).await.map_err(wrong)?;
    let query = sql::query_as(HEAD).bind(session.to_string());
    let row: Option<(i64, String)> = query.fetch_optional(&mut *connection).await.map_err(wrong)?;
    let (found, link) = row.ok_or_else(|| Error::no_session(session))?;
    let found = Seq(found.try_into().unwrap_or(0));
    if found != head {
        return Err(Error::Conflict { session: session.clone(), expected: head, found });
    }
    let none = || Error::damaged(fault::DATABASE, format!("session {session} has a broken link"));
    let link = Digest::parse(&link).ok_or_else(none)?;
    for text in GONE {
        let query = sql::query(text).bind(session.to_string());
        query.execute(&mut *connection).await.map_err(wrong)?;
    }
    let entry = LogEntry { session: session.clone(), seq: LogEntry::REMOVED, link };
    let added = batch.anchor.add(connection, &mut batch.texts, vec![entry]).await?;
    sql::query("COMMIT").execute(connection).await.map_err(fault::of_commit)?;
    Ok(added)
}
