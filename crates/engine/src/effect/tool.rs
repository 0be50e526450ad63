//! Performs a tool call, in its sandbox or, where it needs none, on memory and skills: no
//! sandbox is made or woken for those.

use outrigger_agent::{
    Amounts, EgressReport, FileBaseline, Loss, Outcome, Phase, Place, Product, Seq, SessionId,
    Status, ToolCall, ToolOutput, Touched, command_ms_max,
};
use outrigger_sandbox::{Error, ExecId, Output, OutputSink, Sandbox};
use outrigger_tools::{CommandTime, Invocation, ParsedCall};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::driver::session::{AttemptKind, Completion, SandboxLoss, SessionRun};
use crate::egress::{CommandNetwork, SandboxNetwork};
use crate::host_rules::HostRules;
use crate::memory::{self, SessionMemory};
use crate::sandbox::attach::AttachError;
use crate::sandbox::handle::{self, SandboxHandle};
use crate::{Engine, Feed, LiveOutput, Notice, limits};

/// `None` if no reply of the model contains the call.
pub(super) fn call(
    engine: &Engine,
    run: &mut SessionRun,
    effect: Seq,
    call: &ToolCall,
    kind: AttemptKind,
) -> Option<impl Future<Output = Completion> + Send + use<>> {
    let parsed = run.parsed(effect)?;
    let run = &*run;
    // That it was read once is no proof that the model wrote it.
    let (Some(_), Some(_)) = (run.state.call(call), run.state.tool(&call.tool)) else {
        return None;
    };
    let Phase::Started { place, .. } = &run.state.effect(effect)?.phase else { return None };
    let of = (effect, Some(&*parsed));
    let sandbox = place.as_ref().map(|place| sandbox_of(engine, run, of, place, kind));
    if let Some(sandbox) = &sandbox {
        memory::serve(engine, run, sandbox.handle.as_ref().ok(), effect, Some(&*parsed));
    }
    let attempt = ToolAttempt {
        memory: memory::of_effect(engine, run, effect, &parsed),
        call: parsed,
        effect,
        exec: match place {
            Some(place) => place.exec.clone(),
            None => run.session.effect(effect),
        },
        sandbox,
        kind,
        seen: run.state.effect(effect)?.seen.clone(),
        command_ms_max: command_ms_max(&run.state, effect),
    };
    let (clock, reserved) = (Arc::clone(&engine.parts.clock), run.state.reserved_for(effect));
    let sink =
        OutputForwarder { feed: engine.feed().clone(), session: run.session.clone(), effect };
    Some(async move {
        let since_ms = clock.now_ms();
        let AttemptEnd { mut outcome, lost, attached, took, reached } =
            attempt.perform(&sink).await;
        let touched = match &attempt.memory {
            Some(memory) => {
                attempt.say_what_is_not_served(&mut outcome);
                memory.record(&mut outcome).await
            }
            None => Touched::default(),
        };
        let passed_ms = clock.now_ms().saturating_sub(since_ms);
        let egress_bytes = reached.as_ref().map_or(0, EgressReport::sent_bytes);
        let spent = Amounts { egress_bytes, ..spent(&outcome, took, passed_ms, reserved) };
        let estimated = matches!(outcome, Outcome::Unknown { .. });
        let done = Completion::new(effect, outcome, spent);
        Completion { touched, estimated, lost, attached, reached, ..done }
    })
}

/// The sandbox of an effect that is a call, as the driver knows it.
pub(super) fn sandbox_of(
    engine: &Engine,
    run: &SessionRun,
    (effect, parsed): (Seq, Option<&ParsedCall>),
    place: &Place,
    kind: AttemptKind,
) -> ToolSandbox {
    let handle = handle::of(engine, &run.session, &run.state, &place.sandbox);
    let known = run.sandboxes.get(&place.sandbox).cloned();
    let words = run.state.network(&place.sandbox);
    // What is shared would let one session reach what another one may.
    let own = handle.as_ref().is_ok_and(|handle| !handle.shared);
    let egress = engine.parts.egress.clone().filter(|_| own);
    let network = egress.map(|egress| {
        let rules = run.state.effect(effect).zip(engine.rules().ok());
        let rules = rules.map(|(effect, rules)| {
            let at_ms = engine.parts.clock.now_ms();
            HostRules::new(rules, &run.state, &effect.work, parsed, at_ms)
        });
        SandboxNetwork::new(egress, &place.sandbox, words, rules)
    });
    let plain_paths = engine.rules().is_ok_and(|rules| rules.looks().files);
    ToolSandbox { handle, known, place: place.clone(), kind, network, plain_paths }
}

