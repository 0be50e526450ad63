//! What the sandboxes of people reach: opened before a command, kept while somebody waits for it,
//! noted after it.

use async_trait::async_trait;
use outrigger_engine::{Egress as _, HostRules, keeping};
use outrigger_sandbox::{
    CreateOutcome, Error, ExecId, ExecOutcome, Execute, FileOp, FileReply, Generation, Input,
    OutputSink, Sandbox, SandboxId,
};
use outrigger_server::NotedFlow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::held::HeldSandbox;
use crate::command::serve::context::ServeContext;
use crate::command::serve::log::ServerLog;
use crate::compose::{self, BackendNetworks};
use crate::config::BackendName;
use crate::exit::Outcome;
use crate::network::{GateEgress, over_http};
use crate::rules::ConfiguredRules;
use crate::sandbox::no_network;
use crate::session::now_ms;

/// The way out of the sandboxes of people.
#[derive(Debug)]
pub(super) struct PersonNetwork {
    gate: GateEgress,
    backend: BackendName,
    rules: Arc<ConfiguredRules>,
    log: ServerLog,
}

impl PersonNetwork {
    pub(super) fn new(
        context: &ServeContext,
        backend: BackendName,
        networks: BackendNetworks,
    ) -> Outcome<Self> {
        let gate = compose::egress(&context.paths, &context.store, networks)?.advising(over_http);
        Ok(Self { gate, backend, rules: Arc::clone(&context.rules), log: context.log })
    }

    /// The variables that its commands need to reach what it may.
    pub(super) async fn open(
        &self,
        sandbox: &dyn Sandbox,
        held: &HeldSandbox,
    ) -> Outcome<BTreeMap<String, String>> {
        let rules = HostRules::of_person(self.rules.in_force()?, &held.record.person);
        let opened = self.gate.open(sandbox, self.backend.as_str(), &held.network(), &rules).await;
        opened.map_err(|error| no_network(sandbox.id(), &error))
    }

    /// As [`Self::note`], where what is done does not depend on it.
    async fn note_if_it_can_be(&self, id: &SandboxId, held: &HeldSandbox) {
        if let Err(failure) = self.note(id, held).await {
            self.log.failure(&failure);
        }
    }

    /// Writes down what it reached since it was asked last.
    pub(super) async fn note(&self, id: &SandboxId, held: &HeldSandbox) -> Outcome {
        let (at_ms, flows) = (now_ms(), self.gate.flows(id).await.flows);
        for flow in &flows {
            self.log.flow(&held.record.person, id.as_str(), flow);
        }
        let noted: Vec<_> = flows.into_iter().map(|flow| NotedFlow { at_ms, flow }).collect();
        held.note(&noted)
    }

    /// It reaches nothing until its next command; what was open ends.
    pub(super) async fn close(&self, id: &SandboxId, held: &HeldSandbox) {
        self.note_if_it_can_be(id, held).await;
        self.gate.close(id).await;
    }

    /// As [`Self::close`], of one that went cold by itself.
    pub(super) async fn rest(&self, id: &SandboxId, held: &HeldSandbox) {
        if self.gate.is_open(id).await {
            self.close(id, held).await;
        }
    }

    /// As [`Self::close`], of one that is gone, or is about to be.
    pub(super) async fn forget(&self, id: &SandboxId, held: &HeldSandbox) {
        self.note_if_it_can_be(id, held).await;
        self.gate.forget(id).await;
    }
}

/// A sandbox whose commands reach what its person wants.
#[derive(Debug)]
pub(super) struct NetworkedSandbox {
    pub(super) sandbox: Arc<dyn Sandbox>,
    pub(super) held: Arc<HeldSandbox>,
    pub(super) network: Arc<PersonNetwork>,
}

#[async_trait]
impl Sandbox for NetworkedSandbox {
    fn id(&self) -> &SandboxId {
        self.sandbox.id()
    }

    fn generation(&self) -> &Generation {
        self.sandbox.generation()
    }

    fn outcome(&self) -> CreateOutcome {
        self.sandbox.outcome()
    }

    fn is_alive(&self) -> bool {
        self.sandbox.is_alive()
    }

    async fn execute(&self, request: Execute, sink: &dyn OutputSink) -> Result<ExecOutcome, Error> {
        let Self { sandbox, held, network } = self;
        let of = (sandbox.id(), network.backend.as_str());
        let done = keeping(&network.gate, of, sandbox.execute(request, sink)).await;
        network.note_if_it_can_be(sandbox.id(), held).await;
        done
    }

    async fn kill(&self, id: &ExecId) -> Result<(), Error> {
        self.sandbox.kill(id).await
    }

    async fn input(&self, id: &ExecId, input: Input) -> Result<(), Error> {
        self.sandbox.input(id, input).await
    }

    async fn files(&self, op: FileOp) -> Result<FileReply, Error> {
        self.sandbox.files(op).await
    }
}
