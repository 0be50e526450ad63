//! Sessions in one file: written with their chains, and taken in only where these hold.
//!
//! Whoever makes such a file can make up a session that fits: the chain says that nothing
//! is missing and nothing was changed since, not who wrote it.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use futures_util::TryStreamExt;
use outrigger_agent::{Digest, Seq, SessionId};
use outrigger_audit::{LogEntry, chain};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::SqliteConnection;

use super::anchor::Added;
use super::batch::{Batch, number};
use super::space::named;
use super::{Sqlite, fault};
use crate::directory::blocking;
use crate::entry::{Found, Walk, cut};
use crate::transfer::{self, Head, Writing};
use crate::{Directory, Error, limits};

const FIRST: &str = "outrigger-sessions";
const FORMAT: u32 = 1;
const DOING: &str = "writing a session to a file";
const ROW: &str = "SELECT created_at_ms, last_at_ms, head_seq, head_link, title, status \
    FROM sessions WHERE session = $1";
const EVENTS: &str = "SELECT seq, at_ms, format, payload, blob, link FROM events \
    WHERE session = $1 ORDER BY seq";
const KNOWN: &str = "SELECT COALESCE(MAX(seq), 0) FROM events WHERE session = $1";
const EVENT: &str = "INSERT INTO events (session, seq, at_ms, format, payload, blob, link) \
    VALUES ($1, $2, $3, $4, $5, $6, $7)";
const SESSION: &str = "INSERT INTO sessions \
    (session, created_at_ms, last_at_ms, head_seq, head_link, title, status) \
    VALUES ($1, $2, $3, $4, $5, $6, $7)";

/// What a file says of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct About {
    sessions: Vec<Exported>,
}

/// A session in a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Exported {
    session: SessionId,
    created_at_ms: u64,
    last_at_ms: u64,
    head: Seq,
    link: Digest,
    title: Option<String>,
    status: Option<String>,
}

/// An event in a file, a line each.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    seq: Seq,
    at_ms: u64,
    format: u32,
    link: String,
    text: String,
}

/// What the writer is to take in.
#[derive(Debug)]
pub(super) struct Import {
    room: PathBuf,
    sessions: Vec<Exported>,
    blobs: Directory,
}

impl Sqlite {
    /// Writes sessions into a file, and the blobs that their events name. `room` is an empty
    /// folder, for texts on their way. Gives how many events there were.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Damaged`] where the chain of one does not hold.
    pub async fn export(
        &self,
        sessions: &[SessionId],
        (file, room): (File, PathBuf),
    ) -> Result<u64, Error> {
        let (mut about, mut blobs, mut events) = (About { sessions: Vec::new() }, Vec::new(), 0);
        for session in sessions {
            let (row, named, count) = self.spool(session, &room).await?;
            events += count;
            about.sessions.push(row);
            blobs.extend(named);
        }
        blobs.sort();
        blobs.dedup();
        let directory = self.blobs.clone();
        blocking(move || {
            let mut writing = Writing::new(file);
            let names: Vec<_> = about.sessions.iter().map(|it| it.session.clone()).collect();
            let first = serde_json::to_vec(&Head { format: FORMAT, rest: about });
            let first = first.expect("it is plain data");
            writing.add(FIRST, first.len() as u64, first.as_slice())?;
            for session in names {
                writing.add_file(&format!("events/{session}"), &room.join(session.as_str()))?;
            }
            for digest in blobs.iter().filter_map(|name| Digest::parse(name)) {
                let Some(bytes) = directory.size(&digest)? else { continue };
                writing.add(&format!("blobs/{digest}"), bytes, directory.open_blob(&digest)?)?;
            }
            writing.end()
        })
        .await?;
        Ok(events)
    }

