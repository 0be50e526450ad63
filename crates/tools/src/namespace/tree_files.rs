//! File operations on a served tree: the same questions and answers as on a sandbox's disk.
//!
//! Owns that nothing is written over unseen: a file is replaced only at the revision that
//! the session knows, and edited at the one that is there, as often as it moves meanwhile.

use outrigger_sandbox::{
    EntryKind, ExpectedRevision, FileError, FileErrorKind, FileOp, FileReply, ListEntry, Node,
    Occurrences, Precondition, Tree, TreeEntry, TreeOp, TreeReply, WriteMode, limits as door, text,
};
use std::sync::Arc;

use super::seen::SeenRevisions;
use crate::limits;

/// A served tree, as file tools ask for its files.
#[derive(Debug)]
pub(super) struct TreeFiles {
    pub(super) tree: Arc<dyn Tree>,
    pub(super) seen: Arc<SeenRevisions>,
}

/// A file as it is.
#[derive(Debug)]
pub(super) struct File {
    pub(super) node: Node,
    pub(super) contents: Vec<u8>,
}

pub(super) fn error(kind: FileErrorKind, path: &str, detail: impl Into<String>) -> FileError {
    FileError { kind, path: path.to_owned(), detail: detail.into() }
}

fn astray(path: &str) -> FileError {
    error(FileErrorKind::Io, path, "the answer is not one to this question")
}

impl TreeFiles {
    /// Performs an operation on the file or folder at a canonical path.
    pub(super) async fn perform(&self, path: String, op: FileOp) -> Result<FileReply, FileError> {
        match self.act(&path, op).await {
            Err(absent) if absent.kind == FileErrorKind::FileNotFound => {
                Err(self.below_a_file(&path).await.unwrap_or(absent))
            }
            done => done,
        }
    }

    /// The error of a path that goes on behind a file, as a disk has it.
    async fn below_a_file(&self, path: &str) -> Option<FileError> {
        let mut above = path;
        while let Some((folder, _)) = above.rsplit_once('/').filter(|it| !it.0.is_empty()) {
            match self.stat(folder).await {
                Ok(node) if node.folder => return None,
                Ok(_) => {
                    let detail = "a part of the path is not a directory";
                    return Some(error(FileErrorKind::NotADirectory, path, detail));
                }
                Err(_) => above = folder,
            }
        }
        None
    }

    async fn act(&self, path: &str, op: FileOp) -> Result<FileReply, FileError> {
        match op {
            FileOp::List { entries_max, .. } => self.list(path, entries_max).await,
            FileOp::Stat { .. } => {
                let node = self.stat(path).await?;
                let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                Ok(FileReply::Entry(shown(TreeEntry { name, node })))
            }
            FileOp::Read { offset, bytes_max, .. } => {
                let File { contents, .. } = self.read(path).await?;
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(contents.len());
                let most = bytes_max.min(door::FILE_CHUNK_BYTES_MAX);
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                let end = start.saturating_add(most).min(contents.len());
                let total_bytes = contents.len() as u64;
                Ok(FileReply::Bytes { bytes: contents[start..end].to_vec(), total_bytes })
            }
            FileOp::ReadLines { first, lines_max, bytes_max, .. } => {
                let File { contents, .. } = self.read(path).await?;
                let bytes_max = bytes_max.min(door::FILE_CHUNK_BYTES_MAX);
                Ok(FileReply::Lines(text::slice_lines(&contents, first, lines_max, bytes_max)))
            }
            FileOp::Write { contents, mode, precondition, .. } => {
                self.write(path, contents, mode, precondition).await
            }
            FileOp::Edit { old, new, occurrences, precondition, .. } => {
                self.edit(path, (&old, &new), occurrences, precondition).await
            }
            FileOp::MakeDir { .. } => self.make_folders(path).await,
            FileOp::Remove { .. } => self.remove(path).await,
            FileOp::Glob { pattern, paths_max, .. } => {
                let found = self.glob(path, path, &pattern, paths_max).await?;
                Ok(FileReply::Paths { paths: found.found, truncated: found.truncated })
            }
            FileOp::Grep { pattern, glob, matches_max, .. } => {
                let glob = glob.as_deref();
                let found = self.grep(path, path, &pattern, glob, matches_max).await?;
                Ok(FileReply::Matches { matches: found.found, truncated: found.truncated })
            }
            FileOp::Link { .. } => {
                let detail = "there are no links here; write a file";
                Err(error(FileErrorKind::PermissionDenied, path, detail))
            }
            FileOp::Move { .. } => {
                let detail = "nothing is moved here; write it where it is to be, and remove it";
                Err(error(FileErrorKind::PermissionDenied, path, detail))
            }
            FileOp::Manifest { .. } => {
                let detail = "what is served is not on the disk of the sandbox";
                Err(error(FileErrorKind::InvalidArgument, path, detail))
            }
        }
    }

