//! Makes a proof of one event out of the rows of a store.

use crate::sql;
use std::pin::pin;

use crate::sql::connection::DatabaseConnection;
use futures_util::TryStreamExt;
use outrigger_agent::{Digest, Seq, SessionId};
use outrigger_audit::{
    InterveningEvent, MerkleTree, PROOF_FORMAT, Proof, ProvenEvent, VerifyingKey, chain, limits,
};

use super::read::{entries, newest_checkpoint};
use crate::Error;
use crate::sql::fault;
use crate::sql::integer::number;

type Row = (i64, i64, i64, Option<String>, Option<String>, String);

fn wrong(error: sqlx::Error) -> Error {
    fault::of("reading the journal for a proof", error)
}

/// Whether a proof carries the text of its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventText {
    /// As far as it is in the event's row; a blob is named by its digest.
    Included,
    /// Its digest only.
    LeftOut,
}

/// Proves an event, or the last one of a session that a checkpoint covers.
pub(crate) async fn prove(
    connection: &mut DatabaseConnection,
    session: &SessionId,
    seq: Option<Seq>,
    text: EventText,
    key: &VerifyingKey,
) -> Result<Proof, Error> {
    let uncovered = |what: &str| Error::NotFound {
        what: format!("checkpoint that covers {what} of session {session}"),
    };
    let entry = covering(connection, session, seq).await?;
    let (place, last) = entry.ok_or_else(|| match seq {
        Some(seq) => uncovered(&format!("event {seq}")),
        None => uncovered("any event"),
    })?;
    let seq = seq.unwrap_or(last);
    let (event, before, after) = events(connection, session, seq, last, text).await?;
    let newest = newest_checkpoint(connection).await.map_err(wrong)?;
    let (size, checkpoint) = newest.ok_or_else(|| uncovered("any event"))?;
    let mut tree = MerkleTree::default();
    let mut entries = pin!(entries(connection));
    while let Some(entry) = entries.try_next().await? {
        tree.push(entry.hash());
    }
    let none = || Error::damaged("the audit log", "it has fewer entries than its checkpoint");
    let way = tree.prove(size, place).ok_or_else(none)?;
    Ok(Proof {
        format: PROOF_FORMAT.to_owned(),
        session: session.clone(),
        before,
        event,
        after,
        entry: place,
        inclusion: way.into_iter().map(|hash| Digest::from_sha256(hash.0)).collect(),
        checkpoint,
        key: key.as_str().to_owned(),
    })
}

/// The number of the first entry at or after an event, or of the session's last one,
/// and the place that it stands for.
async fn covering(
    connection: &mut DatabaseConnection,
    session: &SessionId,
    seq: Option<Seq>,
) -> Result<Option<(u64, Seq)>, Error> {
    const FIRST: &str = "SELECT entry, seq FROM log WHERE session = $1 AND seq >= $2 \
        ORDER BY seq LIMIT 1";
    const LAST: &str = "SELECT entry, seq FROM log WHERE session = $1 AND seq >= $2 \
        ORDER BY seq DESC LIMIT 1";
    let query = sql::query_as(if seq.is_some() { FIRST } else { LAST });
    let query = query.bind(session.to_string()).bind(number(seq.unwrap_or_default().0));
    let row: Option<(i64, i64)> = query.fetch_optional(connection).await.map_err(wrong)?;
    Ok(row.and_then(|(entry, seq)| Some((entry.try_into().ok()?, Seq(seq.try_into().ok()?)))))
}

/// An event, the link before it, and what follows it up to a place.
async fn events(
    connection: &mut DatabaseConnection,
    session: &SessionId,
    seq: Seq,
    last: Seq,
    with: EventText,
) -> Result<(ProvenEvent, Digest, Vec<InterveningEvent>), Error> {
    const ROWS: &str = "SELECT seq, at_ms, format, payload, blob, link FROM events \
        WHERE session = $1 AND seq >= $2 AND seq <= $3 ORDER BY seq";
    if seq == Seq(0) {
        return Err(Error::NotFound { what: format!("event 0 of session {session}") });
    }
    let between = last.0.saturating_sub(seq.0);
    Error::within("a proof (events)", between, limits::PROOF_LINKS_MAX as u64)?;
    let first = Seq(seq.0 - 1);
    let rows: Vec<Row> = sql::query_as(ROWS)
        .bind(session.to_string())
        .bind(number(first.0))
        .bind(number(last.0))
        .fetch_all(connection)
        .await
        .map_err(wrong)?;
    let (mut before, mut found, mut after) = (Some(chain::origin(session)), None, Vec::new());
    let mut expected = if seq == Seq(1) { Seq(1) } else { first };
    for (place, at_ms, format, payload, blob, link) in rows {
        if place != number(expected.0) {
            return Err(Error::damaged_event(session, expected, "it is missing"));
        }
        let none = || Error::damaged_event(session, expected, "it is none");
        let sha256 = match (&payload, blob) {
            (Some(text), _) => Some(Digest::of(text.as_bytes())),
            (None, blob) => blob.and_then(|name| Digest::parse(&name)),
        };
        let sha256 = sha256.ok_or_else(none)?;
        let at_ms = u64::try_from(at_ms).map_err(|_| none())?;
        let format = u32::try_from(format).map_err(|_| none())?;
        if expected < seq {
            before = Digest::parse(&link);
        } else if expected == seq {
            let text = payload.filter(|_| with == EventText::Included);
            found = Some(ProvenEvent { seq, at_ms, format, sha256, text });
        } else {
            after.push(InterveningEvent { at_ms, format, sha256 });
        }
        expected = expected.next();
    }
    match (found, before) {
        (Some(event), Some(before)) if expected > last => Ok((event, before, after)),
        _ => Err(Error::damaged_event(session, expected, "it is missing")),
    }
}
