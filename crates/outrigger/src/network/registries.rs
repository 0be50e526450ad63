//! The way to registries of images: through the gate.
//!
//! Owns that each host that a registry leads to has a caller of its own, which reads from it and
//! does nothing else.

use async_trait::async_trait;
use outrigger_gate::Grant;
use outrigger_model::endpoint::{self, ServerAddress};
use outrigger_model::{HttpClient, SendError};
use outrigger_sandbox_native::{
    HostReach, RegistryRequest, RegistryResponse, RegistryRoute, RouteError,
};
use tokio::sync::Mutex;

use super::caller;
use crate::limits;
use crate::paths::Paths;

/// The way, as long as an image is pulled.
pub(crate) struct GateRoute<'a> {
    paths: &'a Paths,
    callers: Mutex<Vec<RegistryCaller>>,
}

struct RegistryCaller {
    server: ServerAddress,
    reach: HostReach,
    http: HttpClient,
}

impl<'a> GateRoute<'a> {
    /// Asks nobody yet.
    pub(crate) fn new(paths: &'a Paths) -> Self {
        Self { paths, callers: Mutex::default() }
    }

    async fn client(&self, server: ServerAddress, reach: HostReach) -> Result<HttpClient, String> {
        let mut callers = self.callers.lock().await;
        let is_its = |it: &&RegistryCaller| it.server == server && it.reach == reach;
        if let Some(known) = callers.iter().find(is_its) {
            return Ok(known.http.clone());
        }
        let methods = vec!["GET".to_owned()];
        let private = reach == HostReach::Any;
        let grant = Grant { methods, private, ..caller::grant(&server) };
        let called = caller::call_for(self.paths, vec![grant], Vec::new()).await;
        let (http, _) = called.map_err(|failure| failure.message)?;
        if callers.len() >= limits::REGISTRY_HOSTS_MAX {
            callers.remove(0);
        }
        callers.push(RegistryCaller { server, reach, http: http.clone() });
        Ok(http)
    }
}

#[async_trait]
impl RegistryRoute for GateRoute<'_> {
    async fn send(
        &self,
        request: RegistryRequest,
        reach: HostReach,
    ) -> Result<RegistryResponse, RouteError> {
        let server = endpoint::of_url(request.url());
        let server = server.ok_or_else(|| RouteError::Refused("it has no host".to_owned()))?;
        let http = self.client(server, reach).await.map_err(RouteError::Refused)?;
        http.execute(request).await.map_err(|error| match error {
            SendError::Private(said) => RouteError::Private(said),
            SendError::Denied(said) => RouteError::Refused(said),
            lost @ (SendError::Transport(_) | SendError::NoGate(_) | SendError::Unreached(_)) => {
                RouteError::Lost(lost.words())
            }
        })
    }
}
