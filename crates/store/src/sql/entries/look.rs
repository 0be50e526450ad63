//! What a change finds where it is to be made, read under the write lock.

use crate::sql;
use crate::sql::connection::DatabaseConnection;
use outrigger_agent::Digest;
use outrigger_policy::{MemoryScope, Scope};

use super::draft::{Body, Draft, Provenance, Source, What};
use super::rows::{Columns, FILE, FOLDER, GONE, damaged, key, unsigned, wrong};
use crate::entries::{
    Attribution, Current, EntryAddress, EntryPrecondition, Error, Redaction, Settings,
};
use crate::sql::integer::number;

const LOOK: &str = "SELECT (SELECT settings FROM memory_scopes WHERE scope = $1), above.state, \
    e.state, e.revision, e.bytes, e.digest, e.executable, e.review_by_ms, e.content, e.searchable, \
    (SELECT v.redacted FROM versions v WHERE v.scope = e.scope AND v.path = e.path \
    AND v.revision = e.revision), e.author, e.labels \
    FROM (SELECT 1) AS one LEFT JOIN entries e ON e.scope = $1 AND e.path = $2 \
    LEFT JOIN entries above ON above.scope = $1 AND above.path = $3";
const ABOVE: &str = "SELECT state, revision FROM entries WHERE scope = $1 AND path = $2";
const CONTENT: &str = "SELECT bytes FROM contents WHERE content = $1";
const IN_FOLDER: &str =
    "SELECT 1 FROM entries WHERE scope = $1 AND folder = $2 AND state < 2 LIMIT 1";
const SETTINGS: &str = "SELECT settings FROM memory_scopes WHERE scope = $1";

/// What stands at a place, and what holds for its memory scope.
#[derive(Debug)]
pub(crate) struct ResolvedPath {
    pub(crate) at: EntryAddress,
    pub(crate) settings: Settings,
    /// The newest revision; 0 where there never was one.
    pub(crate) revision: u64,
    pub(crate) found: EntryLookup,
    /// Of the file that is there.
    pub(crate) origin: Option<Provenance>,
    /// What the folder above is; nothing where it never was.
    above: Option<i64>,
}

#[derive(Debug)]
pub(crate) enum EntryLookup {
    Nothing,
    Folder,
    File { body: Body, review_by_ms: Option<u64> },
}

/// Looks at a place. For whoever does not see it, nothing is there and never was.
pub(crate) async fn look(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    at: &EntryAddress,
) -> Result<ResolvedPath, Error> {
    let above = at.path.folder().map(|folder| folder.as_str().to_owned());
    let query =
        sql::query(LOOK).bind(key(scope, &at.memory_scope)).bind(at.path.as_str().to_owned());
    let row = query.bind(above).fetch_one(&mut *connection).await.map_err(wrong)?;
    if !scope.may_write(&at.memory_scope) {
        return Err(Error::Absent);
    }
    let mut columns = Columns::of(&row);
    let settings = parse(columns.take()?, &at.memory_scope)?;
    let above = columns.take()?;
    let state: Option<i64> = columns.take()?;
    let revision = columns.maybe_number()?.unwrap_or(0);
    let found = match state {
        Some(FILE) => file(&mut columns)?,
        Some(FOLDER) => EntryLookup::Folder,
        Some(_) | None if at.path.is_root() => EntryLookup::Folder,
        Some(_) | None => EntryLookup::Nothing,
    };
    let origin = match found {
        EntryLookup::File { .. } => Some(Provenance::read(&mut columns)?),
        EntryLookup::Nothing | EntryLookup::Folder => None,
    };
    Ok(ResolvedPath { at: at.clone(), settings, revision, found, origin, above })
}

/// Bytes, digest, executable, when to review, content, searchable, redaction.
pub(crate) fn file(columns: &mut Columns<'_>) -> Result<EntryLookup, Error> {
    let broken = || damaged("a file's content is missing");
    let bytes = columns.number()?;
    let digest: Digest = columns.digest()?.ok_or_else(broken)?;
    let executable = columns.take()?;
    let review_by_ms = columns.maybe_number()?;
    let content: Option<i64> = columns.take()?;
    let searchable = columns.take()?;
    let redacted: Option<String> = columns.take()?;
    let source = match (content, redacted) {
        (Some(content), _) => Source::Known(content),
        (None, Some(text)) => {
            let redaction: Redaction = serde_json::from_str(&text).map_err(|_| broken())?;
            Source::Lost(Box::new(redaction))
        }
        (None, None) => return Err(broken()),
    };
    let body = Body { bytes, digest, executable, searchable, source };
    Ok(EntryLookup::File { body, review_by_ms })
}

fn parse(text: Option<String>, memory_scope: &MemoryScope) -> Result<Settings, Error> {
    match text {
        None => Ok(Settings::usual(memory_scope)),
        Some(text) => serde_json::from_str(&text)
            .map_err(|_| damaged("the settings of a memory scope can't be read")),
    }
}

/// What holds for a memory scope.
pub(crate) async fn settings(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    memory_scope: &MemoryScope,
) -> Result<Settings, Error> {
    let query = sql::query_as(SETTINGS).bind(key(scope, memory_scope));
    let row: Option<(String,)> = query.fetch_optional(connection).await.map_err(wrong)?;
    if scope.sees(memory_scope) {
        parse(row.map(|(text,)| text), memory_scope)
    } else {
        Err(Error::Absent)
    }
}

