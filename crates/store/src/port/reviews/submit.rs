//! A change as whoever makes it wants it: made, or proposed where it has to be reviewed.

use outrigger_policy::Scope;

use super::{NewProposal, ProposalId, Reviews};
use crate::entries::{Attribution, ChangeOutcome, ChangeRequest, Entries, Error};

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submission {
    /// It is made.
    Changed(ChangeOutcome),
    /// It waits for somebody to accept it.
    Proposed(ProposalId),
}

/// Makes a change, or proposes it where its memory scope needs reviews.
///
/// # Errors
/// As [`Entries::change`] and [`Reviews::propose`]; [`Error::NeedsReview`] for what is not of a
/// file's content and can't be proposed.
pub async fn submit(
    entries: &dyn Entries,
    reviews: &dyn Reviews,
    scope: &Scope,
    change: ChangeRequest,
    by: Attribution,
) -> Result<Submission, Error> {
    match entries.change(scope, change.clone(), by.clone()).await {
        Err(Error::NeedsReview) => {}
        made => return made.map(Submission::Changed),
    }
    let proposed = NewProposal::of(entries, scope, change).await?.ok_or(Error::NeedsReview)?;
    reviews.propose(scope, proposed, by).await.map(Submission::Proposed)
}
