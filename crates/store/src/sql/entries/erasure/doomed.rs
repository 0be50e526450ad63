//! Versions and proposals that lose their contents, and the contents that go with them.
//!
//! Must never delete a content that a version or a proposal still has.

use crate::sql;
use std::collections::{BTreeMap, BTreeSet};

use crate::sql::connection::DatabaseConnection;
use crate::sql::row::DatabaseRow;

use crate::entries::{EntryAddress, EntryState, Error, Version};
use crate::sql::entries::rows::{Columns, version_columns};
use crate::sql::entries::usage::FreedSpace;
use crate::sql::fault;

/// Versions with a content, by its digest.
pub(crate) const EQUAL: &str = concat!(
    "SELECT ",
    version_columns!(),
    ", v.content FROM versions v WHERE v.digest = $1 AND v.content IS NOT NULL"
);
const SWEEP: &str = "DELETE FROM contents WHERE content = $1 \
    AND NOT EXISTS (SELECT 1 FROM versions WHERE versions.content = $1) \
    AND NOT EXISTS (SELECT 1 FROM proposals WHERE proposals.content = $1)";
/// What was taken out of the index is only marked in SQLite's, until its parts are merged.
const MERGE: &str = "INSERT INTO search (search) VALUES ('optimize')";

/// What loses its content.
#[derive(Debug, Default)]
pub(crate) struct ErasureSet {
    pub(crate) versions: BTreeMap<u64, Version>,
    pub(crate) proposals: BTreeSet<i64>,
    pub(crate) contents: BTreeSet<i64>,
    freed: FreedSpace,
    /// Versions whose copies were not looked for yet.
    pub(crate) open: Vec<u64>,
}

impl ErasureSet {
    pub(crate) fn add(
        &mut self,
        rows: &[DatabaseRow],
        filter: impl Fn(&Version) -> bool,
    ) -> Result<(), Error> {
        for row in rows {
            let mut columns = Columns::of(row);
            let version = columns.version()?;
            if !filter(&version) || self.versions.contains_key(&version.number) {
                continue;
            }
            if let (Some(content), EntryState::File { bytes, .. }) =
                (columns.take()?, &version.state)
            {
                self.contents.insert(content);
                self.freed.add(&version.place.memory_scope, *bytes);
            }
            self.open.push(version.number);
            self.versions.insert(version.number, version);
        }
        Ok(())
    }

    /// Takes proposals in; gives where those that were accepted stand.
    pub(crate) fn add_proposals(
        &mut self,
        rows: &[DatabaseRow],
        filter: impl Fn(&EntryAddress) -> bool,
    ) -> Result<Vec<(EntryAddress, u64)>, Error> {
        let mut accepted = Vec::new();
        for row in rows {
            let mut columns = Columns::of(row);
            let proposal: i64 = columns.take()?;
            let place = columns.place()?;
            let revision = columns.maybe_number()?;
            if filter(&place) && self.proposals.insert(proposal) {
                if let (Some(content), bytes) = (columns.take()?, columns.number()?) {
                    self.contents.insert(content);
                    self.freed.add(&place.memory_scope, bytes);
                }
                accepted.extend(revision.map(|revision| (place, revision)));
            }
        }
        Ok(accepted)
    }

    /// Deletes contents that nothing has any more, and the words that the index has of what
    /// is not the newest: in the same transaction, so that a crash leaves none behind. What
    /// they took is given back.
    pub(crate) async fn sweep(&self, connection: &mut DatabaseConnection) -> Result<(), Error> {
        let wrong = |e| Error::Store(fault::of("deleting contents", e));
        if self.contents.is_empty() {
            return Ok(());
        }
        for content in &self.contents {
            sql::query(SWEEP).bind(content).execute(&mut *connection).await.map_err(wrong)?;
        }
        self.freed.give_back(connection).await?;
        if connection.is_postgres() {
            return Ok(());
        }
        sql::query(MERGE).execute(connection).await.map(drop).map_err(wrong)
    }
}