    /// Writes the events of a session into a file of its own, and checks their chain.
    async fn spool(
        &self,
        session: &SessionId,
        room: &Path,
    ) -> Result<(Exported, Vec<String>, u64), Error> {
        type Row = (i64, i64, i64, String, Option<String>, Option<String>);
        let wrong = |e| fault::of(DOING, e);
        let io = |e| Error::io(DOING, e);
        let mut connection = self.readers.connection().await?;
        // One moment for both.
        sqlx::raw_sql("BEGIN").execute(&mut *connection).await.map_err(wrong)?;
        let query = sqlx::query_as(ROW).bind(session.to_string());
        let row: Option<Row> = query.fetch_optional(&mut *connection).await.map_err(wrong)?;
        let spooled = match row {
            None => Err(Error::no_session(session)),
            Some(row) => {
                let path = room.join(session.as_str());
                let file = BufWriter::new(File::create(path).map_err(io)?);
                self.write_events(&mut connection, session, file).await.map(|it| (row, it))
            }
        };
        sqlx::raw_sql("COMMIT").execute(&mut *connection).await.map_err(wrong)?;
        let ((created, last, head, link, title, status), (end, blobs)) = spooled?;
        let seq = u64::try_from(head).map_or(Seq(0), Seq);
        let walk = Walk { session, seq: end.0, link: end.1.clone() };
        walk.end(seq, &link)?;
        let exported = Exported {
            session: session.clone(),
            created_at_ms: created.try_into().unwrap_or(0),
            last_at_ms: last.try_into().unwrap_or(0),
            head: end.0,
            link: end.1,
            title,
            status,
        };
        Ok((exported, blobs, end.0.0))
    }

    async fn write_events(
        &self,
        connection: &mut SqliteConnection,
        session: &SessionId,
        mut file: BufWriter<File>,
    ) -> Result<((Seq, Digest), Vec<String>), Error> {
        type Row = (i64, i64, i64, Option<String>, Option<String>, String);
        let wrong = |e| fault::of(DOING, e);
        let io = |e| Error::io(DOING, e);
        let (mut walk, mut blobs) =
            (Walk { session, seq: Seq(0), link: chain::origin(session) }, Vec::new());
        let mut rows = sqlx::query_as(EVENTS).bind(session.to_string()).fetch(connection);
        while let Some(row) = rows.try_next().await.map_err(wrong)? {
            let (seq, at_ms, format, payload, blob, link): Row = row;
            let broken = || Error::damaged_event(session, walk.seq.next(), "its row is none");
            let seq = u64::try_from(seq).map(Seq).map_err(|_| broken())?;
            let row = super::readers::Row {
                seq,
                at_ms: at_ms.try_into().map_err(|_| broken())?,
                format: format.try_into().map_err(|_| broken())?,
                payload,
                blob,
                link,
            };
            let found = self.text_of(session, row).await?;
            named(found.text.as_bytes(), |name| blobs.push(name.to_owned()));
            let Found { seq, at_ms, format, .. } = found;
            let (link, text) = (found.link.clone(), found.text.clone());
            walk.step(found)?;
            let line = serde_json::to_string(&Line { seq, at_ms, format, link, text });
            let line = line.expect("it is plain data");
            file.write_all(line.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(io)?;
        }
        file.flush().map_err(io)?;
        Ok(((walk.seq, walk.link), blobs))
    }

    /// Takes in what a file has, all of it or nothing, and covers it with a checkpoint.
    /// Accounts are not charged. `room` is an empty folder. Gives the sessions.
    ///
    /// # Errors
    /// [`Error::Damaged`] where something does not verify; [`Error::Conflict`] where there
    /// is a session of the name; [`Error::Newer`]; as [`Self::checkpoint`].
    pub async fn import(&self, file: File, room: &Path) -> Result<Vec<SessionId>, Error> {
        let (blobs, place) = (self.blobs.clone(), room.to_owned());
        let about: About = blocking(move || {
            transfer::read(file, (FIRST, FORMAT), |about: &About, name, content| {
                let foreign = || Error::damaged("the file", format!("{name:?} is no part of one"));
                let told = |known: &Exported, of: &str| known.session.as_str() == of;
                match name.split_once('/') {
                    Some(("events", of)) if about.sessions.iter().any(|it| told(it, of)) => {
                        copy(content, &place.join(of))
                    }
                    Some(("blobs", name)) => {
                        blobs.store_as(&Digest::parse(name).ok_or_else(foreign)?, content)
                    }
                    _ => Err(foreign()),
                }
            })
        })
        .await?;
        let names = about.sessions.iter().map(|it| it.session.clone()).collect();
        let (room, blobs) = (room.to_owned(), self.blobs.clone());
        self.writer.import(Import { room, sessions: about.sessions, blobs }).await?;
        Ok(names)
    }
}

fn copy(content: &mut dyn Read, path: &Path) -> Result<(), Error> {
    let io = |e| Error::io("reading a session from a file", e);
    let mut file = File::create_new(path).map_err(io)?;
    std::io::copy(content, &mut file).map(drop).map_err(io)
}

/// Takes sessions in, in one transaction.
pub(super) async fn take(
    connection: &mut SqliteConnection,
    batch: &mut Batch,
    import: &Import,
) -> Result<Added, Error> {
    let wrong = |e| fault::of("taking in a session", e);
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *connection).await.map_err(wrong)?;
    let mut entries = Vec::new();
    for exported in &import.sessions {
        let Exported { session, head, link, .. } = exported;
        let query = sqlx::query_as(KNOWN).bind(session.to_string());
        let (found,): (i64,) = query.fetch_one(&mut *connection).await.map_err(wrong)?;
        let found = Seq(found.try_into().unwrap_or(0));
        if found > Seq(0) {
            let (session, expected) = (session.clone(), Seq(0));
            return Err(Error::Conflict { session, expected, found });
        }
        events(connection, import, exported).await?;
        let query = sqlx::query(SESSION)
            .bind(session.to_string())
            .bind(number(exported.created_at_ms))
            .bind(number(exported.last_at_ms))
            .bind(number(head.0))
            .bind(link.to_string())
            .bind(exported.title.clone().map(|text| cut(text, limits::TITLE_BYTES_MAX)))
            .bind(exported.status.clone().map(|text| cut(text, limits::STATUS_BYTES_MAX)));
        query.execute(&mut *connection).await.map_err(wrong)?;
        entries.push(LogEntry { session: session.clone(), seq: *head, link: link.clone() });
    }
    let added = batch.anchor.add(connection, &mut batch.texts, entries).await?;
    sqlx::query("COMMIT").execute(connection).await.map_err(fault::of_commit)?;
    Ok(added)
}

