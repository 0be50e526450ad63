//! Performs granted effects. What comes back is always an outcome, never an error.

mod cost;
mod model;
mod outside;
mod provision;
mod stop;
mod subagent;
mod tool;

use futures_util::FutureExt;
use futures_util::future::ready;
use outrigger_agent::{Amounts, Outcome, Seq, ToolKind, Work};
use outrigger_policy::Granted;
use outrigger_sandbox::Sandbox;
use outrigger_tools::CommandTime;
use std::sync::Arc;

use crate::Engine;
use crate::driver::session::{AttemptKind, Completion, EffectFuture, SandboxLoss, SessionRun};

impl Engine {
    /// Begins to perform an effect. The future owns all that it needs, so that the
    /// session's state can move on beside it.
    pub(crate) fn perform(
        &self,
        run: &SessionRun,
        id: Seq,
        granted: Granted<Work>,
        kind: AttemptKind,
    ) -> EffectFuture {
        let reserved = run.state.reserved_for(id);
        match granted.into_effect() {
            work @ (Work::AskModel | Work::Compact) => {
                self.ask_model(run, id, &work).map(Ok).boxed()
            }
            Work::Provision { sandbox } => self.provision(run, id, sandbox).map(Ok).boxed(),
            Work::CallTool(call) => {
                let performing = match run.state.tool(&call.tool).map(|tool| tool.kind) {
                    Some(ToolKind::Outside) => self
                        .call_outside(run, id, &call, kind)
                        .map(|calling| calling.map(Ok).boxed()),
                    Some(ToolKind::Subagent) => {
                        self.run_subagent(run, id, &call).map(FutureExt::boxed)
                    }
                    Some(ToolKind::Execute | ToolKind::ReadFiles | ToolKind::WriteFiles) | None => {
                        self.call_tool(run, id, &call, kind).map(|calling| calling.map(Ok).boxed())
                    }
                };
                performing.unwrap_or_else(|| nobodys(id, reserved))
            }
        }
    }
}

/// What one attempt at a call came to.
struct AttemptEnd {
    outcome: Outcome,
    /// How its sandbox was lost, if it was.
    lost: Option<SandboxLoss>,
    /// The sandbox that did it, and its name.
    attached: Option<(String, Arc<dyn Sandbox>)>,
    /// What a command took.
    took: Option<CommandTime>,
}

impl AttemptEnd {
    fn new(outcome: Outcome) -> Self {
        Self { outcome, lost: None, attached: None, took: None }
    }
}

/// Provenance: no reply of the model contains this call.
fn nobodys(id: Seq, reserved: Amounts) -> EffectFuture {
    let evidence = "No reply of the model contains this call.".to_owned();
    let done = Completion::new(id, Outcome::Unknown { evidence }, reserved.within(0));
    ready(Ok(done.estimated())).boxed()
}
