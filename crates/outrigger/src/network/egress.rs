//! The port of the engine on the gate.
//!
//! Owns which sandboxes are open there, as far as this process knows. The gate may end at any
//! moment: it is asked before each command, and told again if it knows nothing.

use async_trait::async_trait;
use outrigger_agent::EgressFlow;
use outrigger_engine::{Egress, EgressAnswer, EgressError, EgressFlows, EgressQuestion};
use outrigger_gate::{Destination, Flow, NetworkClient, OpenedNetwork, Refusal, SealedSecret};
use outrigger_sandbox::{ConnectionSink, Generation, Networks, Sandbox, SandboxId};
use outrigger_store::Secrets;
use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Mutex, mpsc};

use super::answers::HostAnswers;
use super::environment;
use super::grants::{network, proxy};
use super::mirrors::Mirrors;
use super::secrets;
use super::words::PACKAGES;
use crate::limits;

/// The hidden mode in which this program is the gate.
pub(crate) const GATE_MODE: &str = "gate-server";

/// The gate of an installation.
#[derive(Debug)]
pub(crate) struct GateEgress {
    client: NetworkClient,
    /// By the names of backends.
    networks: BTreeMap<&'static str, Arc<dyn Networks>>,
    mirrors: Mirrors,
    secrets: Arc<dyn Secrets>,
    known: Mutex<HashMap<SandboxId, SandboxGate>>,
    /// Whether a person is asked.
    attended: AtomicBool,
}

/// A sandbox, as this process knows it.
#[derive(Debug, Clone)]
enum SandboxGate {
    /// It has no network.
    Closed,
    Open {
        generation: Generation,
        words: Vec<String>,
        env: BTreeMap<String, String>,
        /// Where its listener is, if what carries its connections ends with this process.
        carried: Option<u16>,
        answers: HostAnswers,
    },
}

impl GateEgress {
    /// Starts nothing.
    pub(crate) fn new(
        client: NetworkClient,
        networks: BTreeMap<&'static str, Arc<dyn Networks>>,
        mirrors: Mirrors,
        secrets: Arc<dyn Secrets>,
    ) -> Self {
        let (known, attended) = (Mutex::default(), AtomicBool::new(false));
        Self { client, networks, mirrors, secrets, known, attended }
    }

    /// Tells the gate what a sandbox may reach, with what a person said to it.
    async fn tell(
        &self,
        id: &SandboxId,
        words: &[String],
        answers: &HostAnswers,
        listeners: Vec<OwnedFd>,
    ) -> Result<(OpenedNetwork, Vec<SealedSecret>), EgressError> {
        let mut network = network(words, &self.mirrors, proxy());
        network.grants.extend(answers.grants());
        let secrets = secrets::of_words(&*self.secrets, words).await.map_err(EgressError)?;
        let (id, client) = (id.as_str(), &self.client);
        let opened = match self.attended.load(Ordering::Relaxed) {
            true => {
                let declined = answers.declined();
                client.open_asking(id, &network, &secrets, declined, listeners).await
            }
            false => client.open(id, &network, &secrets, listeners).await,
        };
        let opened = opened.map_err(|error| EgressError(error.to_string()))?;
        Ok((opened, secrets))
    }

    /// Opens it anew, in this life of the sandbox.
    async fn open_anew(
        &self,
        sandbox: &dyn Sandbox,
        backend: &str,
        words: &[String],
        answers: &HostAnswers,
    ) -> Result<(BTreeMap<String, String>, Option<u16>), EgressError> {
        let id = sandbox.id();
        let networks = self.networks.get(backend).ok_or_else(|| {
            EgressError(format!("the backend `{backend}` has no way out for its sandboxes"))
        })?;
        let failed = |error: &dyn std::fmt::Display| EgressError(error.to_string());
        let sink = Arc::new(RelayedConnections::start(self.client.clone(), id.clone()));
        let listener = networks.listen(id, sink).await.map_err(|error| failed(&error))?;
        let carried = listener.descriptors.is_empty().then_some(listener.port);
        let told = self.tell(id, words, answers, listener.descriptors).await?;
        let (OpenedNetwork { authority, placeholders }, secrets) = told;
        let mirrors = words.iter().any(|word| word == PACKAGES).then_some(&self.mirrors);
        let name = format!("network-{}", uuid::Uuid::new_v4().simple());
        for file in environment::files(&name, &authority, mirrors) {
            sandbox.files(file).await.map_err(|error| failed(&error))?;
        }
        let mut env = environment::variables(listener.port, mirrors);
        env.extend(secrets::variables(&secrets, placeholders));
        Ok((env, carried))
    }

    /// Whether connections still get here, from the place where they did.
    async fn carries(&self, id: &SandboxId, backend: &str, carried: Option<u16>) -> bool {
        let (Some(port), Some(networks)) = (carried, self.networks.get(backend)) else {
            return true;
        };
        let sink = Arc::new(RelayedConnections::start(self.client.clone(), id.clone()));
        networks.listen(id, sink).await.is_ok_and(|listener| listener.port == port)
    }

    /// Whether the gate that is there knows a sandbox.
    async fn knows(&self, id: &SandboxId) -> bool {
        matches!(self.client.is_open(id.as_str()).await, Ok(true))
    }
}

