//! Writes the body of a request. What came from the provider goes back as it came.

use outrigger_agent::{Call, Raw, Reply, ToolResult, ToolSpec};
use serde::{Serialize, Serializer};
use std::fmt;

use crate::json::{Fields, arguments_object};
use crate::picture::DataUrl;
use crate::render::{Group, PromptPart, PromptText, User, groups};
use crate::wire::{tool_choice, written};
use crate::{Api, Endpoint, Request};

/// Fields that are written here.
pub(crate) const OWN_FIELDS: &[&str] = &[
    "model",
    "messages",
    "tools",
    "tool_choice",
    "max_tokens",
    "max_completion_tokens",
    "stream",
    "stream_options",
    "prompt_cache_key",
];

/// The body of a request.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(flatten)]
    output: OutputLimit,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(flatten)]
    fields: Fields<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    messages: Vec<Message<'a>>,
}

/// OpenAI's later models refuse `max_tokens`; most other servers know nothing else.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum OutputLimit {
    MaxCompletionTokens(u64),
    MaxTokens(u64),
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct Tool<'a> {
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Raw,
}

/// A message, as it came from there or as ours.
#[derive(Serialize)]
#[serde(untagged)]
enum Message<'a> {
    Native(&'a Raw),
    Own(OwnMessage<'a>),
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum OwnMessage<'a> {
    System {
        content: &'a str,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        /// Also an empty text: some servers refuse null beside calls, some that it is left out.
        content: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
    },
}

/// What a person said and showed.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    /// Most servers for models that see nothing know a text only.
    Text(UserText<'a>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: PromptText<'a> },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: DataUrl<'a>,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    /// The text of an object.
    arguments: String,
}

/// The body of a request.
pub(crate) fn body(endpoint: &Endpoint, provider: &str, request: &Request<'_>) -> Vec<u8> {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(Message::Own(OwnMessage::System { content: request.system }));
    }
    for group in groups(request) {
        match group {
            Group::User(side) => messages.extend(user(side).map(Message::Own)),
            Group::Reply(reply) => messages.extend(assistant(endpoint, provider, reply)),
        }
    }
    let body = Body {
        model: &endpoint.model,
        output: output_limit(provider, request.output_tokens_max),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        prompt_cache_key: endpoint.prompt_cache_key.then_some(request.session),
        fields: Fields(&endpoint.body),
        tools: request.tools.iter().map(tool).collect(),
        tool_choice: tool_choice(request),
        messages,
    };
    written(request, &body)
}

fn output_limit(provider: &str, tokens_max: u64) -> OutputLimit {
    let openai = ["openai.com", "openai.azure.com"];
    if openai.iter().any(|host| provider == *host || provider.ends_with(&format!(".{host}"))) {
        OutputLimit::MaxCompletionTokens(tokens_max)
    } else {
        OutputLimit::MaxTokens(tokens_max)
    }
}

fn tool(tool: &ToolSpec) -> Tool<'_> {
    let ToolSpec { name, description, schema, .. } = tool;
    Tool { function: Function { name, description, parameters: schema } }
}

fn user<'a>(side: User<'a>) -> impl Iterator<Item = OwnMessage<'a>> {
    let result = |result: &'a ToolResult| OwnMessage::Tool {
        tool_call_id: &result.call,
        content: &result.text,
    };
    let said = side.said().next().map(|_| OwnMessage::User { content: content(side) });
    side.results().map(result).chain(said)
}

fn content(side: User<'_>) -> Content<'_> {
    if !side.said().any(|said| matches!(said, PromptPart::Picture(_))) {
        return Content::Text(UserText(side));
    }
    let parts = side.said().map(|said| match said {
        PromptPart::Text(text) => ContentPart::Text { text },
        PromptPart::Picture(picture) => {
            ContentPart::ImageUrl { image_url: ImageUrl { url: picture.url() } }
        }
    });
    Content::Parts(parts.collect())
}

/// Several servers want sides to take turns, so one side's texts are one message.
struct UserText<'a>(User<'a>);

impl fmt::Display for UserText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.0.said().filter_map(|said| match said {
            PromptPart::Text(text) => Some(text),
            PromptPart::Picture(_) => None,
        });
        for (at, said) in texts.enumerate() {
            if at > 0 {
                f.write_str("\n\n")?;
            }
            said.fmt(f)?;
        }
        Ok(())
    }
}

impl Serialize for UserText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A message with neither text nor calls is refused, so such a reply is left out.
fn assistant<'a>(endpoint: &Endpoint, provider: &str, reply: &'a Reply) -> Vec<Message<'a>> {
    let content = reply.text();
    if content.is_empty() && reply.calls().next().is_none() {
        return Vec::new();
    }
    let api = Api::OpenAiChat.as_str();
    if let Some(native) = reply.native_for(api, provider, &endpoint.model) {
        return native.iter().map(Message::Native).collect();
    }
    let called = |Call { id, name, arguments }: &'a Call| {
        let arguments = arguments_object(arguments);
        ToolCall { id, r#type: "function", function: CalledFunction { name, arguments } }
    };
    let tool_calls = reply.calls().map(called).collect();
    vec![Message::Own(OwnMessage::Assistant { content, tool_calls })]
}
