//! Destroys contents wherever they are kept.
//!
//! Rows stay, marked. That no byte stays on disk is up to the connection, which overwrites
//! what it deletes, and to whoever clears the log afterwards.

use crate::sql::connection::DatabaseConnection;
use crate::sql::row::DatabaseRow;
use crate::sql::{self, SqlText};
use outrigger_policy::{MemoryScope, Scope};

use super::doomed::{EQUAL, ErasureSet};
use super::related;
use crate::entries::{
    ChangeOutcome, ContentState, DerivativePolicy, EntryAddress, EntryState, Error, Reach,
    Redaction, Version, Which,
};
use crate::limits;
use crate::sql::entries::look::look;
use crate::sql::entries::put::json;
use crate::sql::entries::rows::{key, version_columns, wrong};
use crate::sql::fault;
use crate::sql::integer::number;

const ONE: &str = concat!(
    "SELECT ",
    version_columns!(),
    ", v.content FROM versions v WHERE v.scope = $1 AND v.path = $2 AND v.revision = $3 \
     AND v.state = 0"
);
const ALL: &str = concat!(
    "SELECT ",
    version_columns!(),
    ", v.content FROM versions v WHERE v.scope = $1 AND v.path = $2 AND v.state = 0"
);
const DERIVED: &str = concat!(
    "SELECT ",
    version_columns!(),
    ", v.content FROM versions v WHERE v.origin_scope = $1 AND v.origin_path = $2 \
     AND v.origin_revision = $3 AND v.state = 0"
);
const PROPOSED_FROM: &str = "SELECT proposal, scope, path, revision, content, bytes FROM proposals \
    WHERE origin_scope = $1 AND origin_path = $2 AND origin_revision = $3";
const PROPOSED_EQUAL: &str = "SELECT proposal, scope, path, revision, content, bytes FROM proposals \
    WHERE digest = $1 AND content IS NOT NULL";
const PROPOSED_AS: &str = "SELECT proposal, scope, path, revision, content, bytes FROM proposals \
    WHERE scope = $1 AND path = $2 AND revision = $3 AND standing = 1";
/// The version loses it, and so does what stands at the path.
macro_rules! lose {
    () => {
        "UPDATE entries SET content = NULL, searchable = 0 \
         WHERE scope = $1 AND path = $2 AND revision = $3; \
         UPDATE versions SET content = NULL, redacted = COALESCE(redacted, $4) \
         WHERE scope = $1 AND path = $2 AND revision = $3"
    };
}
/// What the index has goes first, while its text is still there.
const LOSE: SqlText = SqlText::Apart {
    sqlite: concat!(
        "INSERT INTO search (search, rowid, scope, path, text) \
         SELECT 'delete', entry, scope, path, text FROM searched WHERE entry = \
         (SELECT entry FROM entries WHERE scope = $1 AND path = $2 AND revision = $3); ",
        lose!()
    ),
    postgres: concat!(
        "UPDATE entries SET words = NULL WHERE scope = $1 AND path = $2 AND revision = $3; ",
        lose!()
    ),
};
const LOSE_PROPOSED: &str =
    "UPDATE proposals SET content = NULL, redacted = COALESCE(redacted, $2) WHERE proposal = $1";

async fn at(
    connection: &mut DatabaseConnection,
    text: &'static str,
    place: &EntryAddress,
    revision: u64,
) -> Result<Vec<DatabaseRow>, Error> {
    let query = sql::query(text).bind(place.memory_scope.to_string());
    let query = query.bind(place.path.as_str().to_owned()).bind(number(revision));
    query.fetch_all(connection).await.map_err(wrong)
}

/// Destroys contents for good.
pub(crate) async fn redact(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    (place, which, reach, derived): (&EntryAddress, Which, Reach, DerivativePolicy),
    redaction: &Redaction,
) -> Result<ChangeOutcome, Error> {
    Error::within("a reason (bytes)", redaction.why.len(), limits::MESSAGE_BYTES_MAX)?;
    look(connection, scope, place).await?;
    let mut doomed = ErasureSet::default();
    let named = match which {
        Which::Revision(revision) => at(connection, ONE, place, revision).await?,
        Which::All => {
            let query = sql::query(ALL).bind(key(scope, &place.memory_scope));
            let query = query.bind(place.path.as_str().to_owned());
            query.fetch_all(&mut *connection).await.map_err(wrong)?
        }
    };
    doomed.add(&named, |_| true)?;
    if doomed.versions.is_empty() {
        return Err(Error::Absent);
    }
    follow_all(connection, scope, reach, &mut doomed).await?;
    if derived != DerivativePolicy::Leave && reach != Reach::Named {
        let reaches = |memory_scope: &MemoryScope| reach.reaches(scope, memory_scope);
        let found = related::find(connection, scope, reaches, &doomed).await?;
        let none = found.versions.is_empty() && found.proposals.is_empty();
        if derived == DerivativePolicy::Ask && !none {
            return Err(Error::Related(Box::new(found.told)));
        }
        doomed.add(&found.versions, |_| true)?;
        doomed.add_proposals(&found.proposals, |_| true)?;
        follow_all(connection, scope, reach, &mut doomed).await?;
    }
    lose(connection, &mut doomed, redaction).await?;
    Ok(told(scope, place, doomed, &ContentState::Redacted(redaction.clone())))
}

