//! Audits a store: reads the log and every session, and changes nothing.
//!
//! Must never open a connection that writes, nor make anything that is not there.

use crate::sql;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use crate::sql::connection::DatabaseConnection;
use outrigger_agent::{Seq, SessionId};
use outrigger_audit::{
    Corrections, ExternalCheckpoint, Finding, LogCopy, LogFindings, LogVerifier, Proof, Report,
    VerificationProgress, VerifyingKey,
};

use super::blobs::DatabaseBlobs;
use super::place::{DatabaseAddress, DatabasePlace};
use super::postgres::PostgresServer;
use super::sqlite::{self, DatabaseState};
use crate::files::blocking;
use crate::sql::log::prove::{EventText, prove};
use crate::sql::log::read;
use crate::sql::log::walk::{WalkOutcome, walk};
use crate::{BlobDirectory, Error, limits};

/// A store that is looked at and not changed.
#[derive(Debug, Clone)]
pub struct Audit {
    directory: PathBuf,
    blobs: DatabaseBlobs,
    source: AuditSource,
}

/// The database that is looked at.
#[derive(Debug, Clone)]
enum AuditSource {
    Sqlite { path: PathBuf, stamp: Stamp },
    Postgres(Arc<PostgresServer>),
}

/// What changes when anybody writes the database, or a log beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    written: Option<SystemTime>,
    seen: DatabaseState,
}

impl Stamp {
    fn of(path: &Path) -> Result<Self, Error> {
        // The time first: whatever is written after it is told by it.
        let written = std::fs::metadata(path).and_then(|found| found.modified()).ok();
        Ok(Self { written, seen: sqlite::look(path)? })
    }

