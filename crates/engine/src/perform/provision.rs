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
            let outcome = match made {
                Ok(ready) => Outcome::Done(Product::Sandbox(ready)),
                Err(detail) => Outcome::Failed(Failure::Sandbox { detail }),
            };
            Completed { effect, outcome, spent: Amounts::default(), lost: None }
        }
    }
}

/// Create-or-attach, and fill-unless-filled: repeating it after a crash is harmless.
async fn make(
    parts: &Parts,
    session: &SessionId,
    name: &str,
    content: Option<&Workspace>,
) -> Result<SandboxReady, String> {
    let id = Engine::sandbox_id(session, name);
    let plain = |error: Error| error.to_string();
    let sandbox = parts.backend.create(&id, &parts.sandbox).await.map_err(plain)?;
    let note = match content {
        None => None,
        Some(content) => fill(parts, &*sandbox, content).await?,
    };
    let capabilities = parts.backend.capabilities();
    Ok(SandboxReady {
        id: id.to_string(),
        generation: sandbox.generation().to_string(),
        backend: capabilities.backend.clone(),
        isolation: format!("{:?}", capabilities.isolation),
        note,
    })
}

async fn fill(
    parts: &Parts,
    sandbox: &dyn Sandbox,
    content: &Workspace,
) -> Result<Option<String>, String> {
    match workspace::import(&*parts.blobs, content, sandbox).await {
        Ok(Imported::Fresh) => Ok(None),
        Ok(Imported::Kept) => Ok(Some(
            "The sandbox was started again over its old disk: files are as they were left, processes are gone."
                .to_owned(),
        )),
        Err(error) => Err(workspace::explain(&error)),
    }
}
