//! The fake's file operations: [`FileOp`] performed on a [`Tree`].
//!
//! Pure but for the tree that it is handed. It must never know of exec ids: that
//! an operation is performed once is its caller's to see to.

use super::tree::{Node, ResolvedPath, Symlinks, Tree};
use outrigger_sandbox::{
    EntryKind, FileError, FileErrorKind, FileOp, FileReply, GrepMatch, GrepPattern, ManifestEntry,
    Precondition, WriteMode, limits, text,
};

/// Performs one operation.
pub(super) fn perform(tree: &mut Tree, op: FileOp) -> Result<FileReply, FileError> {
    match op {
        FileOp::List { path, entries_max } => list(tree, &path, entries_max),
        FileOp::Stat { path } => {
            let resolved = tree.resolve(&path, Symlinks::AsItIs)?;
            Ok(FileReply::Entry(Tree::entry(&resolved.path, tree.get(&resolved)?)))
        }
        FileOp::Read { path, offset, bytes_max } => read(tree, &path, offset, bytes_max),
        FileOp::ReadLines { path, first, lines_max, bytes_max } => {
            let bytes_max = bytes_max.min(limits::FILE_CHUNK_BYTES_MAX);
            let lines = text::slice_lines(tree.file(&path)?, first, lines_max, bytes_max);
            Ok(FileReply::Lines(lines))
        }
        FileOp::Write { id: _, path, contents, mode, executable, modified_ns: _, precondition } => {
            let write = FileWrite { contents, mode, executable, precondition };
            write.perform(tree, &path)
        }
        FileOp::Edit { id: _, path, old, new, occurrences, precondition } => {
            let resolved = writable(tree, &path, Symlinks::Followed)?;
            let contents = tree.file(&path)?;
            if contents.len() as u64 > limits::EDIT_FILE_BYTES_MAX {
                return Err(
                    resolved.error(FileErrorKind::TooLarge, "the file is too large to edit")
                );
            }
            demand(precondition, Some(contents), &resolved)?;
            let (bytes, edited) = text::edit(&path, contents, &old, &new, occurrences)?;
            let executable = is_executable(tree, &resolved);
            tree.put_file(&resolved, bytes, executable)?;
            Ok(FileReply::Edited(edited))
        }
        FileOp::Link { id: _, path, target } => link(tree, &path, target),
        FileOp::MakeDir { id: _, path } => make_dir(tree, &path),
        FileOp::Remove { id: _, path } => {
            let resolved = writable(tree, &path, Symlinks::AsItIs)?;
            tree.get(&resolved)?;
            tree.remove(&resolved);
            Ok(FileReply::Done)
        }
        FileOp::Move { id: _, path, to } => rename(tree, &path, &to),
        FileOp::Glob { root, pattern, paths_max } => glob(tree, &root, &pattern, paths_max),
        FileOp::Grep { root, pattern, glob, matches_max } => {
            grep(tree, &root, &pattern, glob.as_deref(), matches_max)
        }
        FileOp::Manifest { root, after, skip, entries_max } => {
            manifest(tree, &root, after.as_deref(), &skip, entries_max)
        }
    }
}

fn writable(tree: &Tree, path: &str, last: Symlinks) -> Result<ResolvedPath, FileError> {
    let resolved = tree.resolve(path, last)?;
    Tree::check_writable(&resolved)?;
    Ok(resolved)
}

fn is_executable(tree: &Tree, resolved: &ResolvedPath) -> bool {
    matches!(tree.get(resolved), Ok(Node::File { executable: true, .. }))
}

fn directory(tree: &Tree, path: &str) -> Result<ResolvedPath, FileError> {
    let resolved = tree.resolve(path, Symlinks::Followed)?;
    match tree.get(&resolved)? {
        Node::Directory => Ok(resolved),
        Node::File { .. } | Node::Link { .. } | Node::Device => {
            Err(resolved.error(FileErrorKind::NotADirectory, "it is not a directory"))
        }
    }
}

fn list(tree: &Tree, path: &str, entries_max: u32) -> Result<FileReply, FileError> {
    let resolved = directory(tree, path)?;
    let depth = |path: &str| path.matches('/').count();
    let level = if resolved.path == "/" { 1 } else { depth(&resolved.path) + 1 };
    let children = tree.beneath(&resolved.path).filter(|(path, _)| depth(path) == level);
    let entries = children.map(|(path, node)| Tree::entry(path, node));
    let (entries, truncated) = some(entries, entries_max, limits::ENTRIES_MAX);
    Ok(FileReply::Entries { entries, truncated })
}

/// As many as asked for under a ceiling, and whether there were more.
fn some<T>(mut all: impl Iterator<Item = T>, asked: u32, ceiling: u32) -> (Vec<T>, bool) {
    let kept = all.by_ref().take(asked.min(ceiling) as usize).collect();
    (kept, all.next().is_some())
}

