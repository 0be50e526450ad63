//! A directory of the person's becomes the workspace of a session.
//!
//! Owns what is copied: the repository that it is a part of, or it alone.

use outrigger_agent::{HiddenCharPolicy, Workspace, visible};
use outrigger_repository::{
    DependencyPolicy, DirectoryArchive, Error, History, Limits, Rules, WorkTree,
};
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::compose::Store;
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::show::{self, Tone};
use crate::{project, repository, shell};

/// A directory as a session begins with it.
pub(crate) struct PackedDirectory {
    /// What was copied.
    pub(crate) tree: WorkTree,
    pub(crate) workspace: Workspace,
    /// Folders of what it depends on, which are not in it, by their paths in what was copied.
    /// Those that come along together stand together.
    pub(crate) dependencies: Vec<Vec<PathBuf>>,
    pub(crate) notes: Vec<(Tone, String)>,
}

/// The directory's state becomes a blob, from which a workspace is filled as often
/// as it takes, whatever happens to the directory meanwhile. `sent`: what was packed of it
/// elsewhere.
pub(crate) async fn pack(
    paths: &Paths,
    config: &Config,
    store: &Store,
    (tree, sent): (WorkTree, Option<SentDirectory>),
) -> Outcome<PackedDirectory> {
    if let Some(sent) = sent {
        return unpacked(store, tree, sent).await;
    }
    let mut notes = Vec::new();
    // A native sandbox is shown the objects where they lie.
    let (tree, packed) = match project::is_native(config) {
        true => copied(paths, config, tree, &mut notes).await?,
        false => copied_with_history(paths, config, tree, &mut notes).await?,
    };
    notes.extend(show::not_copied(&packed.left_out).into_iter().map(|it| (Tone::Warning, it)));
    let (count, kib) = (show::count(packed.files, "file"), packed.bytes.div_ceil(1_024));
    let top = tree.top.display();
    let text = match tree.prefix.as_os_str().is_empty() {
        true => format!("{count}, {kib} KiB copied from {top}"),
        false => {
            let prefix = tree.prefix.display();
            format!("{count}, {kib} KiB copied from {top}; commands begin in {prefix}")
        }
    };
    notes.push((Tone::Detail, text));
    let DirectoryArchive { archive, files, has_history, dependencies, .. } = packed;
    let stored = store.blobs.put_from(Box::new(archive)).await?;
    let workspace = Workspace {
        archive: stored.digest,
        bytes: stored.bytes,
        files,
        source: tree.top.display().to_string(),
        dependencies: history_folder(has_history),
        prefix: tree.prefix.display().to_string(),
    };
    Ok(PackedDirectory { tree, workspace, dependencies, notes })
}

/// A directory that was packed elsewhere, as an archive, and what people know it by.
#[derive(Debug)]
pub(crate) struct SentDirectory {
    pub(crate) archive: File,
    /// Files and links in it.
    pub(crate) files: u64,
    /// Whether the history of a repository is in it.
    pub(crate) has_history: bool,
    pub(crate) source: String,
}

/// Such a directory becomes a blob. `tree` has its files.
async fn unpacked(store: &Store, tree: WorkTree, sent: SentDirectory) -> Outcome<PackedDirectory> {
    let SentDirectory { archive, files, has_history, source } = sent;
    let stored = store.blobs.put_from(Box::new(archive)).await?;
    let workspace = Workspace {
        archive: stored.digest,
        bytes: stored.bytes,
        files,
        source,
        dependencies: history_folder(has_history),
        prefix: tree.prefix.display().to_string(),
    };
    Ok(PackedDirectory { tree, workspace, dependencies: Vec::new(), notes: Vec::new() })
}

/// The folder of a history, which came along and is no content.
fn history_folder(has_history: bool) -> Vec<String> {
    has_history.then(|| ".git".to_owned()).into_iter().collect()
}

