//! The connections that read, and the queries.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::TryStreamExt;
use outrigger_agent::{Digest, Seq, SessionId};
use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

use super::batch::number;
use super::{fault, open};
use crate::{Before, Cached, Error, SessionRow, Snapshot, limits, snapshot};

/// Connections that read, opened when they are first needed.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    slots: [Mutex<Option<SqliteConnection>>; limits::READERS],
    next: AtomicUsize,
}

/// An event as its row has it.
pub(super) struct Row {
    pub(super) seq: Seq,
    pub(super) at_ms: u64,
    pub(super) format: u32,
    pub(super) payload: Option<String>,
    pub(super) blob: Option<String>,
    pub(super) link: String,
}

type Columns = (i64, i64, i64, Option<String>, Option<String>, String);

fn wrong(error: sqlx::Error) -> Error {
    fault::of("reading the journal", error)
}

fn unsigned(value: i64) -> Result<u64, Error> {
    u64::try_from(value).map_err(|_| Error::damaged(fault::DATABASE, "it has a number below zero"))
}

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        let slots = std::array::from_fn(|_| Mutex::new(None));
        Self { path: path.to_owned(), slots, next: AtomicUsize::new(0) }
    }

    pub(super) async fn connection(&self) -> Result<MappedMutexGuard<'_, SqliteConnection>, Error> {
        let mut slot = match self.slots.iter().find_map(|slot| slot.try_lock().ok()) {
            Some(slot) => slot,
            None => {
                let turn = self.next.fetch_add(1, Ordering::Relaxed);
                self.slots[turn % limits::READERS].lock().await
            }
        };
        if slot.is_none() {
            *slot = Some(open::reading(&self.path).await?);
        }
        Ok(MutexGuard::map(slot, |slot| slot.as_mut().expect("it was opened above")))
    }

    /// Closes the connections, each when it is free.
    pub(super) async fn close(&self) {
        for slot in &self.slots {
            if let Some(connection) = slot.lock().await.take() {
                // The connection is gone in any case.
                let _ = connection.close().await;
            }
        }
    }

    /// The place and link of a session's last event.
    pub(super) async fn head(&self, session: &SessionId) -> Result<Option<(Seq, String)>, Error> {
        const TEXT: &str = "SELECT head_seq, head_link FROM sessions WHERE session = $1";
        let mut connection = self.connection().await?;
        let row: Option<(i64, String)> = sqlx::query_as(TEXT)
            .bind(session.to_string())
            .fetch_optional(&mut *connection)
            .await
            .map_err(wrong)?;
        row.map(|(seq, link)| Ok((Seq(unsigned(seq)?), link))).transpose()
    }

    /// The link of one event.
    pub(super) async fn link(&self, session: &SessionId, seq: Seq) -> Result<Digest, Error> {
        const TEXT: &str = "SELECT link FROM events WHERE session = $1 AND seq = $2";
        let mut connection = self.connection().await?;
        let row: Option<(String,)> = sqlx::query_as(TEXT)
            .bind(session.to_string())
            .bind(number(seq.0))
            .fetch_optional(&mut *connection)
            .await
            .map_err(wrong)?;
        let (link,) = row.ok_or_else(|| Error::damaged_event(session, seq, "it is missing"))?;
        Digest::parse(&link)
            .ok_or_else(|| Error::damaged_event(session, seq, "its hash is no SHA-256"))
    }

    /// A page of rows, and whether it was cut.
    pub(super) async fn rows(
        &self,
        session: &SessionId,
        after: Seq,
    ) -> Result<(Vec<Row>, bool), Error> {
        const TEXT: &str = "SELECT seq, at_ms, format, payload, blob, link FROM events \
            WHERE session = $1 AND seq > $2 ORDER BY seq LIMIT $3";
        let mut connection = self.connection().await?;
        let mut found = sqlx::query_as(TEXT)
            .bind(session.to_string())
            .bind(number(after.0))
            .bind(limits::PAGE_EVENTS_MAX as i64 + 1)
            .fetch(&mut *connection);
        let mut rows: Vec<Row> = Vec::new();
        let mut bytes = 0;
        while let Some(columns) = found.try_next().await.map_err(wrong)? {
            let (seq, at_ms, format, payload, blob, link): Columns = columns;
            bytes += payload.as_ref().map_or(limits::PAYLOAD_INLINE_BYTES_MAX, String::len);
            let full = rows.len() == limits::PAGE_EVENTS_MAX;
            if full || (bytes > limits::PAGE_BYTES_MAX && !rows.is_empty()) {
                return Ok((rows, true));
            }
            rows.push(Row {
                seq: Seq(unsigned(seq)?),
                at_ms: unsigned(at_ms)?,
                format: u32::try_from(unsigned(format)?).unwrap_or(u32::MAX),
                payload,
                blob,
                link,
            });
        }
        Ok((rows, false))
    }

    pub(super) async fn sessions(
        &self,
        before: Option<Before>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, Error> {
        const FIRST: &str = "SELECT session, created_at_ms, last_at_ms, head_seq, title, status \
            FROM sessions ORDER BY created_at_ms DESC, session DESC LIMIT $1";
        const NEXT: &str = "SELECT session, created_at_ms, last_at_ms, head_seq, title, status \
            FROM sessions WHERE (created_at_ms, session) < ($2, $3) \
            ORDER BY created_at_ms DESC, session DESC LIMIT $1";
        type Columns = (String, i64, i64, i64, Option<String>, Option<String>);
        let limit = limit.min(limits::PAGE_SESSIONS_MAX) as i64;
        let mut connection = self.connection().await?;
        let query = match before {
            None => sqlx::query_as(FIRST).bind(limit),
            Some(Before { created_at_ms, session }) => sqlx::query_as(NEXT)
                .bind(limit)
                .bind(number(created_at_ms))
                .bind(session.to_string()),
        };
        let rows: Vec<Columns> = query.fetch_all(&mut *connection).await.map_err(wrong)?;
        let row = |(session, created, last, head, title, status): Columns| {
            Ok(SessionRow {
                session: SessionId::new(session)
                    .ok_or_else(|| Error::damaged(fault::DATABASE, "it has a broken name"))?,
                created_at_ms: unsigned(created)?,
                last_at_ms: unsigned(last)?,
                head: Seq(unsigned(head)?),
                title: title.unwrap_or_default(),
                status: status.unwrap_or_default(),
            })
        };
        rows.into_iter().map(row).collect()
    }

    pub(super) async fn snapshot(
        &self,
        session: &SessionId,
        version: u32,
    ) -> Result<Cached, Error> {
        const TEXT: &str = "SELECT kept.seq, kept.version, kept.seal, kept.state, events.link \
            FROM snapshots kept LEFT JOIN events \
            ON events.session = kept.session AND events.seq = kept.seq WHERE kept.session = $1";
        type Columns = (i64, i64, String, Vec<u8>, Option<String>);
        let mut connection = self.connection().await?;
        let row: Option<Columns> = sqlx::query_as(TEXT)
            .bind(session.to_string())
            .fetch_optional(&mut *connection)
            .await
            .map_err(wrong)?;
        let Some((seq, found, seal, state, link)) = row else { return Ok(Cached::Missing) };
        let found = u32::try_from(found).unwrap_or(u32::MAX);
        if found != version {
            return Ok(Cached::OtherVersion { found });
        }
        let Some(link) = link else {
            return Ok(Cached::Damaged { what: "the event that it follows is missing" });
        };
        if snapshot::seal(session, &link, version, &state).as_str() != seal {
            return Ok(Cached::Damaged { what: "its content does not fit its seal" });
        }
        Ok(Cached::Usable(Snapshot { seq: Seq(unsigned(seq)?), version, state }))
    }
}
