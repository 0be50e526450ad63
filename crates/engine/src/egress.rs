//! The port to whatever lets sandboxes reach something outside.
//!
//! Owns what a command is told of it. Must never reach anything itself.

use async_trait::async_trait;
use outrigger_agent::{EgressFlow, EgressReport, Outcome, Product, Seq};
use outrigger_sandbox::{Sandbox, SandboxId};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::Arc;

use crate::host_rules::HostRules;
use crate::limits;

/// The one word of a session that is to reach nothing, whoever is there. Without any word it
/// reaches nothing that a person does not allow when they are asked.
pub const NO_NETWORK: &str = "none";

/// Why a sandbox has no network although its session asks for one, in words for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EgressError(pub String);

/// A host that a sandbox asks for, which its session may not reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressQuestion {
    /// The sandbox.
    pub sandbox: SandboxId,
    /// The host and port in the words of `--net`: nothing but letters, digits and `-_.:[]`.
    pub words: String,
}

/// What a person says to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EgressAnswer {
    /// Yes, until the command ends that runs now.
    Once,
    /// Yes, until the session's own words change.
    Session,
    /// No, and it is not asked again.
    No,
}

/// What came of a sandbox's network, each told once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressFlows {
    /// What was reached, and refused.
    pub flows: Vec<EgressFlow>,
    /// How many refusals more there were than are told apart.
    pub more: u64,
    /// What a person allowed meanwhile, and what the rules withhold, a sentence each, for the
    /// model.
    pub notes: Vec<String>,
}

/// Lets sandboxes reach what their sessions may, and nothing else.
#[async_trait]
pub trait Egress: Send + Sync + Debug {
    /// Makes that the programs of a living sandbox reach what these words of `--net` say, for
    /// which it gives the variables that its commands need. With [`NO_NETWORK`], and without
    /// words where nobody is asked, it takes back what there was. What the rules forbid is not
    /// reached, whatever the words say, and what they permit is not asked about. Repeating it
    /// costs next to nothing.
    async fn open(
        &self,
        sandbox: &dyn Sandbox,
        backend: &str,
        network: &[String],
        rules: &HostRules,
    ) -> Result<BTreeMap<String, String>, EgressError>;

    /// While a command runs: opens anew what was opened where whoever serves it ends meanwhile,
    /// so that what the command asks for from then on is answered. Ends where there is nothing
    /// to keep.
    async fn keep(&self, id: &SandboxId, backend: &str);

    /// After a command: what came of it since it was asked last. What was allowed for the
    /// command alone ends.
    async fn flows(&self, id: &SandboxId) -> EgressFlows;

    /// From now on a person is there, who is asked: what opens later holds what is not allowed,
    /// and waits for an answer a while. Until it is called, nobody is asked.
    fn attend(&self);

    /// What the sandboxes that this process opened ask for now. To be asked again and again
    /// while the person is there; without one it is empty.
    async fn questions(&self) -> Vec<EgressQuestion>;

    /// Acts on an answer. Repeating it is harmless.
    async fn answer(
        &self,
        question: &EgressQuestion,
        answer: EgressAnswer,
    ) -> Result<(), EgressError>;

    /// Takes back what there was, and ends what is under way. Repeating it is harmless.
    async fn close(&self, id: &SandboxId);
}

/// Does something in a sandbox while what is open for it is kept; see [`Egress::keep`].
pub async fn keeping<T>(
    egress: &dyn Egress,
    (id, backend): (&SandboxId, &str),
    work: impl Future<Output = T>,
) -> T {
    let kept = async {
        egress.keep(id, backend).await;
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        biased;
        done = work => done,
        never = kept => match never {},
    }
}

/// What a session may reach from one of its sandboxes.
#[derive(Debug, Clone)]
pub(crate) struct SandboxNetwork {
    egress: Arc<dyn Egress>,
    name: String,
    words: Vec<String>,
    /// As far as they are known.
    rules: Option<HostRules>,
}

/// The network of one command.
#[derive(Debug, Default)]
pub(crate) struct CommandNetwork {
    pub(crate) env: BTreeMap<String, String>,
    failure: Option<EgressError>,
}

impl SandboxNetwork {
    pub(crate) fn new(
        egress: Arc<dyn Egress>,
        name: &str,
        words: &[String],
        rules: Option<HostRules>,
    ) -> Self {
        Self { egress, name: name.to_owned(), words: words.to_vec(), rules }
    }

    /// Before a command.
    pub(crate) async fn open(&self, sandbox: &dyn Sandbox, backend: &str) -> CommandNetwork {
        let opened = match &self.rules {
            Some(rules) => self.egress.open(sandbox, backend, &self.words, rules).await,
            None => Err(EgressError("the rules can't be read".to_owned())),
        };
        match opened {
            Ok(env) => CommandNetwork { env, failure: None },
            Err(failure) => CommandNetwork { failure: Some(failure), ..CommandNetwork::default() },
        }
    }

    /// Beside a command, for as long as it runs.
    pub(crate) async fn keeping<T>(
        &self,
        of: (&SandboxId, &str),
        work: impl Future<Output = T>,
    ) -> T {
        keeping(&*self.egress, of, work).await
    }

    /// After a command: what it reached, of which it is told what was refused.
    pub(crate) async fn report(
        &self,
        network: &CommandNetwork,
        effect: Seq,
        id: &SandboxId,
        outcome: &mut Outcome,
    ) -> Option<EgressReport> {
        let EgressFlows { flows, more, notes } = self.egress.flows(id).await;
        if let Outcome::Done(Product::Output(output)) = outcome {
            let refused = flows.iter().filter_map(|flow| flow.refusal.as_deref());
            for why in refused.take(limits::EGRESS_REFUSALS_TOLD) {
                output.text.push_str(&format!("\n[{why}]"));
            }
            for what in notes {
                output.text.push_str(&format!("\n[{what}]"));
            }
            if let Some(failure) = &network.failure {
                output.text.push_str(&format!("\n[this ran without network: {failure}]"));
            }
        }
        let report = EgressReport { effect, sandbox: self.name.clone(), flows, more };
        (!report.flows.is_empty()).then_some(report)
    }
}
