//! A session as it goes on.

use eventsource_stream::{Event, EventStreamError, Eventsource};
use futures_util::{Stream, StreamExt};
use outrigger_api::{LiveFrame, PresenceFrame, SessionInfo};
use reqwest::Method;
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
        let answer = self.sent(self.request(Method::GET, &path)).await?;
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
                Ok(event) => frame(&client, &event).transpose(),
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

fn frame(client: &ServerClient, event: &Event) -> Result<Option<StreamFrame>, Error> {
    fn read<T: DeserializeOwned>(client: &ServerClient, event: &Event) -> Result<T, Error> {
        serde_json::from_str(&event.data).map_err(|error| client.strange(error.to_string()))
    }
    Ok(Some(match event.event.as_str() {
        "event" => StreamFrame::Event(read::<Place>(client, event)?.seq),
        "live" => StreamFrame::Live(read(client, event)?),
        "session" => StreamFrame::Session(read(client, event)?),
        "presence" => StreamFrame::Presence(read(client, event)?),
        _ => return Ok(None),
    }))
}
