//! Whose turn it is to write a file of a sandbox.
//!
//! A long file grows piece by piece: two at once would end as a mixture of both.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outrigger_api::ProblemCode;
use outrigger_sandbox::SandboxId;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use crate::RequestError;
use crate::limits::UPLOAD_TURN_MS_MAX;

type FileTurn = Arc<tokio::sync::Mutex<()>>;

/// The files that somebody writes, by their paths as they were given.
#[derive(Debug, Default)]
pub(crate) struct UploadTurns(Mutex<HashMap<(SandboxId, String), FileTurn>>);

impl UploadTurns {
    /// Waits until nobody else writes the file, and keeps others waiting as long as it is held.
    pub(super) async fn of(
        &self,
        sandbox: &SandboxId,
        path: &str,
    ) -> Result<OwnedMutexGuard<()>, RequestError> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Nobody has or waits for those.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry((sandbox.clone(), path.to_owned())).or_default())
        };
        let wait = Duration::from_millis(UPLOAD_TURN_MS_MAX);
        timeout(wait, turn.lock_owned()).await.map_err(|_| {
            let text = format!("`{path}` is being written by another request");
            RequestError::new(ProblemCode::Conflict, text).hint("Try again when that is over.")
        })
    }
}