/// What one attempt at a call came to.
pub(super) struct AttemptEnd {
    pub(super) outcome: Outcome,
    /// How its sandbox was lost, if it was.
    pub(super) lost: Option<SandboxLoss>,
    /// The sandbox that did it, and its name.
    pub(super) attached: Option<(String, Arc<dyn Sandbox>)>,
    /// What a command took.
    pub(super) took: Option<CommandTime>,
    /// What its sandbox reached meanwhile.
    pub(super) reached: Option<EgressReport>,
}

impl AttemptEnd {
    pub(super) fn new(outcome: Outcome) -> Self {
        Self { outcome, lost: None, attached: None, took: None, reached: None }
    }
}

/// What a call cost. Of one whose outcome is not known, the worst case in the time that
/// went by.
pub(super) fn spent(
    outcome: &Outcome,
    took: Option<CommandTime>,
    passed_ms: u64,
    reserved: Amounts,
) -> Amounts {
    let step = Amounts::STEP;
    match (outcome, took) {
        (Outcome::Unknown { .. }, _) => reserved.within(passed_ms),
        (_, Some(CommandTime { wall_ms, cpu_ms })) => {
            // The sandbox says so, and may say anything.
            let most = |reserved: u64| reserved.saturating_add(limits::LATE_MS_MAX);
            let wall_ms = wall_ms.min(most(reserved.wall_ms));
            Amounts { wall_ms, cpu_ms: cpu_ms.min(most(reserved.cpu_ms)), ..step }
        }
        // It ends by itself, and nobody can make it end: more than was reserved is not counted.
        (_, None) => Amounts { wall_ms: passed_ms.min(reserved.wall_ms), ..step },
    }
}

struct ToolAttempt {
    call: Arc<ParsedCall>,
    effect: Seq,
    /// What the sandbox knows it by.
    exec: String,
    /// Nothing for a call about memory or skills alone.
    sandbox: Option<ToolSandbox>,
    kind: AttemptKind,
    /// What the file that it changes was when it was approved.
    seen: Option<FileBaseline>,
    /// How long a command may run, by what was reserved for it.
    command_ms_max: Option<u64>,
    /// Memory and skills, where the session has them.
    memory: Option<SessionMemory>,
}

/// The sandbox that a call is performed in.
pub(super) struct ToolSandbox {
    pub(super) handle: Result<SandboxHandle, crate::Error>,
    known: Option<Arc<dyn Sandbox>>,
    pub(super) place: Place,
    kind: AttemptKind,
    network: Option<SandboxNetwork>,
    /// Whether rules speak of paths.
    plain_paths: bool,
}

/// What is said of a call about memory in a session that is driven without.
const NOT_CONFIGURED: &str = "Not run: memory and skills are not configured any more.";

/// Behind what a command said that names memory or skills where they can't be mounted.
const NOT_SERVED: &str = "\n[/memory and /skills are not in this sandbox, where they are empty: use read_file, write_file, edit_file, ls, glob and grep for them]";

impl ToolAttempt {
    async fn perform(&self, sink: &OutputForwarder) -> AttemptEnd {
        let Ok(exec) = ExecId::new(&*self.exec) else {
            let evidence = format!("`{}` is no exec id.", self.exec);
            return AttemptEnd::new(Outcome::Unknown { evidence });
        };
        let (seen, command_ms_max) = (self.seen.as_ref(), self.command_ms_max);
        let call =
            Invocation { parsed: &self.call, exec, seen, command_ms_max, env: BTreeMap::new() };
        if let (Some(memory), AttemptKind::Interrupted) = (&self.memory, self.kind)
            && let Some(output) = memory.done_before(&call).await
        {
            return AttemptEnd::new(Outcome::Done(Product::Output(output)));
        }
        match (&self.sandbox, &self.memory) {
            (Some(sandbox), memory) => {
                sandbox.perform(call, self.effect, memory.as_ref(), sink).await
            }
            (None, Some(memory)) => {
                let done = outrigger_tools::perform(&call, &memory.namespace(), sink).await;
                let done = done.map(|(output, _)| Outcome::Done(Product::Output(output)));
                AttemptEnd::new(done.unwrap_or_else(|error| not_known(&error)))
            }
            (None, None) => {
                let output = ToolOutput::new(Status::Error, NOT_CONFIGURED);
                AttemptEnd::new(Outcome::Done(Product::Output(output)))
            }
        }
    }

