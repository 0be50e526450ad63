//! Secrets, for the server.

use async_trait::async_trait;
use futures_util::FutureExt;
use outrigger_api::{RotateSecret, SecretInfo, SetSecret};
use outrigger_server::{RequestError, SecretStore};
use std::sync::Arc;
use zeroize::Zeroizing;

use super::context::ServeContext;
use super::failure::told;
use super::jobs::Jobs;
use crate::exit::{Failure, Kind};
use crate::limits;
use crate::network::{self, SecretKeeper, SecretUse, secret_value};

/// Keeps the secrets of this installation.
#[derive(Debug)]
pub(super) struct HostSecrets {
    context: Arc<ServeContext>,
    jobs: Jobs,
}

impl HostSecrets {
    pub(super) fn new(context: Arc<ServeContext>, jobs: Jobs) -> Self {
        Self { context, jobs }
    }
}

#[async_trait]
impl SecretStore for HostSecrets {
    async fn list(&self) -> Result<Vec<SecretInfo>, RequestError> {
        let kept = network::kept(&*self.context.store.database).await.map_err(told)?;
        Ok(kept.into_iter().map(Into::into).collect())
    }

    async fn set(
        &self,
        name: &str,
        secret: SetSecret,
        by: &str,
    ) -> Result<SecretInfo, RequestError> {
        let (context, name, by) = (Arc::clone(&self.context), name.to_owned(), by.to_owned());
        let job = move || {
            async move {
                let mut secret = secret;
                let value = Zeroizing::new(std::mem::take(&mut secret.value));
                let days = secret.days;
                if days.is_some_and(|days| !(1..=limits::SECRET_DAYS_MAX).contains(&days)) {
                    let text = format!("`days`: 1 to {}", limits::SECRET_DAYS_MAX);
                    return Err(Failure::new(Kind::Usage, text));
                }
                let terms = SecretUse::from(secret).terms(&name, days)?;
                let keeper = SecretKeeper::new(&context.paths, &*context.store.database, &by);
                keeper.set(terms, secret_value(&name, value)?).await.map(Into::into)
            }
            .boxed_local()
        };
        self.jobs.ask(job).await
    }

    async fn rotate(
        &self,
        name: &str,
        value: RotateSecret,
        by: &str,
    ) -> Result<SecretInfo, RequestError> {
        let (context, name, by) = (Arc::clone(&self.context), name.to_owned(), by.to_owned());
        let job = move || {
            async move {
                let keeper = SecretKeeper::new(&context.paths, &*context.store.database, &by);
                keeper
                    .rotate(&name, secret_value(&name, Zeroizing::new(value.value))?)
                    .await
                    .map(Into::into)
            }
            .boxed_local()
        };
        self.jobs.ask(job).await
    }

    async fn revoke(&self, name: &str) -> Result<(), RequestError> {
        let (context, name) = (Arc::clone(&self.context), name.to_owned());
        let job = move || {
            async move {
                let keeper = SecretKeeper::new(&context.paths, &*context.store.database, "");
                keeper.revoke(&name).await.map(drop)
            }
            .boxed_local()
        };
        self.jobs.ask(job).await
    }
}
