//! One commit of many requests: read the heads, fence and link in memory, write, commit.
//!
//! Everything happens inside one transaction that holds the write lock from its
//! first statement, so that no other process can move a head in between. Each
//! statement costs a trip to the connection's thread, so there are few of them:
//! three for an append, also if it charges accounts.

use crate::sql;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::sql::connection::DatabaseConnection;
use outrigger_agent::{AccountId, Digest, Seq, SessionId};
use outrigger_audit::LogEntry;
use outrigger_audit::chain::{self, ChainLink};
use tokio::sync::oneshot;

use super::snapshot;
use super::statements::{Statements, Texts};
use crate::book::Book;
use crate::sql::integer::number;
use crate::sql::log::anchor::{Anchor, AnchorError, LogAppend};
use crate::sql::{accounts, fault, leases};
use crate::{Charge, Cover, Error, SessionSnapshot, SessionSummary, limits};

/// Something to write, and whom to tell.
pub(crate) struct Request {
    pub(crate) session: SessionId,
    pub(crate) work: JournalWrite,
    pub(crate) answer: oneshot::Sender<Result<Seq, Error>>,
}

/// Something to write.
pub(crate) enum JournalWrite {
    Append(Append),
    Snapshot(SessionSnapshot),
}

/// Events to write.
pub(crate) struct Append {
    /// Refused unless this process has the lease of the session.
    pub(crate) is_leased: bool,
    pub(crate) after: Seq,
    pub(crate) at_ms: u64,
    pub(crate) entries: Vec<EventRow>,
    pub(crate) summary: SessionSummary,
}

/// An event whose text is in its row, or as a blob on disk already.
pub(crate) struct EventRow {
    pub(crate) format: u32,
    pub(crate) digest: Digest,
    /// The text; nothing if it is the blob of that digest.
    pub(crate) payload: Option<Arc<str>>,
}

impl JournalWrite {
    fn charge(&self) -> Option<&Charge> {
        match self {
            Self::Append(append) => append.summary.charge.as_ref(),
            Self::Snapshot(_) => None,
        }
    }

    /// About how much text it brings.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Append(append) => {
                let payloads = append.entries.iter().filter_map(|entry| entry.payload.as_ref());
                payloads.map(|payload| payload.len()).sum()
            }
            Self::Snapshot(snapshot) => snapshot.state.len(),
        }
    }
}

/// Where a session stands, and what the commit changes of it.
struct Head {
    seq: Seq,
    link: Digest,
    changed: Option<HeadChange>,
}

type Heads = BTreeMap<SessionId, Head>;

struct HeadChange {
    created_at_ms: u64,
    last_at_ms: u64,
    summary: SessionSummary,
}

/// A row of events.
struct Row<'a> {
    session: &'a SessionId,
    seq: Seq,
    at_ms: u64,
    link: Digest,
    entry: &'a EventRow,
}

/// Performs commits, and keeps the texts of its statements between them.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) texts: Texts,
    pub(crate) anchor: Anchor,
    /// Who tells others what was appended.
    process: i64,
}

/// What a commit did.
pub(crate) struct CommitOutcome {
    pub(crate) results: Vec<Result<Seq, Error>>,
    /// What it added to the log.
    pub(crate) added: Option<LogAppend>,
    /// Sessions with events that no entry of the log covers yet.
    pub(crate) uncovered: Vec<SessionId>,
    /// How many events it wrote.
    pub(crate) events: u64,
}

impl Batch {
    /// The commits of a process over the store in a directory.
    pub(crate) fn new(store: &Path, process: i64) -> Self {
        Self { texts: Texts::default(), anchor: Anchor::new(store), process }
    }

