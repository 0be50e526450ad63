//! Counts what entries take, in the transaction that changes it, and refuses what has no
//! room.
//!
//! Must never refuse what only takes away. What is counted follows from the rows of
//! versions, entries and proposals, but for sessions, of which nothing is taken away.

use std::collections::BTreeMap;

use outrigger_agent::SessionId;
use outrigger_policy::{Owner, Principal, Shelf};
use serde_json::json;
use sqlx::sqlite::SqliteConnection;

use super::put::{Draft, What};
use super::rows::unsigned;
use crate::entries::{Error, Exceeded, Place, Quota, Quotas, Usage};
use crate::sqlite::batch::number;
use crate::sqlite::fault;

/// Who has everything.
const ALL: &str = "all";
/// Adds what is to come, or takes it out again. What stood at a path says whether an entry
/// more comes of it; nothing does of what is only proposed.
const ADD: &str = "WITH come AS (SELECT value ->> 0 AS shelf, value ->> 1 AS path, \
    value ->> 2 AS lives, value ->> 3 AS bytes, value ->> 4 AS kept, value ->> 5 AS owner \
    FROM json_each($1)), \
    delta AS (SELECT bytes, kept, owner, COALESCE(lives - COALESCE((SELECT e.state < 2 \
    FROM entries e WHERE e.shelf = come.shelf AND e.path = come.path), 0), 0) AS entries FROM come) \
    INSERT INTO usage (holder, bytes, entries, versions) \
    SELECT holder, $3 * SUM(bytes), $3 * SUM(entries), $3 * SUM(kept) FROM (\
    SELECT 'all' AS holder, bytes, entries, kept FROM delta \
    UNION ALL SELECT owner, bytes, entries, kept FROM delta WHERE owner IS NOT NULL \
    UNION ALL SELECT $2, bytes, MAX(entries, 0), 1 FROM delta WHERE $2 IS NOT NULL) \
    GROUP BY holder \
    ON CONFLICT (holder) DO UPDATE SET bytes = usage.bytes + excluded.bytes, \
    entries = usage.entries + excluded.entries, versions = usage.versions + excluded.versions \
    RETURNING holder, bytes, entries, versions";
const FREE: &str = "UPDATE usage SET bytes = bytes - $2, versions = versions - $3 \
    WHERE holder = $1 OR holder = 'all'";

/// By what name an owner is counted; the organisation's shelves are among all.
fn owner(shelf: &Shelf) -> Option<String> {
    match &shelf.owner {
        Owner::Person(_) | Owner::Group(_) => Some(Principal::from(&shelf.owner).to_string()),
        Owner::Organisation(_) => None,
    }
}

fn session(session: &SessionId) -> String {
    format!("session:{session}")
}

fn quota<'a>(quotas: &'a Quotas, holder: &str) -> &'a Quota {
    match holder {
        ALL => &quotas.organisation,
        holder if holder.starts_with("session:") => &quotas.session,
        _ => &quotas.owner,
    }
}

fn wrong(error: sqlx::Error) -> Error {
    Error::Store(fault::of("counting what entries take", error))
}

/// Takes versions in that are about to be written.
pub(super) async fn take(
    connection: &mut SqliteConnection,
    quotas: &Quotas,
    drafts: &[Draft],
) -> Result<(), Error> {
    let come = drafts.iter().map(|draft| {
        let (lives, bytes) = match &draft.what {
            What::File(body) => (1, body.redaction().is_none().then_some(body.bytes)),
            What::Folder => (1, None),
            What::Gone => (0, None),
        };
        row(&draft.at, Some(lives), bytes)
    });
    let session = drafts.iter().find_map(|draft| draft.by.session.as_ref());
    account(connection, quotas, session, come.collect()).await
}

/// Takes a file in that is about to be proposed.
pub(super) async fn propose(
    connection: &mut SqliteConnection,
    quotas: &Quotas,
    (at, bytes): (&Place, Option<u64>),
    session: Option<&SessionId>,
) -> Result<(), Error> {
    account(connection, quotas, session, vec![row(at, None, bytes)]).await
}

fn row(at: &Place, lives: Option<u8>, bytes: Option<u64>) -> serde_json::Value {
    let (shelf, owner) = (at.shelf.to_string(), owner(&at.shelf));
    json!([shelf, at.path.as_str(), lives, bytes.unwrap_or(0), u8::from(bytes.is_some()), owner])
}

/// Counts, and takes everything back if it has no room: so that what is refused is slower,
/// and not what is done.
async fn account(
    connection: &mut SqliteConnection,
    quotas: &Quotas,
    of: Option<&SessionId>,
    come: Vec<serde_json::Value>,
) -> Result<(), Error> {
    if come.is_empty() {
        return Ok(());
    }
    let (come, of) = (serde_json::Value::Array(come).to_string(), of.map(session));
    let after = add(connection, &come, of.as_ref(), 1).await?;
    let none = Usage::default();
    let beyond = |holder: &str, now: Usage, before| now.beyond(before, quota(quotas, holder));
    if after.iter().all(|(holder, now)| beyond(holder, *now, none).is_none()) {
        return Ok(());
    }
    let before = add(connection, &come, of.as_ref(), -1).await?;
    let exceeded = after.iter().find_map(|(holder, now)| {
        let known = before.get(holder).copied().unwrap_or_default();
        let (measure, used, max) = beyond(holder, *now, known)?;
        let holder = if holder == ALL { "organisation" } else { holder };
        Some(Exceeded { holder: holder.to_owned(), measure, used, max })
    });
    match exceeded {
        Some(exceeded) => Err(Error::Quota(Box::new(exceeded))),
        None => add(connection, &come, of.as_ref(), 1).await.map(drop),
    }
}

async fn add(
    connection: &mut SqliteConnection,
    come: &str,
    session: Option<&String>,
    sign: i64,
) -> Result<BTreeMap<String, Usage>, Error> {
    let query = sqlx::query_as(ADD).bind(come.to_owned()).bind(session.cloned()).bind(sign);
    let rows: Vec<(String, i64, i64, i64)> = query.fetch_all(connection).await.map_err(wrong)?;
    let usage = |(holder, bytes, entries, versions)| {
        let (bytes, entries) = (unsigned(bytes)?, unsigned(entries)?);
        Ok((holder, Usage { bytes, entries, versions: unsigned(versions)? }))
    };
    rows.into_iter().map(usage).collect()
}

/// Contents that went, by the owners of the shelves that they were on.
#[derive(Debug, Default)]
pub(super) struct Freed(BTreeMap<Option<String>, (u64, u64)>);

impl Freed {
    pub(super) fn add(&mut self, shelf: &Shelf, bytes: u64) {
        let (sum, count) = self.0.entry(owner(shelf)).or_default();
        (*sum, *count) = (*sum + bytes, *count + 1);
    }

    /// Gives back what they took.
    pub(super) async fn give_back(&self, connection: &mut SqliteConnection) -> Result<(), Error> {
        for (owner, (bytes, versions)) in &self.0 {
            let query = sqlx::query(FREE).bind(owner.clone().unwrap_or_default());
            let query = query.bind(number(*bytes)).bind(number(*versions));
            query.execute(&mut *connection).await.map_err(wrong)?;
        }
        Ok(())
    }
}
