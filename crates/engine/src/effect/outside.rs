//! Performs a call of a tool outside.
//!
//! Owns that a call is made by what the session was opened with, under one key for all its
//! attempts, and that what is not known to be over is told so. It repeats nothing itself.

use outrigger_agent::{
    Amounts, Digest, Outcome, OutsideTool, Phase, Product, Seq, Status, ToolCall, ToolOutput,
    egress_bytes,
};
use outrigger_sandbox::{ExecId, Sandbox};
use outrigger_tools::outside::{Fault, OutsideCall, execs_of, label, shown};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::tool::{self, AttemptEnd, ToolSandbox, spent};
use crate::Engine;
use crate::driver::session::{AttemptKind, Completion, SandboxLoss, SessionRun};
use crate::engine::OutsideServer;
use crate::sandbox::attach::AttachError;

/// `None` if no reply of the model contains the call.
pub(super) fn call(
    engine: &Engine,
    run: &SessionRun,
    effect: Seq,
    call: &ToolCall,
    kind: AttemptKind,
) -> Option<impl Future<Output = Completion> + Send + use<>> {
    let genuine = run.state.call(call)?;
    let Phase::Started { attempt, place, .. } = &run.state.effect(effect)?.phase else {
        return None;
    };
    let tool = run.state.tool(&call.tool)?.outside.clone()?;
    let arguments = genuine.given().to_owned();
    let sandbox =
        place.as_ref().map(|place| tool::sandbox_of(engine, run, (effect, None), place, kind));
    let attempt = OutsideAttempt {
        server: engine.parts.outside.get(&tool.server).cloned(),
        key: key(&run.session.effect(effect)),
        effect: run.session.effect(effect),
        session: run.session.to_string(),
        attempt: *attempt,
        tool,
        arguments,
        sandbox,
        kind,
    };
    let (clock, reserved) = (Arc::clone(&engine.parts.clock), run.state.reserved_for(effect));
    Some(async move {
        let since_ms = clock.now_ms();
        let sends = AtomicU64::new(0);
        let AttemptEnd { outcome, lost, attached, .. } = attempt.perform(&sends).await;
        let passed_ms = clock.now_ms().saturating_sub(since_ms);
        let egress_bytes = egress_bytes(&attempt.arguments, sends.into_inner());
        let spent = Amounts {
            egress_bytes: egress_bytes.min(reserved.egress_bytes),
            ..spent(&outcome, None, passed_ms, reserved)
        };
        let estimated = matches!(outcome, Outcome::Unknown { .. });
        Completion { lost, attached, estimated, ..Completion::new(effect, outcome, spent) }
    })
}

/// By this name a server can know a call again.
fn key(effect: &str) -> String {
    Digest::of(format!("outrigger effect {effect}").as_bytes()).as_str().to_owned()
}

/// What an attempt runs in a sandbox; the first one by the name that the journal has.
fn named(effect: &str, attempt: u32) -> String {
    if attempt <= 1 { effect.to_owned() } else { format!("{effect}.{attempt}") }
}

/// All that an attempt may have left running.
pub(super) fn execs(effect: &str, attempt: u32) -> impl Iterator<Item = ExecId> + use<> {
    execs_of(&named(effect, attempt)).into_iter().filter_map(|name| ExecId::new(name).ok())
}

struct OutsideAttempt {
    server: Option<OutsideServer>,
    key: String,
    /// The effect, by its name in sandboxes, and which attempt at it this is.
    effect: String,
    session: String,
    attempt: u32,
    tool: OutsideTool,
    arguments: String,
    /// Where its server runs, if it runs in a sandbox.
    sandbox: Option<ToolSandbox>,
    kind: AttemptKind,
}

