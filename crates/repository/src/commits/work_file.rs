//! What a session changed, against what it committed.

use outrigger_sandbox::EntryKind;

use super::diff::TreeDiff;
use super::object::{ObjectId, mode};
use super::problem::CommitProblem;
use crate::Change;

/// A path that a session changed, as its work tree has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkFile {
    pub(super) path: String,
    /// As a commit would have it. Nothing for what is gone.
    entry: Option<(u32, ObjectId)>,
}

impl WorkFile {
    /// Of a change.
    #[must_use]
    pub fn of(change: &Change) -> Self {
        let entry = change.after.as_ref().map(|after| {
            let mode = match (after.kind, after.executable) {
                (EntryKind::Link, _) => mode::LINK,
                (_, true) => mode::PROGRAM,
                (_, false) => mode::FILE,
            };
            (mode, ObjectId::of_blob(&after.contents))
        });
        Self { path: change.path.clone(), entry }
    }

    /// Whether a commit's folder has it so. Nothing while that is not known yet.
    pub(super) fn is_in(
        &self,
        tree: ObjectId,
        diff: &mut TreeDiff<'_>,
    ) -> Result<Option<bool>, CommitProblem> {
        let mut at = (mode::FOLDER, tree);
        for name in self.path.split('/') {
            if at.0 != mode::FOLDER {
                return Ok(Some(self.entry.is_none()));
            }
            let Some(folder) = diff.folder(at.1)? else { return Ok(None) };
            match folder.iter().find(|entry| entry.name == name.as_bytes()) {
                Some(entry) => at = (entry.mode, entry.id),
                None => return Ok(Some(self.entry.is_none())),
            }
        }
        Ok(Some(self.entry == Some(at)))
    }
}
