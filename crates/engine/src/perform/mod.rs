//! Performs granted effects. What comes back is always an outcome, never an error.

mod bill;
mod model;
mod outside;
mod provision;
mod stop;
mod subagent;
mod tool;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use outrigger_agent::{Amounts, Outcome, Seq, ToolKind, Work};
use outrigger_policy::Granted;

use crate::live::{Completed, Live};
use crate::step::Found;
use crate::{Engine, Error};

impl Engine {
    /// Begins to perform an effect. The future owns all that it needs, so that the
    /// session's state can move on beside it.
    pub(crate) fn perform(
        &self,
        live: &Live,
        id: Seq,
        granted: Granted<Work>,
        found: Found,
    ) -> Performing {
        let reserved = live.state.reserved_for(id);
        match granted.into_effect() {
            work @ (Work::AskModel | Work::Compact) => {
                self.ask_model(live, id, &work).map(Ok).boxed()
            }
            Work::Provision { sandbox } => self.provision(live, id, sandbox).map(Ok).boxed(),
            Work::CallTool(call) => {
                let performing = match live.state.tool(&call.tool).map(|tool| tool.kind) {
                    Some(ToolKind::Outside) => self
                        .call_outside(live, id, &call, found)
                        .map(|calling| calling.map(Ok).boxed()),
                    Some(ToolKind::Subagent) => {
                        self.run_subagent(live, id, &call).map(FutureExt::boxed)
                    }
                    Some(ToolKind::Execute | ToolKind::ReadFiles | ToolKind::WriteFiles) | None => {
                        self.call_tool(live, id, &call, found)
                            .map(|calling| calling.map(Ok).boxed())
                    }
                };
                performing.unwrap_or_else(|| nobodys(id, reserved))
            }
        }
    }
}

/// An effect under way. An error is the driver's: nothing came of it that could be settled.
pub(crate) type Performing = BoxFuture<'static, Result<Completed, Error>>;

/// Provenance: no reply of the model contains this call.
fn nobodys(id: Seq, reserved: Amounts) -> Performing {
    let evidence = "No reply of the model contains this call.".to_owned();
    let done = Completed::new(id, Outcome::Unknown { evidence }, reserved.within(0));
    ready(Ok(done.estimated())).boxed()
}
