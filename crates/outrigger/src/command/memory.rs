//! `outrigger memory`: what sessions and people wrote down, with its history.

mod edit;
mod past;
mod proposals;
mod redact;
mod shelf;

use outrigger_engine::{path_of, place_of};
use outrigger_policy::{Scope, ShelfKind};
use outrigger_store::entries::{
    self, Attribution, ChangeOutcome, ChangeRequest, Contents, Entries, EntryAddress, EntryFile,
    EntryPath, EntryStat, Error, Expected, Reviews, Search, Version, Via, Which,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::sync::Arc;

use crate::cli::{self, Output};
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::session::now_ms;
use crate::show::{self, Screen, Tone};
use crate::{compose, limits};

/// The shelves, and who looks at them.
pub(super) struct MemoryCommand {
    pub(super) entries: Arc<dyn Entries>,
    pub(super) reviews: Arc<dyn Reviews>,
    pub(super) scope: Scope,
    pub(super) screen: Screen,
    output: Output,
    pub(super) json: bool,
    /// The variables that hold keys, which are nobody's whom we start.
    pub(super) keys: BTreeSet<String>,
}

pub(crate) async fn execute(paths: &Paths, asked: cli::Memory) -> Outcome<u8> {
    let memory = MemoryCommand::open(paths, asked.output()).await?;
    match asked {
        cli::Memory::Ls { path, recursive, .. } => memory.ls(path.as_deref(), recursive).await?,
        cli::Memory::Cat { at, revision, .. } => memory.cat(&at.path, revision).await?,
        cli::Memory::Edit { at, message, .. } => edit::edit(&memory, &at.path, message).await?,
        cli::Memory::Put { at, from, replaces, review_in, message, .. } => {
            let bytes = given(from.as_deref())?;
            let review_by_ms = review_in.map(|days| now_ms() + days * limits::DAY_MS);
            let file = EntryFile { review_by_ms, ..EntryFile::of(bytes) };
            let expected = replaces.map_or(Expected::Absent, Expected::Revision);
            let at = memory.place(&at.path)?;
            let change = ChangeRequest::Write { at, expected, file };
            memory.make(change, message).await?;
        }
        cli::Memory::Rm { at, .. } => memory.remove(&at.path).await?,
        cli::Memory::History { at, .. } => past::history(&memory, &at.path).await?,
        cli::Memory::Diff { at, from, to, .. } => past::diff(&memory, &at.path, from, to).await?,
        cli::Memory::Blame { at, .. } => past::blame(&memory, &at.path).await?,
        cli::Memory::Revert { at, to, .. } => {
            let at = memory.place(&at.path)?;
            let expected = match memory.entries.stat(&memory.scope, &at).await {
                Ok(node) => Expected::Revision(node.revision),
                Err(Error::Absent) => Expected::Absent,
                Err(error) => return Err(memory.failed(&at, error)),
            };
            memory.make(ChangeRequest::Revert { at, to, expected }, None).await?;
        }
        cli::Memory::Redact { at, revision, derived, why, .. } => {
            let at = memory.place(&at.path)?;
            let which = revision.map_or(Which::All, Which::Revision);
            redact::redact(&memory, at, which, (derived, why)).await?;
        }
        cli::Memory::Prune { at, keep, .. } => {
            shelf::prune(&memory, &memory.place(&at.path)?, Some(keep)).await?;
        }
        cli::Memory::Search { words, limit, .. } => memory.search(words.join(" "), limit).await?,
        cli::Memory::Stale { .. } => memory.stale().await?,
        cli::Memory::Shelf(asked) => shelf::execute(&memory, asked).await?,
        cli::Memory::Proposals(asked) => proposals::execute(&memory, asked).await?,
    }
    Ok(0)
}

/// What is written, from a file or from standard input.
fn given(from: Option<&Path>) -> Outcome<Vec<u8>> {
    let most = outrigger_store::limits::ENTRY_BYTES_MAX;
    let mut bytes = Vec::new();
    let named = from.filter(|path| *path != Path::new("-"));
    let read = match named {
        Some(path) => std::fs::File::open(path)
            .and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes)),
        None => std::io::stdin().lock().take(most as u64 + 1).read_to_end(&mut bytes),
    };
    let name = named.map_or_else(|| "standard input".to_owned(), |path| path.display().to_string());
    read.map_err(|error| Failure::new(Kind::Usage, format!("{name}: {error}")))?;
    if bytes.len() > most {
        let text = format!("{name} has more than {most} bytes, the most that a file can have");
        return Err(Failure::new(Kind::Usage, text));
    }
    Ok(bytes)
}

impl MemoryCommand {
    pub(super) async fn open(paths: &Paths, output: Output) -> Outcome<Self> {
        let config = Config::of_files(paths.configs())?;
        let scope = compose::scope(&config)?.expect("the person of this machine is one");
        let store = compose::store(paths).await?;
        let screen = Screen::new(output);
        let json = output.json.is_some();
        let (entries, reviews) = (store.entries, store.reviews);
        let keys = config.notify.keys;
        Ok(Self { entries, reviews, scope, screen, output, json, keys })
    }