/// A content, whole.
pub(crate) async fn content(
    connection: &mut DatabaseConnection,
    body: &Body,
) -> Result<Option<Vec<u8>>, Error> {
    match &body.source {
        Source::New(bytes) => Ok(Some(bytes.clone())),
        Source::Lost(_) => Ok(None),
        Source::Known(content) => {
            let query = sql::query_as(CONTENT).bind(*content);
            let row: Option<(Vec<u8>,)> = query.fetch_optional(connection).await.map_err(wrong)?;
            row.map(|(bytes,)| Some(bytes)).ok_or_else(|| damaged("a file's content is missing"))
        }
    }
}

impl ResolvedPath {
    /// Lets pass who may change the memory scope without a review.
    pub(crate) fn direct(&self) -> Result<(), Error> {
        if self.settings.review { Err(Error::NeedsReview) } else { Ok(()) }
    }

    /// The file that is there.
    pub(crate) fn file(&self) -> Result<(&Body, Option<u64>), Error> {
        match &self.found {
            EntryLookup::Nothing => Err(Error::Absent),
            EntryLookup::Folder => Err(Error::Folder),
            EntryLookup::File { body, review_by_ms } => Ok((body, *review_by_ms)),
        }
    }

    /// Lets pass if what is there is no folder and as expected.
    pub(crate) async fn expect(
        &self,
        connection: &mut DatabaseConnection,
        expected: EntryPrecondition,
    ) -> Result<(), Error> {
        let is_expected = match (&self.found, expected) {
            (EntryLookup::Folder, _) => return Err(Error::Folder),
            (EntryLookup::Nothing, EntryPrecondition::Absent) => true,
            (EntryLookup::File { .. }, EntryPrecondition::Revision(revision)) => {
                revision == self.revision
            }
            (EntryLookup::Nothing, EntryPrecondition::Revision(_))
            | (EntryLookup::File { .. }, EntryPrecondition::Absent) => false,
        };
        if is_expected { Ok(()) } else { Err(self.conflict(connection, None).await?) }
    }

    pub(crate) async fn conflict(
        &self,
        connection: &mut DatabaseConnection,
        matches: Option<u64>,
    ) -> Result<Error, Error> {
        let bytes = match &self.found {
            EntryLookup::File { body, .. } => content(connection, body).await?,
            EntryLookup::Nothing | EntryLookup::Folder => None,
        };
        Ok(Error::Conflict(Box::new(Current { revision: self.revision, bytes, matches })))
    }

    /// Folders above that are missing, from the top down.
    pub(crate) async fn folders(
        &self,
        connection: &mut DatabaseConnection,
        draft: impl Fn(EntryAddress, u64, What) -> Draft,
    ) -> Result<Vec<Draft>, Error> {
        let mut drafts = Vec::new();
        let mut next = self.at.path.folder();
        // The first was looked at together with the place: mostly it is there.
        if self.above == Some(FOLDER) {
            return Ok(drafts);
        }
        while let Some(path) = next.filter(|path| !path.is_root()) {
            let query = sql::query_as(ABOVE).bind(self.at.memory_scope.to_string());
            let query = query.bind(path.as_str().to_owned());
            let row: Option<(i64, i64)> =
                query.fetch_optional(&mut *connection).await.map_err(wrong)?;
            let revision = match row {
                Some((FOLDER, _)) => break,
                Some((GONE, revision)) => unsigned(revision)?,
                Some(_) => return Err(Error::NotFolder),
                None => 0,
            };
            next = path.folder();
            let place = EntryAddress { memory_scope: self.at.memory_scope.clone(), path };
            drafts.push(draft(place, revision + 1, What::Folder));
        }
        drafts.reverse();
        Ok(drafts)
    }

    /// Whether nothing is in the folder.
    pub(crate) async fn is_empty(
        &self,
        connection: &mut DatabaseConnection,
    ) -> Result<bool, Error> {
        let query = sql::query_as(IN_FOLDER).bind(self.at.memory_scope.to_string());
        let query = query.bind(self.at.path.as_str().to_owned());
        let row: Option<(i64,)> = query.fetch_optional(connection).await.map_err(wrong)?;
        Ok(row.is_none())
    }
}

const EXISTS: &str = "SELECT 1 FROM versions WHERE scope = $1 AND path = $2 AND revision = $3";

/// Lets pass where there is such a version for the scope.
pub(crate) async fn origin(
    connection: &mut DatabaseConnection,
    scope: &Scope,
    origin: Option<&(EntryAddress, u64)>,
) -> Result<(), Error> {
    let Some((place, revision)) = origin else { return Ok(()) };
    let query = sql::query_as(EXISTS).bind(key(scope, &place.memory_scope));
    let query = query.bind(place.path.as_str().to_owned()).bind(number(*revision));
    let row: Option<(i64,)> = query.fetch_optional(connection).await.map_err(wrong)?;
    row.map(drop).ok_or(Error::Absent)
}

/// What is told of a change is within its limits.
pub(crate) fn within(by: &Attribution) -> Result<(), Error> {
    use crate::limits::{LABELS_BYTES_MAX, LABELS_MAX, MESSAGE_BYTES_MAX};
    let message = by.message.as_ref().map_or(0, String::len);
    Error::within("a message (bytes)", message, MESSAGE_BYTES_MAX)?;
    Error::within("a version (labels)", by.labels.len(), LABELS_MAX)?;
    let bytes = by.labels.iter().map(String::len).sum::<usize>();
    let agent = by.agent.as_ref().map_or(0, String::len);
    Error::within("who and what a version names (bytes)", bytes + agent, LABELS_BYTES_MAX)
}
