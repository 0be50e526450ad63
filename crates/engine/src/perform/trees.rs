//! Performs a tool call about memory or skills that needs no sandbox: none is made for it,
//! and none is woken.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use outrigger_agent::{Outcome, Product, Seq, Status, ToolCall, ToolOutput, Touched};
use outrigger_sandbox::ExecId;
use outrigger_tools::Invocation;
use std::sync::Arc;

use super::tool::spent;
use crate::Engine;
use crate::live::{Completed, Live};
use crate::shelves::Shelved;
use crate::step::Found;

/// Its session was opened with memory and is driven without.
const NOT_CONFIGURED: &str = "Not run: memory and skills are not configured any more.";

impl Engine {
    /// `None` if no reply of the model contains the call.
    pub(super) fn call_on_trees(
        &self,
        live: &Live,
        effect: Seq,
        call: &ToolCall,
        found: Found,
    ) -> Option<BoxFuture<'static, Completed>> {
        let arguments = live.state.call(call)?.given().to_owned();
        let tool = live.state.tool(&call.tool)?.built_in().to_owned();
        let seen = live.state.effect(effect)?.seen.clone();
        let exec = ExecId::new(live.session.effect(effect)).ok()?;
        let shelved = self.shelved(live, effect);
        let (clock, reserved) = (Arc::clone(&self.parts.clock), live.state.reserved_for(effect));
        let performing = async move {
            let since_ms = clock.now_ms();
            let call = Invocation { tool: &tool, arguments: &arguments, exec, seen: seen.as_ref() };
            let (outcome, touched) = match &shelved {
                Some(shelved) => on_trees(&call, shelved, found).await,
                None => {
                    let output = ToolOutput::new(Status::Error, NOT_CONFIGURED.to_owned());
                    (Outcome::Done(Product::Output(output)), Touched::default())
                }
            };
            let passed_ms = clock.now_ms().saturating_sub(since_ms);
            let spent = spent(&outcome, None, passed_ms, reserved);
            Completed { touched, ..Completed::new(effect, outcome, spent) }
        };
        Some(performing.boxed())
    }
}

async fn on_trees(call: &Invocation<'_>, shelved: &Shelved, found: Found) -> (Outcome, Touched) {
    let before = match found {
        Found::Interrupted => shelved.done_before(call).await,
        Found::Fresh => None,
    };
    let done = match before {
        Some(output) => Ok(output),
        None => outrigger_tools::perform_files(call, &shelved.alone()).await,
    };
    let mut outcome = match done {
        Ok(output) => Outcome::Done(Product::Output(output)),
        Err(error) => Outcome::Unknown {
            evidence: format!(
                "Outcome unknown: {error}. It may have run fully, partly or not at all."
            ),
        },
    };
    let touched = shelved.told(&mut outcome).await;
    (outcome, touched)
}
