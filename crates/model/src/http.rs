//! How requests leave this process: to the gate, which sends them on.
//!
//! Owns the form of a request on that way, and what the gate itself answers. Must never
//! follow a redirect, use a proxy from the environment, or let the HTTP library retry.

use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Method, Request, Response, Url, redirect, retry};
use std::error::Error as _;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::limits;
use crate::retry_policy::retry_after;

/// The header of an answer that is the gate's own: which kind of refusal it is.
const REFUSED: &str = "x-outrigger-refused";
/// The status of such an answer to a request of which nothing was sent.
const UNSENT: u16 = 421;
/// How the sentence of such an answer begins.
const GATE: &str = "outrigger: ";

/// Why no HTTP client could be made: the machine's fault, for example because it
/// has no certificates.
#[derive(Debug, thiserror::Error)]
#[error("no HTTPS client can be made; check that the system's CA certificates are installed")]
pub struct HttpError(#[source] reqwest::Error);

/// The gate, as a client has it.
#[async_trait]
pub trait Gateway: Send + Sync + Debug {
    /// Sees to it that the socket takes requests. Called before each, and costs nothing where
    /// it does. The error is a sentence.
    async fn ready(&self) -> Result<(), String>;
}

/// The HTTP client that an endpoint is asked with.
#[derive(Debug, Clone)]
pub struct HttpClient {
    client: reqwest::Client,
    gate: Option<Arc<dyn Gateway>>,
}

/// Why a request got no answer of its host.
#[derive(Debug)]
pub enum SendError {
    /// The connection broke.
    Transport(reqwest::Error),
    /// There is no gate to send it.
    NoGate(String),
    /// The gate did not reach the host; its sentence.
    Unreached(String),
    /// The host is at an address that is not public, and none that was named; a sentence.
    Private(String),
    /// The gate does not pass it on; its sentence.
    Denied(String),
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(concat!("outrigger/", env!("CARGO_PKG_VERSION")))
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .tcp_nodelay(true)
        .pool_idle_timeout(Duration::from_millis(limits::POOL_IDLE_MS))
}

/// A client of HTTP that reaches hosts by itself, for tests and measurements without a gate.
///
/// # Errors
/// If the system's certificates can't be used.
pub fn http(connect: Duration) -> Result<reqwest::Client, HttpError> {
    builder().connect_timeout(connect).build().map_err(HttpError)
}

impl HttpClient {
    /// A client whose requests go to a socket of the gate. It speaks TLS with nobody.
    ///
    /// # Errors
    /// If the HTTP library can't be used.
    pub fn through(socket: &Path, gate: Arc<dyn Gateway>) -> Result<Self, HttpError> {
        let client = builder().unix_socket(socket).tls_certs_only([]).build();
        Ok(Self { client: client.map_err(HttpError)?, gate: Some(gate) })
    }

    /// One that reaches hosts by itself, for tests and measurements without a gate: no key is
    /// added.
    #[must_use]
    pub fn direct(client: reqwest::Client) -> Self {
        Self { client, gate: None }
    }

    /// Sees to it that requests have a way, before one is made with [`HttpClient::client`].
    /// Costs nothing where there is one.
    ///
    /// # Errors
    /// A sentence.
    pub async fn ready(&self) -> Result<(), String> {
        match &self.gate {
            Some(gate) => gate.ready().await,
            None => Ok(()),
        }
    }

    /// The client itself, for a protocol whose library makes the requests. What the gate answers
    /// has to be told from what hosts do by whoever uses it, and addresses have to be those that
    /// [`HttpClient::address`] gives.
    #[must_use]
    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// What is said in an answer of the gate to a request of which nothing was sent, where it
    /// has this status. To callers the gate answers so by itself alone.
    #[must_use]
    pub fn unsent<'a>(&self, status: u16, body: &'a str) -> Option<&'a str> {
        (self.gate.is_some() && status == UNSENT).then(|| sentence(body))
    }

    /// An address as requests name it on this way. `None` where it has no host.
    #[must_use]
    pub fn address(&self, mut url: Url) -> Option<Url> {
        if self.gate.is_some() {
            // The port says which grant is meant, and that says what is spoken behind the gate.
            let port = url.port_or_known_default();
            url.set_scheme("http").and_then(|()| url.set_port(port)).ok()?;
        }
        Some(url)
    }

    /// Sends a request. The answer is its host's.
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn execute(&self, mut request: Request) -> Result<Response, SendError> {
        self.ready().await.map_err(SendError::NoGate)?;
        let url = self.address(request.url().clone());
        *request.url_mut() =
            url.ok_or_else(|| SendError::Denied("the address has no host".to_owned()))?;
        let response = self.client.execute(request).await.map_err(SendError::Transport)?;
        let kind = response.headers().get(REFUSED).filter(|_| self.gate.is_some());
        let Some(kind) = kind else { return Ok(response) };
        let error = match kind.as_bytes() {
            b"unresolved" | b"unreachable" | b"certificate" | b"limit" => SendError::Unreached,
            b"private" => SendError::Private,
            _ => SendError::Denied,
        };
        let said = response.text().await.map_err(SendError::Transport)?;
        Err(error(sentence(&said).to_owned()))
    }

    /// Posts a text of JSON, with these headers besides. Of the answer so many bytes are read.
    ///
    /// # Errors
    /// A sentence that quotes neither the address nor the value of a header.
    pub async fn post(
        &self,
        url: &str,
        headers: &[(String, String)],
        json: String,
        answer_bytes_max: usize,
    ) -> Result<PostAnswer, String> {
        let url = Url::parse(url).map_err(|_| "its address is no URL".to_owned())?;
        let mut request = Request::new(Method::POST, url);
        let kind = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, kind);
        for (name, value) in headers {
            let named = HeaderName::from_bytes(name.as_bytes()).ok();
            let header = named.zip(HeaderValue::from_str(value).ok());
            let (key, value) =
                header.ok_or_else(|| format!("the header `{name}` can't be sent"))?;
            request.headers_mut().insert(key, value);
        }
        *request.body_mut() = Some(json.into());
        let mut answer = self.execute(request).await.map_err(SendError::words)?;
        let retry_after = retry_after(answer.headers(), SystemTime::now());
        let (status, mut body) = (answer.status().as_u16(), Vec::new());
        while body.len() < answer_bytes_max
            && let Ok(Some(piece)) = answer.chunk().await
        {
            body.extend_from_slice(&piece);
        }
        body.truncate(answer_bytes_max);
        Ok(PostAnswer { status, retry_after, body })
    }
}

/// What was answered to a [`HttpClient::post`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostAnswer {
    /// The status.
    pub status: u16,
    /// How long it is to be left alone, where the host says that.
    pub retry_after: Option<Duration>,
    /// The beginning of its body.
    pub body: Vec<u8>,
}

/// What the gate says of a request, without who says it.
fn sentence(body: &str) -> &str {
    let said = body.strip_prefix(GATE).unwrap_or(body).trim_end();
    said.strip_suffix('.').unwrap_or(said)
}

impl SendError {
    /// What is known of it, on one line.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Transport(error) => reason(error),
            Self::NoGate(said) => format!("the gate does not serve: {said}"),
            Self::Unreached(said) | Self::Private(said) | Self::Denied(said) => said,
        }
    }
}

/// A transport's error with its causes, on one line, without the URL.
pub(crate) fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !reason.contains(&text) {
            reason = format!("{reason}: {text}");
        }
        source = cause.source();
    }
    reason
}
