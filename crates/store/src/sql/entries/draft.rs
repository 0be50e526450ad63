//! Versions that are to be written: what a plan hands to whoever writes.

use std::collections::BTreeSet;

use outrigger_agent::Digest;
use outrigger_policy::Principal;

use super::rows::Columns;
use crate::entries::{
    Attribution, ContentState, EntryAddress, EntryState, Error, Redaction, Version,
};

/// A version that is to be written.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) at: EntryAddress,
    /// The next one of the path.
    pub(crate) revision: u64,
    pub(crate) what: What,
    /// Of the file that it takes the place of.
    pub(crate) replaces: Option<Provenance>,
    pub(crate) author: Principal,
    pub(crate) by: Attribution,
    pub(crate) accepted_by: Option<Principal>,
    pub(crate) derived_from: Option<(EntryAddress, u64)>,
    pub(crate) review_by_ms: Option<u64>,
}

/// What it puts at the path.
#[derive(Debug)]
pub(crate) enum What {
    File(Body),
    Folder,
    Gone,
}

/// A file's content and what is kept of it in rows.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) bytes: u64,
    pub(crate) digest: Digest,
    pub(crate) executable: bool,
    pub(crate) searchable: bool,
    pub(crate) source: Source,
}

/// Where a content is.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// It is new.
    New(Vec<u8>),
    /// In that row of contents already.
    Known(i64),
    /// Nowhere any more.
    Lost(Box<Redaction>),
}

impl Body {
    pub(crate) fn new(bytes: Vec<u8>, executable: bool) -> Self {
        let digest = Digest::of(&bytes);
        let searchable = !bytes.contains(&0) && std::str::from_utf8(&bytes).is_ok();
        let length = bytes.len() as u64;
        Self { bytes: length, digest, executable, searchable, source: Source::New(bytes) }
    }

    /// What is to be stored of it.
    pub(crate) fn new_bytes(&self) -> Option<Vec<u8>> {
        match &self.source {
            Source::New(bytes) => Some(bytes.clone()),
            Source::Known(_) | Source::Lost(_) => None,
        }
    }

    /// The row of its content, if it has one already.
    pub(crate) fn known_content(&self) -> Option<i64> {
        match self.source {
            Source::Known(content) => Some(content),
            Source::New(_) | Source::Lost(_) => None,
        }
    }

    pub(crate) fn redaction(&self) -> Option<&Redaction> {
        match &self.source {
            Source::Lost(redaction) => Some(redaction),
            Source::New(_) | Source::Known(_) => None,
        }
    }
}

/// Who wrote a version, and the labels that it carries.
#[derive(Debug, Clone)]
pub(crate) struct Provenance {
    pub(crate) author: Principal,
    pub(crate) labels: BTreeSet<String>,
}

impl Provenance {
    pub(crate) fn read(columns: &mut Columns<'_>) -> Result<Self, Error> {
        Ok(Self { author: columns.principal()?, labels: columns.labels()? })
    }
}

impl Draft {
    /// The version that it became, by its number.
    pub(crate) fn written(self, number: u64) -> Version {
        let Self { at, revision, what, author, by, accepted_by, derived_from, .. } = self;
        let redaction = match &what {
            What::File(body) => body.redaction().cloned(),
            What::Folder | What::Gone => None,
        };
        let state = match what {
            What::File(Body { bytes, digest, executable, .. }) => {
                EntryState::File { bytes, digest, executable }
            }
            What::Folder => EntryState::Folder,
            What::Gone => EntryState::Gone,
        };
        let kept = redaction.map_or(ContentState::Whole, ContentState::Redacted);
        let place = at;
        Version {
            number,
            place,
            revision,
            state,
            author,
            by,
            accepted_by,
            derived_from,
            review_by_ms: self.review_by_ms,
            kept,
        }
    }
}
