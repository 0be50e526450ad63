//! Lets go of contents that are not to be kept: by how many there are, and by age.

use crate::sql;
use std::num::NonZeroU32;

use crate::sql::connection::DatabaseConnection;
use outrigger_policy::Scope;

use super::doomed::ErasureSet;
use crate::entries::{ChangeOutcome, ContentState, EntryAddress, Error, Version};
use crate::limits;
use crate::sql::entries::look::settings;
use crate::sql::entries::rows::{key, version_columns, wrong};
use crate::sql::integer::number;

/// A version is not the newest any more since the one that follows it was written.
const OLD: &str = concat!(
    "SELECT ",
    version_columns!(),
    ", v.content FROM versions v \
     JOIN entries e ON e.scope = v.scope AND e.path = v.path \
     JOIN versions n ON n.scope = v.scope AND n.path = v.path AND n.revision = v.revision + 1 \
     WHERE v.scope = $1 AND v.content IS NOT NULL \
     AND (v.revision <= e.revision - $2 OR n.at_ms < $3) \
     AND ($5 = '' OR v.path = $5 OR v.path > $5 || '/' AND v.path < $5 || '0') LIMIT $4"
);
const FORGET: &str = "UPDATE versions SET content = NULL WHERE version = $1";
const DECIDED: &str = "SELECT proposal, scope, path, revision, content, bytes FROM proposals \
    WHERE scope = $1 AND standing > 0 AND content IS NOT NULL \
    AND ($2 = 1 OR decided_at_ms < $3) LIMIT $4";
const FORGET_PROPOSED: &str = "UPDATE proposals SET content = NULL WHERE proposal = $1";

/// Lets go of some contents.
pub(crate) async fn prune(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    (at, keep): (&EntryAddress, Option<NonZeroU32>),
    at_ms: u64,
) -> Result<ChangeOutcome, Error> {
    let settings = settings(connection, scope, &at.memory_scope).await?;
    let (keep_versions, keep_ms) = match keep {
        Some(keep) => (Some(keep.get()), None),
        None => (settings.keep_versions, settings.keep_ms),
    };
    if keep_versions.is_none() && keep_ms.is_none() {
        return Ok(ChangeOutcome::default());
    }
    let keep = keep_versions.map_or(i64::MAX / 2, i64::from);
    let before = keep_ms.map_or(0, |keep_ms| at_ms.saturating_sub(keep_ms));
    let mut doomed = ErasureSet::default();
    let rows = sql::query(OLD)
        .bind(key(scope, &at.memory_scope))
        .bind(keep)
        .bind(number(before))
        .bind(limits::PRUNE_VERSIONS_MAX as i64)
        .bind(at.path.as_str().to_owned())
        .fetch_all(&mut *connection)
        .await
        .map_err(wrong)?;
    doomed.add(&rows, |_| true)?;
    if at.path.is_root() {
        let rows = sql::query(DECIDED)
            .bind(key(scope, &at.memory_scope))
            .bind(keep_versions.is_some())
            .bind(number(before))
            .bind(limits::PRUNE_VERSIONS_MAX as i64)
            .fetch_all(&mut *connection)
            .await
            .map_err(wrong)?;
        doomed.add_proposals(&rows, |_| true)?;
    }
    for version in doomed.versions.keys() {
        let query = sql::query(FORGET).bind(number(*version));
        query.execute(&mut *connection).await.map_err(wrong)?;
    }
    for proposal in &doomed.proposals {
        let query = sql::query(FORGET_PROPOSED).bind(proposal);
        query.execute(&mut *connection).await.map_err(wrong)?;
    }
    doomed.sweep(connection).await?;
    let versions = doomed.versions.into_values();
    let versions =
        versions.map(|version| Version { kept: ContentState::Pruned, ..version }).collect();
    Ok(ChangeOutcome { versions, unseen: 0, lingers: false })
}
