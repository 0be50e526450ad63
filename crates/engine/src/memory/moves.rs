//! What moves with a move.
//!
//! Owns that a folder takes nothing along that whoever moves it may not read and change,
//! where it is and where it comes, and that a session carries the labels of what it moves.

use outrigger_sandbox::{FileError, FileErrorKind};
use outrigger_store::entries::EntryAddress;
use std::collections::BTreeSet;

use super::error::{error, refusal};
use super::tree::MemoryView;

/// What is told where something in a folder stays where it is.
const STAYS: &str = "the rules keep something that is in it where it is";

impl MemoryView {
    /// Lets pass what may be moved as a whole. Both ends were judged before.
    pub(super) async fn carry(
        &self,
        path: &str,
        place: &EntryAddress,
        to: &str,
    ) -> Result<(), FileError> {
        let (entries, scope) = (&self.tree.entries, &self.tree.scope);
        let node = entries.stat(scope, place).await.map_err(|failed| refusal(path, failed))?;
        if !node.folder {
            // What was destroyed brings nothing.
            return match entries.read(scope, place, None).await {
                Ok(read) => self.learn(path, &read.version.labels_for(&scope.person())).await,
                Err(_) => Ok(()),
            };
        }
        let (mut labels, mut after) = (BTreeSet::new(), None);
        loop {
            let page = entries.list(scope, place, true, after.as_ref()).await;
            let page = page.map_err(|failed| refusal(path, failed))?;
            for (entry, _) in &page.entries {
                let below = entry.as_str().get(place.path.as_str().len()..).unwrap_or_default();
                let (here, there) = (format!("{path}{below}"), format!("{to}{below}"));
                let may = self.unseen(&here).is_none()
                    && self.may_write(&here).and_then(|()| self.may_write(&there)).is_ok();
                if !may {
                    return Err(error(FileErrorKind::PermissionDenied, path, STAYS));
                }
            }
            labels.extend(page.labels.into_values().flatten());
            after = page.entries.last().map(|(path, _)| path.clone());
            if !page.more {
                return self.learn(path, &labels).await;
            }
        }
    }
}
