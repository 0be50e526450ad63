//! Rows of entries, versions and proposals, and what they mean.

use std::collections::BTreeSet;

use outrigger_agent::{Digest, Seq, SessionId};
use outrigger_policy::{MemoryScope, Principal, Scope};

use crate::entries::{
    Attribution, ContentState, EntryAddress, EntryPath, EntryStat, EntryState, Error, Version, Via,
    labels_for,
};
use crate::sql::fault;
use crate::sql::row::{DatabaseRow, FromColumn};

/// The key of a memory scope that nobody sees and nothing is on.
const NOWHERE: &str = "";
/// What stands at a path, as its column has it.
pub(crate) const FILE: i64 = 0;
pub(crate) const FOLDER: i64 = 1;
pub(crate) const GONE: i64 = 2;

/// Columns of `entries e` that make a [`EntryStat`].
macro_rules! node_columns {
    () => {
        "e.path, e.state, e.revision, e.bytes, e.digest, e.modified_ms, e.executable, \
         e.review_by_ms, e.content IS NULL"
    };
}
/// Columns of `versions v` that make a [`Version`].
macro_rules! version_columns {
    () => {
        "v.version, v.scope, v.path, v.revision, v.state, v.bytes, v.digest, v.executable, \
         v.author, v.via, v.at_ms, v.agent, v.session, v.seq, v.labels, v.message, \
         v.origin_scope, v.origin_path, v.origin_revision, v.review_by_ms, v.accepted_by, \
         v.content IS NULL, v.redacted"
    };
}
pub(crate) use {node_columns, version_columns};

/// By what name a memory scope is looked for: for whoever does not see it, by one under which
/// nothing is found. The one place where rights become rows.
pub(crate) fn key(scope: &Scope, memory_scope: &MemoryScope) -> String {
    if scope.sees(memory_scope) { memory_scope.to_string() } else { NOWHERE.to_owned() }
}

pub(crate) fn wrong(error: sqlx::Error) -> Error {
    Error::Store(fault::of("reading entries", error))
}

pub(crate) fn damaged(what: &str) -> Error {
    Error::Store(crate::Error::damaged(fault::DATABASE, what))
}

pub(crate) fn unsigned(value: i64) -> Result<u64, Error> {
    u64::try_from(value).map_err(|_| damaged("an entry has a number below zero"))
}

/// The columns of a row, one after the other.
pub(crate) struct Columns<'r> {
    row: &'r DatabaseRow,
    next: usize,
}

impl<'r> Columns<'r> {
    pub(crate) fn of(row: &'r DatabaseRow) -> Self {
        Self { row, next: 0 }
    }

