//! The way to registries on this host: straight, as nothing outside the tests has it.

use async_trait::async_trait;
use outrigger_sandbox_native::{
    HostReach, RegistryRequest, RegistryResponse, RegistryRoute, RouteError,
};

/// One that knows of a single name that it is not public.
pub(crate) struct DirectRoute(reqwest::Client);

impl DirectRoute {
    pub(crate) fn new() -> Self {
        let client = reqwest::Client::builder().no_proxy();
        Self(client.redirect(reqwest::redirect::Policy::none()).build().unwrap())
    }
}

#[async_trait]
impl RegistryRoute for DirectRoute {
    async fn send(
        &self,
        request: RegistryRequest,
        reach: HostReach,
    ) -> Result<RegistryResponse, RouteError> {
        if reach == HostReach::Public && request.url().host_str() == Some("localhost") {
            return Err(RouteError::Private("it is this host".to_owned()));
        }
        self.0.execute(request).await.map_err(|error| RouteError::Lost(error.to_string()))
    }
}
