//! A terminal in a sandbox: a WebSocket (RFC 6455) over a connection of HTTP/1.1.

use futures_util::stream::SplitSink;
use futures_util::{SinkExt, Stream, StreamExt};
use outrigger_api::TerminalDimensions;
use reqwest::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Method, Upgraded};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message};

use crate::{Error, ServerClient, limits};

/// What comes of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalFrame {
    /// It shows these bytes.
    Shown(Vec<u8>),
    /// It is closed, and why.
    Closed(String),
}

/// Where somebody types to a terminal. Dropped with what comes of it, its shell ends.
#[derive(Debug)]
pub struct TerminalInput {
    sends: SplitSink<WebSocketStream<Upgraded>, Message>,
    client: ServerClient,
}

impl TerminalInput {
    /// Types, once the terminal takes it.
    ///
    /// # Errors
    /// [`Error::Broken`].
    pub async fn type_bytes(&mut self, bytes: Vec<u8>) -> Result<(), Error> {
        self.send(Message::Binary(bytes.into())).await
    }

    /// Gives it another size.
    ///
    /// # Errors
    /// [`Error::Broken`].
    pub async fn resize(&mut self, size: TerminalDimensions) -> Result<(), Error> {
        let said = serde_json::json!({ "cols": size.cols, "rows": size.rows });
        self.send(Message::Text(said.to_string().into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Error> {
        self.sends.send(message).await.map_err(|error| broken(&self.client, &error))
    }
}

impl ServerClient {
    /// Opens a shell on a terminal of a sandbox, which is at an address such as
    /// `/v1/sandboxes/ID`. What comes of it ends behind [`TerminalFrame::Closed`].
    ///
    /// # Errors
    /// What goes wrong before it is open; of the frames [`Error::Broken`].
    pub async fn terminal(
        &self,
        at: &str,
        size: TerminalDimensions,
    ) -> Result<
        (TerminalInput, impl Stream<Item = Result<TerminalFrame, Error>> + Send + use<>),
        Error,
    > {
        let (key, TerminalDimensions { cols, rows }) = (generate_key(), size);
        let path = format!("{at}/terminal?cols={cols}&rows={rows}");
        // HTTP/2 has no upgrades.
        let request = self.over_http1()?.request(Method::GET, &path);
        let request = request.header(CONNECTION, "Upgrade").header(UPGRADE, "websocket");
        let request = request.header(SEC_WEBSOCKET_VERSION, "13").header(SEC_WEBSOCKET_KEY, &key);
        let answer = self.sent(request).await?;
        let accepted = answer.headers().get(SEC_WEBSOCKET_ACCEPT).map(|it| it.as_bytes().to_vec());
        if accepted.as_deref() != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
            return Err(self.strange("it is no WebSocket"));
        }
        let upgraded = answer.upgrade().await.map_err(|error| self.broken(&error))?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(limits::FRAME_BYTES_MAX))
            .max_frame_size(Some(limits::FRAME_BYTES_MAX));
        let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
        let (sends, receives) = socket.split();
        let client = self.clone();
        let frames =
            receives.filter_map(move |message| std::future::ready(frame(&client, message)));
        Ok((TerminalInput { sends, client: self.clone() }, frames))
    }
}

fn frame(
    client: &ServerClient,
    message: Result<Message, tungstenite::Error>,
) -> Option<Result<TerminalFrame, Error>> {
    match message {
        Ok(Message::Binary(bytes)) => Some(Ok(TerminalFrame::Shown(bytes.into()))),
        Ok(Message::Close(close)) => {
            let reason = close.map(|close| close.reason.to_string()).unwrap_or_default();
            Some(Ok(TerminalFrame::Closed(reason)))
        }
        Ok(Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => None,
        Err(error) => Some(Err(broken(client, &error))),
    }
}

fn broken(client: &ServerClient, error: &tungstenite::Error) -> Error {
    Error::Broken { server: client.server().to_owned(), why: error.to_string() }
}
