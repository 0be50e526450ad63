//! Audits a store: reads the log and every session, and changes nothing.
//!
//! Must never open a connection that writes, nor make anything that is not there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use futures_util::{Stream, TryStreamExt};
use outrigger_agent::{Digest, Seq, SessionId};
use outrigger_audit::{
    Corrections, ExternalCheckpoint, Finding, LogCopy, LogEntry, LogFindings, LogVerifier, Report,
    SessionLinks, VerificationProgress, VerifyingKey,
};
use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;

use super::fault;
use super::open::{self, Seen};
use super::walk::{Walked, walk};
use crate::directory::blocking;
use crate::{Directory, Error, limits};

/// A store that is looked at and not changed.
#[derive(Debug, Clone)]
pub struct Audit {
    directory: PathBuf,
    path: PathBuf,
    stamp: Stamp,
}

/// What changes when anybody writes the database, or a log beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    written: Option<SystemTime>,
    seen: Seen,
}

impl Stamp {
    fn of(path: &Path) -> Result<Self, Error> {
        // The time first: whatever is written after it is told by it.
        let written = std::fs::metadata(path).and_then(|found| found.modified()).ok();
        Ok(Self { written, seen: open::look(path)? })
    }
}

/// What is to be checked.
#[derive(Debug, Clone, Default)]
pub struct AuditRequest {
    /// Only this session, and the log.
    pub session: Option<SessionId>,
    /// Checkpoints that somebody kept: the log must continue them.
    pub against: Vec<ExternalCheckpoint>,
    /// The key that must have signed; else the one beside the database.
    pub key: Option<VerifyingKey>,
}

fn wrong(error: sqlx::Error) -> Error {
    fault::of("reading the audit log", error)
}

impl Audit {
    /// Looks at the store in a directory.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none; [`Error::Damaged`] and
    /// [`Error::Newer`] as [`crate::Sqlite::open`].
    pub async fn open(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(open::DATABASE);
        let stamp = Stamp::of(&path)?;
        if stamp.seen == Seen::Nothing {
            return Err(Error::NotFound { what: format!("journal in {}", directory.display()) });
        }
        let audit = Self { directory: directory.to_owned(), path, stamp };
        audit.settled(async |this| open::look_inside(&this.path, this.stamp.seen).await).await?;
        Ok(audit)
    }