    /// Performs all of it, or none with an error. A request that was refused has its own error.
    pub(crate) async fn commit(
        &mut self,
        connection: &mut DatabaseConnection,
        work: &[(SessionId, JournalWrite)],
    ) -> Result<CommitOutcome, Error> {
        let (mut heads, mut book) = self.begin(connection, work).await?;
        let held = leases::held_until_commit(connection, self.process, &leased(work)).await?;
        let mut rows = Vec::new();
        let mut snapshots = Vec::new();
        let mut results = Vec::with_capacity(work.len());
        for (session, work) in work {
            let head = heads.get_mut(session).expect("begin gives a head for every session");
            results.push(match work {
                JournalWrite::Append(append)
                    if append.is_leased && !held.contains(&session.root()) =>
                {
                    Err(Error::Superseded { session: session.clone() })
                }
                JournalWrite::Append(append) => append.apply(session, head, &mut book, &mut rows),
                JournalWrite::Snapshot(snapshot) => {
                    snapshots.push((results.len(), session, snapshot));
                    Ok(snapshot.seq)
                }
            });
        }
        let changed = heads.into_iter().filter_map(|(session, head)| {
            let Head { seq, link, changed } = head;
            changed.map(|changed| (session, seq, link, changed))
        });
        let changed: Vec<_> = changed.collect();
        let (now, soon): (Vec<_>, Vec<_>) =
            changed.iter().partition(|(.., changed)| changed.summary.cover == Cover::Now);
        let entry = |(session, seq, link, _): &(SessionId, Seq, Digest, HeadChange)| LogEntry {
            session: session.clone(),
            seq: *seq,
            link: link.clone(),
        };
        let entries: Vec<LogEntry> = now.into_iter().map(entry).collect();
        let uncovered = soon.into_iter().map(|(session, ..)| session.clone()).collect();
        let stands: Vec<_> = changed.iter().map(|it| (it.0.clone(), it.1)).collect();
        let mut done = CommitOutcome { results, added: None, uncovered, events: rows.len() as u64 };
        self.write(connection, rows, changed, &book).await?;
        self.cover(connection, entries, &mut done).await?;
        for (index, session, snapshot) in snapshots {
            done.results[index] = snapshot::keep(connection, session, snapshot).await?;
        }
        leases::tell(connection, self.process, &stands).await?;
        sql::query("COMMIT").execute(connection).await.map_err(fault::of_commit)?;
        Ok(done)
    }

    /// Adds what rests now to the log. Where the log can't be used, events are stored all the same.
    async fn cover(
        &mut self,
        connection: &mut DatabaseConnection,
        entries: Vec<LogEntry>,
        done: &mut CommitOutcome,
    ) -> Result<(), Error> {
        if entries.is_empty() {
            return Ok(());
        }
        let sessions: Vec<_> = entries.iter().map(|entry| entry.session.clone()).collect();
        match self.anchor.add(connection, &mut self.texts, entries).await {
            Ok(added) => done.added = Some(added),
            Err(AnchorError::Log(_)) => done.uncovered.extend(sessions),
            Err(AnchorError::Database(error)) => return Err(error),
        }
        Ok(())
    }

    /// Takes the write lock and reads where the sessions stand.
    async fn begin(
        &mut self,
        connection: &mut DatabaseConnection,
        work: &[(SessionId, JournalWrite)],
    ) -> Result<(Heads, Book), Error> {
        let wrong = |e| fault::of("reading where a session stands", e);
        let origin = |session: &SessionId| {
            let head = Head { seq: Seq(0), link: chain::origin(session), changed: None };
            (session.clone(), head)
        };
        let mut heads: Heads = work.iter().map(|(session, _)| origin(session)).collect();
        let accounts = charged_accounts(work);
        // The heads of one statement, and with them what they are charged: mostly all.
        let few = heads.len() <= limits::HEADS_MAX && accounts.len() <= limits::HEADS_MAX;
        if !accounts.is_empty() && few {
            let book = self.begin_charged(connection, &mut heads, &accounts).await?;
            return Ok((heads, book));
        }
        let names: Vec<String> = heads.keys().map(ToString::to_string).collect();
        for (index, names) in names.chunks(limits::HEADS_MAX).enumerate() {
            let (text, places) = self.texts.heads(names.len(), index == 0);
            let mut query = sql::query_as(text);
            for place in 0..places {
                query = query.bind(names[place.min(names.len() - 1)].clone());
            }
            let found: Vec<(String, i64, String)> =
                query.fetch_all(&mut *connection).await.map_err(wrong)?;
            for (name, seq, link) in found {
                stands(&mut heads, name, seq, &link)?;
            }
        }
        let sessions: Vec<&SessionId> = charged_sessions(work);
        let book =
            accounts::read(connection, &mut self.texts, &sessions, accounts.into_iter()).await?;
        Ok((heads, book))
    }

