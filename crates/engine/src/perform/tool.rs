//! Performs a tool call in its sandbox.

use outrigger_agent::{
    Amounts, Outcome, Phase, Place, Product, Seq, SessionId, Status, ToolCall, ToolOutput,
};
use outrigger_sandbox::{Backend, Error, ExecId, Output, OutputSink, Sandbox, SandboxId};
use outrigger_tools::Invocation;
use std::sync::Arc;

use crate::live::{Completed, Live};
use crate::step::Found;
use crate::{Engine, Feed, LiveOutput, Notice};

impl Engine {
    /// `None` if no reply of the model contains the call.
    pub(super) fn call_tool(
        &self,
        live: &Live,
        effect: Seq,
        call: &ToolCall,
        found: Found,
    ) -> Option<impl Future<Output = Completed> + Send + use<>> {
        let genuine = live.state.call(call)?;
        let Phase::Started { place, .. } = &live.state.effect(effect)?.phase else { return None };
        let place = place.clone()?;
        let arguments = match genuine.arguments.trim() {
            "" => "{}".to_owned(),
            text => text.to_owned(),
        };
        let attempt = Attempt {
            tool: call.tool.clone(),
            arguments,
            id: Self::sandbox_id(&live.session, &place.sandbox),
            known: live.sandboxes.get(&place.sandbox).cloned(),
            place,
            found,
            backend: Arc::clone(&self.parts.backend),
        };
        let sink = Told { feed: self.feed().clone(), session: live.session.clone(), effect };
        Some(async move {
            let name = attempt.place.sandbox.clone();
            let (outcome, lost, reached) = match attempt.sandbox().await {
                Ok(sandbox) => {
                    let (outcome, lost) = attempt.perform(&*sandbox, &sink).await;
                    (outcome, lost, Some((name, sandbox)))
                }
                Err(Missing::Gone(reason)) => {
                    (attempt.not_done(reason), attempt.notice(reason), None)
                }
                // Not reached is not lost: the next call may reach it.
                Err(Missing::Unreached(error)) => {
                    (attempt.not_done(&error.to_string()), None, None)
                }
            };
            let spent = Amounts { steps: 1, tokens: 0 };
            Completed { lost, reached, ..Completed::new(effect, outcome, spent) }
        })
    }
}

struct Attempt {
    tool: String,
    arguments: String,
    id: SandboxId,
    known: Option<Arc<dyn Sandbox>>,
    place: Place,
    found: Found,
    backend: Arc<dyn Backend>,
}

/// Why a sandbox is not there for a call.
enum Missing {
    /// This life of it is over.
    Gone(&'static str),
    /// Its backend could not say.
    Unreached(Error),
}

type Lost = Option<(String, String, String)>;

impl Attempt {
    async fn perform(&self, sandbox: &dyn Sandbox, sink: &Told) -> (Outcome, Lost) {
        let Ok(exec) = ExecId::new(&*self.place.exec) else {
            let evidence = format!("`{}` is no exec id.", self.place.exec);
            return (Outcome::Unknown { evidence }, None);
        };
        let invocation = Invocation { tool: &self.tool, arguments: &self.arguments, exec };
        match outrigger_tools::perform(&invocation, sandbox, sink).await {
            Ok(output) => (Outcome::Done(Product::Output(output)), None),
            Err(error @ Error::Lost { .. }) => self.lost_during(&error),
            Err(error) => (Outcome::Unknown { evidence: unclear(&error) }, None),
        }
    }

    /// The sandbox, in the very life that the journal names.
    async fn sandbox(&self) -> Result<Arc<dyn Sandbox>, Missing> {
        let wanted = &self.place.generation;
        if let Some(known) = &self.known
            && known.generation().as_str() == wanted
            && known.is_alive()
        {
            return Ok(Arc::clone(known));
        }
        match self.backend.find(&self.id).await {
            Ok(Some(sandbox)) if sandbox.generation().as_str() == wanted => Ok(sandbox),
            Ok(Some(_)) => Err(Missing::Gone("it was started anew meanwhile")),
            Ok(None) => Err(Missing::Gone("it is gone")),
            Err(error) => Err(Missing::Unreached(error)),
        }
    }

    fn notice(&self, reason: &str) -> Lost {
        let notice = format!(
            "The sandbox `{}` was lost: {reason}. Its processes are gone. It is made again at the next call that needs it.",
            self.place.sandbox
        );
        Some((self.place.sandbox.clone(), self.place.generation.clone(), notice))
    }

    /// The sandbox is not there, and this driver has asked nothing of it.
    fn not_done(&self, reason: &str) -> Outcome {
        match self.found {
            Found::Fresh => Outcome::Done(Product::Output(ToolOutput {
                status: Status::Error,
                text: format!(
                    "Not run: the sandbox was not there before it ({reason}). Call again."
                ),
                exit_code: None,
                hidden_bytes: 0,
            })),
            Found::Interrupted => Outcome::Unknown {
                evidence: format!(
                    "Outcome unknown: the sandbox was lost while this ran ({reason}). It may have run fully, partly or not at all. Check before you repeat it."
                ),
            },
        }
    }

    fn lost_during(&self, error: &Error) -> (Outcome, Lost) {
        let evidence = format!(
            "Outcome unknown: {error}. It may have run fully, partly or not at all. Check before you repeat it."
        );
        (Outcome::Unknown { evidence }, self.notice(&error.to_string()))
    }
}

fn unclear(error: &Error) -> String {
    format!("Outcome unknown: {error}. It may have run fully, partly or not at all.")
}

/// Passes a command's output on to who listens.
struct Told {
    feed: Feed,
    session: SessionId,
    effect: Seq,
}

impl OutputSink for Told {
    fn output(&self, output: Output<'_>) {
        let (Output::Stdout(bytes) | Output::Stderr(bytes)) = output;
        self.feed
            .tell(&self.session, || Notice::Live(self.effect, LiveOutput::Output(bytes.to_vec())));
    }
}
