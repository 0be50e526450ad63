//! Entries: the files of memory and skills, each a row of versions in a memory scope.
//!
//! Owns the ports [`Entries`] and [`Reviews`] and what both promise: who asks is a
//! [`Scope`], which only authentication makes, and what it does not see does not exist.
//! No last write wins: every change names what it was made from. Must never decide finer
//! rights, which are rules that were asked before, nor know how paths become memory scopes.
//!
//! Read first: [`Entries`], [`ChangeRequest`], [`Version`], [`Error`].

mod change;
mod compare;
mod error;
mod lines;
mod path;
mod quota;
mod search;
mod version;

use std::fmt::Debug;

use async_trait::async_trait;
use outrigger_agent::SessionId;
use outrigger_policy::{MemoryScope, Scope};

pub use super::reviews::{
    Comment, Decision, NewProposal, Proposal, ProposalFilter, ProposalId, Reviews, Settings,
    Standing, Submission, submit,
};
pub use change::{
    ChangeOutcome, ChangeRequest, DerivativePolicy, Derivatives, EntryFile, EntryPrecondition,
    Reach, Which,
};
pub use compare::{Comparison, base_of, compare};
pub use error::{Current, Error};
pub use lines::{BlameLine, blame};
pub use path::{EntryAddress, EntryPath, PathFault};
pub use quota::{MemoryUsage, Quota, QuotaExceeded, QuotaMeasure, Quotas};
pub use search::{Hit, Search};
pub(crate) use search::{Words, snippet};
pub use version::{
    Attribution, ContentState, Contents, EntryListing, EntryStat, EntryState, Redaction, Version,
    Via, labels_for,
};

/// Entries in memory scopes.
///
/// Several processes may work on one store at once: what a change expects is checked in
/// the transaction that makes it. Dropping a future of [`Entries::change`] does not take
/// the change back. What is answered about a place that the scope does not see is what is
/// answered about one where nothing is, and the same queries are run for it.
#[async_trait]
pub trait Entries: Send + Sync + Debug {
    /// What stands at a place now. The root of a memory scope is a folder that is always there.
    ///
    /// # Errors
    /// [`Error::Absent`]; what the disk says.
    async fn stat(&self, scope: &Scope, at: &EntryAddress) -> Result<EntryStat, Error>;

    /// What is in a folder, in the order of the bytes of paths; `deep`, also in the folders
    /// below it. At most [`crate::limits::PAGE_ENTRIES_MAX`], behind `after`.
    ///
    /// # Errors
    /// [`Error::Absent`], [`Error::NotFolder`]; what the disk says.
    async fn list(
        &self,
        scope: &Scope,
        folder: &EntryAddress,
        deep: bool,
        after: Option<&EntryPath>,
    ) -> Result<EntryListing, Error>;

    /// A file, whole: the newest version or, also of what is gone, an older one.
    ///
    /// # Errors
    /// [`Error::Absent`], [`Error::Folder`], [`Error::Redacted`], [`Error::Pruned`]; what
    /// the disk says.
    async fn read(
        &self,
        scope: &Scope,
        at: &EntryAddress,
        revision: Option<u64>,
    ) -> Result<Contents, Error>;

    /// Makes a change, durable when it returns, whole or not at all. What it made is
    /// attributed to the scope's person.
    ///
    /// # Errors
    /// As [`ChangeRequest`] tells; [`Error::NeedsReview`]; what the disk says.
    async fn change(
        &self,
        scope: &Scope,
        change: ChangeRequest,
        by: Attribution,
    ) -> Result<ChangeOutcome, Error>;

    /// Versions of a place, newest first, at most [`crate::limits::PAGE_VERSIONS_MAX`] and
    /// below revision `before`.
    ///
    /// # Errors
    /// [`Error::Absent`] where nothing ever was; what the disk says.
    async fn history(
        &self,
        scope: &Scope,
        at: &EntryAddress,
        before: Option<u64>,
    ) -> Result<Vec<Version>, Error>;

    /// Files whose newest version has the words, best first.
    ///
    /// # Errors
    /// [`Error::Words`] where there is none to look for; [`Error::TooLarge`] above
    /// [`crate::limits::SEARCH_BYTES_MAX`]; what the disk says.
    async fn search(&self, scope: &Scope, search: &Search) -> Result<Vec<Hit>, Error>;

    /// What a session wrote behind version `after` of the store, in the order in which it
    /// was written, at most [`crate::limits::PAGE_VERSIONS_MAX`]: for audits, also what
    /// no scope sees any more.
    ///
    /// # Errors
    /// What the disk says.
    async fn changes_of(&self, session: &SessionId, after: u64) -> Result<Vec<Version>, Error>;

    /// Files that should have been looked at again by `at_ms`, longest ago first, at most
    /// [`crate::limits::PAGE_ENTRIES_MAX`]. Of a memory scope that is not seen there are none.
    ///
    /// # Errors
    /// What the disk says.
    async fn stale(
        &self,
        scope: &Scope,
        memory_scope: &MemoryScope,
        at_ms: u64,
    ) -> Result<EntryListing, Error>;
}

/// Everything in a folder, page after page, as [`Entries::list`] gives it.
///
/// # Errors
/// Those of [`Entries::list`].
pub async fn list_all(
    entries: &dyn Entries,
    scope: &Scope,
    folder: &EntryAddress,
    deep: bool,
) -> Result<Vec<(EntryPath, EntryStat)>, Error> {
    let mut all: Vec<(EntryPath, EntryStat)> = Vec::new();
    loop {
        let after = all.last().map(|(path, _)| path);
        let page = entries.list(scope, folder, deep, after).await?;
        all.extend(page.entries);
        if !page.more {
            return Ok(all);
        }
    }
}