    pub(super) async fn stat(&self, path: &str) -> Result<Node, FileError> {
        match self.tree.perform(TreeOp::Stat { path: path.to_owned() }).await? {
            TreeReply::Node(node) => Ok(node),
            _ => Err(astray(path)),
        }
    }

    /// A page of a folder, and whether more follow.
    pub(super) async fn page(
        &self,
        path: &str,
        after: Option<String>,
    ) -> Result<(Vec<TreeEntry>, bool), FileError> {
        match self.tree.perform(TreeOp::List { path: path.to_owned(), after }).await? {
            TreeReply::Listed { entries, more } => Ok((entries, more)),
            _ => Err(astray(path)),
        }
    }

    /// A file without the session knowing it, or anybody being shown it.
    pub(super) async fn peek(&self, path: &str) -> Result<File, FileError> {
        match self.tree.perform(TreeOp::Read { path: path.to_owned() }).await? {
            TreeReply::Contents { node, contents } => Ok(File { node, contents }),
            _ => Err(astray(path)),
        }
    }

    async fn read(&self, path: &str) -> Result<File, FileError> {
        let file = self.peek(path).await?;
        self.tree.show(&[path]).await?;
        self.seen.saw(path, file.node.revision);
        Ok(file)
    }

    /// Says what is about to be shown of what was looked through.
    pub(super) async fn show<'a>(
        &self,
        paths: impl Iterator<Item = &'a str>,
    ) -> Result<(), FileError> {
        self.tree.show(&paths.collect::<Vec<_>>()).await
    }

    /// The file that may be there. A refusal shows what it says.
    async fn before(&self, path: &str) -> Result<Option<File>, FileError> {
        match self.peek(path).await {
            Ok(file) => {
                self.tree.show(&[path]).await?;
                Ok(Some(file))
            }
            Err(error) if error.kind == FileErrorKind::FileNotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn put(
        &self,
        path: &str,
        expected: ExpectedRevision,
        contents: Vec<u8>,
    ) -> Result<(), FileError> {
        let op = TreeOp::Write { path: path.to_owned(), expected, contents };
        match self.tree.perform(op).await? {
            TreeReply::Node(node) => {
                self.seen.saw(path, node.revision);
                Ok(())
            }
            _ => Err(astray(path)),
        }
    }

    /// Has whoever was overtaken know what the file says now.
    async fn told(&self, path: &str, done: Result<(), FileError>) -> Result<(), FileError> {
        match done {
            Err(refused) if refused.kind == FileErrorKind::Conflict => {
                match self.before(path).await {
                    Ok(Some(file)) => Err(with_text(refused, &file)),
                    Ok(None) => Err(refused),
                    Err(_) => Err(refused),
                }
            }
            done => done,
        }
    }

    async fn list(&self, path: &str, entries_max: u32) -> Result<FileReply, FileError> {
        let most = entries_max.min(door::ENTRIES_MAX) as usize;
        let (mut found, mut after) = (Vec::new(), None);
        let truncated = loop {
            let (entries, more) = self.page(path, after).await?;
            after = entries.last().map(|entry| entry.name.clone());
            found.extend(entries.into_iter().map(shown));
            if found.len() > most || !more || after.is_none() {
                break found.len() > most;
            }
        };
        found.truncate(most);
        let names: Vec<_> = found.iter().map(|entry| format!("{path}/{}", entry.name)).collect();
        self.show(names.iter().map(String::as_str)).await?;
        Ok(FileReply::Entries { entries: found, truncated })
    }

    async fn write(
        &self,
        path: &str,
        contents: Vec<u8>,
        mode: WriteMode,
        precondition: Precondition,
    ) -> Result<FileReply, FileError> {
        let digest = text::digest(&contents);
        let before = self.before(path).await?;
        demand(path, precondition, before.as_ref())?;
        let replaced = before.is_some();
        let (expected, contents) = match (mode, before) {
            (WriteMode::Create, Some(_)) => {
                return Err(error(FileErrorKind::AlreadyExists, path, "there is such a file"));
            }
            (WriteMode::Append, None) => {
                return Err(error(FileErrorKind::FileNotFound, path, "there is no such file"));
            }
            (WriteMode::Append, Some(File { node, contents: mut all })) => {
                all.extend_from_slice(&contents);
                (ExpectedRevision::Revision(node.revision), all)
            }
            (WriteMode::Replace, Some(file)) => {
                let known = self.seen.of(path) == Some(file.node.revision);
                // A person who approved it saw what is replaced.
                if !known && precondition == Precondition::None {
                    return Err(unknown(path, &file));
                }
                (ExpectedRevision::Revision(file.node.revision), contents)
            }
            (WriteMode::Create | WriteMode::Replace, None) => {
                let (parent, _) = path.rsplit_once('/').unwrap_or_default();
                self.make_folders(parent).await?;
                (ExpectedRevision::Absent, contents)
            }
        };
        let put = self.put(path, expected, contents).await;
        self.told(path, put).await?;
        Ok(FileReply::Written { digest, replaced })
    }

    /// Edits what is there now: if it moved in between, what is there then.
    async fn edit(
        &self,
        path: &str,
        (old, new): (&[u8], &[u8]),
        occurrences: Occurrences,
        precondition: Precondition,
    ) -> Result<FileReply, FileError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let file = self.peek(path).await?;
            self.tree.show(&[path]).await?;
            demand(path, precondition, Some(&file))?;
            let edited = text::edit(path, &file.contents, old, new, occurrences);
            let (contents, edited) = edited.map_err(|refused| with_text(refused, &file))?;
            match self.put(path, ExpectedRevision::Revision(file.node.revision), contents).await {
                Err(moved)
                    if moved.kind == FileErrorKind::Conflict
                        && attempts < limits::EDIT_ATTEMPTS_MAX => {}
                done => return self.told(path, done).await.map(|()| FileReply::Edited(edited)),
            }
        }
    }

    async fn make_folders(&self, path: &str) -> Result<FileReply, FileError> {
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
        for folder in ends.map(|end| &path[..end]) {
            match self.stat(folder).await {
                Ok(node) if node.folder => continue,
                Ok(_) => {
                    return Err(error(FileErrorKind::NotADirectory, path, "there is a file"));
                }
                Err(absent) if absent.kind == FileErrorKind::FileNotFound => {}
                Err(other) => return Err(other),
            }
            match self.tree.perform(TreeOp::MakeFolder { path: folder.to_owned() }).await {
                // Somebody else made it meanwhile.
                Err(there) if there.kind == FileErrorKind::AlreadyExists => {}
                made => drop(made?),
            }
        }
        Ok(FileReply::Done)
    }

    async fn remove(&self, path: &str) -> Result<FileReply, FileError> {
        let node = self.stat(path).await?;
        let path = path.to_owned();
        let op = if node.folder {
            TreeOp::RemoveFolder { path }
        } else {
            TreeOp::Remove { path, expected: node.revision }
        };
        self.tree.perform(op).await.map(|_| FileReply::Done)
    }
}

