//! Writes the body of a request. Must never parse what it splices in.

use outrigger_agent::{Call, Part, Raw, Reply, Stop};
use serde::Deserialize;

use crate::json::Body;
use crate::render::{Group, User, groups};
use crate::wire::size_hint;
use crate::{Api, Endpoint, Purpose, Request};

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
pub(crate) fn body(endpoint: &Endpoint, provider: &str, request: &Request<'_>) -> Vec<u8> {
    let mut out = Body::with_capacity(size_hint(request));
    out.raw(r#"{"model":"#).string(&endpoint.model);
    out.raw(r#","max_output_tokens":"#).number(request.output_tokens_max);
    out.raw(r#","stream":true,"store":false,"include":["reasoning.encrypted_content"]"#);
    if endpoint.prompt_cache_key {
        out.raw(r#","prompt_cache_key":"#).string(request.session);
    }
    for (name, value) in &endpoint.body {
        out.comma().string(name).raw(":").raw(value.as_str());
    }
    tools(&mut out, request);
    if !request.system.is_empty() {
        out.raw(r#","instructions":"#).string(request.system);
    }
    out.raw(r#","input":["#);
    for group in groups(request.items, request.purpose) {
        match group {
            Group::User(side) => user(&mut out, side),
            Group::Reply(reply) => assistant(&mut out, endpoint, provider, reply),
        }
    }
    out.raw("]}");
    out.into_bytes()
}

fn tools(out: &mut Body, request: &Request<'_>) {
    if request.tools.is_empty() {
        return;
    }
    out.raw(r#","tools":["#);
    for tool in request.tools {
        out.comma().raw(r#"{"type":"function","name":"#).string(&tool.name);
        out.raw(r#","description":"#).string(&tool.description);
        // Strict schemas forbid optional fields, which our tools have.
        out.raw(r#","parameters":"#).raw(tool.schema.as_str()).raw(r#","strict":false}"#);
    }
    let choice = match request.purpose {
        Purpose::Turn => "auto",
        Purpose::Compact => "none",
    };
    out.raw(r#"],"tool_choice":"#).string(choice);
}

fn user(out: &mut Body, side: User<'_>) {
    for result in side.results() {
        out.comma().raw(r#"{"type":"function_call_output","call_id":"#).string(&result.call);
        out.raw(r#","output":"#).string(&result.text).raw("}");
    }
    if side.texts().next().is_none() {
        return;
    }
    out.comma().raw(r#"{"type":"message","role":"user","content":["#);
    for said in side.texts() {
        out.comma().raw(r#"{"type":"input_text","text":"#).string(said).raw("}");
    }
    out.raw("]}");
}

fn assistant(out: &mut Body, endpoint: &Endpoint, provider: &str, reply: &Reply) {
    let api = Api::OpenAiResponses.as_str();
    if let Some(native) = reply.native_for(api, provider, &endpoint.model) {
        for item in replayable(native, &reply.stop) {
            out.comma().raw(item.as_str());
        }
        return;
    }
    for part in &reply.parts {
        match part {
            Part::Text(text) if text.trim().is_empty() => {}
            Part::Text(text) => {
                out.comma().raw(r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"#);
                out.string(text).raw("}]}");
            }
            Part::Call(Call { id, name, arguments }) => {
                out.comma().raw(r#"{"type":"function_call","call_id":"#).string(id);
                out.raw(r#","name":"#).string(name);
                out.raw(r#","arguments":"#).string(arguments).raw("}");
            }
            Part::Thinking(_) | Part::Opaque(_) => {}
        }
    }
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
