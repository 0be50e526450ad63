//! `outrigger gc`: lets go of what nothing needs any more, and says what that would be.

use clap::Args;
use outrigger_agent::{SessionId, State};
use outrigger_store::{Space, UnnamedBlob};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::sessions::{Remover, gone};
use crate::compose::{self, Store};
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::limits;
use crate::paths::Paths;
use crate::session::{self, now_ms};
use crate::show::amounts::size;
use crate::show::{self, Screen, Tone, count};

/// What is let go.
#[derive(Debug, Args)]
pub(crate) struct Gc {
    /// Only show what would go.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also sessions that are over and patches that nobody touched for so long, and what is
    /// kept of disks; instead of what `[retention]` and `sandbox.retention_hours` say.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<Age>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// How old something is, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Age(u64);

impl Age {
    /// In milliseconds.
    pub(crate) fn ms(self) -> u64 {
        self.0
    }
}

pub(crate) async fn execute(paths: &Paths, asked: Gc) -> Outcome<u8> {
    let mut config = Config::of_files(paths.configs())?;
    if let Some(Age(ms)) = asked.older_than {
        config.retention.sessions_ms = Some(ms);
        config.retention.patches_ms = Some(ms);
        config.sandboxes.iter_mut().for_each(|sandbox| sandbox.retention_ms = ms);
    }
    let store = compose::store(paths).await?;
    let mut screen = Screen::new(asked.output);
    let plan = screen.during("looking", Plan::make(paths, &config, &store)).await?;
    let (plan, disks) = if asked.dry_run {
        let disks = disks(paths, &config, &store, GcMode::DryRun).await;
        (plan, disks)
    } else {
        let mut remover = Remover::new(paths, &config, &store);
        for session in &plan.sessions {
            // One that somebody came back to is left for the next time.
            match remover.remove(session).await {
                Err(failure) if failure.kind != Kind::Conflict => return Err(failure),
                _ => {}
            }
        }
        // What they named is named no more.
        let mut after = screen.during("looking", Plan::make(paths, &config, &store)).await?;
        for (path, _) in &after.patches {
            gone(path)?;
        }
        for (path, _, written_ms) in files(&paths.dependencies())? {
            if written_ms.saturating_add(limits::DEPENDENCY_NOTE_MS_MAX) < now_ms() {
                gone(&path)?;
            }
        }
        store.database.remove_blobs(after.blobs.clone()).await?;
        if after.space.free_bytes >= limits::FREE_BYTES_MAX {
            screen.during("making the database smaller", store.database.compact()).await?;
        }
        after.sessions = plan.sessions;
        (after, disks(paths, &config, &store, GcMode::Destroy).await)
    };
    tell(&plan, &disks, &asked, &screen)
}

/// What `gc` lets go beside what backends keep.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Sessions that are over for too long, but for those below them.
    sessions: Vec<SessionId>,
    patches: Vec<(PathBuf, u64)>,
    blobs: Vec<UnnamedBlob>,
    pub(crate) space: Space,
}

impl Plan {
    pub(crate) async fn make(paths: &Paths, config: &Config, store: &Store) -> Outcome<Self> {
        let now = now_ms();
        let (mut names, mut sessions) = (BTreeSet::new(), Vec::new());
        let old = |at_ms: u64, keep_ms: Option<u64>| {
            keep_ms.is_some_and(|keep| at_ms.saturating_add(keep) <= now)
        };
        session::walk(&*store.journal, |row| {
            let busy = row.status == "running" || row.status == State::WAITS;
            let is_old = old(row.last_at_ms, config.retention.sessions_ms);
            if is_old && !busy && !session::is_below(&row.session) {
                sessions.push(row.session.clone());
            }
            names.insert(row.session);
            ControlFlow::Continue(())
        })
        .await?;
        let mut patches = Vec::new();
        for (path, bytes, written_ms) in files(&paths.patches())? {
            let session = path.file_stem().and_then(|name| name.to_str()).and_then(SessionId::new);
            let named = session.is_some_and(|session| names.contains(&session));
            // One that is being written has no session's name yet.
            let left = !named && old(written_ms, Some(limits::DAY_MS));
            if left || old(written_ms, config.retention.patches_ms) {
                patches.push((path, bytes));
            }
        }
        let blobs = store.database.unnamed_blobs().await?;
        Ok(Self { sessions, patches, blobs, space: store.database.space().await? })
    }

    /// How many bytes that frees, as far as it can be said before.
    pub(crate) fn bytes(&self) -> u64 {
        let patches = self.patches.iter().map(|(_, bytes)| bytes).sum::<u64>();
        let blobs = self.blobs.iter().map(|blob| blob.bytes).sum::<u64>();
        let free = self.space.free_bytes;
        patches + blobs + if free >= limits::FREE_BYTES_MAX { free } else { 0 }
    }
}

/// Whether what backends keep is destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GcMode {
    Destroy,
    DryRun,
}

