//! Finds what may have been made from contents that are destroyed: versions and proposals
//! that are no copies, and still have a long run of them.
//!
//! Looked at are all versions of every place where something is destroyed, of those that it
//! came from and went to, and so on from what is found there. What only somebody who retyped
//! it knows is not found.

use crate::sql;
use std::collections::BTreeSet;

use crate::sql::connection::DatabaseConnection;
use crate::sql::row::DatabaseRow;
use outrigger_policy::{MemoryScope, Scope};

use super::doomed::{EQUAL, ErasureSet};
use super::runs::Runs;
use crate::entries::{Derivatives, EntryAddress, EntryState, Error, Version};
use crate::limits;
use crate::sql::entries::rows::{Columns, unsigned, version_columns, wrong};

const TEXT: &str = "SELECT bytes FROM contents WHERE content = $1";
const HERE: &str = concat!(
    "SELECT ",
    version_columns!(),
    ", v.content FROM versions v WHERE v.scope = $1 AND v.path = $2 AND v.content IS NOT NULL"
);
const PROPOSED_HERE: &str = "SELECT proposal, scope, path, revision, content, bytes \
    FROM proposals WHERE scope = $1 AND path = $2 AND content IS NOT NULL";
const BESIDE: &str = "SELECT scope, path FROM versions \
    WHERE origin_scope = $1 AND origin_path = $2 \
    UNION SELECT origin_scope, origin_path FROM versions \
    WHERE scope = $1 AND path = $2 AND origin_scope IS NOT NULL";

/// What was found, as rows that can be destroyed as well.
#[derive(Debug, Default)]
pub(crate) struct DerivativeRows {
    pub(crate) versions: Vec<DatabaseRow>,
    pub(crate) proposals: Vec<DatabaseRow>,
    pub(crate) told: Derivatives,
}

/// Where is looked, and what was compared.
struct Search {
    runs: Runs,
    open: Vec<EntryAddress>,
    seen: BTreeSet<EntryAddress>,
    known: BTreeSet<u64>,
    compared_bytes: usize,
    found: DerivativeRows,
}

/// Finds it in memory scopes that `reaches`.
pub(crate) async fn find(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    reaches: impl Fn(&MemoryScope) -> bool,
    doomed: &ErasureSet,
) -> Result<DerivativeRows, Error> {
    let mut search = Search {
        runs: Runs::default(),
        open: doomed.versions.values().map(|version| version.place.clone()).collect(),
        seen: BTreeSet::new(),
        known: doomed.versions.keys().copied().collect(),
        compared_bytes: 0,
        found: DerivativeRows::default(),
    };
    for content in &doomed.contents {
        search.runs.add(&text(connection, *content).await?);
    }
    let doomed_at: BTreeSet<EntryAddress> = search.open.iter().cloned().collect();
    while let Some(place) = search.open.pop() {
        if !search.seen.insert(place.clone()) || !reaches(&place.memory_scope) {
            continue;
        }
        let is_of_them = search.look(connection, scope, &place, doomed).await?;
        if is_of_them || doomed_at.contains(&place) {
            let rows = here(connection, BESIDE, &place).await?;
            for row in &rows {
                search.open.push(Columns::of(row).place()?);
            }
        }
    }
    Ok(search.found)
}

async fn here(
    connection: &mut DatabaseConnection,
    query: &'static str,
    place: &EntryAddress,
) -> Result<Vec<DatabaseRow>, Error> {
    let query = sql::query(query).bind(place.memory_scope.to_string());
    query.bind(place.path.as_str().to_owned()).fetch_all(connection).await.map_err(wrong)
}

async fn text(connection: &mut DatabaseConnection, content: i64) -> Result<Vec<u8>, Error> {
    let query = sql::query_as(TEXT).bind(content);
    let row: Option<(Vec<u8>,)> = query.fetch_optional(connection).await.map_err(wrong)?;
    Ok(row.map(|(bytes,)| bytes).unwrap_or_default())
}

impl Search {
    /// Compares what is at a place; whether anything there has a run of it.
    async fn look(
        &mut self,
        connection: &mut DatabaseConnection,
        scope: &Scope,
        place: &EntryAddress,
        doomed: &ErasureSet,
    ) -> Result<bool, Error> {
        let mut any = false;
        for row in here(connection, HERE, place).await? {
            let mut columns = Columns::of(&row);
            let (version, content): (Version, i64) = (columns.version()?, columns.take()?);
            if !self.known.insert(version.number) || !self.has(connection, content).await? {
                continue;
            }
            any = true;
            if let EntryState::File { digest, .. } = &version.state {
                let query = sql::query(EQUAL).bind(digest.to_string());
                for row in query.fetch_all(&mut *connection).await.map_err(wrong)? {
                    self.open.push(Columns::of(&row).version()?.place);
                }
            }
            if scope.sees(&version.place.memory_scope) {
                self.found.told.versions.push((version.place, version.revision));
            }
            self.found.versions.push(row);
        }
        for row in here(connection, PROPOSED_HERE, place).await? {
            let mut columns = Columns::of(&row);
            let proposal: i64 = columns.take()?;
            let (_, _, content) = (columns.place()?, columns.maybe_number()?, columns.take()?);
            if doomed.proposals.contains(&proposal) || !self.has(connection, content).await? {
                continue;
            }
            any = true;
            self.found.told.proposals.push(unsigned(proposal)?);
            self.found.proposals.push(row);
        }
        Ok(any)
    }

    async fn has(
        &mut self,
        connection: &mut DatabaseConnection,
        content: i64,
    ) -> Result<bool, Error> {
        // What is not compared any more may have one.
        if self.compared_bytes > limits::RELATED_BYTES_MAX {
            return Ok(true);
        }
        let text = text(connection, content).await?;
        self.compared_bytes += text.len();
        Ok(self.runs.are_in(&text))
    }
}
