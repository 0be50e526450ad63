//! The port of the engine on the gate.
//!
//! Owns which sandboxes are open there, as far as this process knows. The gate may end at any
//! moment: it is asked before each command, watched during it, and told again if it knows
//! nothing.

use async_trait::async_trait;
use outrigger_engine::{
    Egress, EgressAnswer, EgressError, EgressFlows, EgressQuestion, HostRules, NO_NETWORK,
};
use outrigger_gate::{Grant, NetworkClient, OpenedNetwork};
use outrigger_policy::HostVerdict;
use outrigger_sandbox::{ConnectionSink, Generation, Listener, Networks, Sandbox, SandboxId};
use outrigger_store::Secrets;
use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};

use super::answers::HostAnswers;
use super::environment;
use super::grants::{network, of_word, proxy};
use super::mirrors::Mirrors;
use super::refusal::{self, Advice};
use super::secrets::{self, SessionSecrets};
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
    /// What would allow a place that is refused.
    advice: Advice,
}

/// A sandbox, as this process knows it.
#[derive(Debug, Clone)]
enum SandboxGate {
    /// It has no network.
    Closed,
    Open(Box<OpenSandbox>),
}

/// A sandbox that has a network.
#[derive(Debug, Clone)]
struct OpenSandbox {
    generation: Generation,
    words: Vec<String>,
    env: BTreeMap<String, String>,
    /// Where its listener is, if what carries its connections ends with this process.
    carried: Option<u16>,
    /// The secrets that the rules withhold, a sentence each.
    withheld: Vec<String>,
    answers: HostAnswers,
    rules: HostRules,
}

