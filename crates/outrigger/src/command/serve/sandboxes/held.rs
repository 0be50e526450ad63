//! A sandbox that this server knows: its record, its handle, its commands.

use outrigger_sandbox::{ExecId, Generation, Sandbox};
use std::path::PathBuf;
use std::sync::{Arc, Mutex as StdMutex};
use tokio::sync::Mutex;

use super::exec_lives::ExecLives;
use super::records::SandboxRecord;
use crate::exit::Outcome;

/// A sandbox that this server knows.
#[derive(Debug)]
pub(super) struct HeldSandbox {
    pub(super) record: SandboxRecord,
    /// Held while it is made, resumed or removed.
    pub(super) handle: Mutex<Option<Arc<dyn Sandbox>>>,
    execs: StdMutex<ExecLives>,
}

impl HeldSandbox {
    pub(super) fn new(record: SandboxRecord, execs: PathBuf) -> Self {
        Self { record, handle: Mutex::default(), execs: StdMutex::new(ExecLives::new(execs)) }
    }

    /// In which life a command was begun.
    pub(super) fn exec_life(
        &self,
        exec: &ExecId,
        begins: Option<&Generation>,
    ) -> Outcome<Option<Generation>> {
        self.execs.lock().expect("nobody panics while they hold it").life(exec, begins)
    }
}
