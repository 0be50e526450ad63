//! The protocol library's requests, by the way that they are given.
//!
//! Owns that the way is there before each, and that what a gate says of a request of which
//! nothing was sent is not taken for the server's word.

use outrigger_model::HttpClient;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use crate::limits;

/// A client of the library whose requests go by a way of ours.
#[derive(Debug, Clone)]
pub(crate) struct RoutedClient(pub(crate) HttpClient);

/// Why nothing of a request was sent, in a sentence of ours.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unsent(pub(crate) String);

type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

impl RoutedClient {
    async fn client(&self) -> Result<&reqwest::Client, Failure> {
        let ready = self.0.ready().await;
        ready.map_err(|said| unsent(&format!("the gate does not serve: {said}")))?;
        Ok(self.0.client())
    }

    /// The error, or what the gate says.
    fn told(&self, failure: Failure) -> Failure {
        let StreamableHttpError::UnexpectedServerResponse(text) = &failure else { return failure };
        let said = text.strip_prefix("HTTP ").and_then(|text| {
            let (status, body) = text.split_once(": ")?;
            self.0.unsent(status.get(..3)?.parse().ok()?, body)
        });
        said.map(unsent).unwrap_or(failure)
    }
}

fn unsent(said: &str) -> Failure {
    StreamableHttpError::Io(io::Error::other(Unsent(said.to_owned())))
}

impl StreamableHttpClient for RoutedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let max = limits::EVENT_BYTES_MAX;
        self.post_message_with_max_sse_event_size(uri, message, session, token, headers, max).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        max: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let client = self.client().await?;
        let posted =
            client.post_message_with_max_sse_event_size(uri, message, session, token, headers, max);
        posted.await.map_err(|failure| self.told(failure))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.client().await?.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, Failure> {
        let max = limits::EVENT_BYTES_MAX;
        self.get_stream_with_max_sse_event_size(uri, session, last, token, headers, max).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
        max: usize,
    ) -> Result<BoxedSseResponse, Failure> {
        let client = self.client().await?;
        client.get_stream_with_max_sse_event_size(uri, session, last, token, headers, max).await
    }
}
