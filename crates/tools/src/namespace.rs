//! One namespace: which place a path belongs to, and the files that are not on a
//! sandbox's disk.
//!
//! Owns the one spelling of a path ([`canonical`]) and the way from an operation to who
//! performs it: the sandbox for its own disk, a [`Tree`] for what is served into it. What
//! lists, globs and greps above both sees both. The same trees are mounted inside, so
//! that a command meets the same files; nothing here is a guard.

mod path;
mod search;
mod seen;
mod served;

use async_trait::async_trait;
use outrigger_sandbox::{
    CreateOutcome, EntryKind, Error, ExecId, Execute, Executed, FileError, FileErrorKind, FileOp,
    FileReply, Generation, Input, ListEntry, OutputSink, Sandbox, SandboxId, Tree, limits as door,
};
use std::sync::Arc;

pub(crate) use path::WORKSPACE;
pub use path::{MOUNTS, canonical, is_mounted, is_within};
pub use seen::SeenRevisions;

use served::Served;

/// Who performs file operations.
#[async_trait]
pub trait Files: Send + Sync {
    /// Performs one.
    ///
    /// # Errors
    /// As [`Sandbox::files`].
    async fn perform(&self, op: FileOp) -> Result<FileReply, Error>;
}

#[async_trait]
impl<S: Sandbox + ?Sized> Files for S {
    async fn perform(&self, op: FileOp) -> Result<FileReply, Error> {
        Sandbox::files(self, op).await
    }
}

/// The served trees alone, for calls that need no sandbox.
#[derive(Debug)]
pub struct Trees(Served);

impl Trees {
    /// `seen` is what the session has read of the tree.
    #[must_use]
    pub fn new(tree: Arc<dyn Tree>, seen: Arc<SeenRevisions>) -> Self {
        Self(Served { tree, seen })
    }
}

#[async_trait]
impl Files for Trees {
    async fn perform(&self, op: FileOp) -> Result<FileReply, Error> {
        let path = canonical(path_of(&op))?;
        if is_mounted(&path) {
            return Ok(self.0.perform(path, op).await?);
        }
        let detail = "this call was begun without a sandbox".to_owned();
        Err(FileError { kind: FileErrorKind::InvalidPath, path, detail }.into())
    }
}

/// A sandbox with the trees that are served into it, as tools see both.
#[derive(Debug)]
pub struct Namespace {
    sandbox: Arc<dyn Sandbox>,
    trees: Trees,
}

impl Namespace {
    /// Lays trees over a sandbox.
    #[must_use]
    pub fn new(sandbox: Arc<dyn Sandbox>, trees: Trees) -> Self {
        Self { sandbox, trees }
    }

    /// A list, a glob or a grep of a folder in which something is mounted.
    async fn merged(&self, op: FileOp) -> Result<FileReply, Error> {
        match op {
            FileOp::List { path, entries_max } => {
                let op = FileOp::List { path, entries_max };
                match self.sandbox.files(op).await? {
                    FileReply::Entries { entries, truncated } => {
                        Ok(with_mounts(entries, truncated, entries_max))
                    }
                    _ => Err(crate::output::mismatched("list")),
                }
            }
            FileOp::Glob { root, pattern, paths_max } => {
                let op = FileOp::Glob { root, pattern: pattern.clone(), paths_max };
                let FileReply::Paths { mut paths, mut truncated } = self.sandbox.files(op).await?
                else {
                    return Err(crate::output::mismatched("glob"));
                };
                paths.retain(|path| !is_mounted(path));
                for mount in MOUNTS {
                    let found = self.trees.0.glob("/", mount, &pattern, paths_max).await?;
                    truncated |= found.truncated;
                    paths.extend(found.found);
                }
                paths.sort();
                truncated |= cut(&mut paths, paths_max.min(door::ENTRIES_MAX));
                Ok(FileReply::Paths { paths, truncated })
            }
            FileOp::Grep { root, pattern, glob, matches_max } => {
                let (words, names) = (pattern.clone(), glob.clone());
                let op = FileOp::Grep { root, pattern, glob, matches_max };
                let FileReply::Matches { mut matches, mut truncated } =
                    self.sandbox.files(op).await?
                else {
                    return Err(crate::output::mismatched("grep"));
                };
                matches.retain(|found| !is_mounted(&found.path));
                for mount in MOUNTS {
                    let names = names.as_deref();
                    let found = self.trees.0.grep("/", mount, &words, names, matches_max).await?;
                    truncated |= found.truncated;
                    matches.extend(found.found);
                }
                matches.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
                truncated |= cut(&mut matches, matches_max.min(door::MATCHES_MAX));
                Ok(FileReply::Matches { matches, truncated })
            }
            other => self.sandbox.files(other).await,
        }
    }
}

#[async_trait]
impl Sandbox for Namespace {
    fn id(&self) -> &SandboxId {
        self.sandbox.id()
    }

    fn generation(&self) -> &Generation {
        self.sandbox.generation()
    }

    fn outcome(&self) -> CreateOutcome {
        self.sandbox.outcome()
    }

    fn is_alive(&self) -> bool {
        self.sandbox.is_alive()
    }

    async fn execute(&self, request: Execute, sink: &dyn OutputSink) -> Result<Executed, Error> {
        self.sandbox.execute(request, sink).await
    }

    async fn kill(&self, id: &ExecId) -> Result<(), Error> {
        self.sandbox.kill(id).await
    }

    async fn input(&self, id: &ExecId, input: Input) -> Result<(), Error> {
        self.sandbox.input(id, input).await
    }

    async fn files(&self, op: FileOp) -> Result<FileReply, Error> {
        let path = canonical(path_of(&op))?;
        if is_mounted(&path) {
            return Ok(self.trees.0.perform(path, op).await?);
        }
        if path == "/" { self.merged(op).await } else { self.sandbox.files(op).await }
    }
}

/// The path that decides where an operation is performed.
fn path_of(op: &FileOp) -> &str {
    match op {
        FileOp::List { path, .. }
        | FileOp::Stat { path }
        | FileOp::Read { path, .. }
        | FileOp::ReadLines { path, .. }
        | FileOp::Write { path, .. }
        | FileOp::Edit { path, .. }
        | FileOp::Link { path, .. }
        | FileOp::MakeDir { path, .. }
        | FileOp::Remove { path, .. } => path,
        FileOp::Glob { root, .. } | FileOp::Grep { root, .. } | FileOp::Manifest { root, .. } => {
            root
        }
    }
}

/// Leaves the first so many; says whether there were more.
fn cut<T>(all: &mut Vec<T>, most: u32) -> bool {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let more = all.len() > most;
    all.truncate(most);
    more
}

/// What is in the root, whether the sandbox has the mounts or not.
fn with_mounts(mut entries: Vec<ListEntry>, mut truncated: bool, entries_max: u32) -> FileReply {
    for mount in MOUNTS {
        let name = mount.trim_start_matches('/');
        entries.retain(|entry| entry.name != name);
        entries.push(ListEntry {
            name: name.to_owned(),
            kind: EntryKind::Directory,
            bytes: 0,
            modified_ms: 0,
            executable: false,
        });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    truncated |= cut(&mut entries, entries_max.min(door::ENTRIES_MAX));
    FileReply::Entries { entries, truncated }
}
