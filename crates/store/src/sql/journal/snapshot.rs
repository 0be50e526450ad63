//! Snapshots, each sealed to the event that it follows.
//!
//! The seal makes a snapshot one of this very journal: it covers the link of the event that
//! the state follows, and a link stands for all events before it. A state can't be put
//! beside another history.

use crate::sql;
use crate::sql::connection::DatabaseConnection;
use outrigger_agent::{Digest, Seq, SessionId};

use crate::sql::fault;
use crate::sql::integer::{number, unsigned};
use crate::{CachedSnapshot, Error, SessionSnapshot};

/// Seals a state that follows the event with that link.
fn seal(session: &SessionId, link: &str, version: u32, state: &[u8]) -> Digest {
    let state = Digest::of(state);
    Digest::of(format!("outrigger snapshot 1\n{session}\n{link}\n{version}\n{state}").as_bytes())
}

/// Writes a snapshot, sealed to the event that it follows.
pub(crate) async fn keep(
    connection: &mut DatabaseConnection,
    session: &SessionId,
    snapshot: &SessionSnapshot,
) -> Result<Result<Seq, Error>, Error> {
    const LINK: &str = "SELECT link FROM events WHERE session = $1 AND seq = $2";
    const KEEP: &str = "INSERT INTO snapshots (session, seq, version, seal, state) \
        VALUES ($1, $2, $3, $4, $5) ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, \
        version = excluded.version, seal = excluded.seal, state = excluded.state \
        WHERE excluded.seq >= snapshots.seq";
    let wrong = |e| fault::of("writing a snapshot", e);
    let seq = snapshot.seq;
    let query = sql::query_as(LINK).bind(session.to_string()).bind(number(seq.0));
    let found: Option<(String,)> = query.fetch_optional(&mut *connection).await.map_err(wrong)?;
    let Some((link,)) = found else {
        let what = format!("event {seq} of session {session}");
        return Ok(Err(Error::NotFound { what }));
    };
    let seal = seal(session, &link, snapshot.version, &snapshot.state);
    sql::query(KEEP)
        .bind(session.to_string())
        .bind(number(seq.0))
        .bind(i64::from(snapshot.version))
        .bind(seal.to_string())
        .bind(snapshot.state.as_slice())
        .execute(connection)
        .await
        .map_err(wrong)?;
    Ok(Ok(seq))
}

/// The newest folded state, if its seal fits and it is of that version.
pub(crate) async fn read(
    connection: &mut DatabaseConnection,
    session: &SessionId,
    version: u32,
) -> Result<CachedSnapshot, Error> {
    const TEXT: &str = "SELECT kept.seq, kept.version, kept.seal, kept.state, events.link \
        FROM snapshots kept LEFT JOIN events \
        ON events.session = kept.session AND events.seq = kept.seq WHERE kept.session = $1";
    type Columns = (i64, i64, String, Vec<u8>, Option<String>);
    let row: Option<Columns> = sql::query_as(TEXT)
        .bind(session.to_string())
        .fetch_optional(connection)
        .await
        .map_err(|e| fault::of("reading the journal", e))?;
    let Some((seq, found, sealed, state, link)) = row else { return Ok(CachedSnapshot::Missing) };
    let found = u32::try_from(found).unwrap_or(u32::MAX);
    if found != version {
        return Ok(CachedSnapshot::OtherVersion { found });
    }
    let Some(link) = link else {
        return Ok(CachedSnapshot::Damaged { what: "the event that it follows is missing" });
    };
    if seal(session, &link, version, &state).as_str() != sealed {
        return Ok(CachedSnapshot::Damaged { what: "its content does not fit its seal" });
    }
    Ok(CachedSnapshot::Usable(SessionSnapshot { seq: Seq(unsigned(seq)?), version, state }))
}