impl Reach {
    fn reaches(self, scope: &Scope, memory_scope: &MemoryScope) -> bool {
        match self {
            Self::Named => false,
            Self::Copies => scope.may_write(memory_scope),
            Self::Everywhere => true,
        }
    }
}

async fn follow_all(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    reach: Reach,
    doomed: &mut ErasureSet,
) -> Result<(), Error> {
    while let Some(version) = doomed.open.pop() {
        let Some(version) = doomed.versions.get(&version).cloned() else { continue };
        follow(connection, scope, reach, &version, doomed).await?;
    }
    Ok(())
}

/// Finds what is a copy of a version, or was made from it.
async fn follow(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    reach: Reach,
    version: &Version,
    doomed: &mut ErasureSet,
) -> Result<(), Error> {
    let (place, revision) = (&version.place, version.revision);
    // What was proposed as this very version has its text.
    let rows = at(connection, PROPOSED_AS, place, revision).await?;
    doomed.add_proposals(&rows, |_| true)?;
    let reaches = |memory_scope: &MemoryScope| reach.reaches(scope, memory_scope);
    if reach == Reach::Named {
        return Ok(());
    }
    let rows = at(connection, DERIVED, place, revision).await?;
    doomed.add(&rows, |_| true)?;
    let rows = at(connection, PROPOSED_FROM, place, revision).await?;
    let mut accepted = doomed.add_proposals(&rows, |_| true)?;
    if let EntryState::File { bytes: 1.., digest, .. } = &version.state {
        let query = sql::query(EQUAL).bind(digest.to_string());
        let rows = query.fetch_all(&mut *connection).await.map_err(wrong)?;
        doomed.add(&rows, |version| reaches(&version.place.memory_scope))?;
        let query = sql::query(PROPOSED_EQUAL).bind(digest.to_string());
        let rows = query.fetch_all(&mut *connection).await.map_err(wrong)?;
        accepted.extend(doomed.add_proposals(&rows, |place| reaches(&place.memory_scope))?);
    }
    for (place, revision) in accepted {
        let rows = at(connection, ONE, &place, revision).await?;
        doomed.add(&rows, |_| true)?;
    }
    Ok(())
}

async fn lose(
    connection: &mut DatabaseConnection,
    doomed: &mut ErasureSet,
    redaction: &Redaction,
) -> Result<(), Error> {
    let wrong = |e| Error::Store(fault::of("redacting entries", e));
    let mark = json(redaction);
    for Version { place, revision, .. } in doomed.versions.values() {
        let query = sql::query(LOSE).bind(place.memory_scope.to_string());
        let query = query.bind(place.path.as_str().to_owned()).bind(number(*revision));
        query.bind(mark.clone()).execute(&mut *connection).await.map_err(wrong)?;
    }
    for proposal in &doomed.proposals {
        let query = sql::query(LOSE_PROPOSED).bind(proposal).bind(mark.clone());
        query.execute(&mut *connection).await.map_err(wrong)?;
    }
    doomed.sweep(connection).await
}

fn told(
    scope: &Scope,
    place: &EntryAddress,
    doomed: ErasureSet,
    kept: &ContentState,
) -> ChangeOutcome {
    let all = doomed.versions.len();
    let seen =
        doomed.versions.into_values().filter(|version| scope.sees(&version.place.memory_scope));
    // Who destroyed something first is who destroyed it.
    let kept = |version: Version| match version.kept {
        ContentState::Redacted(_) => version,
        ContentState::Whole | ContentState::Pruned => Version { kept: kept.clone(), ..version },
    };
    let mut versions: Vec<Version> = seen.map(kept).collect();
    versions.sort_by_key(|version| (version.place == *place, version.number));
    let unseen = (all - versions.len()) as u64;
    ChangeOutcome { versions, unseen, lingers: false }
}
