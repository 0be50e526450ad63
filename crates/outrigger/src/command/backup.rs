//! `outrigger backup`, `restore`, and `sessions export | import`: what is kept, in one file.
//!
//! Owns that a file is whole or not there, and that nothing comes into the data directory
//! before all of it was verified. Must never write over what is there.

use clap::Args;
use outrigger_agent::SessionId;
use outrigger_audit::Report;
use outrigger_store::transfer::{self, RestoreOutcome, SigningKey};
use serde_json::json;
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::compose;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::session::{self, now_ms};
use crate::show::{self, Screen, Tone, count, inert};

/// A copy of everything.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// Where it is written; a file that is there is left as it is.
    pub(crate) file: PathBuf,
    /// Include the key that signs the audit log. Whoever has the file can then sign what
    /// they like; without it, nothing new is signed after a restore.
    #[arg(long)]
    pub(crate) with_key: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The way back.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// What `outrigger backup` wrote.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What a backup has, in the order in which it comes into a data directory: the database
/// last, so that there is none before the rest is there.
const PARTS: [&str; 4] = ["blobs", "audit", "patches", "journal.db"];

pub(crate) async fn backup(paths: &Paths, asked: Backup) -> Outcome<u8> {
    let Backup { file, with_key, output } = asked;
    let store = compose::store(paths).await?;
    let mut screen = Screen::new(output);
    let key = if with_key { SigningKey::Included } else { SigningKey::LeftOut };
    let new = NewFile::create(&file)?;
    let patches = paths.patches();
    let work = transfer::backup(&store.database, new.parts()?, &patches, key, now_ms());
    let report = screen.during("copying", work).await?;
    new.finish()?;
    if output.json.is_some() {
        let file = file.display().to_string();
        let ok = report.is_clean();
        show::line(&json!({ "type": "backup", "file": file, "has_key": with_key, "ok": ok }))?;
    }
    screen.note(Tone::Good, format!("● {} in {}", held(&report), file.display()));
    let about = match with_key {
        true => "! it has the key that signs the audit log: keep it like that key",
        false => {
            "it has not the key that signs the audit log (audit/key): `--with-key` includes it"
        }
    };
    screen.note(if with_key { Tone::Warning } else { Tone::Detail }, about);
    let disks = "the disks of sandboxes are not in it";
    screen.note(Tone::Detail, disks);
    match report.faults.first() {
        None => Ok(0),
        Some(first) => {
            let text =
                format!("what was copied is not as it was written: {}", inert(&first.to_string()));
            Err(Failure::new(Kind::AuditFailed, text)
                .hint("The copy was made all the same; `outrigger restore` refuses it. `outrigger audit verify` names everything."))
        }
    }
}

fn held(report: &Report) -> String {
    format!("{} with {}", count(report.sessions, "session"), count(report.events, "event"))
}

pub(crate) async fn restore(paths: &Paths, asked: Restore) -> Outcome<u8> {
    let Restore { file, output } = asked;
    if !paths.database().is_sqlite() {
        let text = "a backup is of SQLite, and is not restored into PostgreSQL";
        return Err(
            Failure::new(Kind::Usage, text).hint("Leave --database and OUTRIGGER_DATABASE away.")
        );
    }
    paths.prepare()?;
    let own = paths.harness();
    if let Some(there) = PARTS.iter().map(|name| own.join(name)).find(|path| path.exists()) {
        let text = format!("{} is there already", there.display());
        return Err(Failure::new(Kind::Conflict, text)
            .hint("Move the data directory away, or name an empty one with --data-dir."));
    }
    let opened = open(&file)?;
    let room = tempfile::Builder::new().prefix("restoring-").tempdir_in(own);
    let room = room.map_err(|error| failed(own, &error))?;
    let mut screen = Screen::new(output);
    let restored = screen.during("restoring", transfer::restore(opened, room.path())).await;
    let RestoreOutcome { has_key, report, .. } = restored.map_err(|error| of_file(&file, error))?;
    for name in PARTS {
        let (from, to) = (room.path().join(name), own.join(name));
        fs::rename(&from, &to).map_err(|error| failed(&to, &error))?;
    }
    File::open(own).and_then(|dir| dir.sync_all()).map_err(|error| failed(own, &error))?;
    if output.json.is_some() {
        show::line(&json!({
            "type": "restored", "sessions": report.sessions, "events": report.events,
            "has_key": has_key,
        }))?;
    }
    screen.note(Tone::Good, format!("● {} verified, in {}", held(&report), paths.data().display()));
    if !has_key {
        let text = "! the key that signs the audit log was not in it: put harness/audit/key back, or nothing new is signed";
        screen.note(Tone::Warning, text);
    }
    Ok(0)
}