    /// Whether nobody wrote it since.
    fn is_of(&self, path: &Path) -> bool {
        Self::of(path).is_ok_and(|now| now == *self)
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

impl AuditSource {
    async fn look_inside(&self) -> Result<(), Error> {
        match self {
            Self::Sqlite { path, stamp } => sqlite::look_inside(path, stamp.seen).await,
            // Every table is ours, or reading fails.
            Self::Postgres(_) => Ok(()),
        }
    }

    async fn connect(&self) -> Result<DatabaseConnection, Error> {
        match self {
            Self::Sqlite { path, stamp } => sqlite::auditing(path, stamp.seen).await,
            Self::Postgres(server) => server.reading().await,
        }
    }
}

/// Closes a connection.
async fn close(connection: DatabaseConnection) {
    // It only read, so there is nothing left to fail.
    let _ = connection.close().await;
}

impl Audit {
    /// Looks at the store in a directory, and its database.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none; [`Error::Damaged`] and
    /// [`Error::Newer`] as [`crate::Database::open`].
    pub async fn open(directory: &Path, address: &DatabaseAddress) -> Result<Self, Error> {
        let (source, place) = match address {
            DatabaseAddress::Sqlite => {
                let path = directory.join(sqlite::DATABASE);
                let stamp = Stamp::of(&path)?;
                if stamp.seen == DatabaseState::Nothing {
                    let what = format!("journal in {}", directory.display());
                    return Err(Error::NotFound { what });
                }
                let place = DatabasePlace::Sqlite(path.clone());
                (AuditSource::Sqlite { path, stamp }, place)
            }
            DatabaseAddress::Postgres(address) => {
                let server = Arc::new(PostgresServer::new(address.clone())?);
                (AuditSource::Postgres(Arc::clone(&server)), DatabasePlace::Postgres(server))
            }
        };
        let blobs = DatabaseBlobs::new(BlobDirectory::at(&directory.join("blobs")), &place);
        let audit = Self { directory: directory.to_owned(), blobs, source };
        audit.settled(async |this| this.source.look_inside().await).await?;
        Ok(audit)
    }

    /// Reads through connections that make no files where that is possible. Such a one
    /// sees no log: if anybody began to write meanwhile, what was read may be old or
    /// half of something, and is read again through connections that share.
    async fn settled<T>(&self, read: impl AsyncFn(&Self) -> Result<T, Error>) -> Result<T, Error> {
        let found = read(self).await;
        match &self.source {
            AuditSource::Sqlite { path, stamp }
                if stamp.seen == DatabaseState::Whole && !stamp.is_of(path) =>
            {
                let stamp = Stamp { seen: DatabaseState::Logged, ..stamp.clone() };
                let source = AuditSource::Sqlite { path: path.clone(), stamp };
                read(&Self { source, ..self.clone() }).await
            }
            AuditSource::Sqlite { .. } | AuditSource::Postgres(_) => found,
        }
    }

    /// At most two sessions whose names begin like that, also ones that only the log has.
    ///
    /// # Errors
    /// What the disk says.
    pub async fn named(&self, beginning: &str) -> Result<Vec<SessionId>, Error> {
        self.settled(async |this| this.try_named(beginning).await).await
    }

    async fn try_named(&self, beginning: &str) -> Result<Vec<SessionId>, Error> {
        let mut connection = self.connection().await?;
        let found = read::named(&mut connection, beginning).await?;
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
                let impossible = read::sessions(&mut connection, &mut names).await?;
                report.faults.extend(impossible.into_iter().map(|name| {
                    let what = format!("it has a session with the impossible name {name:?}");
                    Finding::file(sqlite::DATABASE, what)
                }));
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

    async fn connection(&self) -> Result<DatabaseConnection, Error> {
        let mut connection = self.source.connect().await?;
        sql::query("BEGIN").execute(&mut connection).await.map_err(read::wrong)?;
        Ok(connection)
    }

    /// Checks the log, and what is beside it. Gives the connection back.
    async fn log(
        &self,
        connection: DatabaseConnection,
        asked: &AuditRequest,
    ) -> Result<(DatabaseConnection, LogFindings), Error> {
        let (this, asked) = (self.clone(), asked.clone());
        let runtime = tokio::runtime::Handle::current();
        // Hashing takes a processor to itself.
        blocking(move || runtime.block_on(this.check_log(connection, &asked))).await
    }

    async fn check_log(
        &self,
        mut connection: DatabaseConnection,
        asked: &AuditRequest,
    ) -> Result<(DatabaseConnection, LogFindings), Error> {
        let copy = LogCopy::new(outrigger_audit::directory(&self.directory));
        let own_key = outrigger_audit::verifying_key(&self.directory)?;
        // The copy is opened before the log that it may only lag behind is read.
        let lines = copy.lines()?;
        let newest = copy.checkpoint()?;
        let name = || "audit/checkpoint".to_owned();
        let mut against: Vec<_> =
            newest.map(|note| ExternalCheckpoint { name: name(), note }).into_iter().collect();
        against.extend(asked.against.iter().cloned());
        let newest = read::newest_sizes(&mut connection).await?;
        let key = asked.key.clone().or(own_key);
        let mut check = LogVerifier::new(key, &against, lines, newest);
        read::along(&mut connection, &mut check).await?;
        // What is missing is looked for after the log: a writer may have made it meanwhile.
        let checked = check.finish(copy.size().ok(), copy.checkpoint()?.is_some())?;
        Ok((connection, checked))
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
        for WalkOutcome { events, uncovered, is_removed, fault } in walked.into_iter().flatten() {
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
    ) -> Result<Vec<WalkOutcome>, Error> {
        let mut connection = self.connection().await?;
        let mut walked = Vec::new();
        loop {
            let next = queue.lock().expect("nobody panics while taking a name").next();
            let Some(session) = next else { break };
            let known = read::links(&mut connection, &session, corrections).await?;
            walked.push(walk(&mut connection, &session, &known, &self.blobs, progress).await?);
            progress.finish_session();
        }
        close(connection).await;
        Ok(walked)
    }

    /// Proves an event, or the last one of a session that a checkpoint covers.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is no such event, or no checkpoint covers it
    /// yet; [`Error::Damaged`] where what is stored proves nothing; [`Error::TooLarge`]
    /// with more than [`outrigger_audit::limits::PROOF_LINKS_MAX`] events up to the entry that covers it.
    pub async fn prove(
        &self,
        session: &SessionId,
        seq: Option<Seq>,
        text: EventText,
    ) -> Result<Proof, Error> {
        self.settled(async |this| {
            let mut connection = this.connection().await?;
            let proof = match outrigger_audit::verifying_key(&this.directory) {
                Ok(Some(key)) => prove(&mut connection, session, seq, text, &key).await,
                Ok(None) => Err(Error::damaged("audit/key.pub", "it is missing")),
                Err(error) => Err(error.into()),
            };
            close(connection).await;
            let proof = proof?;
            let damaged = |what: String| Error::damaged("the audit log", what);
            proof.check(None).map_err(|fault| damaged(format!("it proves nothing: {fault}")))?;
            Ok(proof)
        })
        .await
    }
}
