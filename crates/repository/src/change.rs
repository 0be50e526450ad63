//! What a session changed.

use outrigger_sandbox::EntryKind;

/// A file or link with its contents. The contents of a link are its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// A file or a link.
    pub kind: EntryKind,
    /// Whether it may be executed.
    pub executable: bool,
    /// What it holds.
    pub contents: Vec<u8>,
}

/// A path that is not as it was. At least one side is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the workspace.
    pub path: String,
    /// As it was, if it was.
    pub before: Option<File>,
    /// As it is, if it is.
    pub after: Option<File>,
}

impl Change {
    /// Takes it back.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { path: self.path, before: self.after, after: self.before }
    }

    /// Whether one of its sides has so many bytes.
    pub(crate) fn has_length(&self, bytes: u64) -> bool {
        [&self.before, &self.after]
            .into_iter()
            .flatten()
            .any(|it| it.contents.len() as u64 == bytes)
    }
}