fn shown(TreeEntry { name, node }: TreeEntry) -> ListEntry {
    let kind = if node.folder { EntryKind::Directory } else { EntryKind::File };
    ListEntry {
        name,
        kind,
        bytes: node.bytes,
        modified_ms: i64::try_from(node.modified_ms).unwrap_or(i64::MAX),
        executable: node.executable && !node.folder,
    }
}

fn demand(path: &str, precondition: Precondition, file: Option<&File>) -> Result<(), FileError> {
    match precondition {
        Precondition::Digest(wanted)
            if file.map(|file| text::digest(&file.contents)) != Some(wanted) =>
        {
            let detail = "the file is not the one that was expected; read it again";
            Err(error(FileErrorKind::Conflict, path, detail))
        }
        Precondition::None | Precondition::Digest(_) => Ok(()),
    }
}

/// A file that the session would replace and does not know.
fn unknown(path: &str, file: &File) -> FileError {
    let revision = file.node.revision;
    let detail = format!(
        "the file is at revision {revision}, which was not read here, so it was not replaced. \
         Read it, or edit it"
    );
    with_text(error(FileErrorKind::Conflict, path, detail), file)
}

/// An error that says what the file holds, so that the next attempt can be right.
fn with_text(mut refused: FileError, file: &File) -> FileError {
    if refused.kind != FileErrorKind::Conflict {
        return refused;
    }
    let Ok(text) = std::str::from_utf8(&file.contents) else { return refused };
    let end = text.floor_char_boundary(limits::CONFLICT_BYTES_MAX.min(text.len()));
    let cut = if end < text.len() { " [cut]" } else { "" };
    let revision = file.node.revision;
    refused.detail.push_str(&format!(". At revision {revision} it says:\n{}{cut}", &text[..end]));
    refused
}
