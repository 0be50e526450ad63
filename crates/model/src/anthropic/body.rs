//! Writes the body of a request.
//!
//! Owns the cache breakpoints: at most three of the four that the API allows. What came
//! from the provider goes back as it came.

use outrigger_agent::{Call, MediaType, Part, Raw, Reply, Status, Stop, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::json::{Fields, arguments_object, assembled};
use crate::picture::{Base64, PromptPicture};
use crate::render::{Group, PromptPart, PromptText, User, groups};
use crate::wire::written;
use crate::{Api, Endpoint, Request};

/// Fields that are written here.
pub(crate) const OWN_FIELDS: &[&str] =
    &["model", "max_tokens", "stream", "system", "tools", "tool_choice", "messages"];

/// The body of a request.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(flatten)]
    fields: Fields<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Block<'a, &'a str>; 1]>,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Raw,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ToolChoice {
    Auto,
}

/// The cache may end behind what has it.
#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Message<'a> {
    User { content: Vec<Block<'a, PromptText<'a>>> },
    Assistant { content: Vec<ReplyBlock<'a>> },
}

/// A block of a reply, as it came from there or as ours.
#[derive(Serialize)]
#[serde(untagged)]
enum ReplyBlock<'a> {
    Native(&'a Raw),
    Own(Block<'a, &'a str>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a, T> {
    Text {
        text: T,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source<'a>,
    },
    ToolResult {
        tool_use_id: String,
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolUse {
        id: String,
        name: &'a str,
        input: Box<RawValue>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: MediaType, data: Base64<'a> },
}

/// The body of a request.
pub(crate) fn body(endpoint: &Endpoint, provider: &str, request: &Request<'_>) -> Vec<u8> {
    let cache_control = Some(CacheControl::Ephemeral);
    let system = Block::Text { text: request.system, cache_control };
    let body = Body {
        model: &endpoint.model,
        max_tokens: request.output_tokens_max,
        stream: true,
        fields: Fields(&endpoint.body),
        tools: tools(request),
        // Also where no call is wanted: another choice would make the provider read the whole
        // conversation anew, which it has in its cache.
        tool_choice: (!request.tools.is_empty()).then_some(ToolChoice::Auto),
        system: (!request.system.is_empty()).then_some([system]),
        messages: messages(endpoint, provider, request),
    };
    written(request, &body)
}

fn tools<'a>(request: &Request<'a>) -> Vec<Tool<'a>> {
    let mut tools: Vec<Tool<'_>> = request
        .tools
        .iter()
        .map(|tool| Tool {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.schema,
            cache_control: None,
        })
        .collect();
    // The system prompt stands behind the tools and caches both.
    if let (Some(last), true) = (tools.last_mut(), request.system.is_empty()) {
        last.cache_control = Some(CacheControl::Ephemeral);
    }
    tools
}

/// The last user's block ends the cache for the next request, and the one before
/// it finds what the request before had cached, however much lies between.
fn messages<'a>(endpoint: &Endpoint, provider: &str, request: &Request<'a>) -> Vec<Message<'a>> {
    let groups = groups(request);
    let users = groups.iter().filter(|group| matches!(group, Group::User(_))).count();
    let mut users_left = users;
    let message = |group| match group {
        Group::User(side) => {
            let cache_control = (users_left <= 2).then_some(CacheControl::Ephemeral);
            users_left -= 1;
            Some(Message::User { content: user(side, cache_control) })
        }
        Group::Reply(reply) => {
            let content = assistant(endpoint, provider, reply);
            // A message without blocks is refused, so a reply that left none is left out.
            (!content.is_empty()).then_some(Message::Assistant { content })
        }
    };
    groups.into_iter().filter_map(message).collect()
}

fn user<'a>(side: User<'a>, cached: Option<CacheControl>) -> Vec<Block<'a, PromptText<'a>>> {
    let results = side.results().map(tool_result);
    let said = side.said().map(|said| match said {
        PromptPart::Text(text) => Block::Text { text, cache_control: None },
        PromptPart::Picture(picture) => image(picture),
    });
    let mut blocks: Vec<_> = results.chain(said).collect();
    // A text stands behind every picture.
    if let Some(Block::Text { cache_control, .. } | Block::ToolResult { cache_control, .. }) =
        blocks.last_mut()
    {
        *cache_control = cached;
    }
    blocks
}

fn image<T>(picture: PromptPicture<'_>) -> Block<'_, T> {
    let (media_type, data) = (picture.media_type, picture.base64());
    Block::Image { source: Source::Base64 { media_type, data } }
}

fn tool_result<T>(result: &ToolResult) -> Block<'_, T> {
    Block::ToolResult {
        tool_use_id: call_id(&result.call),
        content: &result.text,
        is_error: match result.status {
            Status::Ok => false,
            Status::Error | Status::Denied | Status::Unknown => true,
        },
        cache_control: None,
    }
}

fn assistant<'a>(endpoint: &Endpoint, provider: &str, reply: &'a Reply) -> Vec<ReplyBlock<'a>> {
    let api = Api::AnthropicMessages.as_str();
    if let Some(native) = reply.native_for(api, provider, &endpoint.model) {
        return replayable(native, &reply.stop).iter().map(ReplyBlock::Native).collect();
    }
    let block = |part: &'a Part| match part {
        Part::Text(text) if text.trim().is_empty() => None,
        Part::Text(text) => Some(Block::Text { text: text.as_str(), cache_control: None }),
        Part::Call(Call { id, name, arguments }) => {
            let (id, input) = (call_id(id), assembled(arguments_object(arguments)));
            Some(Block::ToolUse { id, name, input })
        }
        Part::Thinking(_) | Part::Opaque(_) => None,
    };
    reply.parts.iter().filter_map(block).map(ReplyBlock::Own).collect()
}

/// All blocks, but for thinking at the end of a reply that was cut while it
/// thought: the API refuses a message that ends so.
fn replayable<'a>(native: &'a [Raw], stop: &Stop) -> &'a [Raw] {
    #[derive(Deserialize)]
    struct Kind {
        r#type: String,
    }
    let thinks = |raw: &Raw| {
        serde_json::from_str::<Kind>(raw.as_str())
            .is_ok_and(|kind| matches!(kind.r#type.as_str(), "thinking" | "redacted_thinking"))
    };
    let end = match stop {
        Stop::OutputLimit => native.iter().rposition(|raw| !thinks(raw)).map_or(0, |at| at + 1),
        Stop::End | Stop::Refused(_) | Stop::Paused => native.len(),
    };
    &native[..end]
}

/// The API takes `[A-Za-z0-9_-]` in ids; other providers' ids may have more.
fn call_id(id: &str) -> String {
    id.replace(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')), "_")
}
