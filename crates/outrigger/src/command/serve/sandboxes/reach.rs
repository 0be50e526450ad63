//! Who says what the sandboxes of people reach, and who is told what they reached.

use async_trait::async_trait;
use outrigger_api::ProblemCode;
use outrigger_sandbox::{Sandbox, SandboxId};
use outrigger_server::{NotedFlow, RequestError, SandboxEgress};
use std::collections::BTreeMap;

use super::records::SandboxRecord;
use super::{PersonSandboxes, told};
use crate::network::{Words, secrets_are_there};

impl PersonSandboxes {
    /// What one may reach: as it is asked for, else as the configuration says of sandboxes.
    pub(super) async fn reach(
        &self,
        asked: Option<&[String]>,
    ) -> Result<Vec<String>, RequestError> {
        let words = match asked {
            None => self.context().await?.network.without_repository(),
            Some(said) => Words::parse(said).map_err(|why| {
                RequestError::new(ProblemCode::InvalidRequest, format!("`network`: {why}"))
            })?,
        };
        let settled = words.settle_alone().map_err(told)?;
        secrets_are_there(&*self.0.context.store.database, &settled).await.map_err(told)?;
        Ok(settled)
    }
}

#[async_trait]
impl SandboxEgress for PersonSandboxes {
    async fn variables(
        &self,
        sandbox: &dyn Sandbox,
    ) -> Result<BTreeMap<String, String>, RequestError> {
        let held = self.known(sandbox.id())?;
        self.network().await?.open(sandbox, &held).await.map_err(told)
    }

    async fn set_network(&self, id: &SandboxId, asked: &[String]) -> Result<(), RequestError> {
        let (held, words) = (self.known(id)?, self.reach(Some(asked)).await?);
        // Held, so that a removed one gets no record again.
        let _handle = held.handle.lock().await;
        let record = SandboxRecord { network: words.clone(), ..self.known(id)?.record.clone() };
        self.0.sandboxes.put(id.as_str(), &record).map_err(told)?;
        held.set_network(words);
        // What is taken back is so at once; the next command opens the rest.
        self.network().await?.close(id, &held).await;
        Ok(())
    }

    async fn egress(&self, id: &SandboxId) -> Result<Vec<NotedFlow>, RequestError> {
        let held = self.known(id)?;
        self.network().await?.note(id, &held).await.map_err(told)?;
        held.noted().map_err(told)
    }
}
