//! Performs granted effects. What comes back is always an outcome, never an error.

mod bill;
mod model;
mod outside;
mod provision;
mod stop;
mod tool;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use outrigger_agent::{Amounts, Outcome, Seq, Work};
use outrigger_policy::Granted;

use crate::Engine;
use crate::live::{Completed, Live};
use crate::step::Found;

impl Engine {
    /// Begins to perform an effect. The future owns all that it needs, so that the
    /// session's state can move on beside it.
    pub(crate) fn perform(
        &self,
        live: &Live,
        id: Seq,
        granted: Granted<Work>,
        found: Found,
    ) -> BoxFuture<'static, Completed> {
        let reserved = live.state.reserved_for(id);
        match granted.into_effect() {
            work @ (Work::AskModel | Work::Compact) => self.ask_model(live, id, &work).boxed(),
            Work::Provision { sandbox } => self.provision(live, id, sandbox).boxed(),
            Work::CallTool(call) => {
                let outside =
                    live.state.tool(&call.tool).is_some_and(|tool| tool.outside.is_some());
                let performing = if outside {
                    self.call_outside(live, id, &call, found).map(FutureExt::boxed)
                } else {
                    self.call_tool(live, id, &call, found).map(FutureExt::boxed)
                };
                performing.unwrap_or_else(|| nobodys(id, reserved))
            }
        }
    }
}

/// Provenance: no reply of the model contains this call.
fn nobodys(id: Seq, reserved: Amounts) -> BoxFuture<'static, Completed> {
    let evidence = "No reply of the model contains this call.".to_owned();
    ready(Completed::new(id, Outcome::Unknown { evidence }, reserved)).boxed()
}
