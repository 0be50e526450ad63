//! Makes a session's sandbox, with its starting content.

use outrigger_agent::{
    Amounts, Failure, Outcome, Product, SandboxReady, Seq, SessionId, Workspace,
};
use outrigger_sandbox::{Error, Sandbox};
use std::sync::Arc;

use crate::live::{Completed, Live};
use crate::workspace::{self, Imported};
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
        async move {
            let made = make(&parts, &session, &sandbox, workspace.as_ref()).await;
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
    content: Option<&Workspace>,
) -> Result<(SandboxReady, Arc<dyn Sandbox>), String> {
    let id = Engine::sandbox_id(session, name);
    let plain = |error: Error| error.to_string();
    let sandbox = parts.backend.create(&id, &parts.sandbox).await.map_err(plain)?;
    let note = match content {
        None => None,
        Some(content) => fill(parts, &*sandbox, content).await?,
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
) -> Result<Option<String>, String> {
    match workspace::import(&*parts.blobs, content, sandbox).await {
        Ok(Imported::Fresh | Imported::Attached) => Ok(None),
        Ok(Imported::Kept) => Ok(Some(
            "The sandbox was started again over its old disk: files are as they were left, processes are gone."
                .to_owned(),
        )),
        Err(error) => Err(workspace::explain(&error)),
    }
}