async fn events(
    connection: &mut SqliteConnection,
    import: &Import,
    exported: &Exported,
) -> Result<(), Error> {
    let wrong = |e| fault::of("taking in a session", e);
    let io = |e| Error::io("reading a session from a file", e);
    let Exported { session, head, link, .. } = exported;
    let none = |what: String| Error::damaged(format!("session {session} of the file"), what);
    let file = File::open(import.room.join(session.as_str()));
    let file = file.map_err(|_| none("its events are missing".to_owned()))?;
    let mut walk = Walk { session, seq: Seq(0), link: chain::origin(session) };
    for line in BufReader::new(file).lines() {
        let line: Line =
            serde_json::from_str(&line.map_err(io)?).map_err(|e| none(e.to_string()))?;
        let Line { seq, at_ms, format, link, text } = line;
        Error::within("an event (bytes)", text.len() as u64, limits::EVENT_BYTES_MAX as u64)?;
        Error::within("a time (ms)", at_ms, i64::MAX as u64)?;
        walk.step(Found { seq, at_ms, format, text: text.clone(), link: link.clone() })?;
        let (payload, blob) = match text.len() <= limits::PAYLOAD_INLINE_BYTES_MAX {
            true => (Some(text), None),
            false => (None, Some(import.blobs.keep(text.as_bytes())?.to_string())),
        };
        let query = sqlx::query(EVENT)
            .bind(session.to_string())
            .bind(number(seq.0))
            .bind(number(at_ms))
            .bind(i64::from(format))
            .bind(payload)
            .bind(blob)
            .bind(link);
        query.execute(&mut *connection).await.map_err(wrong)?;
    }
    if walk.seq == Seq(0) || walk.seq != *head || walk.link != *link {
        return Err(none("its events do not end where it says".to_owned()));
    }
    Ok(())
}
