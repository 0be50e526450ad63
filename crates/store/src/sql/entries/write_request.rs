//! What is asked of the writer about entries, and what it makes of each request.

use crate::sql::connection::DatabaseConnection;
use outrigger_policy::{MemoryScope, Scope};
use tokio::sync::oneshot;

use super::draft::Draft;
use super::erasure::{prune, redact};
use super::plan::Editor;
use super::put::put;
use super::{labels, look, proposals, usage};
use crate::entries::{
    Attribution, ChangeOutcome, ChangeRequest, Decision, Error, NewProposal, ProposalId, Quotas,
    Redaction, Settings,
};

/// Something to do, and whom to tell.
pub(crate) struct Request {
    pub(crate) order: Order,
    pub(crate) answer: oneshot::Sender<Result<Answer, Error>>,
}

/// Something to do, by whom.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) scope: Scope,
    pub(crate) by: Attribution,
    pub(crate) work: WriteRequest,
}

/// Something to do.
#[derive(Debug)]
pub(crate) enum WriteRequest {
    Change(ChangeRequest),
    Propose(NewProposal),
    Comment(ProposalId, String),
    Decide(ProposalId, Decision),
    Set(MemoryScope, Settings),
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Answer {
    Changed(ChangeOutcome),
    Proposed(ProposalId),
    Done,
}

impl WriteRequest {
    /// About how much text it brings.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Change(ChangeRequest::Write { file, .. }) => file.bytes.len(),
            Self::Change(ChangeRequest::Edit { new, .. }) => new.len(),
            Self::Propose(proposed) => proposed.file.as_ref().map_or(0, |file| file.bytes.len()),
            Self::Change(_) | Self::Comment(..) | Self::Decide(..) | Self::Set(..) => 0,
        }
    }

    /// Whether bytes are to be gone afterwards.
    pub(crate) fn destroys(&self) -> bool {
        matches!(self, Self::Change(ChangeRequest::Redact { .. } | ChangeRequest::Prune { .. }))
    }
}

impl Order {
    /// Performs it in the transaction that is open. What is refused changed nothing.
    pub(crate) async fn perform(
        &self,
        connection: &mut DatabaseConnection,
        quotas: &Quotas,
    ) -> Result<Answer, Error> {
        let Self { scope, by, work } = self;
        let editor = Editor { scope, by };
        match work {
            WriteRequest::Change(change) => {
                editor.change(connection, quotas, change.clone()).await.map(Answer::Changed)
            }
            WriteRequest::Propose(proposed) => {
                look::within(by)?;
                let id = proposals::propose(connection, quotas, editor, proposed.clone()).await?;
                Ok(Answer::Proposed(id))
            }
            WriteRequest::Comment(id, text) => {
                proposals::comment(connection, editor, *id, text).await?;
                Ok(Answer::Done)
            }
            WriteRequest::Decide(id, decision) => {
                let drafts = proposals::plan(connection, scope, *id, decision).await?;
                let changed = write(connection, quotas, drafts).await?;
                let revision = changed.version().map(|version| version.revision);
                let decided = (*id, decision);
                proposals::decide(connection, scope, decided, by.at_ms, revision).await?;
                Ok(Answer::Changed(changed))
            }
            WriteRequest::Set(memory_scope, settings) => {
                proposals::set(connection, editor, memory_scope, settings).await?;
                Ok(Answer::Done)
            }
        }
    }
}

impl Editor<'_> {
    async fn change(
        &self,
        connection: &mut DatabaseConnection,
        quotas: &Quotas,
        change: ChangeRequest,
    ) -> Result<ChangeOutcome, Error> {
        look::within(self.by)?;
        let drafts = match change {
            ChangeRequest::Write { at, expected, file } => {
                self.write(connection, &at, expected, file).await?
            }
            ChangeRequest::Edit { at, old, new } => self.edit(connection, &at, &old, &new).await?,
            ChangeRequest::Remove { at, revision } => {
                self.remove(connection, &at, revision).await?
            }
            ChangeRequest::MakeFolder { at } => self.make_folder(connection, &at).await?,
            ChangeRequest::RemoveFolder { at } => self.remove_folder(connection, &at).await?,
            ChangeRequest::Move { from, revision, to, expected } => {
                self.rename(connection, (&from, revision), (&to, expected)).await?
            }
            ChangeRequest::Revert { at, to, expected } => {
                self.revert(connection, &at, to, expected).await?
            }
            ChangeRequest::Redact { at, which, reach, derived, why } => {
                let redaction = Redaction { by: self.scope.person(), why, at_ms: self.by.at_ms };
                let asked = (&at, which, reach, derived);
                return redact(connection, self.scope, asked, &redaction).await;
            }
            ChangeRequest::Prune { at, keep } => {
                return prune(connection, self.scope, (&at, keep), self.by.at_ms).await;
            }
        };
        write(connection, quotas, drafts).await
    }
}

async fn write(
    connection: &mut DatabaseConnection,
    quotas: &Quotas,
    mut drafts: Vec<Draft>,
) -> Result<ChangeOutcome, Error> {
    labels::inherit(connection, &mut drafts).await?;
    // Last: what is refused after it would stay counted.
    usage::take(connection, quotas, &drafts).await?;
    let mut changed = ChangeOutcome::default();
    for draft in drafts {
        changed.versions.push(put(connection, draft).await?);
    }
    Ok(changed)
}
