//! A server over HTTP.
//!
//! Owns where requests go: to the configured address and nowhere else, by the way that it is
//! given, and with the configured headers alone.

use async_trait::async_trait;
use outrigger_agent::limits::SENDS_MAX;
use outrigger_model::HttpClient;
use outrigger_model::endpoint::{self, ServerAddress};
use outrigger_sandbox::Sandbox;
use outrigger_tools::outside::{Fault, Outside, OutsideCall, ToolAnswer, ToolListing};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::FixedInterval;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;

use crate::connection::Connection;
use crate::fault::{self, CallError};
use crate::limits;
use crate::routed::RoutedClient;

/// What is wrong with the configuration of a server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address can't be used.
    #[error("the address {0}")]
    Url(&'static str),
    /// A header can't be sent. Says nothing of its value.
    #[error("the header `{0}` has a name or a value that HTTP does not allow")]
    Header(String),
}

/// The address of a server: `https`, or `http` on this very machine.
#[derive(Debug, Clone)]
pub struct ServerUrl {
    url: reqwest::Url,
    server: ServerAddress,
}

impl ServerUrl {
    /// Reads one.
    ///
    /// # Errors
    /// [`Error::Url`].
    pub fn new(text: &str) -> Result<Self, Error> {
        let url = reqwest::Url::parse(text).map_err(|_| Error::Url("is no URL"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::Url("has a password in it; use `headers`"));
        }
        let server = endpoint::of_url(&url).ok_or(Error::Url("names no host"))?;
        let here = matches!(&*server.host, "localhost" | "127.0.0.1" | "::1");
        match url.scheme() {
            "https" => Ok(Self { url, server }),
            "http" if here => Ok(Self { url, server }),
            "http" => Err(Error::Url("is not encrypted: only this machine is spoken to so")),
            _ => Err(Error::Url("is neither https nor http")),
        }
    }

    /// Who is to be reached for it.
    #[must_use]
    pub fn server(&self) -> &ServerAddress {
        &self.server
    }
}

/// A header of every request to a server. Its value is never printed.
#[derive(Clone)]
pub struct Header {
    name: HeaderName,
    value: HeaderValue,
}

impl Header {
    /// A header of that name.
    ///
    /// # Errors
    /// [`Error::Header`].
    pub fn new(name: &str, value: &str) -> Result<Self, Error> {
        let wrong = || Error::Header(name.to_owned());
        let parsed = HeaderName::try_from(name).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value.trim()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        Ok(Self { name: parsed, value })
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ..", self.name)
    }
}

/// A server over HTTP. Connects at the first use, and keeps the connection.
pub struct Http {
    client: RoutedClient,
    url: Arc<str>,
    headers: Vec<Header>,
    connection: Mutex<Option<Arc<Connection>>>,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, headers, .. } = self;
        f.debug_struct("Http").field("url", url).field("headers", headers).finish_non_exhaustive()
    }
}

impl Http {
    /// The server at that address, which is asked by this way.
    #[must_use]
    pub fn new(url: &ServerUrl, headers: Vec<Header>, http: HttpClient) -> Self {
        let url = http.address(url.url.clone()).unwrap_or_else(|| url.url.clone());
        let client = RoutedClient(http);
        Self { client, url: url.as_str().into(), headers, connection: Mutex::new(None) }
    }

    async fn connection(&self) -> Result<Arc<Connection>, Fault> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = held.as_ref().filter(|connection| connection.is_open()) {
            return Ok(Arc::clone(connection));
        }
        let connection = Arc::new(Connection::open(self.transport()).await?);
        *held = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// The next use connects anew.
    async fn forget(&self, connection: &Arc<Connection>) {
        let mut held = self.connection.lock().await;
        if held.as_ref().is_some_and(|it| Arc::ptr_eq(it, connection)) {
            *held = None;
        }
    }

    fn transport(&self) -> StreamableHttpClientTransport<RoutedClient> {
        let headers = self.headers.iter();
        let headers: HashMap<_, _> =
            headers.map(|header| (header.name.clone(), header.value.clone())).collect();
        let mut config = StreamableHttpClientTransportConfig::with_uri(Arc::clone(&self.url));
        config.custom_headers = headers;
        config.max_concurrent_requests = limits::CALLS_MAX;
        config.max_sse_event_size = limits::EVENT_BYTES_MAX;
        // What a server forgot is for us to do again, who know whether that may be done.
        config.reinit_on_expired_session = false;
        let mut again = FixedInterval::default();
        again.max_times = Some(limits::STREAM_RETRIES_MAX);
        again.duration = Duration::from_millis(limits::STREAM_RETRY_MS);
        config.retry_config = Arc::new(again);
        StreamableHttpClientTransport::with_client(self.client.clone(), config)
    }
}

#[async_trait]
impl Outside for Http {
    async fn list(&self, _: Option<&Arc<dyn Sandbox>>) -> Result<ToolListing, Fault> {
        let connection = self.connection().await?;
        let listed = connection.tools().await;
        if listed.is_err() {
            self.forget(&connection).await;
        }
        listed
    }

    async fn call(&self, call: &OutsideCall<'_>) -> Result<ToolAnswer, Fault> {
        let sent = AtomicBool::new(false);
        let all = Duration::from_millis(call.timeout_ms.saturating_add(limits::CLOSE_MS_MAX));
        match tokio::time::timeout(all, self.attempts(call, &sent)).await {
            Ok(done) => done,
            Err(_) => {
                self.forget_any();
                Err(fault::late(sent.load(Ordering::SeqCst), call.timeout_ms))
            }
        }
    }
}

impl Http {
    /// What the server says that it did not do is tried over a new connection.
    async fn attempts(
        &self,
        call: &OutsideCall<'_>,
        sent: &AtomicBool,
    ) -> Result<ToolAnswer, Fault> {
        for _ in 0..SENDS_MAX {
            sent.store(false, Ordering::SeqCst);
            let connection = self.connection().await?;
            match connection.call(call, sent).await {
                Ok(answered) | Err(CallError::Refused(answered)) => return Ok(answered),
                // It did nothing, by the protocol: once more, over a new connection.
                Err(CallError::Forgotten) => self.forget(&connection).await,
                Err(CallError::Fault(fault)) => {
                    if !matches!(fault, Fault::Changed { .. }) {
                        self.forget(&connection).await;
                    }
                    return Err(fault);
                }
            }
        }
        let detail = "the server forgets every connection at once".to_owned();
        Err(Fault::NotAsked { detail })
    }

    /// The next use connects anew, unless somebody is connecting just now.
    fn forget_any(&self) {
        if let Ok(mut held) = self.connection.try_lock() {
            *held = None;
        }
    }
}
