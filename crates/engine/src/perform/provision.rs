//! Makes a session's sandbox, with its starting content.

use outrigger_agent::{
    Amounts, Failure, Outcome, Phase, Product, SandboxReady, Seq, SessionId, State, Workspace,
};
use outrigger_sandbox::{Error, Sandbox};
use std::sync::Arc;

use crate::live::{Completed, Live};
use crate::workspace::{self, History, Imported};
use crate::{Engine, Parts};

impl Engine {
    pub(super) fn provision(
        &self,
        live: &Live,
        effect: Seq,
        sandbox: String,
    ) -> impl Future<Output = Completed> + Send + use<> {
        let parts = Arc::clone(&self.parts);
        let session = live.session.clone();
        let workspace = live.state.spec().and_then(|spec| spec.workspace.clone());
        let history = History {
            attempt: format!("{effect}.{}", attempt(&live.state, effect)),
            filled: live.state.was_provisioned(&sandbox),
        };
        async move {
            let content = workspace.as_ref().map(|workspace| (workspace, &history));
            let made = make(&parts, &session, &sandbox, content).await;
            let (outcome, reached) = match made {
                Ok((ready, reached)) => (Outcome::Done(Product::Sandbox(ready)), Some(reached)),
                Err(detail) => (Outcome::Failed(Failure::Sandbox { detail }), None),
            };
            let reached = reached.map(|reached| (sandbox, reached));
            Completed { reached, ..Completed::new(effect, outcome, Amounts::default()) }
        }
    }
}

/// Create-or-attach, and fill-unless-filled: repeating it after a crash is harmless.
async fn make(
    parts: &Parts,
    session: &SessionId,
    name: &str,
    content: Option<(&Workspace, &History)>,
) -> Result<(SandboxReady, Arc<dyn Sandbox>), String> {
    let id = Engine::sandbox_id(session, name);
    let plain = |error: Error| error.to_string();
    let sandbox = parts.backend.create(&id, &parts.sandbox).await.map_err(plain)?;
    let note = match content {
        None => None,
        Some((content, history)) => fill(parts, &*sandbox, content, history).await?,
    };
    let capabilities = parts.backend.capabilities();
    let ready = SandboxReady {
        id: id.to_string(),
        generation: sandbox.generation().to_string(),
        backend: capabilities.backend.clone(),
        isolation: capabilities.isolation.to_string(),
        note,
    };
    Ok((ready, sandbox))
}

async fn fill(
    parts: &Parts,
    sandbox: &dyn Sandbox,
    content: &Workspace,
    history: &History,
) -> Result<Option<String>, String> {
    match workspace::import(&*parts.blobs, content, history, sandbox).await {
        Ok(Imported::Fresh | Imported::Attached) => Ok(None),
        Ok(Imported::Kept) => Ok(Some(
            "The sandbox was started again over its old disk: files are as they were left, processes are gone."
                .to_owned(),
        )),
        Ok(Imported::Renewed) => Ok(Some(
            "The sandbox and its disk were lost: the workspace is back at its starting content, and every change is gone."
                .to_owned(),
        )),
        Err(error) => Err(workspace::explain(&error)),
    }
}

fn attempt(state: &State, effect: Seq) -> u32 {
    match state.effect(effect).map(|effect| &effect.phase) {
        Some(Phase::Started { attempt, .. }) => *attempt,
        Some(Phase::Proposed | Phase::Asked | Phase::Permitted | Phase::Refused { .. }) | None => 0,
    }
}