fn read(tree: &Tree, path: &str, offset: u64, bytes_max: u64) -> Result<FileReply, FileError> {
    let contents = tree.file(path)?;
    let total_bytes = contents.len() as u64;
    let start = offset.min(total_bytes);
    let end = total_bytes.min(start + bytes_max.min(limits::FILE_CHUNK_BYTES_MAX));
    let within = "both ends are within a file that is in memory";
    let range = usize::try_from(start).expect(within)..usize::try_from(end).expect(within);
    Ok(FileReply::Bytes { bytes: contents[range].to_vec(), total_bytes })
}

/// What [`FileOp::Write`] asks for beside its path.
struct FileWrite {
    contents: Vec<u8>,
    mode: WriteMode,
    executable: Option<bool>,
    precondition: Precondition,
}

impl FileWrite {
    fn perform(self, tree: &mut Tree, path: &str) -> Result<FileReply, FileError> {
        let resolved = writable(tree, path, Symlinks::Followed)?;
        if self.contents.len() as u64 > limits::FILE_CHUNK_BYTES_MAX {
            let detail = "the piece is too large; write the file in several";
            return Err(resolved.error(FileErrorKind::TooLarge, detail));
        }
        let before = match tree.get(&resolved) {
            Ok(_) => Some(tree.file(path)?.to_vec()),
            Err(_) => None,
        };
        demand(self.precondition, before.as_deref(), &resolved)?;
        let replaced = before.is_some();
        let digest = text::digest(&self.contents);
        let contents = match (self.mode, before) {
            (WriteMode::Create, Some(_)) => {
                return Err(resolved.error(FileErrorKind::AlreadyExists, "there is such a file"));
            }
            (WriteMode::Append, None) => {
                return Err(resolved.error(FileErrorKind::FileNotFound, "there is no such file"));
            }
            (WriteMode::Append, Some(mut bytes)) => {
                bytes.extend_from_slice(&self.contents);
                bytes
            }
            (WriteMode::Create, None) | (WriteMode::Replace, _) => self.contents,
        };
        tree.make_parents(&resolved)?;
        let executable = self.executable.unwrap_or_else(|| is_executable(tree, &resolved));
        tree.put_file(&resolved, contents, executable)?;
        Ok(FileReply::Written { digest, replaced })
    }
}

fn demand(
    precondition: Precondition,
    before: Option<&[u8]>,
    resolved: &ResolvedPath,
) -> Result<(), FileError> {
    match precondition {
        Precondition::Digest(wanted) if before.map(text::digest) != Some(wanted) => {
            let detail = "the file is not the one that was expected; read it again";
            Err(resolved.error(FileErrorKind::Conflict, detail))
        }
        Precondition::None | Precondition::Digest(_) => Ok(()),
    }
}

fn link(tree: &mut Tree, path: &str, target: String) -> Result<FileReply, FileError> {
    text::check_path(&target)?;
    let resolved = writable(tree, path, Symlinks::AsItIs)?;
    if matches!(tree.get(&resolved), Ok(Node::Directory)) {
        return Err(resolved.error(FileErrorKind::IsDirectory, "there is a directory"));
    }
    tree.make_parents(&resolved)?;
    tree.put_link(&resolved, target);
    Ok(FileReply::Done)
}

fn make_dir(tree: &mut Tree, path: &str) -> Result<FileReply, FileError> {
    let resolved = tree.resolve(path, Symlinks::Followed)?;
    match tree.get(&resolved) {
        Ok(Node::Directory) => return Ok(FileReply::Done),
        Ok(Node::File { .. } | Node::Link { .. } | Node::Device) => {
            return Err(resolved.error(FileErrorKind::AlreadyExists, "there is a file"));
        }
        Err(_) => Tree::check_writable(&resolved)?,
    }
    let path = resolved.path.clone();
    tree.make_directories(&path, &resolved)?;
    Ok(FileReply::Done)
}

fn rename(tree: &mut Tree, path: &str, to: &str) -> Result<FileReply, FileError> {
    let from = writable(tree, path, Symlinks::AsItIs)?;
    let is_directory = |node: &Node| node.kind() == EntryKind::Directory;
    let moves_directory = is_directory(tree.get(&from)?);
    let into = writable(tree, to, Symlinks::AsItIs)?;
    let replaced = tree.get(&into).ok().map(is_directory);
    if replaced == Some(true) {
        return Err(into.error(FileErrorKind::AlreadyExists, "there is a directory"));
    }
    if replaced.is_some() && moves_directory {
        return Err(into.error(FileErrorKind::NotADirectory, "there is a file"));
    }
    if moves_directory && into.path.starts_with(&format!("{}/", from.path)) {
        return Err(into.error(FileErrorKind::InvalidPath, "it is within what is moved"));
    }
    tree.make_parents(&into)?;
    if from.path != into.path {
        tree.remove(&into);
        tree.rename(&from, &into);
    }
    Ok(FileReply::Done)
}