impl OpenSandbox {
    /// Has it told what is withheld, if that is something else than before.
    fn withholds(&mut self, withheld: Vec<String>) {
        if self.withheld != withheld {
            self.answers.note(&withheld);
            self.withheld = withheld;
        }
    }
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
        let advice = refusal::on_the_command_line;
        Self { client, networks, mirrors, secrets, known, attended, advice }
    }

    /// With other words for what would allow a place.
    pub(crate) fn advising(self, advice: Advice) -> Self {
        Self { advice, ..self }
    }

    /// Whether this process opened it, and did not close it since.
    pub(crate) async fn is_open(&self, id: &SandboxId) -> bool {
        matches!(self.known.lock().await.get(id), Some(SandboxGate::Open(_)))
    }

    /// As [`Egress::close`], of one that nobody will ask about again.
    pub(crate) async fn forget(&self, id: &SandboxId) {
        self.close(id).await;
        self.known.lock().await.remove(id);
    }

    /// Tells the gate what a sandbox may reach, with what a person said to it.
    async fn tell(
        &self,
        id: &SandboxId,
        words: &[String],
        (answers, rules): (&HostAnswers, &HostRules),
        listeners: Vec<OwnedFd>,
    ) -> Result<(OpenedNetwork, SessionSecrets), EgressError> {
        let mut network = network(words, &self.mirrors, proxy());
        network.sent_bytes_max = rules.sent_bytes_max();
        network.rules = rules.of_requests().cloned();
        network.grants.extend(answers.grants());
        let mut judged: HashMap<(String, u16), bool> = HashMap::new();
        network.grants.retain(|Grant { host, port, .. }| {
            let may = || !matches!(rules.judge(host, *port), HostVerdict::Forbid(_));
            *judged.entry((host.clone(), *port)).or_insert_with(may)
        });
        let secrets = secrets::of_words(&*self.secrets, words, rules).await;
        let secrets = secrets.map_err(EgressError)?;
        let (id, client) = (id.as_str(), &self.client);
        let opened = match self.attended.load(Ordering::Relaxed) {
            true => {
                let declined = answers.declined();
                client.open_asking(id, &network, &secrets.given, &declined, listeners).await
            }
            false => client.open(id, &network, &secrets.given, listeners).await,
        };
        let opened = opened.map_err(|error| EgressError(error.to_string()))?;
        Ok((opened, secrets))
    }

    /// Tells it of one that is open. Without listeners those that it has stay.
    async fn tell_again(
        &self,
        id: &SandboxId,
        open: &mut OpenSandbox,
        listeners: Vec<OwnedFd>,
    ) -> Result<(), EgressError> {
        let said = (&open.answers, &open.rules);
        let (_, secrets) = self.tell(id, &open.words, said, listeners).await?;
        open.withholds(secrets.withheld);
        Ok(())
    }

    /// Where the programs of a sandbox connect, in this life of it, for what these words grant.
    async fn listen(
        &self,
        id: &SandboxId,
        backend: &str,
        words: &[String],
    ) -> Result<Listener, EgressError> {
        let networks = self.networks.get(backend).ok_or_else(|| {
            EgressError(format!("the backend `{backend}` has no way out for its sandboxes"))
        })?;
        let sink = Arc::new(RelayedConnections::start(self.client.clone(), id.clone()));
        // Rules may permit later what they forbid now, and hear of it then.
        let ports = network(words, &self.mirrors, None).captured_ports().map_err(EgressError)?;
        let listener = networks.listen(id, &ports, sink).await;
        listener.map_err(|error| EgressError(error.to_string()))
    }

    /// Opens it anew, and tells its programs.
    async fn open_anew(
        &self,
        sandbox: &dyn Sandbox,
        backend: &str,
        words: &[String],
        answers: HostAnswers,
        rules: &HostRules,
    ) -> Result<OpenSandbox, EgressError> {
        let id = sandbox.id();
        let Listener { port, descriptors } = self.listen(id, backend, words).await?;
        let carried = descriptors.is_empty().then_some(port);
        let told = self.tell(id, words, (&answers, rules), descriptors).await?;
        let (OpenedNetwork { authority, placeholders }, secrets) = told;
        let mirrors = words.iter().any(|word| word == PACKAGES).then_some(&self.mirrors);
        let name = format!("network-{}", uuid::Uuid::new_v4().simple());
        for file in environment::files(&name, &authority, mirrors) {
            sandbox.files(file).await.map_err(|error| EgressError(error.to_string()))?;
        }
        let mut env = environment::variables(port, mirrors);
        env.extend(secrets::variables(&secrets.given, placeholders));
        let mut open = OpenSandbox {
            generation: sandbox.generation().clone(),
            words: words.to_vec(),
            env,
            carried,
            withheld: Vec::new(),
            answers,
            rules: rules.clone(),
        };
        open.withholds(secrets.withheld);
        Ok(open)
    }

    /// Whether connections still get here, from the place where they did.
    async fn carries(&self, id: &SandboxId, backend: &str, open: &OpenSandbox) -> bool {
        let Some(port) = open.carried else { return true };
        let listener = self.listen(id, backend, &open.words).await;
        listener.is_ok_and(|listener| listener.port == port)
    }

    /// Nobody has to be asked about a host.
    async fn answer_by_rule(&self, id: &SandboxId, host: &str, verdict: &HostVerdict) {
        let mut known = self.known.lock().await;
        let Some(SandboxGate::Open(open)) = known.get_mut(id) else { return };
        let grants = of_word(host, &self.mirrors).unwrap_or_default();
        match verdict {
            HostVerdict::Permit => open.answers.permit(grants),
            HostVerdict::Forbid(_) => open.answers.forbid(grants),
            HostVerdict::Ask => {}
        }
        // If it is not heard, it is held and looked at again.
        let _ = self.tell_again(id, open, Vec::new()).await;
    }

    /// What may be reached is another now: the rules changed, or what they look at.
    async fn judge_anew(&self, id: &SandboxId, now: &HostRules) -> Result<(), EgressError> {
        let mut known = self.known.lock().await;
        if let Some(SandboxGate::Open(open)) = known.get_mut(id) {
            open.rules = now.clone();
            open.answers.forget_ruled();
            self.tell_again(id, open, Vec::new()).await?;
        }
        Ok(())
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
        rules: &HostRules,
    ) -> Result<BTreeMap<String, String>, EgressError> {
        let id = sandbox.id();
        let closed = words == [NO_NETWORK];
        let known = self.known.lock().await.get(id).cloned();
        let mut answers = HostAnswers::default();
        match known {
            Some(SandboxGate::Closed) if closed => return Ok(BTreeMap::new()),
            Some(SandboxGate::Open(open)) => {
                let same = open.words == words && open.generation == *sandbox.generation();
                if same && self.carries(id, backend, &open).await && self.knows(id).await {
                    if open.rules != *rules {
                        self.judge_anew(id, rules).await?;
                    }
                    return Ok(open.env);
                }
                let said = open.answers;
                answers = if open.words == words { said } else { said.under_other_words() };
            }
            Some(SandboxGate::Closed) | None => {}
        }
        if closed {
            self.close(id).await;
            return Ok(BTreeMap::new());
        }
        let open = self.open_anew(sandbox, backend, words, answers, rules).await?;
        let env = open.env.clone();
        self.known.lock().await.insert(id.clone(), SandboxGate::Open(Box::new(open)));
        Ok(env)
    }

    async fn keep(&self, id: &SandboxId, backend: &str) {
        loop {
            let known = self.known.lock().await;
            let Some(SandboxGate::Open(open)) = known.get(id) else { return };
            let words = open.words.clone();
            drop(known);
            // What can't be watched is opened again all the same.
            let _ = self.client.gone(id.as_str()).await;
            let listener = self.listen(id, backend, &words).await;
            let mut known = self.known.lock().await;
            // Where it fails, the next round tries again.
            if let (Some(SandboxGate::Open(open)), Ok(listener)) = (known.get_mut(id), listener) {
                let _ = self.tell_again(id, open, listener.descriptors).await;
            }
            drop(known);
            tokio::time::sleep(Duration::from_millis(limits::GATE_AGAIN_MS)).await;
        }
    }

    async fn flows(&self, id: &SandboxId) -> EgressFlows {
        let (mut notes, mut rules) = (Vec::new(), None);
        match self.known.lock().await.get_mut(id) {
            Some(SandboxGate::Closed) => return EgressFlows::default(),
            Some(SandboxGate::Open(open)) => {
                notes = open.answers.take_notes();
                if open.answers.end_command() {
                    // Where the gate can't be told it has ended, with all that it granted.
                    let _ = self.tell_again(id, open, Vec::new()).await;
                }
                rules = Some(open.rules.clone());
            }
            None => {}
        }
        // A gate that ended has nothing to tell any more, and the next command opens anew.
        let flows = self.client.flows(id.as_str()).await.unwrap_or_default();
        let more = flows.lost;
        let flows = flows
            .flows
            .into_iter()
            .map(|it| refusal::flow(it, rules.as_ref(), self.advice))
            .collect();
        EgressFlows { flows, more, notes }
    }

    fn attend(&self) {
        self.attended.store(true, Ordering::Relaxed);
    }

    async fn questions(&self) -> Vec<EgressQuestion> {
        if !self.attended.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let known = self.known.lock().await;
        let open = known.iter().filter_map(|(id, gate)| match gate {
            SandboxGate::Open(open) => Some((id.clone(), open.rules.clone())),
            SandboxGate::Closed => None,
        });
        let open: Vec<_> = open.collect();
        drop(known);
        let mut all = Vec::new();
        for (sandbox, rules) in open {
            // A gate that ended holds nothing.
            for asked in self.client.questions(sandbox.as_str()).await.unwrap_or_default() {
                let words = asked.words();
                match rules.judge(&asked.host, asked.port) {
                    HostVerdict::Ask => {
                        all.push(EgressQuestion { sandbox: sandbox.clone(), words });
                    }
                    verdict => self.answer_by_rule(&sandbox, &words, &verdict).await,
                }
            }
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
        let Some(SandboxGate::Open(open)) = known.get_mut(sandbox) else {
            // It was closed meanwhile, and asks for nothing.
            return Ok(());
        };
        let grants = of_word(host, &self.mirrors).map_err(EgressError)?;
        open.answers.add(host, grants, answer);
        self.tell_again(sandbox, open, Vec::new()).await
    }

    async fn close(&self, id: &SandboxId) {
        // One that is not there, or does not know it, lets nothing through.
        let _ = self.client.close(id.as_str()).await;
        self.known.lock().await.insert(id.clone(), SandboxGate::Closed);
    }
}

/// Gives connections that a backend carries to the gate, in order.
struct RelayedConnections(mpsc::Sender<(OwnedFd, Option<u16>)>);

impl RelayedConnections {
    #[expect(
        clippy::disallowed_methods,
        reason = "it ends with the stream that carries the connections"
    )]
    fn start(client: NetworkClient, id: SandboxId) -> Self {
        let (sender, mut connections) = mpsc::channel(limits::CONNECTIONS_WAITING_MAX);
        tokio::spawn(async move {
            while let Some((connection, captured)) = connections.recv().await {
                // Refused or lost, it is closed, which the program sees.
                let _ = client.connection(id.as_str(), captured, connection).await;
            }
        });
        Self(sender)
    }
}

impl ConnectionSink for RelayedConnections {
    fn connection(&self, connection: OwnedFd, captured: Option<u16>) {
        // One too many is closed.
        let _ = self.0.try_send((connection, captured));
    }
}
