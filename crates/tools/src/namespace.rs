//! One namespace: which place a path belongs to, and the files that are not on a
//! sandbox's disk.
//!
//! Owns the one spelling of a path ([`canonical`]) and the way from an operation to who
//! performs it: the sandbox for its own disk, a [`Tree`] for what is served into it. What
//! lists, globs and greps above both sees both. The same trees are mounted inside, so
//! that a command meets the same files; nothing here is a guard.

mod links;
mod path;
mod search;
mod seen;
mod tree_files;

use outrigger_sandbox::{
    EntryKind, Error, ExecOutcome, Execute, FileError, FileErrorKind, FileOp, FileReply, ListEntry,
    OutputSink, Sandbox, Tree, limits as door,
};
use std::sync::Arc;

pub(crate) use path::WORKSPACE;
pub use path::{MOUNTS, canonical};
pub use seen::SeenRevisions;

use path::is_mounted;
use tree_files::TreeFiles;

/// The files that a call of a tool meets: those of a sandbox, those of a tree that is served
/// to its session, or both.
#[derive(Debug, Default)]
pub struct Namespace {
    sandbox: Option<Arc<dyn Sandbox>>,
    tree: Option<TreeFiles>,
    /// Whether no path may lead through a link.
    plain: bool,
}

impl Namespace {
    /// With the files and the commands of a sandbox.
    #[must_use]
    pub fn with_sandbox(self, sandbox: Arc<dyn Sandbox>) -> Self {
        Self { sandbox: Some(sandbox), ..self }
    }

    /// With the files of a tree where it is mounted, of which the session has read `seen`.
    #[must_use]
    pub fn with_tree(self, tree: Arc<dyn Tree>, seen: Arc<SeenRevisions>) -> Self {
        Self { tree: Some(TreeFiles { tree, seen }), ..self }
    }

    /// Refuses paths that lead through a link, where `plain`: rules judge a path as it is named.
    /// What a command changes meanwhile it could have changed itself.
    #[must_use]
    pub fn with_plain_paths(self, plain: bool) -> Self {
        Self { plain, ..self }
    }

    /// Runs a command, as [`Sandbox::execute`] does.
    pub(crate) async fn execute(
        &self,
        request: Execute,
        sink: &dyn OutputSink,
    ) -> Result<ExecOutcome, Error> {
        match &self.sandbox {
            Some(sandbox) => sandbox.execute(request, sink).await,
            None => Err(Error::Invalid("a command needs a sandbox".to_owned())),
        }
    }

    /// Performs a file operation where its path leads. Errors are those of
    /// [`Sandbox::files`].
    pub(crate) async fn files(&self, op: FileOp) -> Result<FileReply, Error> {
        let path = match &self.tree {
            Some(_) => canonical(op.path())?,
            // The sandbox reads its own paths.
            None => op.path().to_owned(),
        };
        match (&self.tree, &self.sandbox) {
            (Some(tree), _) if is_mounted(&path) => Ok(tree.perform(path, op).await?),
            (Some(tree), Some(sandbox)) if path == "/" => merged(&**sandbox, tree, op).await,
            (_, Some(sandbox)) => {
                if self.plain {
                    links::check(&**sandbox, op.path()).await?;
                }
                sandbox.files(op).await
            }
            (_, None) => {
                let detail = "this call was begun without a sandbox".to_owned();
                Err(FileError { kind: FileErrorKind::InvalidPath, path, detail }.into())
            }
        }
    }
}

/// A list, a glob or a grep of a folder in which something is mounted.
async fn merged(sandbox: &dyn Sandbox, tree: &TreeFiles, op: FileOp) -> Result<FileReply, Error> {
    match op {
        FileOp::List { path, entries_max } => {
            let op = FileOp::List { path, entries_max };
            match sandbox.files(op).await? {
                FileReply::Entries { entries, truncated } => {
                    Ok(with_mounts(entries, truncated, entries_max))
                }
                _ => Err(crate::output::mismatched("list")),
            }
        }
        FileOp::Glob { root, pattern, paths_max } => {
            let op = FileOp::Glob { root, pattern: pattern.clone(), paths_max };
            let FileReply::Paths { mut paths, mut truncated } = sandbox.files(op).await? else {
                return Err(crate::output::mismatched("glob"));
            };
            paths.retain(|path| !is_mounted(path));
            for mount in MOUNTS {
                let found = tree.glob("/", mount, &pattern, paths_max).await?;
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
            let FileReply::Matches { mut matches, mut truncated } = sandbox.files(op).await? else {
                return Err(crate::output::mismatched("grep"));
            };
            matches.retain(|found| !is_mounted(&found.path));
            for mount in MOUNTS {
                let names = names.as_deref();
                let found = tree.grep("/", mount, &words, names, matches_max).await?;
                truncated |= found.truncated;
                matches.extend(found.found);
            }
            matches.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
            truncated |= cut(&mut matches, matches_max.min(door::MATCHES_MAX));
            Ok(FileReply::Matches { matches, truncated })
        }
        other => sandbox.files(other).await,
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