#[async_trait]
impl Egress for GateEgress {
    async fn open(
        &self,
        sandbox: &dyn Sandbox,
        backend: &str,
        words: &[String],
    ) -> Result<BTreeMap<String, String>, EgressError> {
        let id = sandbox.id();
        let known = self.known.lock().await.get(id).cloned();
        let mut answers = HostAnswers::default();
        match known {
            Some(SandboxGate::Closed) if words.is_empty() => return Ok(BTreeMap::new()),
            Some(SandboxGate::Open { generation, words: before, env, carried, answers: said }) => {
                let same = before == words && generation == *sandbox.generation();
                if same && self.carries(id, backend, carried).await && self.knows(id).await {
                    return Ok(env);
                }
                answers = if before == words { said } else { said.under_other_words() };
            }
            Some(SandboxGate::Closed) | None => {}
        }
        if words.is_empty() {
            self.close(id).await;
            return Ok(BTreeMap::new());
        }
        let (env, carried) = self.open_anew(sandbox, backend, words, &answers).await?;
        let (generation, words) = (sandbox.generation().clone(), words.to_vec());
        let open = SandboxGate::Open { generation, words, env: env.clone(), carried, answers };
        self.known.lock().await.insert(id.clone(), open);
        Ok(env)
    }

    async fn flows(&self, id: &SandboxId) -> EgressFlows {
        let mut allowed = Vec::new();
        if let Some(SandboxGate::Open { words, answers, .. }) = self.known.lock().await.get_mut(id)
        {
            allowed = answers.take_allowed();
            if answers.end_command() {
                // Where the gate can't be told it has ended, with all that it granted.
                let _ = self.tell(id, words, answers, Vec::new()).await;
            }
        }
        // A gate that ended has nothing to tell any more, and the next command opens anew.
        let flows = self.client.flows(id.as_str()).await.unwrap_or_default();
        let more = flows.lost;
        EgressFlows { flows: flows.flows.into_iter().map(flow).collect(), more, allowed }
    }

    fn attend(&self) {
        self.attended.store(true, Ordering::Relaxed);
    }

    async fn questions(&self) -> Vec<EgressQuestion> {
        if !self.attended.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let known = self.known.lock().await;
        let open = known.iter().filter(|(_, gate)| matches!(gate, SandboxGate::Open { .. }));
        let open: Vec<SandboxId> = open.map(|(id, _)| id.clone()).collect();
        drop(known);
        let mut all = Vec::new();
        for sandbox in open {
            // A gate that ended holds nothing.
            let asked = self.client.questions(sandbox.as_str()).await.unwrap_or_default();
            let asked = asked.iter().map(Destination::words);
            all.extend(asked.map(|words| EgressQuestion { sandbox: sandbox.clone(), words }));
        }
        all
    }

    async fn answer(
        &self,
        question: &EgressQuestion,
        answer: EgressAnswer,
    ) -> Result<(), EgressError> {
        let EgressQuestion { sandbox, words: host } = question;
        let mut known = self.known.lock().await;
        let Some(SandboxGate::Open { words, answers, .. }) = known.get_mut(sandbox) else {
            // It was closed meanwhile, and asks for nothing.
            return Ok(());
        };
        answers.add(host, answer).map_err(EgressError)?;
        self.tell(sandbox, words, answers, Vec::new()).await.map(drop)
    }

    async fn close(&self, id: &SandboxId) {
        // One that is not there, or does not know it, lets nothing through.
        let _ = self.client.close(id.as_str()).await;
        self.known.lock().await.insert(id.clone(), SandboxGate::Closed);
    }
}

/// Gives connections that a backend carries to the gate, in order.
struct RelayedConnections(mpsc::Sender<OwnedFd>);

impl RelayedConnections {
    #[expect(
        clippy::disallowed_methods,
        reason = "it ends with the stream that carries the connections"
    )]
    fn start(client: NetworkClient, id: SandboxId) -> Self {
        let (sender, mut connections) = mpsc::channel(limits::CONNECTIONS_WAITING_MAX);
        tokio::spawn(async move {
            while let Some(connection) = connections.recv().await {
                // Refused or lost, it is closed, which the program sees.
                let _ = client.connection(id.as_str(), connection).await;
            }
        });
        Self(sender)
    }
}

impl ConnectionSink for RelayedConnections {
    fn connection(&self, connection: OwnedFd) {
        // One too many is closed.
        let _ = self.0.try_send(connection);
    }
}

/// As the journal has it.
fn flow(flow: Flow) -> EgressFlow {
    let refusal = flow.refusal.map(|refusal| sentence(&flow, refusal));
    let Flow { host, port, grant, requests, sent_bytes, received_bytes, .. } = flow;
    EgressFlow { host, port, grant, refusal, requests, sent_bytes, received_bytes }
}

/// What was refused, and what would allow it.
fn sentence(flow: &Flow, refusal: Refusal) -> String {
    let place = match (flow.host.as_str(), flow.port) {
        ("", _) => "a connection".to_owned(),
        (host, 443 | 80) => host.to_owned(),
        (host, port) => format!("{host}:{port}"),
    };
    let words = refusal.words();
    match refusal {
        Refusal::NotGranted => format!(
            "{place} was not reached: it is not in the network of this sandbox; the person can allow it with `--net {place}`, or `/net {place}` in a conversation"
        ),
        Refusal::Method | Refusal::Path => {
            let path = flow.path.as_deref().unwrap_or("/");
            format!(
                "{place}{path} was not reached: {words}; the person can allow all of the host with `--net {place}`, or `/net {place}` in a conversation"
            )
        }
        Refusal::Secret => format!("a request to {place} was blocked: {words}"),
        Refusal::Push => {
            let why = flow.path.as_deref().map_or(words, |why| why.trim_end_matches('.'));
            format!("{place} was not pushed to: {why}")
        }
        Refusal::Echo => format!("{place} {words}"),
        _ => format!("{place} was not reached: {words}"),
    }
}
