//! Entries in the database: reads on connections of their own, changes through the one
//! writer.

use async_trait::async_trait;
use outrigger_agent::SessionId;
use outrigger_policy::{MemoryScope, Scope};

use super::store::Database;
use crate::entries::{
    Attribution, ChangeOutcome, ChangeRequest, Comment, Contents, Decision, Entries, EntryAddress,
    EntryListing, EntryPath, EntryStat, Error, Hit, NewProposal, Proposal, ProposalFilter,
    ProposalId, Reviews, Search, Settings, Version,
};
use crate::sql::entries::{Answer, Order, WriteRequest, look, proposals, read};
use crate::sql::search;

async fn order(
    store: &Database,
    scope: &Scope,
    by: Attribution,
    work: WriteRequest,
) -> Result<Answer, Error> {
    // Databases have no larger numbers.
    Error::within("a time (bits)", (u64::BITS - by.at_ms.leading_zeros()) as usize, 63)?;
    store.writer.order(Order { scope: scope.clone(), by, work }).await
}

/// The writer answers each kind of work with its kind of answer.
const OTHER: &str = "the writer answers what it was asked";

#[async_trait]
impl Entries for Database {
    async fn stat(&self, scope: &Scope, at: &EntryAddress) -> Result<EntryStat, Error> {
        if let Some(known) = self.known.get(scope, at) {
            return known.ok_or(Error::Absent);
        }
        let since = self.known.since();
        let found = read::stat(&mut *self.readers.connection().await?, scope, at).await;
        match &found {
            Ok(node) => self.known.note(since, scope, at, Some(node.clone())),
            Err(Error::Absent) => self.known.note(since, scope, at, None),
            Err(_) => {}
        }
        found
    }

    async fn list(
        &self,
        scope: &Scope,
        folder: &EntryAddress,
        deep: bool,
        after: Option<&EntryPath>,
    ) -> Result<EntryListing, Error> {
        let since = self.known.since();
        let mut connection = self.readers.connection().await?;
        let found = read::list(&mut connection, scope, folder, deep, after).await?;
        drop(connection);
        self.known.note_listed(since, scope, folder, &found);
        Ok(found)
    }

    async fn read(
        &self,
        scope: &Scope,
        at: &EntryAddress,
        revision: Option<u64>,
    ) -> Result<Contents, Error> {
        read::read(&mut *self.readers.connection().await?, scope, at, revision).await
    }

    async fn change(
        &self,
        scope: &Scope,
        change: ChangeRequest,
        by: Attribution,
    ) -> Result<ChangeOutcome, Error> {
        match order(self, scope, by, WriteRequest::Change(change)).await? {
            Answer::Changed(changed) => Ok(changed),
            Answer::Proposed(_) | Answer::Done => unreachable!("{OTHER}"),
        }
    }

    async fn history(
        &self,
        scope: &Scope,
        at: &EntryAddress,
        before: Option<u64>,
    ) -> Result<Vec<Version>, Error> {
        read::history(&mut *self.readers.connection().await?, scope, at, before).await
    }

    async fn search(&self, scope: &Scope, search: &Search) -> Result<Vec<Hit>, Error> {
        search::search(&mut *self.readers.connection().await?, scope, search).await
    }

    async fn changes_of(&self, session: &SessionId, after: u64) -> Result<Vec<Version>, Error> {
        read::changes_of(&mut *self.readers.connection().await?, session, after).await
    }

    async fn stale(
        &self,
        scope: &Scope,
        memory_scope: &MemoryScope,
        at_ms: u64,
    ) -> Result<EntryListing, Error> {
        read::stale(&mut *self.readers.connection().await?, scope, memory_scope, at_ms).await
    }
}

#[async_trait]
impl Reviews for Database {
    async fn propose(
        &self,
        scope: &Scope,
        proposed: NewProposal,
        by: Attribution,
    ) -> Result<ProposalId, Error> {
        match order(self, scope, by, WriteRequest::Propose(proposed)).await? {
            Answer::Proposed(id) => Ok(id),
            Answer::Changed(_) | Answer::Done => unreachable!("{OTHER}"),
        }
    }

    async fn proposals(
        &self,
        scope: &Scope,
        memory_scope: &MemoryScope,
        asked: ProposalFilter,
        before: Option<ProposalId>,
    ) -> Result<Vec<Proposal>, Error> {
        proposals::list(&mut *self.readers.connection().await?, scope, memory_scope, asked, before)
            .await
    }

    async fn proposal(
        &self,
        scope: &Scope,
        id: ProposalId,
    ) -> Result<(Proposal, Option<Vec<u8>>, Vec<Comment>), Error> {
        proposals::whole(&mut *self.readers.connection().await?, scope, id).await
    }

    async fn comment(
        &self,
        scope: &Scope,
        id: ProposalId,
        text: String,
        at_ms: u64,
    ) -> Result<(), Error> {
        order(self, scope, Attribution::person(at_ms), WriteRequest::Comment(id, text))
            .await
            .map(drop)
    }

    async fn decide(
        &self,
        scope: &Scope,
        id: ProposalId,
        decision: Decision,
        at_ms: u64,
    ) -> Result<ChangeOutcome, Error> {
        match order(self, scope, Attribution::person(at_ms), WriteRequest::Decide(id, decision))
            .await?
        {
            Answer::Changed(changed) => Ok(changed),
            Answer::Proposed(_) | Answer::Done => unreachable!("{OTHER}"),
        }
    }

    async fn settings(&self, scope: &Scope, memory_scope: &MemoryScope) -> Result<Settings, Error> {
        look::settings(&mut *self.readers.connection().await?, scope, memory_scope).await
    }

    async fn set(
        &self,
        scope: &Scope,
        memory_scope: &MemoryScope,
        settings: Settings,
        at_ms: u64,
    ) -> Result<(), Error> {
        let work = WriteRequest::Set(memory_scope.clone(), settings);
        order(self, scope, Attribution::person(at_ms), work).await.map(drop)
    }
}