/// What went of what backends keep, as programs read it, and what went wrong.
async fn disks(
    paths: &Paths,
    config: &Config,
    store: &Store,
    mode: GcMode,
) -> (Vec<String>, Vec<String>, Vec<String>) {
    let engine = match compose::caretaker(paths, config, store).await {
        Ok(engine) => engine,
        // Where no sandbox can be made, nothing can be said of those that were.
        Err(failure) => return (Vec::new(), Vec::new(), vec![failure.message]),
    };
    let found = match mode {
        GcMode::Destroy => outrigger_engine::gc(&engine, config.retention_ms()).await,
        GcMode::DryRun => outrigger_engine::gc_dry_run(&engine, config.retention_ms()).await,
    };
    let sandboxes = found.sandboxes.iter().map(ToString::to_string).collect();
    let warnings = found.warnings.iter().map(|it| outrigger_engine::workspace::explain(it));
    (sandboxes, found.snapshots, warnings.collect())
}

fn tell(
    plan: &Plan,
    (sandboxes, snapshots, warnings): &(Vec<String>, Vec<String>, Vec<String>),
    asked: &Gc,
    screen: &Screen,
) -> Outcome<u8> {
    if asked.output.json.is_some() {
        let sessions: Vec<_> = plan.sessions.iter().map(SessionId::as_str).collect();
        let patches: Vec<Value> =
            plan.patches.iter().map(|(path, _)| json!(path.display().to_string())).collect();
        show::line(&json!({
            "type": "gc",
            "dry_run": asked.dry_run,
            "sessions": sessions,
            "patches": patches,
            "blobs": plan.blobs.iter().map(|blob| blob.digest.as_str()).collect::<Vec<_>>(),
            "sandboxes": sandboxes,
            "snapshots": snapshots,
            "bytes": plan.bytes(),
            "troubles": warnings,
        }))?;
        return Ok(0);
    }
    let kinds = [
        (plan.sessions.len(), "session"),
        (plan.patches.len(), "patch file"),
        (plan.blobs.len(), "blob"),
        (sandboxes.len(), "disk"),
        (snapshots.len(), "snapshot"),
    ];
    let went: Vec<String> = kinds
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| count(*number as u64, what))
        .collect();
    let went = if went.is_empty() { "nothing".to_owned() } else { went.join(", ") };
    let text = match asked.dry_run {
        true => format!("would go: {went}; {} at least", size(plan.bytes())),
        false => format!("● gone: {went}; {} at least", size(plan.bytes())),
    };
    screen.note(Tone::Good, text);
    for warning in warnings {
        screen.note(Tone::Warning, format!("! {}", show::inert(warning)));
    }
    Ok(0)
}

/// What the data directory holds, by kind, in bytes.
pub(crate) fn held(paths: &Paths, space: Space) -> Outcome<Vec<(&'static str, u64)>> {
    let below = |name: &str| size_of(&paths.harness().join(name));
    Ok(vec![
        ("database", space.database_bytes),
        ("blobs", space.blob_bytes),
        ("patches", size_of(&paths.patches())),
        ("audit log", below("audit")),
        ("sandboxes and templates", size_of(&paths.sandboxes())),
    ])
}

/// What is on disk beneath a directory, without following links.
fn size_of(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let (mut open, mut bytes, mut counted) = (vec![dir.to_owned()], 0, 0);
    while let Some(dir) = open.pop() {
        // What goes meanwhile, or may not be read, is not counted.
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            bytes += found.blocks() * 512;
            counted += 1;
            if found.is_dir() {
                open.push(entry.path());
            }
        }
        if counted >= limits::COUNTED_FILES_MAX {
            break;
        }
    }
    bytes
}

/// The files of a directory, with their sizes and when they were written.
fn files(dir: &Path) -> Outcome<Vec<(PathBuf, u64, u64)>> {
    let failed =
        |error: std::io::Error| Failure::new(Kind::Storage, format!("{}: {error}", dir.display()));
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let Ok(found) = entry.metadata() else { continue };
        if !found.is_file() {
            continue;
        }
        let written = found.modified().map_err(failed)?;
        let written = written.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let written_ms = u64::try_from(written.as_millis()).unwrap_or(u64::MAX);
        files.push((entry.path(), found.len(), written_ms));
    }
    Ok(files)
}

/// Reads an age: a number of days, hours or minutes.
pub(crate) fn age(text: &str) -> Result<Age, String> {
    let wrong = || format!("`{text}` is no age: write for example 30d, 12h or 90m");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let unit_ms = match unit {
        'd' => limits::DAY_MS,
        'h' => 3_600_000,
        'm' => 60_000,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    number.checked_mul(unit_ms).map(Age).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        for (text, ms) in [
            ("30d", Some(30 * 86_400_000)),
            ("0h", Some(0)),
            ("90m", Some(5_400_000)),
            ("", None),
            ("d", None),
            ("30", None),
            ("-1d", None),
            ("1\u{e9}", None),
            ("99999999999999999999d", None),
        ] {
            assert_eq!(age(text).ok(), ms.map(Age), "{text}");
        }
    }
}
