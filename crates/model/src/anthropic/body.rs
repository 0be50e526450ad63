//! Writes the body of a request.
//!
//! Owns the cache breakpoints: at most three of the four that the API allows.
//! Must never parse what it splices in.

use outrigger_agent::{Call, Part, Raw, Reply, Status, Stop, ToolResult};
use serde::Deserialize;

use crate::json::{Body, arguments_object};
use crate::render::{Group, User, groups};
use crate::wire::size_hint;
use crate::{Api, Endpoint, Request};

/// Fields that are written here.
pub(crate) const OWN_FIELDS: &[&str] =
    &["model", "max_tokens", "stream", "system", "tools", "tool_choice", "messages"];

const CACHE: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// Whether the cache may end behind a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cached {
    Yes,
    No,
}

/// The body of a request.
pub(crate) fn body(endpoint: &Endpoint, provider: &str, request: &Request<'_>) -> Vec<u8> {
    let mut out = Body::with_capacity(size_hint(request));
    out.raw(r#"{"model":"#).string(&endpoint.model);
    out.raw(r#","max_tokens":"#).number(request.output_tokens_max);
    out.raw(r#","stream":true"#);
    for (name, value) in &endpoint.body {
        out.comma().string(name).raw(":").raw(value.as_str());
    }
    tools(&mut out, request);
    if !request.system.is_empty() {
        out.raw(r#","system":[{"type":"text","text":"#).string(request.system);
        out.raw(CACHE).raw("}]");
    }
    messages(&mut out, endpoint, provider, request);
    out.raw("}");
    out.into_bytes()
}

fn tools(out: &mut Body, request: &Request<'_>) {
    let Some(last) = request.tools.len().checked_sub(1) else { return };
    out.raw(r#","tools":["#);
    for (at, tool) in request.tools.iter().enumerate() {
        out.comma().raw(r#"{"name":"#).string(&tool.name);
        out.raw(r#","description":"#).string(&tool.description);
        out.raw(r#","input_schema":"#).raw(tool.schema.as_str());
        // The system prompt stands behind the tools and caches both.
        if at == last && request.system.is_empty() {
            out.raw(CACHE);
        }
        out.raw("}");
    }
    // Also where no call is wanted: another choice would make the provider read the whole
    // conversation anew, which it has in its cache.
    out.raw(r#"],"tool_choice":{"type":"auto"}"#);
}

/// The last user's block ends the cache for the next request, and the one before
/// it finds what the request before had cached, however much lies between.
fn messages(out: &mut Body, endpoint: &Endpoint, provider: &str, request: &Request<'_>) {
    let groups = groups(request.items, request.purpose);
    let users = groups.iter().filter(|group| matches!(group, Group::User(_))).count();
    let mut users_left = users;
    out.raw(r#","messages":["#);
    for group in groups {
        match group {
            Group::User(side) => {
                let cached = if users_left <= 2 { Cached::Yes } else { Cached::No };
                users_left -= 1;
                user(out, side, cached);
            }
            Group::Reply(reply) => assistant(out, endpoint, provider, reply),
        }
    }
    out.raw("]");
}

fn user(out: &mut Body, side: User<'_>, cached: Cached) {
    let blocks = side.results().count() + side.texts().count();
    let mut left = blocks;
    let mut end = |out: &mut Body| {
        left -= 1;
        if left == 0 && cached == Cached::Yes {
            out.raw(CACHE);
        }
        out.raw("}");
    };
    out.comma().raw(r#"{"role":"user","content":["#);
    for result in side.results() {
        tool_result(out, result);
        end(out);
    }
    for said in side.texts() {
        out.comma().raw(r#"{"type":"text","text":"#).string(said);
        end(out);
    }
    out.raw("]}");
}

fn tool_result(out: &mut Body, result: &ToolResult) {
    out.comma().raw(r#"{"type":"tool_result","tool_use_id":"#).string(call_id(&result.call));
    out.raw(r#","content":"#).string(&result.text);
    match result.status {
        Status::Ok => {}
        Status::Error | Status::Denied | Status::Unknown => {
            out.raw(r#","is_error":true"#);
        }
    }
}

/// A message without blocks is refused, so a reply that left none is left out.
fn assistant(out: &mut Body, endpoint: &Endpoint, provider: &str, reply: &Reply) {
    let api = Api::AnthropicMessages.as_str();
    if let Some(native) = reply.native_for(api, provider, &endpoint.model) {
        let blocks = replayable(native, &reply.stop);
        if !blocks.is_empty() {
            out.comma().raw(r#"{"role":"assistant","content":["#);
            for block in blocks {
                out.comma().raw(block.as_str());
            }
            out.raw("]}");
        }
        return;
    }
    let kept = |part: &&Part| match part {
        Part::Text(text) => !text.trim().is_empty(),
        Part::Call(_) => true,
        Part::Thinking(_) | Part::Opaque(_) => false,
    };
    if !reply.parts.iter().any(|part| kept(&part)) {
        return;
    }
    out.comma().raw(r#"{"role":"assistant","content":["#);
    for part in reply.parts.iter().filter(kept) {
        match part {
            Part::Text(text) => {
                out.comma().raw(r#"{"type":"text","text":"#).string(text).raw("}");
            }
            Part::Call(Call { id, name, arguments }) => {
                out.comma().raw(r#"{"type":"tool_use","id":"#).string(call_id(id));
                out.raw(r#","name":"#).string(name);
                out.raw(r#","input":"#).raw(&arguments_object(arguments)).raw("}");
            }
            Part::Thinking(_) | Part::Opaque(_) => {}
        }
    }
    out.raw("]}");
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
