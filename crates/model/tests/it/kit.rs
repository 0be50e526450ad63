//! What the tests of all wires share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_agent::{
    Author, Concurrency, Digest, Item, Message, Raw, Recovery, Reply, Seq, Status, ToolKind,
    ToolResult, ToolSpec,
};
use outrigger_model::{
    Api, Client, Endpoint, Error, Frame, Frames, HttpClient, Key, Model, Purpose, Request,
    RetryPolicy,
};

/// The hard assistant turn on a wire, and the items that must come back.
pub(crate) fn hard(api: Api) -> (&'static str, Vec<&'static str>) {
    let (stream, items) = match api {
        Api::AnthropicMessages => {
            (include_str!("../hard/anthropic.sse"), include_str!("../hard/anthropic.items"))
        }
        Api::OpenAiResponses => {
            (include_str!("../hard/responses.sse"), include_str!("../hard/responses.items"))
        }
        Api::OpenAiChat => (include_str!("../hard/chat.sse"), include_str!("../hard/chat.items")),
        Api::Gemini => (include_str!("../hard/gemini.sse"), include_str!("../hard/gemini.items")),
    };
    (stream, items.lines().collect())
}

/// The limits with short waits.
pub(crate) fn hasty() -> RetryPolicy {
    RetryPolicy { backoff_base_ms: 2, backoff_cap_ms: 4, ..RetryPolicy::new(7) }
}

pub(crate) fn endpoint(api: Api, base_url: &str) -> Endpoint {
    Endpoint {
        api,
        base_url: base_url.into(),
        key: Some(Key::new("sk-canary-0123456789").unwrap()),
        http_hosts: Vec::new(),
        headers: Vec::new(),
        model: "m-hard".into(),
        context_tokens: 200_000,
        output_tokens_max: 8_192,
        prompt_cache_key: true,
        body: Vec::new(),
    }
}

pub(crate) fn client_of(endpoint: Endpoint, policy: RetryPolicy) -> Client {
    let http = outrigger_model::http(Duration::from_secs(5)).unwrap();
    Client::new(HttpClient::direct(http), endpoint, policy).unwrap()
}

pub(crate) fn client(api: Api, base_url: &str, policy: RetryPolicy) -> Client {
    client_of(endpoint(api, base_url), policy)
}

pub(crate) fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, description: &str, schema: &str| ToolSpec {
        name: name.into(),
        description: description.into(),
        schema: Raw::new(schema.into()).unwrap(),
        kind: ToolKind::Execute,
        concurrency: Concurrency::Exclusive,
        recovery: Recovery::Reattach,
        sandbox: Some("work".into()),
        served: None,
        built_in: None,
        directory: None,
        deadline: None,
        outside: None,
    };
    vec![
        tool(
            "execute",
            "Runs a command.",
            r#"{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"number","maximum":1.50}},"required":["command"]}"#,
        ),
        tool("read_file", "Reads a file.", r#"{"type":"object"}"#),
    ]
}

pub(crate) fn says(text: &str) -> Item {
    let author = Author::Person("person:local".into());
    Item::Message(Arc::new(Message::new(author, text.into())))
}

pub(crate) fn result(call: &str, status: Status, text: &str) -> Item {
    Item::Result(Arc::new(ToolResult {
        effect: Seq(9),
        call: call.into(),
        tool: "execute".into(),
        status,
        text: text.into(),
        labels: Default::default(),
    }))
}

/// The bytes of the picture that is known where [`ask`] asks: as many as need padding.
pub(crate) const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\xff\xfe";

/// Asks with the usual tools.
pub(crate) async fn ask(
    model: &dyn Model,
    items: &[Item],
    purpose: Purpose,
    frames: &dyn Frames,
) -> Result<Reply, Error> {
    let tools = tools();
    let request = Request {
        system: "You are a careful engineer.",
        tools: &tools,
        items,
        pictures: &[(Digest::of(PICTURE), PICTURE.to_vec())].into(),
        output_tokens_max: 4_096,
        session: "session-1",
        purpose,
    };
    model.reply(&request, frames).await
}

/// Keeps all frames.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Vec<Kept>>);

/// A frame that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kept {
    Started(u32),
    Retrying { attempt: u32, wait_ms: u64, reason: String },
    Answered(u32),
    Piece { attempt: u32 },
}

impl Recorder {
    pub(crate) fn all(&self) -> Vec<Kept> {
        self.0.lock().unwrap().clone()
    }

    /// The waits, with the reasons for them.
    pub(crate) fn waits(&self) -> Vec<(u64, String)> {
        let waits = self.all().into_iter().filter_map(|kept| match kept {
            Kept::Retrying { wait_ms, reason, .. } => Some((wait_ms, reason)),
            Kept::Started(_) | Kept::Answered(_) | Kept::Piece { .. } => None,
        });
        waits.collect()
    }
}

impl Frames for Recorder {
    fn frame(&self, frame: Frame<'_>) {
        self.0.lock().unwrap().push(match frame {
            Frame::AttemptStarted { attempt } => Kept::Started(attempt),
            Frame::Answered { attempt } => Kept::Answered(attempt),
            Frame::Retrying { attempt, wait_ms, reason } => {
                Kept::Retrying { attempt, wait_ms, reason: reason.into() }
            }
            Frame::Text { attempt, .. }
            | Frame::Thinking { attempt, .. }
            | Frame::ToolArguments { attempt, .. } => Kept::Piece { attempt },
        });
    }
}