    /// Where a path leads. One without a slash before it is one of the person's own.
    fn place(&self, path: &str) -> Outcome<EntryAddress> {
        let path =
            if path.starts_with('/') { path.to_owned() } else { format!("/memory/user/{path}") };
        place_of(&path, &self.scope).ok_or_else(|| {
            Failure::new(Kind::NotFound, format!("{path}: nothing is there"))
                .hint("`outrigger memory ls` lists what is yours to see.")
        })
    }

    /// An error about a place.
    pub(super) fn failed(&self, at: &EntryAddress, error: Error) -> Failure {
        let kind = match &error {
            Error::Absent | Error::Pruned | Error::Redacted(_) => Kind::NotFound,
            Error::Conflict(_) | Error::Exists | Error::NotEmpty | Error::Decided { .. } => {
                Kind::Conflict
            }
            Error::Related(_) => Kind::Denied,
            Error::Quota(_) => Kind::Storage,
            Error::NeedsReview | Error::NotReviewer | Error::NotAuthor | Error::Root => {
                Kind::Denied
            }
            Error::Store(source) => return Failure::from(source),
            _ => Kind::Usage,
        };
        let failure = Failure::new(kind, format!("{}: {error}", path_of(at)));
        match error {
            Error::Conflict(current) => failure.hint(format!(
                "It is at revision {} now: `outrigger memory cat {}` shows it.",
                current.revision,
                path_of(at)
            )),
            _ => failure,
        }
    }

    /// Makes a change and says what it made. Where a shelf needs reviews it is proposed.
    async fn make(&self, change: ChangeRequest, message: Option<String>) -> Outcome {
        let at = about(&change);
        let by = Attribution { message, ..Attribution::person(now_ms()) };
        let made = match self.entries.change(&self.scope, change.clone(), by.clone()).await {
            Err(Error::NeedsReview) => return proposals::propose(self, change, by).await,
            made => made.map_err(|error| self.failed(&at, error))?,
        };
        self.tell(&made)
    }

    /// Says what a change made.
    fn tell(&self, made: &ChangeOutcome) -> Outcome {
        let count = made.versions.len() as u64 + made.unseen;
        if self.json {
            let versions: Vec<_> = made.versions.iter().map(version).collect();
            return show::line(&json!({
                "type": "changed", "versions": versions, "unseen": made.unseen,
                "lingers": made.lingers,
            }));
        }
        let said = match (made.version(), count) {
            (Some(one), 1) => format!("● {} is at revision {}", path_of(&one.place), one.revision),
            _ => format!("● {} changed", show::count(count, "version")),
        };
        self.screen.note(Tone::Good, said);
        if made.lingers {
            let text = "! others read the store: the last bytes go when they are done";
            self.screen.note(Tone::Warning, text);
        }
        Ok(())
    }

    async fn ls(&self, path: Option<&str>, deep: bool) -> Outcome {
        let roots = match path {
            Some(path) => vec![self.place(path)?],
            None => ShelfKind::ALL
                .into_iter()
                .flat_map(|kind| self.scope.shelves(kind))
                .map(|shelf| EntryAddress { shelf, path: EntryPath::ROOT })
                .collect(),
        };
        let mut listed = Vec::new();
        for root in &roots {
            match entries::list_all(&*self.entries, &self.scope, root, deep).await {
                // A file lists itself.
                Err(Error::NotFolder) => {
                    let node = self.entries.stat(&self.scope, root).await;
                    let node = node.map_err(|error| self.failed(root, error))?;
                    listed.push((root.clone(), node));
                }
                found => {
                    let found = found.map_err(|error| self.failed(root, error))?.into_iter();
                    listed.extend(
                        found.map(|(path, node)| (EntryAddress { path, ..root.clone() }, node)),
                    );
                }
            }
        }
        self.show_nodes(&listed, "nothing is there yet")
    }

    fn show_nodes(&self, listed: &[(EntryAddress, EntryStat)], none: &str) -> Outcome {
        if self.json {
            let entries: Vec<_> = listed.iter().map(|(place, node)| of_node(place, node)).collect();
            return show::line(&json!({ "type": "entries", "entries": entries }));
        }
        for (place, it) in listed {
            let path = show::inert(&path_of(place));
            let when = show::when(it.modified_ms);
            show::row(&match it.folder {
                true => format!("{:>9}  {:>5}  {when}  {path}/", "", ""),
                false => {
                    format!("{:>9}  {:>5}  {when}  {path}", it.bytes, format!("r{}", it.revision))
                }
            })?;
        }
        if listed.is_empty() {
            self.screen.note(Tone::Detail, none);
        }
        Ok(())
    }

    async fn read(&self, at: &EntryAddress, revision: Option<u64>) -> Outcome<Contents> {
        let read = self.entries.read(&self.scope, at, revision).await;
        read.map_err(|error| self.failed(at, error))
    }

