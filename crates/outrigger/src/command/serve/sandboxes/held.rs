//! A sandbox that this server knows: its record, its handle, its commands.

use outrigger_sandbox::{ExecId, Generation, Sandbox};
use outrigger_server::NotedFlow;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex as StdMutex};
use tokio::sync::Mutex;

use super::exec_lives::ExecLives;
use super::flows::FlowFile;
use super::records::SandboxRecord;
use crate::exit::{Failure, Kind, Outcome};

/// A sandbox that this server knows.
#[derive(Debug)]
pub(super) struct HeldSandbox {
    pub(super) record: SandboxRecord,
    /// Held while it is made, resumed or removed.
    pub(super) handle: Mutex<Option<Arc<dyn Sandbox>>>,
    /// Held while its disk is kept, so that the same request twice at once keeps it once.
    pub(super) snapshot: Mutex<()>,
    execs: StdMutex<ExecLives>,
    /// What it may reach, as it was said last.
    network: StdMutex<Vec<String>>,
    flows: StdMutex<FlowFile>,
    /// It is being removed: nobody finds it any more.
    pub(super) leaves: AtomicBool,
}

impl HeldSandbox {
    /// `beside`: the file of that ending, which goes with the record.
    pub(super) fn new(record: SandboxRecord, beside: impl Fn(&str) -> PathBuf) -> Self {
        let execs = StdMutex::new(ExecLives::new(beside("execs")));
        let network = StdMutex::new(record.network.clone());
        let flows = StdMutex::new(FlowFile::new(beside("flows")));
        let (handle, snapshot, leaves) = Default::default();
        Self { record, handle, snapshot, execs, network, flows, leaves }
    }

    /// What it may reach.
    pub(super) fn network(&self) -> Vec<String> {
        self.network.lock().expect("nobody panics while they hold it").clone()
    }

    pub(super) fn set_network(&self, words: Vec<String>) {
        *self.network.lock().expect("nobody panics while they hold it") = words;
    }

    /// Writes down what it reached.
    pub(super) fn note(&self, noted: &[NotedFlow]) -> Outcome {
        self.with_flows(|file| file.append(noted))
    }

    /// What it reached, the newest first.
    pub(super) fn noted(&self) -> Outcome<Vec<NotedFlow>> {
        self.with_flows(FlowFile::read)
    }

    fn with_flows<T>(&self, act: impl FnOnce(&FlowFile) -> std::io::Result<T>) -> Outcome<T> {
        let file = self.flows.lock().expect("nobody panics while they hold it");
        act(&file).map_err(|error| {
            let text = format!("what a sandbox reached can't be kept: {error}");
            Failure::new(Kind::Storage, text)
        })
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
