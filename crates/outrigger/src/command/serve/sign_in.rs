//! The provider with which people log in to this server.
//!
//! Owns who of its people is let in, and as whom. What it says is looked at by `outrigger_oidc`;
//! every question to it goes through the gate, which has the client's secret.

use async_trait::async_trait;
use outrigger_api::ProblemCode;
use outrigger_gate::Grant;
use outrigger_model::endpoint::ServerAddress;
use outrigger_oidc::{
    AuthorizationRequest, CodeExchange, Error, IssuerAccess, IssuerClient, IssuerConnection,
    IssuerServers, LoginAttempt, TokenClaims,
};
use outrigger_server::{LoginProvider, ProviderAnswer, ProviderLogin, RequestError};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::Semaphore;

use super::context::ServeContext;
use super::failure::{of_server, told};
use crate::config::Oidc;
use crate::exit::{Failure, Kind, Outcome};
use crate::network::caller;
use crate::paths::Paths;
use crate::sealed_keys::{is_for, sealed};
use crate::signed_in::{SignedIn, SignedInPerson};
use crate::{limits, session};

/// The provider of this installation, if it has one.
#[derive(Debug)]
pub(super) struct HostLogins {
    context: Arc<ServeContext>,
    provider: Option<ConfiguredProvider>,
}

#[derive(Debug)]
struct ConfiguredProvider {
    oidc: Oidc,
    client: IssuerClient,
    /// Who asks the provider now: whoever comes with a made-up code has it asked, too.
    asking: Semaphore,
}

/// Ways to a provider through the gate.
#[derive(Debug)]
struct GateAccess {
    paths: Paths,
    secret_env: Option<String>,
    /// Servers that a person named: their names may lead anywhere.
    named: Vec<ServerAddress>,
}

impl HostLogins {
    /// A secret that is not there is an error before anybody is served.
    pub(super) fn new(context: Arc<ServeContext>) -> Outcome<Self> {
        let oidc = context.config.oidc.clone();
        if let Some(variable) = oidc.as_ref().and_then(|oidc| oidc.secret_env.as_ref())
            && sealed(variable).is_none()
        {
            let text = format!(
                "the environment variable {variable} holds no secret of an OpenID client, which has at least {} characters",
                limits::KEY_CHARS_MIN
            );
            return Err(Failure::new(Kind::Auth, text).hint(format!(
                "Set {variable}, or take `oidc.client_secret_env` out where the client is a public one."
            )));
        }
        let provider = oidc.map(|oidc| {
            let access = GateAccess {
                paths: context.paths.clone(),
                secret_env: oidc.secret_env.clone(),
                named: oidc.secret_to.clone(),
            };
            let client = IssuerClient::new(oidc.client.clone(), Arc::new(access));
            ConfiguredProvider { oidc, client, asking: Semaphore::new(limits::OIDC_LOGINS_AT_ONCE) }
        });
        Ok(Self { context, provider })
    }

    fn provider(&self) -> Result<&ConfiguredProvider, RequestError> {
        self.provider.as_ref().ok_or_else(|| {
            let text = "this server knows no provider of logins";
            RequestError::new(ProblemCode::NotFound, text)
        })
    }

    /// Who it is here, if they are let in.
    fn admitted(
        &self,
        provider: &ConfiguredProvider,
        claims: &TokenClaims,
    ) -> Outcome<ProviderLogin> {
        let ConfiguredProvider { oidc, client, .. } = provider;
        let name = claims.name(oidc.person, &client.host()).map_err(|error| denied(&error))?;
        let person = format!("person:{name}");
        let is_let_in = oidc.admission.lets_in(claims, &oidc.groups_claim);
        if !is_let_in && !self.context.rules.names(&person)? {
            let text = format!("{} knows you as {name}, and nobody here lets you in", oidc.name);
            return Err(Failure::new(Kind::Denied, text)
                .hint("Ask who runs this server: `oidc.allow_groups` and `oidc.allow_domains` say who is let in."));
        }
        let groups = claims.values(&oidc.groups_claim).into_iter().map(str::to_owned);
        let groups: BTreeSet<_> = groups.filter(|value| oidc.groups.contains_key(value)).collect();
        if groups.len() > limits::SIGNED_IN_GROUPS_MAX {
            let text = format!("{name} has more than {} groups", limits::SIGNED_IN_GROUPS_MAX);
            return Err(Failure::new(Kind::Denied, text));
        }
        let since_ms = session::now_ms();
        let entry = SignedInPerson {
            issuer: oidc.client.issuer.clone(),
            subject: claims.subject().to_owned(),
            groups,
            since_ms,
            ends_ms: since_ms.saturating_add(oidc.lives_ms),
        };
        SignedIn::enter(&self.context.paths, &person, entry)?;
        Ok(ProviderLogin { person, lives_ms: oidc.lives_ms })
    }
}