impl OutsideAttempt {
    async fn perform(&self, sends: &AtomicU64) -> AttemptEnd {
        let Some(server) = &self.server else {
            let detail = format!("no server `{}` is configured any more", self.tool.server);
            return AttemptEnd::new(self.not_asked(&detail));
        };
        let sandbox = match self.sandbox().await {
            Ok(sandbox) => sandbox,
            Err((detail, lost)) => {
                return AttemptEnd { lost, ..AttemptEnd::new(self.not_asked(&detail)) };
            }
        };
        if let (AttemptKind::Interrupted, Some(sandbox)) = (self.kind, &sandbox) {
            self.end_those_before(&**sandbox).await;
        }
        let calling = OutsideCall {
            tool: &self.tool.tool,
            held_to: self.tool.held_to(),
            arguments: &self.arguments,
            key: &self.key,
            timeout_ms: server.timeout_ms,
            exec: &named(&self.effect, self.attempt),
            holder: &self.session,
            sandbox: sandbox.as_ref(),
            sends,
        };
        let outcome = match server.port.call(&calling).await {
            Ok(answered) => {
                let output = shown(&self.tool.server, &answered, server.result_bytes_max);
                Outcome::Done(Product::Output(output))
            }
            Err(Fault::NotAsked { detail }) => self.not_asked(&detail),
            Err(Fault::Changed { now }) => self.changed(now.is_some()),
            Err(Fault::MayHaveHappened { detail }) => self.unanswered(&detail),
        };
        let name = self.sandbox.as_ref().map(|sandbox| sandbox.place.sandbox.clone());
        AttemptEnd { attached: name.zip(sandbox), ..AttemptEnd::new(outcome) }
    }

    /// Programs of attempts that a crash cut off work for nobody any more. Failing to end
    /// them is no failure of this one: they end by themselves.
    async fn end_those_before(&self, sandbox: &dyn Sandbox) {
        for attempt in 1..self.attempt {
            for exec in execs(&self.effect, attempt) {
                drop(sandbox.kill(&exec).await);
            }
        }
    }

    /// The sandbox in which the server runs, in the life that the journal names.
    async fn sandbox(&self) -> Result<Option<Arc<dyn Sandbox>>, (String, Option<SandboxLoss>)> {
        let Some(sandbox) = &self.sandbox else { return Ok(None) };
        if let Some(held) = sandbox.held() {
            return Ok(Some(held));
        }
        let handle = sandbox.handle.as_ref().map_err(|error| (error.to_string(), None))?;
        match handle.attach(&sandbox.place.generation).await {
            Ok(attached) => Ok(Some(attached)),
            Err(AttachError::Unreachable(error)) => Err((error.to_string(), None)),
            Err(AttachError::Lost(loss)) => {
                let detail = format!("the sandbox of its server was lost ({loss})");
                Err((detail, Some(sandbox.loss(loss))))
            }
        }
    }

    fn not_asked(&self, detail: &str) -> Outcome {
        self.nothing_came(detail, "Not performed", Status::Error)
    }

    fn changed(&self, is_there: bool) -> Outcome {
        let (server, tool) = (&self.tool.server, &self.tool.tool);
        let detail = if is_there {
            format!(
                "the server `{server}` describes `{tool}` otherwise than when this session was \
                 opened. A person can look at both with `outrigger tools show {server} {tool}`"
            )
        } else {
            format!("the server `{server}` has no tool `{tool}` any more")
        };
        self.nothing_came(&detail, "Not performed", Status::Denied)
    }

    /// This attempt did nothing. Of the one before, if there was one, that is not known.
    fn nothing_came(&self, detail: &str, what: &str, status: Status) -> Outcome {
        if self.kind == AttemptKind::Interrupted && !self.tool.read_only {
            return self
                .unanswered(&format!("it was begun before the harness stopped, and {detail}"));
        }
        self.output(status, format!("{what}: {detail}."))
    }

    fn unanswered(&self, detail: &str) -> Outcome {
        if self.tool.read_only {
            let text = format!("No answer: {detail}. It only reads, so it can be called again.");
            return self.output(Status::Error, text);
        }
        Outcome::Unknown {
            evidence: format!(
                "Outcome unknown: {detail}. It may have happened fully, partly or not at all. \
                 It is not repeated; look whether it happened before you call it again."
            ),
        }
    }

    /// Labelled, though the words are ours: that a server is silent is its doing too.
    fn output(&self, status: Status, text: String) -> Outcome {
        let labels = label(&self.tool.server);
        Outcome::Done(Product::Output(ToolOutput { labels, ..ToolOutput::new(status, text) }))
    }
}
