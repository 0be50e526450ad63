//! Sessions in one file: written with their chains, and taken in only where these hold.
//!
//! Whoever makes such a file can make up a session that fits: the chain says that nothing
//! is missing and nothing was changed since, not who wrote it.

use crate::sql;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::sql::connection::DatabaseConnection;
use futures_util::TryStreamExt;
use outrigger_agent::{Digest, Seq, SessionId};
use outrigger_audit::chain;
use serde::{Deserialize, Serialize};

use super::archive::{self, ArchiveWriter, Head};
use crate::Error;
use crate::database::store::Database;
use crate::event::{ChainWalk, StoredEvent, blob_names};
use crate::files::blocking;
use crate::sql::fault;
use crate::sql::journal::import::{Import, Line, SessionExport};
use crate::sql::journal::read::Row;

const FIRST: &str = "outrigger-sessions";
const FORMAT: u32 = 1;
const DOING: &str = "writing a session to a file";
const ROW: &str = "SELECT created_at_ms, last_at_ms, head_seq, head_link, title, status \
    FROM sessions WHERE session = $1";
const EVENTS: &str = "SELECT seq, at_ms, format, payload, blob, link FROM events \
    WHERE session = $1 ORDER BY seq";

/// What a file says of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct About {
    sessions: Vec<SessionExport>,
}

/// Writes sessions into a file, and the blobs that their events name. `room` is an empty
/// folder, for texts on their way. Gives how many events there were.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::Damaged`] where the chain of one does not hold.
pub async fn export(
    store: &Database,
    sessions: &[SessionId],
    (file, room): (File, PathBuf),
) -> Result<u64, Error> {
    let (mut about, mut blobs, mut events) = (About { sessions: Vec::new() }, Vec::new(), 0);
    for session in sessions {
        let (row, named, count) = spool(store, session, &room).await?;
        events += count;
        about.sessions.push(row);
        blobs.extend(named);
    }
    blobs.sort();
    blobs.dedup();
    for digest in blobs.iter().filter_map(|name| Digest::parse(name)) {
        if store.blobs.directory.size(&digest)?.is_none() {
            match store.blobs.fetch(&digest).await {
                Ok(()) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    let directory = store.blobs.directory.clone();
    blocking(move || {
        let mut writing = ArchiveWriter::new(file);
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
    store: &Database,
    session: &SessionId,
    room: &Path,
) -> Result<(SessionExport, Vec<String>, u64), Error> {
    type Columns = (i64, i64, i64, String, Option<String>, Option<String>);
    let wrong = |e| fault::of(DOING, e);
    let io = |e| Error::io(DOING, e);
    let mut connection = store.readers.connection().await?;
    // One moment for both.
    sql::query("BEGIN").execute(&mut connection).await.map_err(wrong)?;
    let query = sql::query_as(ROW).bind(session.to_string());
    let row: Option<Columns> = query.fetch_optional(&mut connection).await.map_err(wrong)?;
    let spooled = match row {
        None => Err(Error::no_session(session)),
        Some(row) => {
            let path = room.join(session.as_str());
            let file = BufWriter::new(File::create(path).map_err(io)?);
            write_events(store, &mut connection, session, file).await.map(|it| (row, it))
        }
    };
    sql::query("COMMIT").execute(&mut connection).await.map_err(wrong)?;
    let ((created, last, head, link, title, status), (end, blobs)) = spooled?;
    let seq = u64::try_from(head).map_or(Seq(0), Seq);
    let walk = ChainWalk { session, seq: end.0, link: end.1.clone() };
    walk.end(seq, &link)?;
    let exported = SessionExport {
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
    store: &Database,
    connection: &mut DatabaseConnection,
    session: &SessionId,
    mut file: BufWriter<File>,
) -> Result<((Seq, Digest), Vec<String>), Error> {
    type Columns = (i64, i64, i64, Option<String>, Option<String>, String);
    let wrong = |e| fault::of(DOING, e);
    let io = |e| Error::io(DOING, e);
    let (mut walk, mut blobs) =
        (ChainWalk { session, seq: Seq(0), link: chain::origin(session) }, Vec::new());
    let mut rows = sql::query_as(EVENTS).bind(session.to_string()).fetch(connection);
    while let Some(row) = rows.try_next().await.map_err(wrong)? {
        let (seq, at_ms, format, payload, blob, link): Columns = row;
        let broken = || Error::damaged_event(session, walk.seq.next(), "its row is none");
        let seq = u64::try_from(seq).map(Seq).map_err(|_| broken())?;
        let row = Row {
            seq,
            at_ms: at_ms.try_into().map_err(|_| broken())?,
            format: format.try_into().map_err(|_| broken())?,
            payload,
            blob,
            link,
        };
        let found = store.text_of(session, row).await?;
        blob_names(found.text.as_bytes(), |name| blobs.push(name.to_owned()));
        let StoredEvent { seq, at_ms, format, .. } = found;
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
/// is a session of the name; [`Error::Newer`]; as [`Database::checkpoint`].
pub async fn import(store: &Database, file: File, room: &Path) -> Result<Vec<SessionId>, Error> {
    let (blobs, place) = (store.blobs.directory.clone(), room.to_owned());
    let (taken, named) = std::sync::mpsc::channel();
    let about: About = blocking(move || {
        archive::read(file, (FIRST, FORMAT), |about: &About, name, content| {
            let foreign = || Error::damaged("the file", format!("{name:?} is no part of one"));
            let told = |known: &SessionExport, of: &str| known.session.as_str() == of;
            match name.split_once('/') {
                Some(("events", of)) if about.sessions.iter().any(|it| told(it, of)) => {
                    copy(content, &place.join(of))
                }
                Some(("blobs", name)) => {
                    let digest = Digest::parse(name).ok_or_else(foreign)?;
                    blobs.store_as(&digest, content)?;
                    // It is heard to its end.
                    let _ = taken.send(digest);
                    Ok(())
                }
                _ => Err(foreign()),
            }
        })
    })
    .await?;
    for digest in named.into_iter().collect::<Vec<_>>() {
        store.blobs.publish(&digest).await?;
    }
    let names = about.sessions.iter().map(|it| it.session.clone()).collect();
    let (room, blobs) = (room.to_owned(), Arc::new(store.blobs.clone()) as _);
    store.writer.import(Import { room, sessions: about.sessions, blobs }).await?;
    Ok(names)
}

fn copy(content: &mut dyn Read, path: &Path) -> Result<(), Error> {
    let io = |e| Error::io("reading a session from a file", e);
    let mut file = File::create_new(path).map_err(io)?;
    std::io::copy(content, &mut file).map(drop).map_err(io)
}