    /// Reads through connections that make no files where that is possible. Such a one
    /// sees no log: if anybody began to write meanwhile, what was read may be old or
    /// half of something, and is read again through connections that share.
    pub(super) async fn settled<T>(
        &self,
        read: impl AsyncFn(&Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let found = read(self).await;
        if self.stamp.seen == Seen::Whole && !self.is_untouched() {
            let stamp = Stamp { seen: Seen::Logged, ..self.stamp.clone() };
            return read(&Self { stamp, ..self.clone() }).await;
        }
        found
    }

    fn is_untouched(&self) -> bool {
        Stamp::of(&self.path).is_ok_and(|now| now == self.stamp)
    }

    /// At most two sessions whose names begin like that, also ones that only the log has.
    ///
    /// # Errors
    /// What the disk says.
    pub async fn named(&self, beginning: &str) -> Result<Vec<SessionId>, Error> {
        self.settled(async |this| this.try_named(beginning).await).await
    }

    async fn try_named(&self, beginning: &str) -> Result<Vec<SessionId>, Error> {
        const TEXT: &str = "SELECT session FROM sessions WHERE session >= $1 AND session < $2 \
            UNION SELECT session FROM log WHERE session >= $1 AND session < $2 \
            ORDER BY session LIMIT 2";
        let mut connection = self.connection().await?;
        let query = sqlx::query_as(TEXT).bind(beginning).bind(format!("{beginning}\u{10ffff}"));
        let rows: Vec<(String,)> = query.fetch_all(&mut connection).await.map_err(wrong)?;
        let mut found: Vec<_> = rows.into_iter().filter_map(|(n,)| SessionId::new(n)).collect();
        // A whole name is meant, also where another one begins with it.
        if found.first().is_some_and(|first| first.as_str() == beginning) {
            found.truncate(1);
        }
        close(connection).await;
        Ok(found)
    }

    /// Checks the log, every session and every blob.
    ///
    /// # Errors
    /// What keeps it from being read; what is wrong in it stands in the report.
    pub async fn verify(
        &self,
        asked: &AuditRequest,
        progress: &Arc<VerificationProgress>,
    ) -> Result<Report, Error> {
        self.settled(async |this| this.pass(asked, progress).await).await
    }

    /// What is wrong with a checkpoint that somebody kept, if the log does not continue it.
    /// Reads the log and no session.
    ///
    /// # Errors
    /// What keeps it from being read.
    pub async fn contradicts(&self, kept: &ExternalCheckpoint) -> Result<Option<Finding>, Error> {
        self.settled(async |this| {
            let connection = this.connection().await?;
            let asked = AuditRequest { against: vec![kept.clone()], ..AuditRequest::default() };
            let (connection, checked) = this.log(connection, &asked).await?;
            close(connection).await;
            Ok(checked.faults.into_iter().find(|fault| fault.is_of(&kept.name)))
        })
        .await
    }

    async fn pass(
        &self,
        asked: &AuditRequest,
        progress: &Arc<VerificationProgress>,
    ) -> Result<Report, Error> {
        progress.restart();
        let connection = self.connection().await?;
        let (mut connection, checked) = self.log(connection, asked).await?;
        let LogFindings { entries, corrections, faults, faults_left_out, checkpoint } = checked;
        let mut report =
            Report { entries, checkpoint, faults, faults_left_out, ..Report::default() };
        let mut names = BTreeSet::new();
        match &asked.session {
            Some(session) => _ = names.insert(session.clone()),
            None => {
                names.extend(corrections.entries.keys().cloned());
                self.sessions(&mut connection, &mut names, &mut report.faults).await?;
            }
        }
        close(connection).await;
        progress.expect_sessions(names.len() as u64);
        self.walk_all(names, corrections, progress, &mut report).await?;
        let all = report.faults.len();
        report.faults.truncate(outrigger_audit::limits::FAULTS_MAX);
        report.faults_left_out += (all - report.faults.len()) as u64;
        Ok(report)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) async fn connection(&self) -> Result<SqliteConnection, Error> {
        let mut connection = open::auditing(&self.path, self.stamp.seen).await?;
        sqlx::raw_sql("BEGIN").execute(&mut connection).await.map_err(wrong)?;
        Ok(connection)
    }

    /// Checks the log, and what is beside it. Gives the connection back.
    async fn log(
        &self,
        connection: SqliteConnection,
        asked: &AuditRequest,
    ) -> Result<(SqliteConnection, LogFindings), Error> {
        let (this, asked) = (self.clone(), asked.clone());
        let runtime = tokio::runtime::Handle::current();
        // Hashing takes a processor to itself.
        blocking(move || runtime.block_on(this.check_log(connection, &asked))).await
    }

    async fn check_log(
        &self,
        mut connection: SqliteConnection,
        asked: &AuditRequest,
    ) -> Result<(SqliteConnection, LogFindings), Error> {
        const NEWEST: &str = "SELECT size FROM checkpoints ORDER BY size DESC LIMIT $1";
        let copy = LogCopy::new(outrigger_audit::directory(&self.directory));
        let own_key = outrigger_audit::verifying_key(&self.directory)?;
        // The copy is opened before the log that it may only lag behind is read.
        let lines = copy.lines()?;
        let newest = copy.checkpoint()?;
        let name = || "audit/checkpoint".to_owned();
        let mut against: Vec<_> =
            newest.map(|note| ExternalCheckpoint { name: name(), note }).into_iter().collect();
        against.extend(asked.against.iter().cloned());
        let newest = sqlx::query_as(NEWEST)
            .bind(1 + outrigger_audit::limits::COPY_LAG_CHECKPOINTS_MAX as i64);
        let newest: Vec<(i64,)> = newest.fetch_all(&mut connection).await.map_err(wrong)?;
        let newest = newest.into_iter().map(|(size,)| u64::try_from(size).unwrap_or(0)).collect();
        let key = asked.key.clone().or(own_key);
        let mut check = LogVerifier::new(key, &against, lines, newest);
        along(&mut connection, &mut check).await?;
        // What is missing is looked for after the log: a writer may have made it meanwhile.
        let checked = check.finish(copy.size().ok(), copy.checkpoint()?.is_some())?;
        Ok((connection, checked))
    }

    /// Sessions that have events or a row, or that the log has.
    async fn sessions(
        &self,
        connection: &mut SqliteConnection,
        names: &mut BTreeSet<SessionId>,
        faults: &mut Vec<Finding>,
    ) -> Result<(), Error> {
        // From each name to the next one: a session may have a million events.
        const TEXT: &str = "WITH RECURSIVE named(session) AS (\
            SELECT MIN(session) FROM events UNION ALL \
            SELECT (SELECT MIN(session) FROM events WHERE session > named.session) \
            FROM named WHERE named.session IS NOT NULL) \
            SELECT session FROM named WHERE session IS NOT NULL \
            UNION SELECT session FROM sessions";
        const LOG: &str = "SELECT DISTINCT session FROM log";
        let mut logged = sqlx::query_as(LOG).fetch(&mut *connection);
        while let Some((name,)) = logged.try_next().await.map_err(wrong)? {
            // An entry with an impossible one is a gap, and told as one.
            let name: String = name;
            names.extend(SessionId::new(name));
        }
        drop(logged);
        let rows: Vec<(String,)> =
            sqlx::query_as(TEXT).fetch_all(connection).await.map_err(wrong)?;
        for (name,) in rows {
            match SessionId::new(name.as_str()) {
                Some(session) => _ = names.insert(session),
                None => {
                    let what = format!("it has a session with the impossible name {name:?}");
                    faults.push(Finding::file(open::DATABASE, what));
                }
            }
        }
        Ok(())
    }

    /// Walks along the sessions, some at once.
    async fn walk_all(
        &self,
        names: BTreeSet<SessionId>,
        corrections: Corrections,
        progress: &Arc<VerificationProgress>,
        report: &mut Report,
    ) -> Result<(), Error> {
        let readers = names.len().clamp(1, limits::AUDIT_READERS);
        let queue = Arc::new(Mutex::new(names.into_iter()));
        let corrections = Arc::new(corrections);
        let readers = (0..readers).map(|_| {
            let (this, queue) = (self.clone(), Arc::clone(&queue));
            let corrections = Arc::clone(&corrections);
            let progress = Arc::clone(progress);
            let runtime = tokio::runtime::Handle::current();
            // Hashing takes a processor to itself.
            blocking(move || runtime.block_on(this.walk_some(&queue, &corrections, &progress)))
        });
        let walked = futures_util::future::try_join_all(readers).await?;
        let mut faults = Vec::new();
        for Walked { events, uncovered, is_removed, fault } in walked.into_iter().flatten() {
            report.sessions += u64::from(!is_removed);
            report.removed += u64::from(is_removed);
            report.events += events;
            report.uncovered += uncovered;
            faults.extend(fault);
        }
        faults.sort();
        report.faults.extend(faults);
        Ok(())
    }

    async fn walk_some(
        &self,
        queue: &Mutex<std::collections::btree_set::IntoIter<SessionId>>,
        corrections: &Corrections,
        progress: &VerificationProgress,
    ) -> Result<Vec<Walked>, Error> {
        let blobs = Directory::at(&self.directory.join("blobs"));
        let mut connection = self.connection().await?;
        let mut walked = Vec::new();
        loop {
            let next = queue.lock().expect("nobody panics while taking a name").next();
            let Some(session) = next else { break };
            let known = chain(&mut connection, &session, corrections).await?;
            walked.push(walk(&mut connection, &session, &known, &blobs, progress).await?);
            progress.finish_session();
        }
        close(connection).await;
        Ok(walked)
    }
}

pub(super) async fn close(connection: SqliteConnection) {
    // It only read, so there is nothing left to fail.
    let _ = connection.close().await;
}

type EntryRow = (i64, String, i64, String);

/// An entry and its number. One that is none stands for what it was put in for: a gap.
fn entry((number, session, seq, link): EntryRow) -> Option<(u64, LogEntry)> {
    let (session, link) = (SessionId::new(session)?, Digest::parse(&link)?);
    Some((number.try_into().ok()?, LogEntry { session, seq: Seq(seq.try_into().ok()?), link }))
}

/// Every entry of the log, in order.
pub(super) fn entries(
    connection: &mut SqliteConnection,
) -> impl Stream<Item = Result<LogEntry, Error>> {
    const TEXT: &str = "SELECT entry, session, seq, link FROM log ORDER BY entry";
    let rows = sqlx::query_as(TEXT).fetch(connection).map_err(wrong);
    rows.try_filter_map(async |row: EntryRow| Ok(entry(row).map(|(_, entry)| entry)))
}

/// Takes a check along the log and its checkpoints.
async fn along(connection: &mut SqliteConnection, check: &mut LogVerifier) -> Result<(), Error> {
    const ENTRIES: &str = "SELECT entry, session, seq, link, note, edge FROM log \
        LEFT JOIN checkpoints ON size = entry + 1 ORDER BY entry";
    const BEHIND: &str = "SELECT size, note, edge FROM checkpoints \
        WHERE size > $1 OR size <= 0 ORDER BY size";
    type Row = (i64, String, i64, String, Option<String>, Option<String>);
    let mut rows = sqlx::query_as(ENTRIES).fetch(&mut *connection);
    while let Some(row) = rows.try_next().await.map_err(wrong)? {
        let (number, session, seq, link, note, edge): Row = row;
        let Some((number, entry)) = entry((number, session, seq, link)) else { continue };
        check.entry(number, &entry, note.as_deref().zip(edge.as_deref()))?;
    }
    drop(rows);
    let size = i64::try_from(check.size()).unwrap_or(i64::MAX);
    let mut rows = sqlx::query_as(BEHIND).bind(size).fetch(connection);
    while let Some((size, note, edge)) = rows.try_next().await.map_err(wrong)? {
        let (size, note, edge): (i64, String, String) = (size, note, edge);
        check.checkpoint(u64::try_from(size).unwrap_or(0), &note, &edge);
    }
    Ok(())
}

/// What the log has of a session.
async fn chain(
    connection: &mut SqliteConnection,
    session: &SessionId,
    corrections: &Corrections,
) -> Result<SessionLinks, Error> {
    const TEXT: &str =
        "SELECT entry, session, seq, link FROM log WHERE session = $1 ORDER BY entry";
    let mut chain = SessionLinks::default();
    let mut rows = sqlx::query_as(TEXT).bind(session.to_string()).fetch(connection);
    while let Some(row) = rows.try_next().await.map_err(wrong)? {
        if let Some((number, LogEntry { seq, link, .. })) = entry(row)
            && corrections.believes(number, seq)
        {
            chain.add(number, seq, link);
        }
    }
    for (number, seq, link) in corrections.entries.get(session).into_iter().flatten() {
        chain.add(*number, *seq, link.clone());
    }
    Ok(chain)
}
