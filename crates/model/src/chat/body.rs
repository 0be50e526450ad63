//! Writes the body of a request. Must never parse what it splices in.

use outrigger_agent::{Call, Part, Reply};
use std::fmt;

use crate::json::{Body, arguments_object};
use crate::render::{Group, User, groups};
use crate::wire::size_hint;
use crate::{Api, Endpoint, Purpose, Request};

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
pub(crate) fn body(endpoint: &Endpoint, provider: &str, request: &Request<'_>) -> Vec<u8> {
    let mut out = Body::with_capacity(size_hint(request));
    out.raw(r#"{"model":"#).string(&endpoint.model);
    out.comma().string(output_field(provider)).raw(":").number(request.output_tokens_max);
    out.raw(r#","stream":true,"stream_options":{"include_usage":true}"#);
    if endpoint.prompt_cache_key {
        out.raw(r#","prompt_cache_key":"#).string(request.session);
    }
    for (name, value) in &endpoint.body {
        out.comma().string(name).raw(":").raw(value.as_str());
    }
    tools(&mut out, request);
    out.raw(r#","messages":["#);
    if !request.system.is_empty() {
        out.raw(r#"{"role":"system","content":"#).string(request.system).raw("}");
    }
    for group in groups(request.items, request.purpose) {
        match group {
            Group::User(side) => user(&mut out, side),
            Group::Reply(reply) => assistant(&mut out, endpoint, provider, reply),
        }
    }
    out.raw("]}");
    out.into_bytes()
}

/// OpenAI's later models refuse `max_tokens`; most other servers know nothing else.
fn output_field(provider: &str) -> &'static str {
    let openai = ["openai.com", "openai.azure.com"];
    if openai.iter().any(|host| provider == *host || provider.ends_with(&format!(".{host}"))) {
        "max_completion_tokens"
    } else {
        "max_tokens"
    }
}

fn tools(out: &mut Body, request: &Request<'_>) {
    if request.tools.is_empty() {
        return;
    }
    out.raw(r#","tools":["#);
    for tool in request.tools {
        out.comma().raw(r#"{"type":"function","function":{"name":"#).string(&tool.name);
        out.raw(r#","description":"#).string(&tool.description);
        out.raw(r#","parameters":"#).raw(tool.schema.as_str()).raw("}}");
    }
    let choice = match request.purpose {
        Purpose::Turn => "auto",
        Purpose::Compact => "none",
    };
    out.raw(r#"],"tool_choice":"#).string(choice);
}

fn user(out: &mut Body, side: User<'_>) {
    for result in side.results() {
        out.comma().raw(r#"{"role":"tool","tool_call_id":"#).string(&result.call);
        out.raw(r#","content":"#).string(&result.text).raw("}");
    }
    if side.texts().next().is_some() {
        out.comma().raw(r#"{"role":"user","content":"#).string(Joined(side)).raw("}");
    }
}

/// Several servers want sides to take turns, so one side's texts are one message.
struct Joined<'a>(User<'a>);

impl fmt::Display for Joined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, said) in self.0.texts().enumerate() {
            if at > 0 {
                f.write_str("\n\n")?;
            }
            said.fmt(f)?;
        }
        Ok(())
    }
}

/// A message with neither text nor calls is refused, so such a reply is left out.
fn assistant(out: &mut Body, endpoint: &Endpoint, provider: &str, reply: &Reply) {
    let text = reply.text();
    let calls = reply.calls().count();
    if text.is_empty() && calls == 0 {
        return;
    }
    let api = Api::OpenAiChat.as_str();
    if let Some(native) = reply.native_for(api, provider, &endpoint.model) {
        for message in native {
            out.comma().raw(message.as_str());
        }
        return;
    }
    // Also an empty text: some servers refuse null beside calls, some that it is left out.
    out.comma().raw(r#"{"role":"assistant","content":"#).string(&text);
    if calls > 0 {
        out.raw(r#","tool_calls":["#);
        for part in &reply.parts {
            let Part::Call(Call { id, name, arguments }) = part else { continue };
            out.comma().raw(r#"{"id":"#).string(id);
            out.raw(r#","type":"function","function":{"name":"#).string(name);
            out.raw(r#","arguments":"#).string(arguments_object(arguments)).raw("}}");
        }
        out.raw("]");
    }
    out.raw("}");
}