fn denied(error: &Error) -> Failure {
    Failure::from_error(Kind::Denied, error)
}

/// As a person is told who can't be logged in.
fn refused(error: &Error) -> RequestError {
    let code = match error {
        Error::Unreached { .. } | Error::Provider { .. } => ProblemCode::ProviderError,
        Error::Token(_) | Error::Answer(_) | Error::Claims(_) => ProblemCode::Unauthenticated,
    };
    let retryable = error.is_transient();
    RequestError { retryable, ..RequestError::new(code, error.to_string()) }
}

#[async_trait]
impl LoginProvider for HostLogins {
    fn name(&self) -> Option<&str> {
        self.provider.as_ref().map(|provider| provider.oidc.name.as_str())
    }

    async fn begin(&self, secret: &str, redirect_uri: &str) -> Result<String, RequestError> {
        let attempt = &LoginAttempt::of(secret);
        let asked = AuthorizationRequest { attempt, redirect_uri };
        let url = self.provider()?.client.authorization_url(asked).await;
        url.map_err(|error| refused(&error))
    }

    async fn end(&self, answer: ProviderAnswer<'_>) -> Result<ProviderLogin, RequestError> {
        let provider = self.provider()?;
        let attempt = &LoginAttempt::of(answer.secret);
        if answer.state != attempt.state {
            let text = "this is the answer to another login than the one that this browser began";
            return Err(refused(&Error::Answer(text.to_owned())));
        }
        let code = answer.code.map_err(|said| {
            let said: String = said.chars().take(limits::OIDC_QUOTED_CHARS_MAX).collect();
            let text = format!("{} did not log you in: {said}", provider.oidc.name);
            RequestError::new(ProblemCode::Unauthenticated, text)
        })?;
        let _asking = provider.asking.try_acquire().map_err(|_| {
            let text = "too many people log in at this moment";
            RequestError { retryable: true, ..RequestError::new(ProblemCode::RateLimited, text) }
        })?;
        let ProviderAnswer { redirect_uri, issuer, .. } = answer;
        let brought = CodeExchange { attempt, redirect_uri, code, issuer };
        let claims = provider.client.claims(brought).await.map_err(|error| refused(&error))?;
        self.admitted(provider, &claims).map_err(told)
    }

    fn ends_ms(&self, person: &str) -> Result<Option<u64>, RequestError> {
        self.context.rules.login_ends_ms(person).map_err(of_server)
    }
}

#[async_trait]
impl IssuerAccess for GateAccess {
    async fn open(&self, servers: &IssuerServers) -> Result<IssuerConnection, String> {
        let grant = |server: &ServerAddress| Grant {
            private: self.named.contains(server),
            ..caller::grant(server)
        };
        let grants = servers.reached.iter().map(grant).collect();
        let secret = match (&self.secret_env, &servers.secret_to) {
            (Some(variable), Some(to)) => match sealed(variable) {
                Some(secret) if is_for(&secret, to) => Some(secret),
                Some(_) | None => {
                    return Err(format!(
                        "the client's secret is not sent to {}, where the token endpoint is; name that host in `oidc.secret_hosts`",
                        to.host
                    ));
                }
            },
            _ => None,
        };
        let called = caller::call_for(&self.paths, grants, secret.into_iter().collect()).await;
        let (http, placeholders) = called.map_err(|failure| failure.message)?;
        Ok(IssuerConnection { http, placeholder: placeholders.into_values().next() })
    }
}
