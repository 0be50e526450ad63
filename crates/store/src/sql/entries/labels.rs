//! Where the labels of a new version come from.
//!
//! Owns that none is washed off: whatever makes a version, it carries the labels of what it
//! was made from and of what it takes the place of. Only where nothing is any more does a
//! text begin anew.

use crate::sql;
use crate::sql::connection::DatabaseConnection;

use super::draft::{Draft, Provenance, What};
use super::look;
use super::rows::{Columns, wrong};
use crate::entries::{EntryAddress, Error, labels_for};
use crate::sql::integer::number;

const VERSION: &str =
    "SELECT author, labels FROM versions WHERE scope = $1 AND path = $2 AND revision = $3";

/// Adds to drafts what they inherit. Nothing is written, so that a version with too many
/// labels is refused and leaves nothing behind.
pub(crate) async fn inherit(
    connection: &mut DatabaseConnection,
    drafts: &mut [Draft],
) -> Result<(), Error> {
    for draft in drafts.iter_mut().filter(|draft| !matches!(draft.what, What::Gone)) {
        let source = match &draft.derived_from {
            Some((place, revision)) => version(connection, place, *revision).await?,
            None => None,
        };
        for Provenance { author, labels } in draft.replaces.iter().chain(&source) {
            draft.by.labels.extend(labels_for(&draft.author, author, labels));
        }
        look::within(&draft.by)?;
    }
    Ok(())
}

async fn version(
    connection: &mut DatabaseConnection,
    at: &EntryAddress,
    revision: u64,
) -> Result<Option<Provenance>, Error> {
    let query =
        sql::query(VERSION).bind(at.memory_scope.to_string()).bind(at.path.as_str().to_owned());
    let row = query.bind(number(revision)).fetch_optional(connection).await.map_err(wrong)?;
    row.map(|row| Provenance::read(&mut Columns::of(&row))).transpose()
}