    /// A command that names what can't be mounted in its sandbox looked at nothing.
    fn say_what_is_not_served(&self, outcome: &mut Outcome) {
        let Some(ToolSandbox { handle: Ok(handle), .. }) = &self.sandbox else { return };
        let served = handle.backend.capabilities().live_mounts && !handle.shared;
        let touches = || self.call.command().is_some_and(|command| !command.touches.is_empty());
        if let Outcome::Done(Product::Output(output)) = outcome
            && !served
            && touches()
        {
            output.text.push_str(NOT_SERVED);
        }
    }
}

impl ToolSandbox {
    /// A sandbox that was suspended meanwhile is lost to who holds it, and its life
    /// goes on: it is reached again and asked again by the same exec id, which runs
    /// nothing a second time.
    async fn perform(
        &self,
        mut call: Invocation<'_>,
        effect: Seq,
        memory: Option<&SessionMemory>,
        sink: &OutputForwarder,
    ) -> AttemptEnd {
        let mut held = self.held();
        let mut died: Option<Error> = None;
        for _ in 0..limits::ATTACHES_MAX {
            let sandbox = match held.take() {
                Some(sandbox) => sandbox,
                None => match self.attach().await {
                    Ok(sandbox) => sandbox,
                    Err(error) => return self.missing(error, died.as_ref()),
                },
            };
            let namespace = memory.map(SessionMemory::namespace).unwrap_or_default();
            let namespace = namespace.with_sandbox(Arc::clone(&sandbox));
            let namespace = namespace.with_plain_paths(self.plain_paths);
            let network = self.open(&call, &*sandbox).await;
            call.env.clone_from(&network.env);
            let work = outrigger_tools::perform(&call, &namespace, sink);
            let done = self.keeping(&call, &*sandbox, work).await;
            let (mut outcome, took) = match done {
                Ok((output, took)) => (Outcome::Done(Product::Output(output)), took),
                Err(error @ Error::Lost { .. }) => {
                    died = Some(error);
                    continue;
                }
                Err(error) => (not_known(&error), None),
            };
            let reached = match self.network_of(&call) {
                Some(asked) => asked.report(&network, effect, sandbox.id(), &mut outcome).await,
                None => None,
            };
            let attached = Some((self.place.sandbox.clone(), sandbox));
            return AttemptEnd { attached, took, reached, ..AttemptEnd::new(outcome) };
        }
        self.missing(AttachError::Lost(Loss::Gone), died.as_ref())
    }

    /// The network of a call, if it runs programs.
    fn network_of(&self, call: &Invocation<'_>) -> Option<&SandboxNetwork> {
        self.network.as_ref().filter(|_| call.parsed.command().is_some())
    }

    async fn open(&self, call: &Invocation<'_>, sandbox: &dyn Sandbox) -> CommandNetwork {
        match (self.network_of(call), &self.handle) {
            (Some(network), Ok(handle)) => {
                network.open(sandbox, &handle.backend.capabilities().backend).await
            }
            _ => CommandNetwork::default(),
        }
    }

    /// Keeps the network of a call while it is performed.
    async fn keeping<T>(
        &self,
        call: &Invocation<'_>,
        sandbox: &dyn Sandbox,
        work: impl Future<Output = T>,
    ) -> T {
        match (self.network_of(call), &self.handle) {
            (Some(network), Ok(handle)) => {
                let backend = &handle.backend.capabilities().backend;
                network.keeping((sandbox.id(), backend), work).await
            }
            _ => work.await,
        }
    }

