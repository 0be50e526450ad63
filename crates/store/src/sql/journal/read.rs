//! Queries about sessions and their events.

use crate::sql;
use crate::sql::connection::DatabaseConnection;
use futures_util::TryStreamExt;
use outrigger_agent::{Digest, Seq, SessionId};

use crate::sql::fault;
use crate::sql::integer::{number, unsigned};
use crate::{Before, Error, SessionRow, limits};

/// An event as its row has it.
pub(crate) struct Row {
    pub(crate) seq: Seq,
    pub(crate) at_ms: u64,
    pub(crate) format: u32,
    pub(crate) payload: Option<String>,
    pub(crate) blob: Option<String>,
    pub(crate) link: String,
}

type Columns = (i64, i64, i64, Option<String>, Option<String>, String);

fn wrong(error: sqlx::Error) -> Error {
    fault::of("reading the journal", error)
}

/// The place and link of a session's last event.
pub(crate) async fn head(
    connection: &mut DatabaseConnection,
    session: &SessionId,
) -> Result<Option<(Seq, String)>, Error> {
    const TEXT: &str = "SELECT head_seq, head_link FROM sessions WHERE session = $1";
    let row: Option<(i64, String)> = sql::query_as(TEXT)
        .bind(session.to_string())
        .fetch_optional(connection)
        .await
        .map_err(wrong)?;
    row.map(|(seq, link)| Ok((Seq(unsigned(seq)?), link))).transpose()
}

/// The link of one event.
pub(crate) async fn link(
    connection: &mut DatabaseConnection,
    session: &SessionId,
    seq: Seq,
) -> Result<Digest, Error> {
    const TEXT: &str = "SELECT link FROM events WHERE session = $1 AND seq = $2";
    let row: Option<(String,)> = sql::query_as(TEXT)
        .bind(session.to_string())
        .bind(number(seq.0))
        .fetch_optional(connection)
        .await
        .map_err(wrong)?;
    let (link,) = row.ok_or_else(|| Error::damaged_event(session, seq, "it is missing"))?;
    Digest::parse(&link).ok_or_else(|| Error::damaged_event(session, seq, "its hash is no SHA-256"))
}

/// A page of at most so many rows, and whether it was cut.
pub(crate) async fn rows(
    connection: &mut DatabaseConnection,
    session: &SessionId,
    after: Seq,
    rows_max: usize,
) -> Result<(Vec<Row>, bool), Error> {
    const TEXT: &str = "SELECT seq, at_ms, format, payload, blob, link FROM events \
        WHERE session = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    let mut found = sql::query_as(TEXT)
        .bind(session.to_string())
        .bind(number(after.0))
        .bind(rows_max as i64 + 1)
        .fetch(connection);
    let mut rows: Vec<Row> = Vec::new();
    let mut bytes = 0;
    while let Some(columns) = found.try_next().await.map_err(wrong)? {
        let (seq, at_ms, format, payload, blob, link): Columns = columns;
        bytes += payload.as_ref().map_or(limits::PAYLOAD_INLINE_BYTES_MAX, String::len);
        let full = rows.len() == rows_max;
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

type RowColumns = (String, i64, i64, i64, Option<String>, Option<String>);

pub(crate) async fn session(
    connection: &mut DatabaseConnection,
    session: &SessionId,
) -> Result<Option<SessionRow>, Error> {
    const ONE: &str = "SELECT session, created_at_ms, last_at_ms, head_seq, title, status \
        FROM sessions WHERE session = $1";
    let query = sql::query_as(ONE).bind(session.to_string());
    let found: Option<RowColumns> = query.fetch_optional(connection).await.map_err(wrong)?;
    found.map(row).transpose()
}

pub(crate) async fn sessions(
    connection: &mut DatabaseConnection,
    before: Option<Before>,
    limit: usize,
) -> Result<Vec<SessionRow>, Error> {
    const FIRST: &str = "SELECT session, created_at_ms, last_at_ms, head_seq, title, status \
        FROM sessions ORDER BY created_at_ms DESC, session DESC LIMIT $1";
    const NEXT: &str = "SELECT session, created_at_ms, last_at_ms, head_seq, title, status \
        FROM sessions WHERE (created_at_ms, session) < ($2, $3) \
        ORDER BY created_at_ms DESC, session DESC LIMIT $1";
    let limit = limit.min(limits::PAGE_SESSIONS_MAX) as i64;
    let query = match before {
        None => sql::query_as(FIRST).bind(limit),
        Some(Before { created_at_ms, session }) => {
            sql::query_as(NEXT).bind(limit).bind(number(created_at_ms)).bind(session.to_string())
        }
    };
    let rows: Vec<RowColumns> = query.fetch_all(connection).await.map_err(wrong)?;
    rows.into_iter().map(row).collect()
}

fn row((session, created, last, head, title, status): RowColumns) -> Result<SessionRow, Error> {
    Ok(SessionRow {
        session: SessionId::new(session)
            .ok_or_else(|| Error::damaged(fault::DATABASE, "it has a broken name"))?,
        created_at_ms: unsigned(created)?,
        last_at_ms: unsigned(last)?,
        head: Seq(unsigned(head)?),
        title: title.unwrap_or_default(),
        status: status.unwrap_or_default(),
    })
}