/// The path relative to a root, for a path beneath it.
fn relative<'a>(root: &str, path: &'a str) -> &'a str {
    path.strip_prefix(root).unwrap_or(path).trim_start_matches('/')
}

fn glob(tree: &Tree, root: &str, pattern: &str, max: u32) -> Result<FileReply, FileError> {
    let matcher = text::Glob::new(pattern)?;
    let resolved = directory(tree, root)?;
    let skips = matcher.skip_list(&resolved.path);
    let wanted = |path: &str| {
        let relative = relative(&resolved.path, path);
        matcher.matches(relative) && !skips.hides(relative)
    };
    let files = tree.beneath(&resolved.path).filter(|(path, node)| {
        let file = match node {
            Node::File { .. } => true,
            Node::Link { .. } => tree.file(path).is_ok(),
            Node::Directory | Node::Device => false,
        };
        file && wanted(path)
    });
    let paths = files.map(|(path, _)| path.to_owned());
    let (paths, truncated) = some(paths, max, limits::ENTRIES_MAX);
    Ok(FileReply::Paths { paths, truncated })
}

fn grep(
    tree: &Tree,
    root: &str,
    pattern: &GrepPattern,
    glob: Option<&str>,
    max: u32,
) -> Result<FileReply, FileError> {
    let matcher = text::GrepMatcher::new(pattern)?;
    let glob = glob.map(text::Glob::new).transpose()?;
    let resolved = tree.resolve(root, Symlinks::Followed)?;
    let skips = match &glob {
        Some(glob) => glob.skip_list(&resolved.path),
        None => text::SkipList::beneath(&resolved.path),
    };
    let single = match tree.get(&resolved)? {
        Node::Directory => None,
        Node::File { .. } | Node::Link { .. } | Node::Device => {
            Some((resolved.path.as_str(), tree.file(root)?))
        }
    };
    let beneath = tree.beneath(&resolved.path).filter_map(|(path, node)| match node {
        Node::File { bytes, .. } => Some((path, bytes.as_slice())),
        Node::Directory | Node::Link { .. } | Node::Device => None,
    });
    let wanted = |path: &str| {
        let relative = relative(&resolved.path, path);
        let name = if relative.is_empty() { path.rsplit('/').next() } else { Some(relative) };
        let name = name.unwrap_or_default();
        !skips.hides(relative) && glob.as_ref().is_none_or(|glob| glob.matches(name))
    };
    let files = single.into_iter().chain(beneath);
    let texts = files.filter(|(path, bytes)| wanted(path) && !text::is_binary(bytes));
    let matches = texts.flat_map(|(path, bytes)| {
        let hits = matcher.lines(bytes);
        hits.map(move |(line, text)| GrepMatch { path: path.to_owned(), line, text })
    });
    let (matches, truncated) = some(matches, max, limits::MATCHES_MAX);
    Ok(FileReply::Matches { matches, truncated })
}

fn manifest(
    tree: &Tree,
    root: &str,
    after: Option<&str>,
    skip: &[String],
    max: u32,
) -> Result<FileReply, FileError> {
    let resolved = directory(tree, root)?;
    let entries = tree.beneath(&resolved.path).filter_map(|(path, node)| {
        let (bytes, digest, executable) = match node {
            Node::File { bytes, executable, .. } => {
                (bytes.len() as u64, Some(text::digest(bytes)), *executable)
            }
            Node::Link { target } => (0, Some(text::digest(target.as_bytes())), false),
            Node::Directory if tree.beneath(path).next().is_none() => {
                (0, Some(text::digest(b"")), false)
            }
            Node::Device => (0, None, false),
            Node::Directory => return None,
        };
        let kind: EntryKind = node.kind();
        let path = relative(&resolved.path, path).to_owned();
        let target = match node {
            Node::Link { target } => Some(target.clone()),
            Node::File { .. } | Node::Directory | Node::Device => None,
        };
        Some(ManifestEntry { path, kind, executable, bytes, digest, target })
    });
    let is_skipped = |path: &str| {
        let below = |dir: &String| path.strip_prefix(dir.as_str());
        skip.iter().filter_map(below).any(|rest| rest.starts_with('/'))
    };
    let entries = entries.filter(|entry| !is_skipped(&entry.path));
    let page = entries.filter(|entry| after.is_none_or(|after| entry.path.as_str() > after));
    let (entries, more) = some(page, max, limits::ENTRIES_MAX);
    Ok(FileReply::Manifest { entries, more })
}
