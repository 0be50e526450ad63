//! Puts entries of the log and a signed checkpoint of them into a transaction.
//!
//! Must never make an append fail for what is wrong with the log: an append goes on
//! without an entry then, and whoever asks for a checkpoint is told why.

use crate::sql;
use std::path::{Path, PathBuf};

use crate::sql::connection::DatabaseConnection;
use outrigger_agent::{Digest, Seq, SessionId};
use outrigger_audit::{Frontier, LogCopy, LogEntry, Signer};

use crate::sql::fault;
use crate::sql::integer::number;
use crate::sql::journal::statements::Texts;
use crate::{Error, limits};

/// What a transaction added to the log.
#[derive(Debug)]
pub(crate) struct LogAppend {
    /// The number of the first entry.
    from: u64,
    entries: Vec<LogEntry>,
    note: String,
}

impl LogAppend {
    /// Whom the entries are of.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &SessionId> {
        self.entries.iter().map(|entry| &entry.session)
    }
}

/// Why nothing was added.
#[derive(Debug)]
pub(crate) enum AnchorError {
    /// The log or its key can't be used. Nothing was written, and the transaction can go on.
    Log(Error),
    /// The transaction has failed.
    Database(Error),
}

impl From<AnchorError> for Error {
    fn from(refused: AnchorError) -> Self {
        let (AnchorError::Log(error) | AnchorError::Database(error)) = refused;
        error
    }
}

/// Signs, and keeps the copy beside the database.
#[derive(Debug)]
pub(crate) struct Anchor {
    directory: PathBuf,
    signer: Option<Signer>,
    copy: LogCopy,
}

fn wrong(error: sqlx::Error) -> Error {
    fault::of("writing the audit log", error)
}

/// Lets pass where this directory's key is the one that signs the log of the database, which the
/// first that opens it says. What another key signed would look forged.
pub(crate) async fn same_signer(
    connection: &mut DatabaseConnection,
    store: &Path,
) -> Result<(), Error> {
    const SAY: &str = "INSERT INTO meta (name, value) VALUES ('signer', $1) \
        ON CONFLICT (name) DO NOTHING";
    const KNOWN: &str = "SELECT value FROM meta WHERE name = 'signer'";
    let own = Signer::open(&outrigger_audit::directory(store))?;
    let own = own.key().as_str();
    sql::query(SAY).bind(own).execute(connection).await.map_err(wrong)?;
    let (known,): (String,) = sql::query_as(KNOWN).fetch_one(connection).await.map_err(wrong)?;
    if known == own {
        return Ok(());
    }
    let place = outrigger_audit::directory(store).display().to_string();
    Err(Error::damaged(
        place,
        "its key is not the one that signs the log of this database: copy key and key.pub from the server that has it open",
    ))
}

impl Anchor {
    pub(crate) fn new(store: &Path) -> Self {
        let directory = outrigger_audit::directory(store);
        Self { copy: LogCopy::new(directory.clone()), directory, signer: None }
    }

    fn signer(&mut self) -> Result<&Signer, Error> {
        match &mut self.signer {
            Some(signer) => Ok(signer),
            none => Ok(none.insert(Signer::open(&self.directory)?)),
        }
    }

    /// Adds entries within the transaction that is open.
    pub(crate) async fn add(
        &mut self,
        connection: &mut DatabaseConnection,
        texts: &mut Texts,
        entries: Vec<LogEntry>,
    ) -> Result<LogAppend, AnchorError> {
        let wrong = |e| AnchorError::Database(wrong(e));
        let mut frontier = self.frontier(connection).await.map_err(AnchorError::Log)?;
        let from = frontier.size();
        entries.iter().for_each(|entry| frontier.push(entry.hash()));
        let note = self.signer().map_err(AnchorError::Log)?.sign(&frontier);
        let mut numbered = (from..).zip(&entries).peekable();
        while numbered.peek().is_some() {
            let some: Vec<_> = numbered.by_ref().take(limits::STATEMENT_ROWS_MAX).collect();
            let mut query = sql::query(texts.log(some.len()));
            for (place, LogEntry { session, seq, link }) in some {
                query = query.bind(number(place)).bind(session.to_string());
                query = query.bind(number(seq.0)).bind(link.to_string());
            }
            query.execute(&mut *connection).await.map_err(wrong)?;
        }
        sql::query("INSERT INTO checkpoints (size, note, edge) VALUES ($1, $2, $3)")
            .bind(number(frontier.size()))
            .bind(note.as_str())
            .bind(frontier.to_text())
            .execute(connection)
            .await
            .map_err(wrong)?;
        Ok(LogAppend { from, entries, note })
    }

