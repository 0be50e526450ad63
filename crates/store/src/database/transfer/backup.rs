//! A copy of a whole store in one file, made while others work, and the way back.
//!
//! Owns that a copy is of one moment: the database is copied in one transaction, blobs
//! after it, which are there before a row names them; the log beside the database is made
//! of the copy, so that it never runs ahead. Must never carry the key that signs, unless
//! that is asked for.

use crate::sql;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use crate::sql::connection::DatabaseConnection;
use futures_util::TryStreamExt;
use futures_util::stream::TryChunksError;
use outrigger_agent::Digest;
use outrigger_audit::files::sync_directory;
use outrigger_audit::{self as audit, LogCopy, LogCopyWriter, Report};
use serde::{Deserialize, Serialize};

use super::archive::{self, ArchiveWriter, Head};
use crate::database::audit::{Audit, AuditRequest};
use crate::database::place::DatabaseAddress;
use crate::database::sqlite;
use crate::database::store::Database;
use crate::files::blocking;
use crate::sql::fault;
use crate::sql::log::read::{entries, newest_checkpoint};
use crate::{BlobDirectory, Error, limits};

const FIRST: &str = "outrigger-backup";
const FORMAT: u32 = 1;
const DOING: &str = "making a backup";
const RESTORING: &str = "restoring a backup";

/// Whether the key that signs the log goes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SigningKey {
    /// Whoever has the file can sign what they like.
    Included,
    /// What was signed can be checked, and nothing new is signed after it was restored.
    LeftOut,
}

/// What a backup says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Backup {
    /// When it was begun, in milliseconds since 1970.
    made_at_ms: u64,
    /// Whether it has the key that signs.
    has_key: bool,
}

/// What was restored.
#[derive(Debug, Clone)]
pub struct RestoreOutcome {
    /// When the backup was begun, in milliseconds since 1970.
    pub made_at_ms: u64,
    /// Whether it had the key that signs.
    pub has_key: bool,
    /// What an audit of it found: nothing that is wrong.
    pub report: Report,
}

/// Copies the store into `file`, and whatever is in the folder `patches`. `room` is an
/// empty folder for the copy of the database, which goes. Gives what an audit of the
/// copy found.
///
/// # Errors
/// What the disk says; [`Error::Damaged`] for a blob that is not what its name says.
pub async fn backup(
    store: &Database,
    (file, room): (File, PathBuf),
    patches: &Path,
    key: SigningKey,
    made_at_ms: u64,
) -> Result<Report, Error> {
    // What is wrong with the log is found by the audit.
    let _ = store.checkpoint().await;
    let directory = &*store.directory;
    copy_database(store.place.file()?, &room.join(sqlite::DATABASE)).await?;
    copy_log(directory, &room).await?;
    let blobs = directory.join("blobs");
    symlink(&blobs, room.join("blobs")).map_err(|e| Error::io(DOING, e))?;
    let report = Audit::open(&room, &DatabaseAddress::Sqlite)
        .await?
        .verify(&AuditRequest::default(), &Arc::default())
        .await?;
    let about = Backup { made_at_ms, has_key: key == SigningKey::Included };
    let patches = patches.to_owned();
    let own = audit::directory(directory).join("key");
    let (blobs, own) = (store.blobs.directory.clone(), about.has_key.then_some(own));
    blocking(move || {
        let mut writing = ArchiveWriter::new(file);
        let first = Head { format: FORMAT, rest: about };
        let first = serde_json::to_vec(&first).expect("it is plain data");
        writing.add(FIRST, first.len() as u64, first.as_slice())?;
        writing.add_file(sqlite::DATABASE, &room.join(sqlite::DATABASE))?;
        for name in ["key.pub", "log", "checkpoint"] {
            let path = audit::directory(&room).join(name);
            if path.exists() {
                writing.add_file(&format!("audit/{name}"), &path)?;
            }
        }
        own.map_or(Ok(()), |path| writing.add_file("audit/key", &path))?;
        add_blobs(&mut writing, &blobs)?;
        for entry in fs::read_dir(&patches).into_iter().flatten().flatten() {
            if let Some(name) = entry.file_name().to_str().filter(|name| is_patch(name)) {
                writing.add_file(&format!("patches/{name}"), &entry.path())?;
            }
        }
        writing.end()
    })
    .await?;
    Ok(report)
}