    /// Takes the write lock, and reads everything that charges have to do with at once.
    async fn begin_charged(
        &mut self,
        connection: &mut DatabaseConnection,
        heads: &mut Heads,
        accounts: &[&AccountId],
    ) -> Result<Book, Error> {
        type Row = (i64, String, i64, String, Option<String>, String, String);
        let names: Vec<String> = heads.keys().map(ToString::to_string).collect();
        let (text, sessions, levels) = self.texts.charged_heads(names.len(), accounts.len());
        let mut query = sql::query_as(text);
        for place in 0..sessions {
            query = query.bind(names[place.min(names.len() - 1)].clone());
        }
        for place in 0..levels {
            query = query.bind(accounts[place.min(accounts.len() - 1)].as_str().to_owned());
        }
        let rows: Vec<Row> = query
            .fetch_all(&mut *connection)
            .await
            .map_err(|e| fault::of("reading where a session stands, and what it is charged", e))?;
        let mut book = Book::default();
        for (kind, name, number, first, second, reserved, before) in rows {
            if kind == 0 {
                if let (Some(session), Some(charged)) = (SessionId::new(name.clone()), second) {
                    book.sessions.insert(session, accounts::parse(&charged)?);
                }
                stands(heads, name, number, &first)?;
            } else {
                let spent = second.unwrap_or_default();
                let account = accounts::of_row((name, first, spent, reserved, before, number))?;
                book.accounts.insert(account.account.clone(), account);
            }
        }
        let more = Vec::new();
        accounts::read_accounts(connection, &mut self.texts, more, &mut book).await?;
        Ok(book)
    }

    async fn write(
        &mut self,
        connection: &mut DatabaseConnection,
        rows: Vec<Row<'_>>,
        mut changed: Vec<(SessionId, Seq, Digest, HeadChange)>,
        book: &Book,
    ) -> Result<(), Error> {
        // What a lonely session is charged goes along with its head.
        let lonely =
            changed.len() == 1 && book.changed_accounts.len() <= limits::LONELY_ACCOUNTS_MAX;
        if !lonely {
            accounts::write(connection, &mut self.texts, book).await?;
        }
        let charged = if lonely { accounts::BookChanges::of(book) } else { Default::default() };
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() || !changed.is_empty() {
            let events: Vec<Row<'_>> = rows.by_ref().take(limits::STATEMENT_ROWS_MAX).collect();
            // Heads follow when the last events are written; the one of a lonely
            // session goes along with them.
            let last = rows.peek().is_none() && (changed.len() == 1 || events.is_empty());
            let count = if last { changed.len().min(limits::STATEMENT_ROWS_MAX) } else { 0 };
            let sessions: Vec<_> = changed.drain(..count).collect();
            let along = |rows: usize| if last { rows } else { 0 };
            let text = self.texts.insert(Statements {
                events: events.len(),
                sessions: count,
                charges: along(charged.charges.len()),
                accounts: along(charged.accounts.len()),
            });
            let mut query = sql::query(text);
            for Row { session, seq, at_ms, link, entry } in events {
                let blob = entry.payload.is_none().then(|| entry.digest.to_string());
                query = query.bind(session.to_string()).bind(number(seq.0)).bind(number(at_ms));
                query = query.bind(i64::from(entry.format)).bind(entry.payload.clone()).bind(blob);
                query = query.bind(link.to_string());
            }
            for (session, seq, link, changed) in sessions {
                let HeadChange { created_at_ms, last_at_ms, summary } = changed;
                query = query.bind(session.to_string()).bind(number(created_at_ms));
                query = query.bind(number(last_at_ms)).bind(number(seq.0)).bind(link.to_string());
                query = query.bind(summary.title).bind(summary.status);
            }
            if last {
                query = accounts::bind_charges(query, &charged.charges);
                query = accounts::bind_accounts(query, &charged.accounts);
            }
            let written = query.execute(&mut *connection).await;
            written.map_err(|e| match e.as_database_error().map(|e| e.is_unique_violation()) {
                Some(true) => fault_in_heads("a session that has more events than it says"),
                _ => fault::of("writing events", e),
            })?;
        }
        Ok(())
    }
}

