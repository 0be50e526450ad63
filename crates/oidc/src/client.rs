//! A client of a provider.
//!
//! Owns what is known of the provider, and for how long that is believed: a token by a key that
//! is not known has the keys asked for once more.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_model::HttpClient;
use outrigger_model::endpoint::{self, ServerAddress};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Request, Url};
use serde_json::Value;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

use crate::keys::IssuerKeys;
use crate::metadata::{ClientAuth, IssuerMetadata, address};
use crate::token::{TokenTerms, header, verify};
use crate::{AuthorizationRequest, CodeExchange, Error, TokenClaims, fetch, limits};

/// What a client of a provider is told.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// The provider, as it calls itself.
    pub issuer: String,
    /// As what the provider knows us.
    pub client_id: String,
    /// What is asked for beside `openid`.
    pub scopes: Vec<String>,
    /// The claims that are looked at. What the ID token lacks is asked for.
    pub claims: Vec<String>,
}

/// Servers of a provider that are to be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerServers {
    /// All of them.
    pub reached: Vec<ServerAddress>,
    /// The one that the client's secret is sent to, if it is sent anywhere.
    pub secret_to: Option<ServerAddress>,
}

/// A way to servers of a provider.
#[derive(Debug, Clone)]
pub struct IssuerConnection {
    /// The way.
    pub http: HttpClient,
    /// What stands for the client's secret. `None`: the client has none.
    pub placeholder: Option<String>,
}

/// Opens ways to servers of a provider.
#[async_trait]
pub trait IssuerAccess: Send + Sync + Debug {
    /// A way to these servers and no others. The error is a sentence.
    async fn open(&self, servers: &IssuerServers) -> Result<IssuerConnection, String>;
}

/// A client of a provider.
#[derive(Debug)]
pub struct IssuerClient {
    settings: ClientSettings,
    access: Arc<dyn IssuerAccess>,
    known: Mutex<Option<LastAnswer>>,
}

/// What came of asking a provider last.
#[derive(Debug)]
struct LastAnswer {
    at: Instant,
    issuer: Result<Arc<KnownIssuer>, Error>,
}

/// A provider as it is known.
#[derive(Debug)]
struct KnownIssuer {
    metadata: IssuerMetadata,
    connection: IssuerConnection,
    keys: IssuerKeys,
}

fn get(url: Url) -> Request {
    let mut request = Request::new(Method::GET, url);
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
    request
}

/// A form, as it is sent.
fn form<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    // A URL writes its query in the same way.
    let mut url = Url::parse("form:").expect("it is a URL");
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}

/// A text as a form has it.
fn encoded(text: &str) -> String {
    form([("", text)]).trim_start_matches('=').to_owned()
}

impl IssuerClient {
    /// A client. Nobody is asked yet.
    #[must_use]
    pub fn new(settings: ClientSettings, access: Arc<dyn IssuerAccess>) -> Self {
        Self { settings, access, known: Mutex::default() }
    }