    /// Where the log ends, by its newest checkpoint, which must be ours and fit.
    async fn frontier(&mut self, connection: &mut DatabaseConnection) -> Result<Frontier, Error> {
        const TEXT: &str = "SELECT (SELECT MAX(entry) FROM log), size, note, edge \
            FROM checkpoints ORDER BY size DESC LIMIT 1";
        const ALONE: &str = "SELECT MAX(entry) FROM log";
        type Columns = (Option<i64>, i64, String, String);
        let damaged = |what: &str| Error::damaged("the audit log", what);
        let row: Option<Columns> =
            sql::query_as(TEXT).fetch_optional(&mut *connection).await.map_err(wrong)?;
        let Some((last, size, note, frontier)) = row else {
            let (last,): (Option<i64>,) =
                sql::query_as(ALONE).fetch_one(connection).await.map_err(wrong)?;
            return match last {
                None => Ok(Frontier::default()),
                Some(_) => Err(damaged("its checkpoints are missing")),
            };
        };
        if last.and_then(|last| last.checked_add(1)) != Some(size) {
            return Err(damaged("its entries do not end where its newest checkpoint does"));
        }
        let frontier = u64::try_from(size).ok().and_then(|size| Frontier::parse(size, &frontier));
        let frontier = frontier.ok_or_else(|| damaged("its newest checkpoint is none"))?;
        let opened = self.signer()?.key().open_own(&note);
        let fits = opened.is_ok_and(|opened| {
            (opened.checkpoint.size, opened.checkpoint.root) == (frontier.size(), frontier.root())
        });
        if !fits {
            return Err(damaged("its newest checkpoint is not one that we signed"));
        }
        // The copy never runs ahead of what is committed, and the write lock is ours: two
        // logs of one size must never both be signed.
        if self.copy.size()? > frontier.size() {
            return Err(damaged("its copy has more entries: an older database was put in place"));
        }
        Ok(frontier)
    }

    /// Brings the copy beside the database up to what was committed. It is not the
    /// truth, so failing to is no failure: the next time catches up.
    pub(crate) async fn copy(&mut self, connection: &mut DatabaseConnection, added: &LogAppend) {
        const TEXT: &str = "SELECT session, seq, link FROM log WHERE entry >= $1 AND entry < $2 \
            ORDER BY entry";
        let Ok(mut writing) = self.copy.write() else { return };
        if writing.size < added.from {
            let query = sql::query_as(TEXT).bind(number(writing.size)).bind(number(added.from));
            let rows: Result<Vec<(String, i64, String)>, _> = query.fetch_all(connection).await;
            let entry = |(session, seq, link): (String, i64, String)| {
                let (session, link) = (SessionId::new(session)?, Digest::parse(&link)?);
                Some(LogEntry { session, seq: Seq(seq.try_into().ok()?), link })
            };
            let rows = rows.ok().and_then(|rows| rows.into_iter().map(entry).collect());
            let Some(before) = rows else { return };
            let before: Vec<LogEntry> = before;
            if writing.append(writing.size, &before).is_err() {
                return;
            }
        }
        if writing.append(added.from, &added.entries).is_ok() {
            let _ = writing.checkpoint(&added.note);
        }
    }
}

/// Which sessions are looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SessionSelection<'a> {
    All,
    /// At most [`limits::HEADS_MAX`].
    These(&'a [SessionId]),
}

/// Sessions with events behind their last entry, at most [`limits::ANCHOR_ENTRIES_MAX`].
pub(crate) async fn behind(
    connection: &mut DatabaseConnection,
    asked: SessionSelection<'_>,
) -> Result<Vec<LogEntry>, Error> {
    const TEXT: &str = "SELECT session, head_seq, head_link FROM sessions WHERE head_seq > \
        COALESCE((SELECT MAX(log.seq) FROM log WHERE log.session = sessions.session), 0)";
    let mut text = TEXT.to_owned();
    let names: &[SessionId] = match asked {
        SessionSelection::All => &[],
        SessionSelection::These(names) => {
            let places: Vec<String> = (1..=limits::HEADS_MAX).map(|at| format!("${at}")).collect();
            text += &format!(" AND session IN ({})", places.join(", "));
            names
        }
    };
    text += &format!(" LIMIT {}", limits::ANCHOR_ENTRIES_MAX);
    let mut query = sql::query_as(text);
    if let Some(last) = names.last() {
        for place in 0..limits::HEADS_MAX {
            query = query.bind(names.get(place).unwrap_or(last).to_string());
        }
    }
    let rows: Vec<(String, i64, String)> = query.fetch_all(connection).await.map_err(wrong)?;
    let entry = |(session, seq, link): (String, i64, String)| {
        let (session, link) = (SessionId::new(session)?, Digest::parse(&link)?);
        Some(LogEntry { session, seq: Seq(seq.try_into().ok()?), link })
    };
    // A broken row is the audit's to name, and must not keep the others from the log.
    Ok(rows.into_iter().filter_map(entry).collect())
}