    pub(crate) fn take<T: FromColumn>(&mut self) -> Result<T, Error> {
        self.next += 1;
        T::from_column(self.row, self.next - 1).map_err(wrong)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Error> {
        unsigned(self.take()?)
    }

    pub(crate) fn maybe_number(&mut self) -> Result<Option<u64>, Error> {
        self.take::<Option<i64>>()?.map(unsigned).transpose()
    }

    pub(crate) fn path(&mut self) -> Result<EntryPath, Error> {
        EntryPath::parse(&self.take::<String>()?).map_err(|_| damaged("a path is none"))
    }

    pub(crate) fn place(&mut self) -> Result<EntryAddress, Error> {
        let memory_scope = memory_scope(&self.take::<String>()?)?;
        Ok(EntryAddress { memory_scope, path: self.path()? })
    }

    pub(crate) fn digest(&mut self) -> Result<Option<Digest>, Error> {
        let text: Option<String> = self.take()?;
        let parse = |text: String| Digest::parse(&text).ok_or_else(|| damaged("a digest is none"));
        text.map(parse).transpose()
    }

    pub(crate) fn principal(&mut self) -> Result<Principal, Error> {
        principal(&self.take::<String>()?)
    }

    /// What a version carries.
    pub(crate) fn labels(&mut self) -> Result<BTreeSet<String>, Error> {
        serde_json::from_str(&self.take::<String>()?).map_err(|_| broken())
    }

    /// What a listed entry brings to a reader: author and labels, or neither.
    pub(crate) fn origin_for(
        &mut self,
        reader: &Principal,
    ) -> Result<Option<BTreeSet<String>>, Error> {
        let (author, labels): (Option<String>, Option<String>) = (self.take()?, self.take()?);
        let Some((author, labels)) = author.zip(labels) else { return Ok(None) };
        let labels: BTreeSet<String> = serde_json::from_str(&labels).map_err(|_| broken())?;
        Ok(Some(labels_for(reader, &principal(&author)?, &labels)))
    }

    /// Via, time, agent, session, place in it, labels, message.
    pub(crate) fn by(&mut self) -> Result<Attribution, Error> {
        let via: String = self.take()?;
        let via = Via::ALL.into_iter().find(|known| known.as_str() == via);
        let at_ms = self.number()?;
        let agent = self.take()?;
        let session: Option<String> = self.take()?;
        let session = session.map(|name| SessionId::new(name).ok_or_else(broken)).transpose()?;
        let seq = self.maybe_number()?.map(Seq);
        let labels = self.labels()?;
        let message = self.take()?;
        Ok(Attribution {
            via: via.ok_or_else(broken)?,
            at_ms,
            agent,
            session,
            seq,
            labels,
            message,
        })
    }

    /// Where something was made from: memory scope, path, revision.
    pub(crate) fn origin(&mut self) -> Result<Option<(EntryAddress, u64)>, Error> {
        let origin: (Option<String>, Option<String>, Option<u64>) =
            (self.take()?, self.take()?, self.maybe_number()?);
        let (Some(on), Some(path), Some(revision)) = origin else { return Ok(None) };
        let path = EntryPath::parse(&path).map_err(|_| damaged("a path is none"))?;
        Ok(Some((EntryAddress { memory_scope: memory_scope(&on)?, path }, revision)))
    }

    /// Whether a content is missing, and that it was destroyed.
    pub(crate) fn kept(&mut self, has_content: bool) -> Result<ContentState, Error> {
        let (missing, redacted): (bool, Option<String>) = (self.take()?, self.take()?);
        match redacted {
            Some(text) => {
                serde_json::from_str(&text).map(ContentState::Redacted).map_err(|_| broken())
            }
            None if missing && has_content => Ok(ContentState::Pruned),
            None => Ok(ContentState::Whole),
        }
    }

    /// Of [`version_columns`].
    pub(crate) fn version(&mut self) -> Result<Version, Error> {
        let number = self.number()?;
        let place = self.place()?;
        let revision = self.number()?;
        let state: i64 = self.take()?;
        let (bytes, digest, executable) = (self.number()?, self.digest()?, self.take()?);
        let state = match (state, digest) {
            (FILE, Some(digest)) => EntryState::File { bytes, digest, executable },
            (FOLDER, _) => EntryState::Folder,
            (GONE, _) => EntryState::Gone,
            _ => return Err(broken()),
        };
        let author = self.principal()?;
        let by = self.by()?;
        let derived_from = self.origin()?;
        let review_by_ms = self.maybe_number()?;
        let accepted_by: Option<String> = self.take()?;
        let accepted_by = accepted_by.as_deref().map(principal).transpose()?;
        let kept = self.kept(matches!(state, EntryState::File { .. }))?;
        Ok(Version {
            number,
            place,
            revision,
            state,
            author,
            by,
            accepted_by,
            derived_from,
            review_by_ms,
            kept,
        })
    }

    /// Of [`node_columns`].
    pub(crate) fn node(&mut self) -> Result<(EntryPath, EntryStat), Error> {
        let path = self.path()?;
        let folder = self.take::<i64>()? == FOLDER;
        let node = EntryStat {
            folder,
            revision: self.number()?,
            bytes: self.number()?,
            digest: self.digest()?,
            modified_ms: self.number()?,
            executable: self.take()?,
            review_by_ms: self.maybe_number()?,
            redacted: self.take::<bool>()? && !folder,
        };
        Ok((path, node))
    }
}

pub(crate) fn memory_scope(text: &str) -> Result<MemoryScope, Error> {
    text.parse().map_err(|_| damaged("a memory scope is none"))
}

fn principal(text: &str) -> Result<Principal, Error> {
    text.parse().map_err(|_| damaged("somebody's name is none"))
}

fn broken() -> Error {
    damaged("an entry can't be read")
}
