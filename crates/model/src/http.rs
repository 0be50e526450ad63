//! How requests leave this process: to the gate, which sends them on.
//!
//! Owns the form of a request on that way, and what the gate itself answers. Must never
//! follow a redirect, use a proxy from the environment, or let the HTTP library retry.

use async_trait::async_trait;
use reqwest::{Response, redirect, retry};
use std::error::Error as _;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::limits;

/// The header of an answer that is the gate's own: which kind of refusal it is.
const REFUSED: &str = "x-outrigger-refused";
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
pub(crate) enum SendError {
    Transport(reqwest::Error),
    /// There is no gate to send it.
    NoGate(String),
    /// The gate did not reach the host; its sentence.
    Unreached(String),
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

/// A client of HTTP that reaches hosts by itself, for what is no model.
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

    /// A client that reaches hosts by itself, for tests and measurements without a gate: no
    /// key is added.
    #[must_use]
    pub fn direct(client: reqwest::Client) -> Self {
        Self { client, gate: None }
    }

    /// Sends a request. The answer is its host's.
    pub(crate) async fn execute(
        &self,
        mut request: reqwest::Request,
    ) -> Result<Response, SendError> {
        let Some(gate) = &self.gate else {
            return self.client.execute(request).await.map_err(SendError::Transport);
        };
        gate.ready().await.map_err(SendError::NoGate)?;
        // The port says which grant is meant, and that says what is spoken behind the gate.
        let url = request.url_mut();
        let port = url.port_or_known_default();
        let plain = url.set_scheme("http").and_then(|()| url.set_port(port));
        plain.map_err(|()| SendError::Denied("the address has no host".to_owned()))?;
        let response = self.client.execute(request).await.map_err(SendError::Transport)?;
        let Some(kind) = response.headers().get(REFUSED) else { return Ok(response) };
        let unreached = ["unresolved", "unreachable", "certificate", "private", "limit"];
        let unreached = unreached.iter().any(|word| kind == word);
        let said = response.text().await.map_err(SendError::Transport)?;
        let said = said.strip_prefix(GATE).unwrap_or(&said).trim_end();
        let said = said.strip_suffix('.').unwrap_or(said).to_owned();
        Err(if unreached { SendError::Unreached(said) } else { SendError::Denied(said) })
    }
}

impl SendError {
    /// What is known of it, on one line.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Transport(error) => reason(error),
            Self::NoGate(said) => format!("the gate does not serve: {said}"),
            Self::Unreached(said) | Self::Denied(said) => said,
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
