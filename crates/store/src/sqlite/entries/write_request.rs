//! What is asked of the writer about entries, and how it performs many at once.

use outrigger_policy::{Scope, Shelf};
use sqlx::sqlite::SqliteConnection;
use tokio::sync::oneshot;

use super::plan::Editor;
use super::put::{Draft, put};
use super::rows::wrong;
use super::{labels, look, proposals, prune, redact, usage};
use crate::entries::{
    By, Change, Changed, Decision, Error, ProposalId, Proposed, Quotas, Redaction, Settings,
};
use crate::limits;
use crate::sqlite::changes::Changes;
use crate::sqlite::fault;

/// Something to do, and whom to tell.
pub(in crate::sqlite) struct Request {
    pub(in crate::sqlite) order: Order,
    pub(in crate::sqlite) answer: oneshot::Sender<Result<Answer, Error>>,
}

/// Something to do, by whom.
#[derive(Debug)]
pub(in crate::sqlite) struct Order {
    pub(in crate::sqlite) scope: Scope,
    pub(in crate::sqlite) by: By,
    pub(in crate::sqlite) work: WriteRequest,
}

/// Something to do.
#[derive(Debug)]
pub(in crate::sqlite) enum WriteRequest {
    Change(Change),
    Propose(Proposed),
    Comment(ProposalId, String),
    Decide(ProposalId, Decision),
    Set(Shelf, Settings),
}

/// What came of it.
#[derive(Debug)]
pub(in crate::sqlite) enum Answer {
    Changed(Changed),
    Proposed(ProposalId),
    Done,
}

impl WriteRequest {
    /// About how much text it brings.
    pub(in crate::sqlite) fn bytes(&self) -> usize {
        match self {
            Self::Change(Change::Write { file, .. }) => file.bytes.len(),
            Self::Change(Change::Edit { new, .. }) => new.len(),
            Self::Propose(proposed) => proposed.file.as_ref().map_or(0, |file| file.bytes.len()),
            Self::Change(_) | Self::Comment(..) | Self::Decide(..) | Self::Set(..) => 0,
        }
    }

    /// Whether bytes are to be gone afterwards.
    pub(in crate::sqlite) fn destroys(&self) -> bool {
        matches!(self, Self::Change(Change::Redact { .. } | Change::Prune { .. }))
    }
}

/// Performs all of it in one transaction, or none with an error. What was refused has its
/// own error, and changed nothing.
pub(in crate::sqlite) async fn commit(
    connection: &mut SqliteConnection,
    changes: &Changes,
    quotas: &Quotas,
    orders: &[Order],
) -> Result<Vec<Result<Answer, Error>>, crate::Error> {
    let begun = sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await;
    begun.map_err(|e| fault::of("writing entries", e))?;
    let begun = changes.begin()?;
    let mut answers = Vec::with_capacity(orders.len());
    for order in orders {
        match order.perform(connection, quotas).await {
            Err(Error::Store(error)) => return Err(error),
            answer => answers.push(answer),
        }
    }
    let committed = sqlx::query("COMMIT").execute(connection).await;
    committed.map_err(fault::of_commit)?;
    begun.end();
    Ok(answers)
}

/// Clears the log of what was deleted; whether others kept it from that. The writer waits
/// for them, but not for as long as for its own turn.
pub(in crate::sqlite) async fn shred(
    connection: &mut SqliteConnection,
    busy_wait_ms: u64,
) -> Result<bool, Error> {
    let wait = |ms: u64| sqlx::AssertSqlSafe(format!("PRAGMA busy_timeout = {ms}"));
    let short = wait(busy_wait_ms.min(limits::SHRED_WAIT_MS));
    sqlx::raw_sql(short).execute(&mut *connection).await.map_err(wrong)?;
    let cleared = sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut *connection);
    let cleared: Result<(i64, i64, i64), _> = cleared.await;
    sqlx::raw_sql(wait(busy_wait_ms)).execute(connection).await.map_err(wrong)?;
    Ok(cleared.map_err(wrong)?.0 != 0)
}

impl Order {
    async fn perform(
        &self,
        connection: &mut SqliteConnection,
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
            WriteRequest::Set(shelf, settings) => {
                proposals::set(connection, editor, shelf, settings).await?;
                Ok(Answer::Done)
            }
        }
    }
}

impl Editor<'_> {
    async fn change(
        &self,
        connection: &mut SqliteConnection,
        quotas: &Quotas,
        change: Change,
    ) -> Result<Changed, Error> {
        look::within(self.by)?;
        let drafts = match change {
            Change::Write { at, expected, file } => {
                self.write(connection, &at, expected, file).await?
            }
            Change::Edit { at, old, new } => self.edit(connection, &at, &old, &new).await?,
            Change::Remove { at, revision } => self.remove(connection, &at, revision).await?,
            Change::MakeFolder { at } => self.make_folder(connection, &at).await?,
            Change::RemoveFolder { at } => self.remove_folder(connection, &at).await?,
            Change::Move { from, revision, to, expected } => {
                self.rename(connection, (&from, revision), (&to, expected)).await?
            }
            Change::Revert { at, to, expected } => {
                self.revert(connection, &at, to, expected).await?
            }
            Change::Redact { at, which, reach, derived, why } => {
                let redaction = Redaction { by: self.scope.person(), why, at_ms: self.by.at_ms };
                let asked = (&at, which, reach, derived);
                return redact::redact(connection, self.scope, asked, &redaction).await;
            }
            Change::Prune { at, keep } => {
                return prune::prune(connection, self.scope, (&at, keep), self.by.at_ms).await;
            }
        };
        write(connection, quotas, drafts).await
    }
}

async fn write(
    connection: &mut SqliteConnection,
    quotas: &Quotas,
    mut drafts: Vec<Draft>,
) -> Result<Changed, Error> {
    labels::inherit(connection, &mut drafts).await?;
    // Last: what is refused after it would stay counted.
    usage::take(connection, quotas, &drafts).await?;
    let mut changed = Changed::default();
    for draft in drafts {
        changed.versions.push(put(connection, draft).await?);
    }
    Ok(changed)
}