/// An archive of the repository that a directory is a part of; of the directory alone where
/// all of it is too much.
async fn copied(
    paths: &Paths,
    config: &Config,
    tree: WorkTree,
    notes: &mut Vec<(Tone, String)>,
) -> Outcome<(WorkTree, DirectoryArchive)> {
    let is_part = !tree.prefix.as_os_str().is_empty();
    match archive(paths, config, tree.clone()).await? {
        Ok(packed) => Ok((tree, packed)),
        Err(Error::TooLarge(more)) if is_part => {
            let top = tree.top.display();
            let text = format!(
                "! only this directory is copied, without history: {top} is too large, {more}"
            );
            notes.push((Tone::Warning, text));
            let alone = WorkTree::alone(&tree.dir());
            match archive(paths, config, alone.clone()).await? {
                Ok(packed) => Ok((alone, packed)),
                Err(error) => Err(repository::failed(&alone.top, &error)),
            }
        }
        Err(error) => Err(repository::failed(&tree.top, &error)),
    }
}

/// As `copied`, with the history behind it if there is one that can go along: for where its objects
/// can't be shown where they lie.
pub(crate) async fn copied_with_history(
    paths: &Paths,
    config: &Config,
    tree: WorkTree,
    notes: &mut Vec<(Tone, String)>,
) -> Outcome<(WorkTree, DirectoryArchive)> {
    let (tree, mut packed) = copied(paths, config, tree, notes).await?;
    let top = tree.top.clone();
    let joining = tokio::task::spawn_blocking(move || {
        let history = History::read(&top)?;
        if let Some(Ok(history)) = &history {
            history.join(&mut packed)?;
        }
        Ok((packed, history))
    });
    let joined = joining.await.map_err(|panic| Failure::from_error(Kind::AgentFailed, &panic))?;
    let (packed, history) = joined.map_err(|error| repository::failed(&tree.top, &error))?;
    match history {
        None => {}
        Some(Err(why)) => {
            notes.push((Tone::Warning, format!("! the sandbox has no git history: {why}")));
        }
        Some(Ok(history)) => {
            notes.extend(history.notes().iter().map(|note| (Tone::Detail, note.clone())));
            let size = show::amounts::size(history.bytes());
            notes.push((Tone::Detail, format!("with its git history, {size}")));
        }
    }
    Ok((tree, packed))
}

/// What is copied of a directory, unless that is too large.
pub(crate) fn tree(dir: &Path) -> Outcome<WorkTree> {
    if dir.is_file() {
        // One of a repository would be taken for the repository.
        return Err(Failure::new(Kind::Usage, format!("{}: Not a directory", dir.display()))
            .hint("Name a directory with --dir."));
    }
    let tree = WorkTree::of(dir, &shell::of_person().home);
    let tree = tree.map_err(|error| repository::failed(dir, &error))?;
    // The model is told where commands begin, by a name without hidden characters.
    let prefix = tree.prefix.to_string_lossy();
    let is_plain = visible(&prefix, HiddenCharPolicy::Marked) == prefix;
    Ok(if is_plain { tree } else { WorkTree::alone(dir) })
}

/// What of any directory is nobody's work: what whoever asks ignores everywhere, and what is kept
/// here, journals and disks.
pub(crate) fn rules(paths: &Paths) -> Rules {
    let rules = Rules::of_user();
    match std::fs::canonicalize(paths.data()) {
        Ok(data) => rules.without(data),
        Err(_) => rules,
    }
}

async fn archive(
    paths: &Paths,
    config: &Config,
    tree: WorkTree,
) -> Outcome<Result<DirectoryArchive, Error>> {
    paths.prepare()?;
    let scratch = paths.scratch();
    let (bytes_max, files_max) = (config.workspace_bytes_max, config.workspace_files_max);
    let limits = Limits { bytes_max, files_max };
    // Folders are named from where the person works.
    let include: Vec<_> = config.include.iter().map(|it| tree.prefix.join(it)).collect();
    let rules = rules(paths);
    let apart = config.dependencies && project::is_native(config);
    let packing = tokio::task::spawn_blocking(move || {
        let policy = match apart {
            true => DependencyPolicy::Apart(&include),
            false => DependencyPolicy::Content,
        };
        outrigger_repository::pack(&tree.top, &scratch, &rules, limits, policy)
    });
    packing.await.map_err(|panic| Failure::from_error(Kind::AgentFailed, &panic))
}
