//! Writes the body of a request. What came from the provider goes back as it came.

use outrigger_agent::{Call, Part, Raw, Reply, Stop, ToolResult, ToolSpec};
use serde::{Deserialize, Serialize};

use crate::json::Fields;
use crate::picture::DataUrl;
use crate::render::{Group, PromptPart, PromptText, User, groups};
use crate::wire::{tool_choice, written};
use crate::{Api, Endpoint, Request};

/// Fields that are written here.
pub(crate) const OWN_FIELDS: &[&str] = &[
    "model",
    "instructions",
    "input",
    "tools",
    "tool_choice",
    "max_output_tokens",
    "store",
    "stream",
    "include",
    "prompt_cache_key",
];

/// The body of a request.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_output_tokens: u64,
    stream: bool,
    store: bool,
    include: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(flatten)]
    fields: Fields<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    input: Vec<Input<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Raw,
    /// Strict schemas forbid optional fields, which our tools have.
    strict: bool,
}

/// An item, as it came from there or as ours.
#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Native(&'a Raw),
    Own(OwnItem<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OwnItem<'a> {
    FunctionCallOutput { call_id: &'a str, output: &'a str },
    FunctionCall { call_id: &'a str, name: &'a str, arguments: &'a str },
    Message { role: &'static str, content: Vec<Content<'a>> },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    InputText { text: PromptText<'a> },
    InputImage { image_url: DataUrl<'a> },
    OutputText { text: &'a str },
}

/// The body of a request.
pub(crate) fn body(endpoint: &Endpoint, provider: &str, request: &Request<'_>) -> Vec<u8> {
    let mut input = Vec::new();
    for group in groups(request) {
        match group {
            Group::User(side) => input.extend(user(side).map(Input::Own)),
            Group::Reply(reply) => input.extend(assistant(endpoint, provider, reply)),
        }
    }
    let body = Body {
        model: &endpoint.model,
        max_output_tokens: request.output_tokens_max,
        stream: true,
        store: false,
        include: ["reasoning.encrypted_content"],
        prompt_cache_key: endpoint.prompt_cache_key.then_some(request.session),
        fields: Fields(&endpoint.body),
        tools: request.tools.iter().map(tool).collect(),
        tool_choice: tool_choice(request),
        instructions: request.system,
        input,
    };
    written(request, &body)
}

fn tool(tool: &ToolSpec) -> Tool<'_> {
    let ToolSpec { name, description, schema, .. } = tool;
    Tool { name, description, parameters: schema, strict: false }
}

fn user<'a>(side: User<'a>) -> impl Iterator<Item = OwnItem<'a>> {
    let result = |result: &'a ToolResult| OwnItem::FunctionCallOutput {
        call_id: &result.call,
        output: &result.text,
    };
    let content = side.said().map(|said| match said {
        PromptPart::Text(text) => Content::InputText { text },
        PromptPart::Picture(picture) => Content::InputImage { image_url: picture.url() },
    });
    let content: Vec<_> = content.collect();
    let said = (!content.is_empty()).then_some(OwnItem::Message { role: "user", content });
    side.results().map(result).chain(said)
}

fn assistant<'a>(endpoint: &Endpoint, provider: &str, reply: &'a Reply) -> Vec<Input<'a>> {
    let api = Api::OpenAiResponses.as_str();
    if let Some(native) = reply.native_for(api, provider, &endpoint.model) {
        return replayable(native, &reply.stop).iter().map(Input::Native).collect();
    }
    let item = |part: &'a Part| match part {
        Part::Text(text) if text.trim().is_empty() => None,
        Part::Text(text) => {
            let content = vec![Content::OutputText { text }];
            Some(OwnItem::Message { role: "assistant", content })
        }
        Part::Call(Call { id, name, arguments }) => {
            Some(OwnItem::FunctionCall { call_id: id, name, arguments })
        }
        Part::Thinking(_) | Part::Opaque(_) => None,
    };
    reply.parts.iter().filter_map(item).map(Input::Own).collect()
}

/// All items, but for reasoning at the end of a reply that was cut while it
/// reasoned: the API refuses reasoning without the item that it led to.
fn replayable<'a>(native: &'a [Raw], stop: &Stop) -> &'a [Raw] {
    #[derive(Deserialize)]
    struct Kind {
        r#type: String,
    }
    let reasons = |raw: &Raw| {
        serde_json::from_str::<Kind>(raw.as_str()).is_ok_and(|kind| kind.r#type == "reasoning")
    };
    let end = match stop {
        Stop::OutputLimit => native.iter().rposition(|raw| !reasons(raw)).map_or(0, |at| at + 1),
        Stop::End | Stop::Refused(_) | Stop::Paused => native.len(),
    };
    &native[..end]
}
