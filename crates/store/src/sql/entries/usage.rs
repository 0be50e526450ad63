//! Counts what entries take, in the transaction that changes it, and refuses what has no
//! room.
//!
//! Must never refuse what only takes away. What is counted follows from the rows of
//! versions, entries and proposals, but for sessions, of which nothing is taken away.

use crate::sql;
use std::collections::BTreeMap;

use crate::sql::connection::DatabaseConnection;
use outrigger_agent::SessionId;
use outrigger_policy::{MemoryScope, Owner, Principal};

use super::draft::{Draft, What};
use super::rows::unsigned;
use crate::entries::{EntryAddress, Error, MemoryUsage, Quota, QuotaExceeded, Quotas};
use crate::sql::fault;
use crate::sql::integer::number;
use crate::sql::journal::statements::tuples;

/// Who has everything.
const ALL: &str = "all";
/// Adds what is to come, or takes it out again; a row for each holder is put in between.
const ADD: (&str, &str) = (
    "INSERT INTO usage (holder, bytes, entries, versions) VALUES ",
    " ON CONFLICT (holder) DO UPDATE SET bytes = usage.bytes + excluded.bytes, \
    entries = usage.entries + excluded.entries, versions = usage.versions + excluded.versions \
    RETURNING holder, bytes, entries, versions",
);
const ADD_COLUMNS: usize = 4;
const FREE: &str = "UPDATE usage SET bytes = bytes - $2, versions = versions - $3 \
    WHERE holder = $1 OR holder = 'all'";

/// By what name an owner is counted; the organisation's memory scopes are among all.
fn owner(memory_scope: &MemoryScope) -> Option<String> {
    match &memory_scope.owner {
        Owner::Person(_) | Owner::Group(_) => {
            Some(Principal::from(&memory_scope.owner).to_string())
        }
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

/// What is to come for one holder, or to go.
#[derive(Debug, Clone, Copy, Default)]
struct Delta {
    bytes: i64,
    entries: i64,
    versions: i64,
}

/// By their names.
type Deltas = BTreeMap<String, Delta>;

fn come(deltas: &mut Deltas, holder: String, delta: Delta) {
    let sum = deltas.entry(holder).or_default();
    sum.bytes = sum.bytes.saturating_add(delta.bytes);
    sum.entries += delta.entries;
    sum.versions += delta.versions;
}

/// Something for a memory scope, written by a session.
fn come_to(deltas: &mut Deltas, memory_scope: &MemoryScope, by: Option<&SessionId>, delta: Delta) {
    come(deltas, ALL.to_owned(), delta);
    if let Some(owner) = owner(memory_scope) {
        come(deltas, owner, delta);
    }
    if let Some(id) = by {
        // Nothing is given back, and every version counts.
        come(deltas, session(id), Delta { entries: delta.entries.max(0), versions: 1, ..delta });
    }
}

/// Takes versions in that are about to be written.
pub(crate) async fn take(
    connection: &mut DatabaseConnection,
    quotas: &Quotas,
    drafts: &[Draft],
) -> Result<(), Error> {
    let mut deltas = Deltas::new();
    for draft in drafts {
        let entries = match (&draft.what, &draft.replaces) {
            (What::Gone, _) => -1,
            (What::File(_), Some(_)) => 0,
            (What::File(_), None) | (What::Folder, _) => 1,
        };
        let bytes = match &draft.what {
            What::File(body) if body.redaction().is_none() => Some(number(body.bytes)),
            What::File(_) | What::Folder | What::Gone => None,
        };
        let delta =
            Delta { bytes: bytes.unwrap_or(0), entries, versions: i64::from(bytes.is_some()) };
        come_to(&mut deltas, &draft.at.memory_scope, draft.by.session.as_ref(), delta);
    }
    account(connection, quotas, &deltas).await
}

/// Takes a file in that is about to be proposed.
pub(crate) async fn propose(
    connection: &mut DatabaseConnection,
    quotas: &Quotas,
    (at, bytes): (&EntryAddress, Option<u64>),
    session: Option<&SessionId>,
) -> Result<(), Error> {
    let versions = i64::from(bytes.is_some());
    let delta = Delta { bytes: number(bytes.unwrap_or(0)), entries: 0, versions };
    let mut deltas = Deltas::new();
    come_to(&mut deltas, &at.memory_scope, session, delta);
    account(connection, quotas, &deltas).await
}

/// Counts, and takes everything back if it has no room: so that what is refused is slower,
/// and not what is done.
async fn account(
    connection: &mut DatabaseConnection,
    quotas: &Quotas,
    deltas: &Deltas,
) -> Result<(), Error> {
    if deltas.is_empty() {
        return Ok(());
    }
    let after = add(connection, deltas, 1).await?;
    let none = MemoryUsage::default();
    let beyond = |holder: &str, now: MemoryUsage, before| now.beyond(before, quota(quotas, holder));
    if after.iter().all(|(holder, now)| beyond(holder, *now, none).is_none()) {
        return Ok(());
    }
    let before = add(connection, deltas, -1).await?;
    let exceeded = after.iter().find_map(|(holder, now)| {
        let known = before.get(holder).copied().unwrap_or_default();
        let (measure, used, max) = beyond(holder, *now, known)?;
        let holder = if holder == ALL { "organisation" } else { holder };
        Some(QuotaExceeded { holder: holder.to_owned(), measure, used, max })
    });
    match exceeded {
        Some(exceeded) => Err(Error::Quota(Box::new(exceeded))),
        None => add(connection, deltas, 1).await.map(drop),
    }
}

async fn add(
    connection: &mut DatabaseConnection,
    deltas: &Deltas,
    sign: i64,
) -> Result<BTreeMap<String, MemoryUsage>, Error> {
    let mut text = ADD.0.to_owned();
    tuples(&mut text, 1, deltas.len(), ADD_COLUMNS);
    text.push_str(ADD.1);
    let mut query = sql::query_as(text);
    for (holder, delta) in deltas {
        query = query.bind(holder.clone()).bind(sign * delta.bytes);
        query = query.bind(sign * delta.entries).bind(sign * delta.versions);
    }
    let rows: Vec<(String, i64, i64, i64)> = query.fetch_all(connection).await.map_err(wrong)?;
    let usage = |(holder, bytes, entries, versions)| {
        let (bytes, entries) = (unsigned(bytes)?, unsigned(entries)?);
        Ok((holder, MemoryUsage { bytes, entries, versions: unsigned(versions)? }))
    };
    rows.into_iter().map(usage).collect()
}

/// Contents that went, by the owners of the memory scopes that they were on.
#[derive(Debug, Default)]
pub(crate) struct FreedSpace(BTreeMap<Option<String>, (u64, u64)>);

impl FreedSpace {
    pub(crate) fn add(&mut self, memory_scope: &MemoryScope, bytes: u64) {
        let (sum, count) = self.0.entry(owner(memory_scope)).or_default();
        (*sum, *count) = (*sum + bytes, *count + 1);
    }

    /// Gives back what they took.
    pub(crate) async fn give_back(&self, connection: &mut DatabaseConnection) -> Result<(), Error> {
        for (owner, (bytes, versions)) in &self.0 {
            let query = sql::query(FREE).bind(owner.clone().unwrap_or_default());
            let query = query.bind(number(*bytes)).bind(number(*versions));
            query.execute(&mut *connection).await.map_err(wrong)?;
        }
        Ok(())
    }
}