async fn copy_database(from: &Path, to: &Path) -> Result<(), Error> {
    let wrong = |e| fault::of(DOING, e);
    let mut connection = sqlite::copying(from).await?;
    let name = to.to_str().ok_or_else(|| Error::io(DOING, io::ErrorKind::InvalidInput.into()));
    let copied = match name {
        Ok(name) => sql::query("VACUUM INTO $1")
            .bind(name)
            .execute(&mut connection)
            .await
            .map(drop)
            .map_err(wrong),
        Err(error) => Err(error),
    };
    // It only read.
    let _ = connection.close().await;
    copied
}

/// Makes the log beside a copy of the database out of it.
async fn copy_log(from: &Path, room: &Path) -> Result<(), Error> {
    let directory = audit::directory(room);
    let io = |e| Error::io(DOING, e);
    fs::DirBuilder::new().mode(0o700).create(&directory).map_err(io)?;
    let public = audit::directory(from).join("key.pub");
    if public.exists() {
        fs::copy(public, directory.join("key.pub")).map_err(io)?;
    }
    let mut connection = sqlite::reading(&room.join(sqlite::DATABASE)).await?;
    let copy = LogCopy::new(directory);
    let mut writing = copy.write()?;
    copy_entries(&mut connection, &mut writing).await?;
    let newest = newest_checkpoint(&mut connection).await;
    // It only read.
    let _ = connection.close().await;
    if let Some((_, note)) = newest.map_err(|e| fault::of(DOING, e))? {
        writing.checkpoint(&note)?;
    }
    Ok(())
}

async fn copy_entries(
    connection: &mut DatabaseConnection,
    writing: &mut LogCopyWriter<'_>,
) -> Result<(), Error> {
    let mut chunks = pin!(entries(connection).try_chunks(limits::ANCHOR_ENTRIES_MAX));
    while let Some(entries) = chunks.try_next().await.map_err(|TryChunksError(_, e)| e)? {
        writing.append(writing.size, &entries)?;
    }
    Ok(())
}

fn add_blobs(writing: &mut ArchiveWriter, blobs: &BlobDirectory) -> Result<(), Error> {
    for listed in blobs.list()? {
        match blobs.open_blob(&listed.digest) {
            Ok(blob) => writing.add(&format!("blobs/{}", listed.digest), listed.bytes, blob)?,
            // Nothing names it, and it went.
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether a file of that name is a session's patch: no path of its own.
fn is_patch(name: &str) -> bool {
    let stem = name.strip_suffix(".patch").unwrap_or_default();
    outrigger_agent::SessionId::new(stem).is_some()
}

/// Puts what is in a backup into an empty folder, and audits it. What does not verify is an
/// error, and what was put there must not be used.
///
/// # Errors
/// [`Error::Damaged`] where the file is not as it was written, or what is in it is not;
/// [`Error::Newer`]; what the disk says.
pub async fn restore(file: File, into: &Path) -> Result<RestoreOutcome, Error> {
    let directory = into.to_owned();
    let Backup { made_at_ms, has_key } = blocking(move || unpack(file, &directory)).await?;
    let report = Audit::open(into, &DatabaseAddress::Sqlite)
        .await?
        .verify(&AuditRequest::default(), &Arc::default())
        .await?;
    match report.faults.first() {
        None => Ok(RestoreOutcome { made_at_ms, has_key, report }),
        Some(first) => Err(Error::damaged("the backup", first.to_string())),
    }
}

fn unpack(file: File, into: &Path) -> Result<Backup, Error> {
    let io = |e| Error::io(RESTORING, e);
    let blobs = BlobDirectory::open(&into.join("blobs"))?;
    for name in ["audit", "patches"] {
        fs::DirBuilder::new().mode(0o700).create(into.join(name)).map_err(io)?;
    }
    let about: Backup = archive::read(file, (FIRST, FORMAT), |_: &Backup, name, content| {
        let foreign = || Error::damaged("the backup", format!("{name:?} is no part of one"));
        match name.split_once('/') {
            None if name == sqlite::DATABASE => write(&into.join(name), content),
            Some(("audit", "key" | "key.pub" | "log" | "checkpoint")) => {
                write(&into.join(name), content)
            }
            Some(("patches", patch)) if is_patch(patch) => write(&into.join(name), content),
            Some(("blobs", digest)) => {
                let digest = Digest::parse(digest).ok_or_else(foreign)?;
                blobs.store_as(&digest, content)
            }
            _ => Err(foreign()),
        }
    })?;
    for name in ["audit", "patches", ""] {
        sync_directory(&into.join(name)).map_err(io)?;
    }
    Ok(about)
}

fn write(path: &Path, content: &mut dyn Read) -> Result<(), Error> {
    let io = |e| Error::io(RESTORING, e);
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path).map_err(io)?;
    io::copy(content, &mut file).and_then(|_| file.sync_all()).map_err(io)
}
