//! Performs granted effects. What comes back is always an outcome, never an error.

mod cost;
mod model;
mod outside;
mod provision;
pub(crate) mod stop;
pub(crate) mod subagent;
mod tool;

use futures_util::FutureExt;
use futures_util::future::ready;
use outrigger_agent::{Amounts, Outcome, Seq, ToolKind, Work};
use outrigger_policy::Granted;

use crate::Engine;
use crate::driver::session::{AttemptKind, Completion, EffectFuture, SessionRun};

/// Begins to perform an effect. The future owns all that it needs, so that the
/// session's state can move on beside it.
pub(crate) fn perform(
    engine: &Engine,
    run: &mut SessionRun,
    id: Seq,
    granted: Granted<Work>,
    kind: AttemptKind,
) -> EffectFuture {
    let reserved = run.state.reserved_for(id);
    match granted.into_effect() {
        work @ (Work::AskModel | Work::Compact) => {
            model::ask(engine, run, id, &work).map(Ok).boxed()
        }
        Work::Provision { sandbox } => {
            provision::provision(engine, run, id, sandbox).map(Ok).boxed()
        }
        Work::CallTool(call) => {
            let performing = match run.state.tool(&call.tool).map(|tool| tool.kind) {
                Some(ToolKind::Outside) => outside::call(engine, run, id, &call, kind)
                    .map(|calling| calling.map(Ok).boxed()),
                Some(ToolKind::Subagent) => {
                    subagent::run(engine, run, id, &call).map(FutureExt::boxed)
                }
                Some(ToolKind::Execute | ToolKind::ReadFiles | ToolKind::WriteFiles) | None => {
                    tool::call(engine, run, id, &call, kind).map(|calling| calling.map(Ok).boxed())
                }
            };
            performing.unwrap_or_else(|| nobodys(id, reserved))
        }
    }
}

/// Provenance: no reply of the model contains this call.
fn nobodys(id: Seq, reserved: Amounts) -> EffectFuture {
    let evidence = "No reply of the model contains this call.".to_owned();
    let done = Completion::new(id, Outcome::Unknown { evidence }, reserved.within(0));
    ready(Ok(done.estimated())).boxed()
}