    async fn cat(&self, path: &str, revision: Option<u64>) -> Outcome {
        let at = self.place(path)?;
        let read = self.read(&at, revision).await?;
        if self.json {
            let text = String::from_utf8_lossy(&read.bytes);
            let mut object = version(&read.version);
            object["type"] = json!("contents");
            object["text"] = json!(text);
            return show::line(&object);
        }
        let mut out = std::io::stdout().lock();
        // Whoever reads it on a terminal is not to be written to by whoever wrote it.
        let bytes = match out.is_terminal() {
            true => show::inert(&String::from_utf8_lossy(&read.bytes)).into_bytes(),
            false => read.bytes,
        };
        out.write_all(&bytes)
            .and_then(|()| out.flush())
            .map_err(|error| Failure::from_error(Kind::Storage, &error))
    }

    async fn remove(&self, path: &str) -> Outcome {
        let at = self.place(path)?;
        let node = self.entries.stat(&self.scope, &at).await;
        let node = node.map_err(|error| self.failed(&at, error))?;
        let change = match node.folder {
            true => ChangeRequest::RemoveFolder { at },
            false => ChangeRequest::Remove { at, revision: node.revision },
        };
        self.make(change, None).await
    }

    async fn search(&self, words: String, limit: usize) -> Outcome {
        let search = Search { words, shelves: Vec::new(), limit };
        let found = self.entries.search(&self.scope, &search).await;
        let found = found.map_err(|error| match error {
            Error::Store(source) => Failure::from(&source),
            other => Failure::new(Kind::Usage, other.to_string()),
        })?;
        if self.json {
            let hits: Vec<_> = found
                .iter()
                .map(|hit| {
                    let mut object = of_node(&hit.place, &hit.node);
                    object["snippet"] = json!(hit.snippet);
                    object
                })
                .collect();
            return show::line(&json!({ "type": "found", "entries": hits }));
        }
        for hit in &found {
            show::row(&show::inert(&path_of(&hit.place)))?;
            show::row(&format!("    {}", show::inert(&hit.snippet)))?;
        }
        if found.is_empty() {
            self.screen.note(Tone::Detail, "nothing has these words");
        }
        Ok(())
    }

    async fn stale(&self) -> Outcome {
        let mut listed = Vec::new();
        for shelf in ShelfKind::ALL.into_iter().flat_map(|kind| self.scope.shelves(kind)) {
            let root = EntryAddress { shelf: shelf.clone(), path: EntryPath::ROOT };
            let stale = self.entries.stale(&self.scope, &shelf, now_ms()).await;
            let stale = stale.map_err(|error| self.failed(&root, error))?;
            let entries = stale.entries.into_iter();
            listed
                .extend(entries.map(|(path, node)| (EntryAddress { path, ..root.clone() }, node)));
        }
        self.show_nodes(&listed, "nothing waits to be looked at again")
    }
}

/// The place that a change is about.
fn about(change: &ChangeRequest) -> EntryAddress {
    match change {
        ChangeRequest::Write { at, .. }
        | ChangeRequest::Edit { at, .. }
        | ChangeRequest::Remove { at, .. }
        | ChangeRequest::MakeFolder { at }
        | ChangeRequest::RemoveFolder { at }
        | ChangeRequest::Revert { at, .. }
        | ChangeRequest::Redact { at, .. }
        | ChangeRequest::Move { from: at, .. } => at.clone(),
        ChangeRequest::Prune { at, .. } => at.clone(),
    }
}

fn of_node(place: &EntryAddress, node: &EntryStat) -> Value {
    json!({
        "path": path_of(place),
        "folder": node.folder,
        "revision": node.revision,
        "bytes": node.bytes,
        "digest": node.digest,
        "modified_ms": node.modified_ms,
        "executable": node.executable,
        "review_by_ms": node.review_by_ms,
        "redacted": node.redacted,
    })
}

/// A version as programs read it.
pub(super) fn version(version: &Version) -> Value {
    use outrigger_store::entries::{ContentState, EntryState};
    let (state, digest) = match &version.state {
        EntryState::File { digest, .. } => ("file", Some(digest)),
        EntryState::Folder => ("folder", None),
        EntryState::Gone => ("removed", None),
    };
    let redacted = match &version.kept {
        ContentState::Redacted(redaction) => json!(redaction),
        ContentState::Whole | ContentState::Pruned => Value::Null,
    };
    json!({
        "path": path_of(&version.place),
        "revision": version.revision,
        "state": state,
        "digest": digest,
        "author": version.author,
        "via": version.by.via,
        "at_ms": version.by.at_ms,
        "agent": version.by.agent,
        "session": version.by.session,
        "seq": version.by.seq,
        "labels": version.by.labels,
        "message": version.by.message,
        "accepted_by": version.accepted_by,
        "kept": !matches!(version.kept, ContentState::Pruned),
        "redacted": redacted,
    })
}

/// Who wrote a version and through what, in a few words.
pub(super) fn written(version: &Version) -> String {
    let by = &version.by;
    let through = match (&by.session, by.via) {
        (Some(session), Via::Sandbox) => format!(" in a sandbox of session {session}"),
        (Some(session), _) => format!(" in session {session}"),
        (None, Via::Import) => " by import".to_owned(),
        (None, _) => String::new(),
    };
    format!("{}{through}", version.author)
}
