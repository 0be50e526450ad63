//! A session, or a command, as it goes on.

use eventsource_stream::{Event, EventStreamError, Eventsource};
use futures_util::{Stream, StreamExt};
use outrigger_api::{ExecInfo, LiveFrame, OutputFrame, PresenceFrame, SessionInfo};
use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Error, ServerClient, limits};

/// What comes of a session.
#[derive(Debug, Clone)]
pub enum StreamFrame {
    /// An event at this place is in the journal.
    Event(u64),
    /// Output of an effect that is under way.
    Live(LiveFrame),
    /// It stands otherwise than before; the first frame says how it stands.
    Session(Box<SessionInfo>),
    /// Others have it open, or not any more.
    Presence(PresenceFrame),
}

/// What comes of a command.
#[derive(Debug, Clone)]
pub enum CommandFrame {
    /// It wrote something.
    Output {
        /// Whether it wrote it to standard error.
        is_error: bool,
        /// What. What is no UTF-8 is U+FFFD.
        text: String,
        /// From where it goes on behind this.
        position: String,
    },
    /// It ended; without what it wrote.
    Ended(Box<ExecInfo>),
}

/// The part of an event that says where it is.
#[derive(Deserialize)]
struct Place {
    seq: u64,
}

impl ServerClient {
    /// Follows a session from behind a place on. The stream ends when the server ends it, or
    /// with an error; whoever follows begins again where it was. Frames of kinds that this
    /// program does not know are passed over.
    ///
    /// # Errors
    /// What goes wrong before the first frame.
    pub async fn follow(
        &self,
        session: &str,
        after: u64,
    ) -> Result<impl Stream<Item = Result<StreamFrame, Error>> + Send + use<>, Error> {
        let path = format!("/v1/sessions/{session}/stream?after={after}");
        self.events(self.request(Method::GET, &path), frame).await
    }

    /// Follows a command at its address, such as `/v1/sandboxes/ID/execs/NAME`, from behind a
    /// position of [`CommandFrame::Output`], or from its first byte. The stream ends behind
    /// [`CommandFrame::Ended`], or as that of [`Self::follow`] does.
    ///
    /// # Errors
    /// What goes wrong before the first frame.
    pub async fn follow_command(
        &self,
        at: &str,
        from: Option<&str>,
    ) -> Result<impl Stream<Item = Result<CommandFrame, Error>> + Send + use<>, Error> {
        let mut request = self.request(Method::GET, &format!("{at}/stream"));
        if let Some(position) = from {
            request = request.header("last-event-id", position);
        }
        self.events(request, command_frame).await
    }

    /// The events of a stream, as `read` understands them.
    async fn events<T: Send>(
        &self,
        request: RequestBuilder,
        read: fn(&Self, &Event) -> Result<Option<T>, Error>,
    ) -> Result<impl Stream<Item = Result<T, Error>> + Send + use<T>, Error> {
        let answer = self.sent(request).await?;
        let (client, mut pending) = (self.clone(), 0);
        // What is read of one frame is bounded before it is put together.
        let bytes = answer.bytes_stream().map(move |piece| {
            let piece = piece.map_err(|source| Broken::Connection(Box::new(source)))?;
            pending = match piece.windows(2).rposition(|two| two == b"\n\n") {
                Some(end) => piece.len() - end,
                None => pending + piece.len(),
            };
            if pending > limits::FRAME_BYTES_MAX { Err(Broken::Frame) } else { Ok(piece) }
        });
        let events = bytes.eventsource();
        Ok(events.filter_map(move |event| {
            let read = match event {
                Ok(event) => read(&client, &event).transpose(),
                Err(EventStreamError::Transport(Broken::Connection(source))) => {
                    Some(Err(client.broken(&source)))
                }
                Err(EventStreamError::Transport(Broken::Frame)) => {
                    Some(Err(client.strange("a frame of its stream is too large")))
                }
                Err(error) => Some(Err(client.strange(error.to_string()))),
            };
            std::future::ready(read)
        }))
    }
}

/// Why a stream ended.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the connection broke")]
    Connection(#[source] Box<reqwest::Error>),
    #[error("a frame is too large")]
    Frame,
}

fn data<T: DeserializeOwned>(client: &ServerClient, event: &Event) -> Result<T, Error> {
    serde_json::from_str(&event.data).map_err(|error| client.strange(error.to_string()))
}

fn frame(client: &ServerClient, event: &Event) -> Result<Option<StreamFrame>, Error> {
    Ok(Some(match event.event.as_str() {
        "event" => StreamFrame::Event(data::<Place>(client, event)?.seq),
        "live" => StreamFrame::Live(data(client, event)?),
        "session" => StreamFrame::Session(data(client, event)?),
        "presence" => StreamFrame::Presence(data(client, event)?),
        _ => return Ok(None),
    }))
}

fn command_frame(client: &ServerClient, event: &Event) -> Result<Option<CommandFrame>, Error> {
    let is_error = match event.event.as_str() {
        "stdout" => false,
        "stderr" => true,
        "end" => return Ok(Some(CommandFrame::Ended(data(client, event)?))),
        _ => return Ok(None),
    };
    let OutputFrame { text } = data(client, event)?;
    Ok(Some(CommandFrame::Output { is_error, text, position: event.id.clone() }))
}
