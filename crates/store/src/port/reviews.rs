//! Reviews: changes that become true when somebody else accepts them.

mod proposal;
mod submit;

use std::fmt::Debug;

use async_trait::async_trait;
use outrigger_policy::{MemoryScope, Owner, Principal, Scope};
use serde::{Deserialize, Serialize};

use super::entries::{
    Attribution, ChangeOutcome, ChangeRequest, Entries, EntryAddress, EntryFile, EntryPrecondition,
    Error,
};

pub use proposal::{Comment, Decision, Proposal, ProposalFilter, ProposalId, Standing};
pub use submit::{Submission, submit};

/// Proposals for memory scopes, and what holds for these.
///
/// What is proposed is seen by whoever sees the memory scope, and never among its entries before
/// it was accepted. Who accepts and who proposed are both attributed and timed. For what
/// the scope does not see the answer is [`Error::Absent`].
#[async_trait]
pub trait Reviews: Send + Sync + Debug {
    /// Proposes a file, or the removal of one.
    ///
    /// # Errors
    /// [`Error::Absent`], [`Error::TooLarge`], also with
    /// [`crate::limits::PROPOSALS_OPEN_MAX`] in the memory scope; [`Error::Conflict`] unless the
    /// base is the newest version; what the disk says.
    async fn propose(
        &self,
        scope: &Scope,
        proposed: NewProposal,
        by: Attribution,
    ) -> Result<ProposalId, Error>;

    /// Proposals for a memory scope, newest first, at most [`crate::limits::PAGE_PROPOSALS_MAX`]
    /// and before `before`: those that are open, or all.
    ///
    /// # Errors
    /// What the disk says.
    async fn proposals(
        &self,
        scope: &Scope,
        memory_scope: &MemoryScope,
        asked: ProposalFilter,
        before: Option<ProposalId>,
    ) -> Result<Vec<Proposal>, Error>;

    /// One of them, with the file that it proposes and what was said of it.
    ///
    /// # Errors
    /// [`Error::Absent`], [`Error::Redacted`]; what the disk says.
    async fn proposal(
        &self,
        scope: &Scope,
        id: ProposalId,
    ) -> Result<(Proposal, Option<Vec<u8>>, Vec<Comment>), Error>;

    /// Says something of a proposal, whatever became of it.
    ///
    /// # Errors
    /// [`Error::Absent`], [`Error::TooLarge`] above [`crate::limits::MESSAGE_BYTES_MAX`] or
    /// with more than [`crate::limits::COMMENTS_MAX`]; what the disk says.
    async fn comment(
        &self,
        scope: &Scope,
        id: ProposalId,
        text: String,
        at_ms: u64,
    ) -> Result<(), Error>;

    /// Decides a proposal that is open. Accepting writes it, as a version by whoever
    /// proposed it.
    ///
    /// # Errors
    /// [`Error::Absent`], [`Error::Decided`]; [`Error::Conflict`] where the entry moved on
    /// since, [`Error::NotReviewer`], [`Error::NotAuthor`]; what the disk says.
    async fn decide(
        &self,
        scope: &Scope,
        id: ProposalId,
        decision: Decision,
        at_ms: u64,
    ) -> Result<ChangeOutcome, Error>;

    /// What holds for a memory scope.
    ///
    /// # Errors
    /// [`Error::Absent`]; what the disk says.
    async fn settings(&self, scope: &Scope, memory_scope: &MemoryScope) -> Result<Settings, Error>;

    /// Sets what holds for a memory scope from now on, and notes who did. Who may is decided by
    /// rules before.
    ///
    /// # Errors
    /// [`Error::Absent`], [`Error::Setting`]; what the disk says.
    async fn set(
        &self,
        scope: &Scope,
        memory_scope: &MemoryScope,
        settings: Settings,
        at_ms: u64,
    ) -> Result<(), Error>;
}

/// What somebody wants to stand at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewProposal {
    /// Where.
    pub at: EntryAddress,
    /// The revision of the path that it was made from, also of one that is gone; 0 where
    /// there never was anything.
    pub base: u64,
    /// The file; nothing to have it removed.
    pub file: Option<EntryFile>,
}

impl NewProposal {
    /// What proposes a change: nothing for one that is not of a file's content, which can
    /// only be made by whoever needs no review.
    ///
    /// # Errors
    /// What the disk says.
    pub async fn of(
        entries: &dyn Entries,
        scope: &Scope,
        change: ChangeRequest,
    ) -> Result<Option<Self>, Error> {
        let (at, file, base) = match change {
            ChangeRequest::Write { at, expected: EntryPrecondition::Revision(base), file } => {
                (at, Some(file), base)
            }
            ChangeRequest::Write { at, expected: EntryPrecondition::Absent, file } => {
                let base = match entries.history(scope, &at, None).await {
                    // The last state of what is gone is what nothing was made from.
                    Ok(versions) => versions.first().map_or(0, |newest| newest.revision),
                    Err(Error::Absent) => 0,
                    Err(error) => return Err(error),
                };
                (at, Some(file), base)
            }
            ChangeRequest::Remove { at, revision } => (at, None, revision),
            _ => return Ok(None),
        };
        Ok(Some(Self { at, base, file }))
    }
}

/// What holds for a memory scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Whether changes are made by accepted proposals only.
    pub review: bool,
    /// The group whose members review; nothing: everybody who sees the memory scope.
    pub reviewers: Option<String>,
    /// Whether reviewers may accept what they proposed themselves.
    pub own: bool,
    /// Of how many versions of an entry contents are kept, from 1; nothing: of all.
    pub keep_versions: Option<u32>,
    /// How long contents are kept that are not the newest, in milliseconds; nothing: for ever.
    /// With both, a content goes as soon as one of them does not keep it.
    pub keep_ms: Option<u64>,
}

impl Settings {
    /// What holds unless somebody set something else: the organisation's memory scope needs
    /// reviews.
    #[must_use]
    pub fn usual(memory_scope: &MemoryScope) -> Self {
        let review = matches!(memory_scope.owner, Owner::Organisation(_));
        Self { review, reviewers: None, own: false, keep_versions: None, keep_ms: None }
    }

    /// Whether somebody may accept or reject what an author proposed. What an agent proposed
    /// for somebody they did not write themselves, and may review.
    #[must_use]
    pub fn lets_review(&self, scope: &Scope, author: &Principal, by: &Attribution) -> bool {
        let named = self.reviewers.as_ref().is_none_or(|group| scope.groups().contains(group));
        named && (self.own || by.agent.is_some() || scope.person() != *author)
    }

    /// What can't hold.
    pub(crate) fn fault(&self, memory_scope: &MemoryScope) -> Option<&'static str> {
        if self.review && matches!(memory_scope.owner, Owner::Person(_)) {
            return Some("nobody else could review a person's own memory scope");
        }
        if self.keep_versions == Some(0) {
            return Some("the newest version is always kept");
        }
        None
    }
}
