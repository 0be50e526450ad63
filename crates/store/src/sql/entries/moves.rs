//! Plans moves: of a file onto a place, or of a folder with all that is in it.

use crate::sql;
use crate::sql::connection::DatabaseConnection;
use crate::sql::row::DatabaseRow;

use super::draft::{Draft, What};
use super::look::{EntryLookup, ResolvedPath, file, look};
use super::plan::Editor;
use super::rows::{Columns, FOLDER, wrong};
use crate::entries::{EntryAddress, EntryPrecondition, Error};
use crate::limits;

/// What is in a folder, and the newest revision of where each part of it goes.
const BELOW: &str = "SELECT f.path, f.revision, COALESCE(t.revision, 0), f.state, \
    f.bytes, f.digest, f.executable, f.review_by_ms, f.content, f.searchable, \
    (SELECT v.redacted FROM versions v WHERE v.scope = f.scope AND v.path = f.path \
    AND v.revision = f.revision) \
    FROM entries f LEFT JOIN entries t ON t.scope = $4 AND t.path = $5 || substr(f.path, CAST($6 AS INTEGER)) \
    WHERE f.scope = $1 AND f.path > $2 AND f.path < $3 AND f.state < 2 ORDER BY f.path LIMIT $7";

impl Editor<'_> {
    pub(crate) async fn rename(
        &self,
        connection: &mut DatabaseConnection,
        (from, revision): (&EntryAddress, Option<u64>),
        (to, expected): (&EntryAddress, EntryPrecondition),
    ) -> Result<Vec<Draft>, Error> {
        let source = look(connection, self.scope, from).await?;
        let target = look(connection, self.scope, to).await?;
        if from.path.is_root() || to.path.is_root() {
            return Err(Error::Root);
        }
        match (&source.found, revision) {
            (EntryLookup::Nothing, _) => Err(Error::Absent),
            (EntryLookup::Folder, Some(_)) => Err(Error::Folder),
            (EntryLookup::File { .. }, None) => Err(Error::NotFolder),
            (EntryLookup::File { .. }, Some(revision)) => {
                both_direct(&source, &target)?;
                source.expect(connection, EntryPrecondition::Revision(revision)).await?;
                target.expect(connection, expected).await?;
                self.file(connection, &source, &target).await
            }
            (EntryLookup::Folder, None) => {
                both_direct(&source, &target)?;
                if from == to
                    || (from.memory_scope == to.memory_scope && to.path.is_below(&from.path))
                {
                    return Err(Error::Inside);
                }
                match (&target.found, expected) {
                    (EntryLookup::Nothing, EntryPrecondition::Absent) => {
                        self.folder(connection, &source, &target).await
                    }
                    (EntryLookup::Nothing, EntryPrecondition::Revision(_)) => {
                        Err(target.conflict(connection, None).await?)
                    }
                    (EntryLookup::Folder | EntryLookup::File { .. }, _) => Err(Error::Exists),
                }
            }
        }
    }

    async fn file(
        &self,
        connection: &mut DatabaseConnection,
        source: &ResolvedPath,
        target: &ResolvedPath,
    ) -> Result<Vec<Draft>, Error> {
        if source.at == target.at {
            // Onto itself: nothing comes of it.
            return Ok(Vec::new());
        }
        let (body, review_by_ms) = source.file()?;
        let gone = self.draft_at(source, What::Gone);
        let mut drafts = self.onto(connection, target, What::File(body.clone())).await?;
        if let Some(draft) = drafts.last_mut() {
            draft.derived_from = Some((source.at.clone(), source.revision));
            draft.review_by_ms = review_by_ms;
        }
        drafts.insert(0, gone);
        Ok(drafts)
    }

    async fn folder(
        &self,
        connection: &mut DatabaseConnection,
        source: &ResolvedPath,
        target: &ResolvedPath,
    ) -> Result<Vec<Draft>, Error> {
        let (from, to) = (&source.at, &target.at);
        let path = from.path.as_str();
        let rows: Vec<DatabaseRow> = sql::query(BELOW)
            .bind(from.memory_scope.to_string())
            .bind(format!("{path}/"))
            .bind(format!("{path}0"))
            .bind(to.memory_scope.to_string())
            .bind(to.path.as_str().to_owned())
            .bind(path.chars().count() as i64 + 1)
            .bind(limits::MOVE_ENTRIES_MAX as i64 + 1)
            .fetch_all(&mut *connection)
            .await
            .map_err(wrong)?;
        Error::within("a folder that is moved (entries)", rows.len(), limits::MOVE_ENTRIES_MAX)?;
        let mut gone = vec![self.draft_at(source, What::Gone)];
        let mut come = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut columns = Columns::of(row);
            let path = columns.path()?;
            let (was, will) = (columns.number()?, columns.number()? + 1);
            let there = path.moved(&from.path, &to.path)?;
            let here = EntryAddress { memory_scope: from.memory_scope.clone(), path };
            let there = EntryAddress { memory_scope: to.memory_scope.clone(), path: there };
            let (what, review) = if columns.take::<i64>()? == FOLDER {
                (What::Folder, None)
            } else {
                match file(&mut columns)? {
                    EntryLookup::File { body, review_by_ms } => (What::File(body), review_by_ms),
                    EntryLookup::Nothing | EntryLookup::Folder => continue,
                }
            };
            gone.push(self.draft(here.clone(), was + 1, What::Gone));
            let mut draft = self.draft(there, will, what);
            (draft.derived_from, draft.review_by_ms) = (Some((here, was)), review);
            come.push(draft);
        }
        let mut drafts = self.onto(connection, target, What::Folder).await?;
        let Some(mut itself) = drafts.pop() else { return Ok(drafts) };
        itself.derived_from = Some((from.clone(), source.revision));
        // From the bottom up, so that nothing is ever in a folder that is gone; and the
        // folder itself last, which is what the change is about.
        gone.reverse();
        gone.extend(drafts);
        gone.extend(come);
        gone.push(itself);
        Ok(gone)
    }
}

fn both_direct(source: &ResolvedPath, target: &ResolvedPath) -> Result<(), Error> {
    source.direct()?;
    target.direct()
}
