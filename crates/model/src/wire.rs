//! What the wires have in common: a body is built, a stream is decoded.
//!
//! Everything here is without I/O, so that it can be tested on bytes alone; must never
//! wait, retry or connect.

use outrigger_agent::{Call, Part, Raw, Stop, Usage, pictures};
use std::fmt;

use crate::fault::Fault;
use crate::halves::mended;
use crate::{Purpose, Request, sse};

/// Puts a reply together from the events of a stream.
pub(crate) trait Decoder: Send + fmt::Debug {
    /// Takes the next event, and hands on what it adds to the reply.
    fn event(
        &mut self,
        event: sse::Event<'_>,
        sink: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Flow, Fault>;

    /// Whether all of the reply came, so that it counts also if the stream breaks off now.
    fn is_whole(&self) -> bool;

    /// The reply, once the stream is over; a fault if it is not whole.
    fn finish(self: Box<Self>) -> Result<Answer, Fault>;
}

/// Whether more events are to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The finish marker has not come.
    More,
    /// The finish marker came; nothing after it matters.
    Done,
}

/// What an event adds to a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delta<'a> {
    Text(&'a str),
    Thinking(&'a str),
    Arguments { call: usize, name: &'a str, delta: &'a str },
}

/// A whole reply, but for where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) response_id: Option<String>,
    pub(crate) parts: Vec<Part>,
    pub(crate) native: Vec<Raw>,
    pub(crate) stop: Stop,
    pub(crate) usage: Usage,
}

/// Makes ids for the calls of one reply whose provider gives none. No other reply's are
/// the same, so that no result of the conversation is taken for another's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallIds(pub(crate) u64);

impl CallIds {
    /// A call with an id, also where the provider gave none, and with arguments, also where
    /// the model left them out; without a half of a character in them.
    pub(crate) fn call(
        self,
        id: Option<String>,
        index: usize,
        name: String,
        arguments: &str,
    ) -> Call {
        let made = || format!("call_{:x}_{index}", self.0);
        let id = id.filter(|id| !id.is_empty()).unwrap_or_else(made);
        let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
        Call { id, name, arguments: mended(arguments).into_owned() }
    }
}

/// Reads a piece of a stream; what does not parse is a fault of the stream.
pub(crate) fn read<'a, T: serde::Deserialize<'a>>(data: &'a str, what: &str) -> Result<T, Fault> {
    serde_json::from_str(data)
        .map_err(|error| Fault::garbled(format!("{what} of the stream does not parse: {error}")))
}

/// Whether a model may call tools, in the words of both wires of OpenAI; nothing where there
/// are none.
pub(crate) fn tool_choice(request: &Request<'_>) -> Option<&'static str> {
    let choice = match request.purpose {
        Purpose::Turn => "auto",
        Purpose::Compact => "none",
    };
    (!request.tools.is_empty()).then_some(choice)
}

/// The bytes of a body.
pub(crate) fn written(request: &Request<'_>, body: &impl serde::Serialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_hint(request));
    serde_json::to_writer(&mut bytes, body).expect("texts and raw JSON always serialise");
    bytes
}

/// How large a body will roughly be, so that it is written without growing.
fn size_hint(request: &Request<'_>) -> usize {
    use outrigger_agent::Item;
    let items = request.items.iter().map(|item| match item {
        Item::Message(message) => message.text.len() + 400,
        Item::Result(result) => result.text.len() + 200,
        Item::Summary(summary) => usize::try_from(summary.bytes()).unwrap_or(0) + 400,
        Item::Notice(text) => text.len() + 100,
        Item::Reply(reply) => {
            reply.native.iter().map(|raw| raw.as_str().len() + 1).sum::<usize>() + 1_000
        }
    });
    let tools =
        request.tools.iter().map(|tool| tool.description.len() + tool.schema.as_str().len() + 200);
    // Four characters for three bytes.
    let pictures = pictures(request.items).filter_map(|it| request.pictures.get(&it.digest));
    let pictures: usize = pictures.map(|content| content.len() / 3 * 4 + 200).sum();
    let text = request.system.len() + items.sum::<usize>() + tools.sum::<usize>();
    text + text / 8 + pictures + 4_096
}

/// A number in an account of usage, by its path; zero where there is none.
pub(crate) fn count(usage: &serde_json::Value, path: &str) -> u64 {
    usage.pointer(path).and_then(serde_json::Value::as_u64).unwrap_or(0)
}