    /// The sandbox as this driver holds it, if it is still in the life that the journal names.
    pub(super) fn held(&self) -> Option<Arc<dyn Sandbox>> {
        let ours = |known: &&Arc<dyn Sandbox>| {
            known.generation().as_str() == self.place.generation && known.is_alive()
        };
        self.known.as_ref().filter(ours).cloned()
    }

    /// That its life is over.
    pub(super) fn loss(&self, loss: Loss) -> SandboxLoss {
        let Place { sandbox, generation, .. } = self.place.clone();
        SandboxLoss { sandbox, generation, loss }
    }

    async fn attach(&self) -> Result<Arc<dyn Sandbox>, AttachError> {
        match &self.handle {
            Ok(handle) => handle.attach(&self.place.generation).await,
            Err(error) => Err(AttachError::Unreachable(Error::Backend(error.to_string()))),
        }
    }

    /// The sandbox is not there; `died` is what came of asking it, if it was asked.
    fn missing(&self, error: AttachError, died: Option<&Error>) -> AttemptEnd {
        let (loss, reason) = match (error, died) {
            (AttachError::Lost(Loss::Gone | Loss::Replaced), Some(died)) => {
                (Some(Loss::Died(died.to_string())), died.to_string())
            }
            (AttachError::Lost(loss), _) => {
                let reason = loss.to_string();
                (Some(loss), reason)
            }
            // Not reached is not lost: the next call may reach it, and so may another
            // driver that takes this one for dead and begins what it did not.
            (AttachError::Unreachable(error), _) => {
                let evidence = format!(
                    "Outcome unknown: the sandbox could not be reached ({error}). It may have run fully, partly or not at all. Check before you repeat it."
                );
                return AttemptEnd::new(Outcome::Unknown { evidence });
            }
        };
        let outcome = match (self.kind, died) {
            (AttemptKind::Fresh, None) => not_run(&reason),
            (AttemptKind::Fresh | AttemptKind::Interrupted, _) => Outcome::Unknown {
                evidence: format!(
                    "Outcome unknown: the sandbox was lost while this ran ({reason}). It may have run fully, partly or not at all. Check before you repeat it."
                ),
            },
        };
        AttemptEnd { lost: loss.map(|loss| self.loss(loss)), ..AttemptEnd::new(outcome) }
    }
}

fn not_known(error: &Error) -> Outcome {
    let evidence =
        format!("Outcome unknown: {error}. It may have run fully, partly or not at all.");
    Outcome::Unknown { evidence }
}

/// The sandbox is not there, and nothing was asked of it.
fn not_run(reason: &str) -> Outcome {
    let text = format!("Not run: the sandbox was not there before it ({reason}). Call again.");
    Outcome::Done(Product::Output(ToolOutput::new(Status::Error, text)))
}

/// Passes a command's output on to who listens.
struct OutputForwarder {
    feed: Feed,
    session: SessionId,
    effect: Seq,
}

impl OutputSink for OutputForwarder {
    fn output(&self, output: Output<'_>) {
        let (Output::Stdout(bytes) | Output::Stderr(bytes)) = output;
        self.feed
            .tell(&self.session, || Notice::Live(self.effect, LiveOutput::Output(bytes.to_vec())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_can_t_say_that_it_took_more_than_it_could() {
        let reserved = Amounts { steps: 1, wall_ms: 3_000, cpu_ms: 1_500, ..Amounts::default() };
        let fine = not_run("test");
        for (said, counts) in [(0, (0, 0)), (2_000, (2_000, 2_000)), (u64::MAX, (13_000, 11_500))] {
            let took = Some(CommandTime { wall_ms: said, cpu_ms: said });
            let spent = spent(&fine, took, 7, reserved);
            assert_eq!((spent.wall_ms, spent.cpu_ms), counts);
        }
        let unknown = Outcome::Unknown { evidence: String::new() };
        let known = Amounts { wall_ms: 6, cpu_ms: 3, ..reserved };
        assert_eq!(spent(&unknown, None, 6, reserved), known);
        assert_eq!(spent(&unknown, None, 9_999, reserved), reserved);
    }
}