impl Append {
    /// Fences, links, and moves the head.
    fn apply<'a>(
        &'a self,
        session: &'a SessionId,
        head: &mut Head,
        book: &mut Book,
        rows: &mut Vec<Row<'a>>,
    ) -> Result<Seq, Error> {
        let Self { after, at_ms, ref entries, ref summary, .. } = *self;
        if head.seq != after {
            let (session, found) = (session.clone(), head.seq);
            return Err(Error::Conflict { session, expected: after, found });
        }
        if let Some(charge) = &summary.charge {
            book.charge(session, at_ms, charge)?;
        }
        if entries.is_empty() && (after == Seq(0) || summary.tells_nothing()) {
            return Ok(after);
        }
        for entry in entries {
            let (seq, format) = (head.seq.next(), entry.format);
            let text = &entry.digest;
            let link = ChainLink { session, seq, at_ms, format, text }.after(&head.link);
            (head.seq, head.link) = (seq, link.clone());
            rows.push(Row { session, seq, at_ms, link, entry });
        }
        let new = HeadChange {
            created_at_ms: at_ms,
            last_at_ms: at_ms,
            summary: SessionSummary::default(),
        };
        let changed = head.changed.get_or_insert(new);
        changed.last_at_ms = at_ms;
        let known = std::mem::take(&mut changed.summary);
        changed.summary = SessionSummary {
            title: summary.title.clone().or(known.title),
            status: summary.status.clone().or(known.status),
            cover: summary.cover.max(known.cover),
            charge: None,
        };
        Ok(head.seq)
    }
}

/// The sessions that only who has their lease appends to.
fn leased(work: &[(SessionId, JournalWrite)]) -> BTreeSet<SessionId> {
    let leased = work.iter().filter(|(_, work)| match work {
        JournalWrite::Append(append) => append.is_leased,
        JournalWrite::Snapshot(_) => false,
    });
    leased.map(|(session, _)| session.root()).collect()
}

/// Sessions of a commit that are charged.
fn charged_sessions(work: &[(SessionId, JournalWrite)]) -> Vec<&SessionId> {
    let charged = work.iter().filter(|(_, work)| work.charge().is_some());
    let sessions: BTreeSet<&SessionId> = charged.map(|(session, _)| session).collect();
    sessions.into_iter().collect()
}

/// The accounts that they are charged to.
fn charged_accounts(work: &[(SessionId, JournalWrite)]) -> Vec<&AccountId> {
    let charges = work.iter().filter_map(|(_, work)| work.charge());
    let levels = charges.flat_map(|charge| charge.levels.iter().map(|level| &level.account));
    let accounts: BTreeSet<&AccountId> = levels.collect();
    accounts.into_iter().collect()
}

/// A session stands where its row says.
fn stands(heads: &mut Heads, name: String, seq: i64, link: &str) -> Result<(), Error> {
    let head = SessionId::new(name).and_then(|session| heads.get_mut(&session));
    let head = head.ok_or_else(|| fault_in_heads("a session that was not asked for"))?;
    let seq = seq.try_into().map_err(|_| fault_in_heads("a place below zero"))?;
    let link = Digest::parse(link).ok_or_else(|| fault_in_heads("a broken link"))?;
    (head.seq, head.link) = (Seq(seq), link);
    Ok(())
}

fn fault_in_heads(what: &str) -> Error {
    Error::damaged(fault::DATABASE, format!("its table of sessions has {what}"))
}