    /// The host of the issuer, behind which its people are called.
    #[must_use]
    pub fn host(&self) -> String {
        let url = Url::parse(&self.settings.issuer).ok();
        url.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Where a browser is sent, to say who it is.
    ///
    /// # Errors
    /// [`Error::Unreached`], [`Error::Provider`].
    pub async fn authorization_url(
        &self,
        asked: AuthorizationRequest<'_>,
    ) -> Result<String, Error> {
        let known = self.issuer().await?;
        let mut url = known.metadata.authorization_endpoint.clone();
        let AuthorizationRequest { attempt, redirect_uri } = asked;
        let scopes: Vec<_> = self.settings.scopes.iter().map(String::as_str).collect();
        let scope = [&["openid"][..], &scopes].concat().join(" ");
        url.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.settings.client_id),
            ("redirect_uri", redirect_uri),
            ("scope", &scope),
            ("state", &attempt.state),
            ("nonce", &attempt.nonce),
            ("code_challenge", &attempt.challenge()),
            ("code_challenge_method", "S256"),
        ]);
        Ok(url.into())
    }

    /// Who it is that a browser brought a code of.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn claims(&self, brought: CodeExchange<'_>) -> Result<TokenClaims, Error> {
        let known = self.issuer().await?;
        self.is_of_issuer(&known.metadata, brought.issuer)?;
        let url = known.metadata.token_endpoint.to_string();
        let answer = fetch::object(&known.connection.http, self.exchange(&known, brought)).await?;
        let token = answer.get("id_token").and_then(Value::as_str);
        let token =
            token.ok_or_else(|| Error::provider(&url, "it answered without an ID token"))?;
        let mut claims = self.verified(&known, token, &brought.attempt.nonce).await?;
        let lacks = self.settings.claims.iter().any(|claim| !claims.has(claim));
        let access = answer.get("access_token").and_then(Value::as_str);
        if let (true, Some(url), Some(access)) = (lacks, &known.metadata.userinfo_endpoint, access)
        {
            claims.add(self.more(&known, url, access, claims.subject()).await?);
        }
        Ok(claims)
    }

    /// Who sent the browser back: another provider could mix its answers in with ours.
    fn is_of_issuer(&self, metadata: &IssuerMetadata, said: Option<&str>) -> Result<(), Error> {
        let must = metadata.authorization_response_iss_parameter_supported;
        match said {
            Some(said) if said == self.settings.issuer => Ok(()),
            None if !must => Ok(()),
            Some(_) | None => Err(Error::Answer(
                "another provider than ours sent the browser back (`iss`)".into(),
            )),
        }
    }

    fn exchange(&self, known: &KnownIssuer, brought: CodeExchange<'_>) -> Request {
        let mut request = Request::new(Method::POST, known.metadata.token_endpoint.clone());
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", brought.code),
            ("redirect_uri", brought.redirect_uri),
            ("code_verifier", &brought.attempt.verifier),
        ];
        let client_id = self.settings.client_id.as_str();
        let headers = request.headers_mut();
        match &known.connection.placeholder {
            Some(secret) if known.metadata.auth(secret) == ClientAuth::Basic => {
                let both = STANDARD.encode(format!("{}:{secret}", encoded(client_id)));
                let value = HeaderValue::try_from(format!("Basic {both}"));
                headers.insert(AUTHORIZATION, value.expect("base64 can stand in a header"));
            }
            Some(secret) => pairs.extend([("client_id", client_id), ("client_secret", secret)]),
            None => pairs.push(("client_id", client_id)),
        }
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, kind);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        *request.body_mut() = Some(form(pairs).into());
        request
    }

    async fn verified(
        &self,
        known: &KnownIssuer,
        token: &str,
        nonce: &str,
    ) -> Result<TokenClaims, Error> {
        let header = header(token)?;
        let ClientSettings { issuer, client_id, .. } = &self.settings;
        let terms = TokenTerms { issuer, client_id, nonce };
        if known.keys.key(&header).is_some() {
            return verify(token, &header, &known.keys, terms);
        }
        // It may have come since; one question for each token, and tokens come from the provider.
        let renewed = self.renewed().await?;
        verify(token, &header, &renewed.keys, terms)
    }

    /// What else the provider says of the person, who has to be the same.
    async fn more(
        &self,
        known: &KnownIssuer,
        url: &Url,
        access: &str,
        subject: &str,
    ) -> Result<serde_json::Map<String, Value>, Error> {
        let mut request = get(url.clone());
        let wrong = |what: &str| Error::provider(url.as_str(), what);
        let bearer = HeaderValue::try_from(format!("Bearer {access}"))
            .map_err(|_| wrong("its access token can't be sent"))?;
        request.headers_mut().insert(AUTHORIZATION, bearer);
        let answer = fetch::object(&known.connection.http, request).await?;
        match answer {
            Value::Object(more) if more.get("sub").and_then(Value::as_str) == Some(subject) => {
                Ok(more)
            }
            _ => Err(wrong("it speaks of somebody else (`sub`)")),
        }
    }

    /// The provider, as it is known or says now.
    async fn issuer(&self) -> Result<Arc<KnownIssuer>, Error> {
        let mut known = self.known.lock().await;
        if let Some(last) = &*known {
            let believed = match last.issuer {
                Ok(_) => limits::METADATA_MS_MAX,
                Err(_) => limits::FAILURE_MS_MAX,
            };
            if last.at.elapsed() < Duration::from_millis(believed) {
                return last.issuer.clone();
            }
        }
        let issuer = self.asked().await;
        *known = Some(LastAnswer { at: Instant::now(), issuer: issuer.clone() });
        issuer
    }

    /// The provider, as it says now.
    async fn renewed(&self) -> Result<Arc<KnownIssuer>, Error> {
        let issuer = self.asked().await?;
        let last = LastAnswer { at: Instant::now(), issuer: Ok(Arc::clone(&issuer)) };
        *self.known.lock().await = Some(last);
        Ok(issuer)
    }

    async fn asked(&self) -> Result<Arc<KnownIssuer>, Error> {
        let url = address(&self.settings.issuer)?;
        let reached = endpoint::of_url(&url).into_iter().collect();
        let first = self.open(&url, IssuerServers { reached, secret_to: None }).await?;
        let document = fetch::object(&first.http, get(url.clone())).await?;
        let metadata = IssuerMetadata::read(&self.settings.issuer, &url, document)?;
        let secret_to = endpoint::of_url(&metadata.token_endpoint);
        let servers = IssuerServers { reached: metadata.servers(), secret_to };
        let connection = self.open(&url, servers).await?;
        let set = fetch::object(&connection.http, get(metadata.jwks_uri.clone())).await?;
        Ok(Arc::new(KnownIssuer { metadata, connection, keys: IssuerKeys::read(&set) }))
    }

    async fn open(&self, url: &Url, servers: IssuerServers) -> Result<IssuerConnection, Error> {
        let failed = |detail: String| Error::Unreached { url: url.to_string(), detail };
        self.access.open(&servers).await.map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_written_as_forms_are() {
        assert_eq!(form([("a", "x y"), ("b", "1+1=2&c")]), "a=x+y&b=1%2B1%3D2%26c");
        assert_eq!(encoded("my client:1"), "my+client%3A1");
    }
}
