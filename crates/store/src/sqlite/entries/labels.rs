//! Where the labels of a new version come from.
//!
//! Owns that none is washed off: whatever makes a version, it carries the labels of what it
//! was made from and of what it takes the place of. Only where nothing is any more does a
//! text begin anew.

use std::collections::BTreeSet;

use outrigger_policy::Principal;
use sqlx::sqlite::SqliteConnection;

use super::look;
use super::put::{Draft, What};
use super::rows::{Columns, wrong};
use crate::entries::{Error, labels_for};
use crate::sqlite::batch::number;

/// The file that stands at a path, and the version that a new one is made from.
const SOURCES: &str = "SELECT v.author, v.labels FROM entries e JOIN versions v \
    ON v.shelf = e.shelf AND v.path = e.path AND v.revision = e.revision \
    WHERE e.shelf = $1 AND e.path = $2 AND e.state = 0 \
    UNION ALL SELECT author, labels FROM versions WHERE shelf = $3 AND path = $4 AND revision = $5";

/// Adds to drafts what they inherit. Nothing is written, so that a version with too many
/// labels is refused and leaves nothing behind.
pub(super) async fn inherit(
    connection: &mut SqliteConnection,
    drafts: &mut [Draft],
) -> Result<(), Error> {
    for draft in drafts.iter_mut().filter(|draft| !matches!(draft.what, What::Gone)) {
        let source = draft.derived_from.as_ref();
        let rows = sqlx::query(SOURCES)
            .bind(draft.at.shelf.to_string())
            .bind(draft.at.path.as_str().to_owned())
            .bind(source.map(|(place, _)| place.shelf.to_string()))
            .bind(source.map(|(place, _)| place.path.as_str().to_owned()))
            .bind(source.map(|(_, revision)| number(*revision)))
            .fetch_all(&mut *connection)
            .await
            .map_err(wrong)?;
        for row in &rows {
            let (author, labels) = origin(&mut Columns::of(row))?;
            draft.by.labels.extend(labels_for(&draft.author, &author, &labels));
        }
        look::within(&draft.by)?;
    }
    Ok(())
}

/// Author and labels of a version.
fn origin(columns: &mut Columns<'_>) -> Result<(Principal, BTreeSet<String>), Error> {
    Ok((columns.principal()?, columns.labels()?))
}
