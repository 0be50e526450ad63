//! Files written to a sandbox in pieces: there whole, or not at all.

use futures_util::{Stream, StreamExt as _};
use outrigger_sandbox::{
    EntryKind, FileOp, FileReply, ListEntry, Precondition, Sandbox, WriteMode, limits,
};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::pin::pin;

use super::command::fresh_exec;
use super::file_ops::done;
use crate::RequestError;

/// Writes a file in pieces that the sandbox takes. One of several grows beside its place, under a
/// name that the next upload of it takes as well if this one is cut off.
pub(super) struct FileWriter<'a> {
    sandbox: &'a dyn Sandbox,
    path: String,
    executable: Option<bool>,
    held: Vec<u8>,
    /// Where the pieces before this one are.
    begun: Option<String>,
}

/// A name beside a file.
fn beside(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let slash = if path.contains('/') { "/" } else { "" };
    format!("{folder}{slash}.outrigger-upload-{:016x}", hasher.finish())
}

impl<'a> FileWriter<'a> {
    pub(super) fn new(sandbox: &'a dyn Sandbox, path: String, executable: Option<bool>) -> Self {
        Self { sandbox, path, executable, held: Vec::new(), begun: None }
    }

    /// Writes all that comes. Where that ends early, the file is as it was.
    pub(super) async fn write(
        mut self,
        pieces: impl Stream<Item = Result<impl AsRef<[u8]>, RequestError>>,
    ) -> Result<(), RequestError> {
        let written = self.take(pieces).await;
        if let (Err(_), Some(begun)) = (&written, self.begun)
            && begun != self.path
        {
            // What can't be removed either is replaced by the next upload.
            let remove = FileOp::Remove { id: fresh_exec("http"), path: begun };
            drop(done(self.sandbox, remove).await);
        }
        written
    }

    async fn take(
        &mut self,
        pieces: impl Stream<Item = Result<impl AsRef<[u8]>, RequestError>>,
    ) -> Result<(), RequestError> {
        let most = usize::try_from(limits::FILE_CHUNK_BYTES_MAX).unwrap_or(usize::MAX);
        let mut pieces = pin!(pieces);
        while let Some(piece) = pieces.next().await {
            let piece = piece?;
            let mut bytes = piece.as_ref();
            while !bytes.is_empty() {
                if self.held.len() == most {
                    self.append().await?;
                }
                let (now, rest) = bytes.split_at(bytes.len().min(most - self.held.len()));
                self.held.extend_from_slice(now);
                bytes = rest;
            }
        }
        let Some(begun) = self.begun.clone() else {
            return self.put(self.path.clone(), WriteMode::Replace).await;
        };
        if !self.held.is_empty() {
            self.append().await?;
        }
        if begun == self.path {
            return Ok(());
        }
        let to = self.path.clone();
        done(self.sandbox, FileOp::Move { id: fresh_exec("http"), path: begun, to }).await
    }

    /// What is held goes behind what was before it.
    async fn append(&mut self) -> Result<(), RequestError> {
        if let Some(begun) = self.begun.clone() {
            return self.put(begun, WriteMode::Append).await;
        }
        let path = self.place().await;
        self.begun = Some(path.clone());
        self.put(path, WriteMode::Replace).await
    }

    /// Where a file of several pieces grows: beside its place, but for what leads elsewhere or is
    /// no file, which is told of there.
    async fn place(&mut self) -> String {
        let stat = FileOp::Stat { path: self.path.clone() };
        match self.sandbox.files(stat).await {
            Ok(FileReply::Entry(ListEntry { kind: EntryKind::File, executable, .. })) => {
                self.executable.get_or_insert(executable);
                beside(&self.path)
            }
            Ok(_) => self.path.clone(),
            Err(_) => beside(&self.path),
        }
    }

    async fn put(&mut self, path: String, mode: WriteMode) -> Result<(), RequestError> {
        let op = FileOp::Write {
            id: fresh_exec("http"),
            path,
            contents: std::mem::take(&mut self.held),
            mode,
            executable: self.executable,
            modified_ns: None,
            precondition: Precondition::None,
        };
        done(self.sandbox, op).await
    }
}

#[cfg(test)]
mod tests {
    use super::beside;

    #[test]
    fn a_name_beside_a_file_is_in_its_folder() {
        for (path, folder) in
            [("f", ""), ("a/f", "a/"), ("/f", "/"), ("/workspace/a/f", "/workspace/a/")]
        {
            let name = beside(path);
            assert!(name.starts_with(&format!("{folder}.outrigger-upload-")), "{path}: {name}");
        }
        assert_eq!(beside("a/f"), beside("a/f"));
        assert_ne!(beside("a/f"), beside("a/g"));
    }
}
