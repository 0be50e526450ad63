//! Sessions that are taken in from a file, only where their chains hold.
//!
//! Must never take in a part of them, nor one that is there already.

use crate::sql;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::Arc;

use crate::sql::connection::DatabaseConnection;
use outrigger_agent::{Digest, Seq, SessionId};
use outrigger_audit::{LogEntry, chain};
use serde::{Deserialize, Serialize};

use super::batch::Batch;
use crate::event::{ChainWalk, StoredEvent, cut};
use crate::sql::fault;
use crate::sql::integer::number;
use crate::sql::log::anchor::LogAppend;
use crate::{Blobs, Error, limits};

const KNOWN: &str = "SELECT COALESCE(MAX(seq), 0) FROM events WHERE session = $1";
const EVENT: &str = "INSERT INTO events (session, seq, at_ms, format, payload, blob, link) \
    VALUES ($1, $2, $3, $4, $5, $6, $7)";
const SESSION: &str = "INSERT INTO sessions \
    (session, created_at_ms, last_at_ms, head_seq, head_link, title, status) \
    VALUES ($1, $2, $3, $4, $5, $6, $7)";

/// A session in a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SessionExport {
    pub(crate) session: SessionId,
    pub(crate) created_at_ms: u64,
    pub(crate) last_at_ms: u64,
    pub(crate) head: Seq,
    pub(crate) link: Digest,
    pub(crate) title: Option<String>,
    pub(crate) status: Option<String>,
}

/// An event in a file, a line each.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) seq: Seq,
    pub(crate) at_ms: u64,
    pub(crate) format: u32,
    pub(crate) link: String,
    pub(crate) text: String,
}

/// What the writer is to take in.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) room: PathBuf,
    pub(crate) sessions: Vec<SessionExport>,
    pub(crate) blobs: Arc<dyn Blobs>,
}

/// Takes sessions in, in one transaction.
pub(crate) async fn take(
    connection: &mut DatabaseConnection,
    batch: &mut Batch,
    import: &Import,
) -> Result<LogAppend, Error> {
    let wrong = |e| fault::of("taking in a session", e);
    sql::query("BEGIN IMMEDIATE").execute(&mut *connection).await.map_err(wrong)?;
    let mut entries = Vec::new();
    for exported in &import.sessions {
        let SessionExport { session, head, link, .. } = exported;
        let query = sql::query_as(KNOWN).bind(session.to_string());
        let (found,): (i64,) = query.fetch_one(&mut *connection).await.map_err(wrong)?;
        let found = Seq(found.try_into().unwrap_or(0));
        if found > Seq(0) {
            let (session, expected) = (session.clone(), Seq(0));
            return Err(Error::Conflict { session, expected, found });
        }
        events(connection, import, exported).await?;
        let query = sql::query(SESSION)
            .bind(session.to_string())
            .bind(number(exported.created_at_ms))
            .bind(number(exported.last_at_ms))
            .bind(number(head.0))
            .bind(link.to_string())
            .bind(exported.title.clone().map(|text| cut(text, limits::TITLE_BYTES_MAX)))
            .bind(exported.status.clone().map(|text| cut(text, limits::STATUS_BYTES_MAX)));
        query.execute(&mut *connection).await.map_err(wrong)?;
        entries.push(LogEntry { session: session.clone(), seq: *head, link: link.clone() });
    }
    let added = batch.anchor.add(connection, &mut batch.texts, entries).await?;
    sql::query("COMMIT").execute(connection).await.map_err(fault::of_commit)?;
    Ok(added)
}

async fn events(
    connection: &mut DatabaseConnection,
    import: &Import,
    exported: &SessionExport,
) -> Result<(), Error> {
    let wrong = |e| fault::of("taking in a session", e);
    let io = |e| Error::io("reading a session from a file", e);
    let SessionExport { session, head, link, .. } = exported;
    let none = |what: String| Error::damaged(format!("session {session} of the file"), what);
    let file = File::open(import.room.join(session.as_str()));
    let file = file.map_err(|_| none("its events are missing".to_owned()))?;
    let mut walk = ChainWalk { session, seq: Seq(0), link: chain::origin(session) };
    for line in BufReader::new(file).lines() {
        let line: Line =
            serde_json::from_str(&line.map_err(io)?).map_err(|e| none(e.to_string()))?;
        let Line { seq, at_ms, format, link, text } = line;
        Error::within("an event (bytes)", text.len() as u64, limits::EVENT_BYTES_MAX as u64)?;
        Error::within("a time (ms)", at_ms, i64::MAX as u64)?;
        walk.step(StoredEvent { seq, at_ms, format, text: text.clone(), link: link.clone() })?;
        let (payload, blob) = match text.len() <= limits::PAYLOAD_INLINE_BYTES_MAX {
            true => (Some(text), None),
            false => (None, Some(import.blobs.put(text.into_bytes()).await?.to_string())),
        };
        let query = sql::query(EVENT)
            .bind(session.to_string())
            .bind(number(seq.0))
            .bind(number(at_ms))
            .bind(i64::from(format))
            .bind(payload)
            .bind(blob)
            .bind(link);
        query.execute(&mut *connection).await.map_err(wrong)?;
    }
    if walk.seq == Seq(0) || walk.seq != *head || walk.link != *link {
        return Err(none("its events do not end where it says".to_owned()));
    }
    Ok(())
}