pub(crate) async fn export(paths: &Paths, name: &str, file: &Path, output: Output) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    let named = session::find(&*store.journal, name).await?.session;
    let mut sessions = vec![named.clone()];
    sessions.extend(store.database.below(&named).await?.into_iter().map(|(session, _)| session));
    let new = NewFile::create(file)?;
    let events = transfer::export(&store.database, &sessions, new.parts()?).await?;
    new.finish()?;
    told("exported", &sessions, output)?;
    let what = format!("● session {named} with {} in {}", count(events, "event"), file.display());
    Screen::new(output).note(Tone::Good, what);
    Ok(0)
}

pub(crate) async fn import(paths: &Paths, file: &Path, output: Output) -> Outcome<u8> {
    let opened = open(file)?;
    let store = compose::store(paths).await?;
    let room =
        tempfile::tempdir_in(paths.harness()).map_err(|error| failed(paths.harness(), &error))?;
    let taken = transfer::import(&store.database, opened, room.path()).await;
    let sessions = taken.map_err(|error| match error {
        outrigger_store::Error::Conflict { session, .. } => {
            Failure::new(Kind::Conflict, format!("there is a session {session} already"))
        }
        error => of_file(file, error),
    })?;
    told("imported", &sessions, output)?;
    let screen = Screen::new(output);
    screen.note(Tone::Good, format!("● {} taken in", count(sessions.len() as u64, "session")));
    let text =
        "! its chain holds, which says nothing of who wrote it: go on with it only if you know";
    screen.note(Tone::Warning, text);
    Ok(0)
}

fn told(kind: &str, sessions: &[SessionId], output: Output) -> Outcome {
    if output.json.is_none() {
        return Ok(());
    }
    let sessions: Vec<_> = sessions.iter().map(SessionId::as_str).collect();
    show::line(&json!({ "type": kind, "sessions": sessions }))
}

fn open(file: &Path) -> Outcome<File> {
    File::open(file)
        .map_err(|error| Failure::new(Kind::NotFound, format!("{}: {error}", file.display())))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Kind::Storage, format!("{}: {error}", path.display()))
}

/// What is wrong with a file that was given, and not with the store.
fn of_file(file: &Path, error: outrigger_store::Error) -> Failure {
    match error {
        outrigger_store::Error::Damaged { .. } => {
            Failure::new(Kind::AuditFailed, format!("{}: {error}", file.display()))
                .hint("Nothing of it was taken.")
        }
        error => Failure::from(error),
    }
}

/// A file that gets its name when it is whole. Nothing of it stays if it is dropped before.
struct NewFile {
    path: PathBuf,
    room: tempfile::TempDir,
}

impl NewFile {
    /// Refuses a name that is taken.
    fn create(path: &Path) -> Outcome<Self> {
        if path.symlink_metadata().is_ok() {
            return Err(Failure::new(
                Kind::Conflict,
                format!("{} is there already", path.display()),
            )
            .hint("Give another name, or move it away."));
        }
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        let room = tempfile::Builder::new().prefix(".outrigger-").tempdir_in(above);
        let room = room.map_err(|error| failed(above, &error))?;
        fs::create_dir(room.path().join("room")).map_err(|error| failed(above, &error))?;
        Ok(Self { path: path.to_owned(), room })
    }

    /// The file to write into, and a folder for what is on its way.
    fn parts(&self) -> Outcome<(File, PathBuf)> {
        let path = self.room.path().join("file");
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        Ok((file.map_err(|error| failed(&path, &error))?, self.room.path().join("room")))
    }

    fn finish(self) -> Outcome {
        // Not over one that somebody made meanwhile.
        fs::hard_link(self.room.path().join("file"), &self.path)
            .map_err(|error| failed(&self.path, &error))?;
        let above = self.path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        File::open(above).and_then(|dir| dir.sync_all()).map_err(|error| failed(above, &error))
    }
}
