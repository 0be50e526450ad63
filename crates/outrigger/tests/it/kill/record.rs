//! What the journal of a session says that was killed, put so that it can be compared.

use serde_json::Value;

/// What was under way when a session's driver was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Struck {
    /// The session was not there yet.
    Opening,
    Model,
    Provision,
    Command,
    /// A tool outside.
    Outside,
    Subagent,
    /// A file operation.
    Files,
    /// Nothing was.
    Between,
}

/// A tool call that was proposed.
#[derive(Debug)]
pub(super) struct Effect {
    /// By which it is named.
    pub(super) seq: u64,
    pub(super) tool: String,
    pub(super) arguments: Value,
    /// How often it was started.
    pub(super) attempts: usize,
    /// `null`: it has none.
    pub(super) outcome: Value,
}

/// The tool calls of a session, in their order.
pub(super) fn effects(events: &[Value]) -> Vec<Effect> {
    let calls = events.iter().zip(1_u64..).filter_map(|(event, seq)| {
        let call = event["proposed"].get("call_tool")?;
        let of = |kind: &str| {
            let found = events.iter().filter(|event| event[kind]["effect"] == seq);
            found.collect::<Vec<_>>()
        };
        Some(Effect {
            seq,
            tool: call["tool"].as_str().unwrap().to_owned(),
            arguments: arguments(events, call),
            attempts: of("started").len(),
            outcome: of("settled")
                .first()
                .map_or(Value::Null, |it| it["settled"]["outcome"].clone()),
        })
    });
    calls.collect()
}

/// What the model asked for, by the reply that it is part of.
fn arguments(events: &[Value], call: &Value) -> Value {
    let reply = events.iter().find(|event| event["settled"]["effect"] == call["reply"]).unwrap();
    let parts = reply["settled"]["outcome"]["done"]["reply"]["parts"].as_array().unwrap();
    let part = parts.iter().find(|part| part["call"]["id"] == call["call"]).unwrap();
    serde_json::from_str(part["call"]["arguments"].as_str().unwrap()).unwrap()
}

/// What the journal has begun and not ended.
pub(super) fn under_way(events: &[Value]) -> Struck {
    let settled = |effect: &Value| events.iter().any(|event| event["settled"]["effect"] == *effect);
    let begun = events.iter().filter_map(|event| event["started"].get("effect"));
    match begun.rev().find(|effect| !settled(effect)).map(|effect| work(events, effect)) {
        None => Struck::Between,
        Some(work) if work == "ask_model" => Struck::Model,
        Some(work) if !work["provision"].is_null() => Struck::Provision,
        Some(work) => match work["call_tool"]["tool"].as_str().unwrap() {
            "execute" => Struck::Command,
            "task" => Struck::Subagent,
            tool if tool.starts_with("mcp__") => Struck::Outside,
            _ => Struck::Files,
        },
    }
}

/// An effect is named by its place, from 1.
fn work<'a>(events: &'a [Value], effect: &Value) -> &'a Value {
    let place = usize::try_from(effect.as_u64().unwrap()).unwrap();
    &events[place - 1]["proposed"]
}

/// What happened, without the times, the costs, the names of this very run, further
/// attempts at what a crash cut off, and whether it is known of a call outside that it
/// was done. Subagents work beside each other, so that it does not say which one ended first.
pub(super) fn shape(events: &[Value]) -> Vec<String> {
    let text = |event: &Value| {
        let (kind, body) = event.as_object()?.iter().next()?;
        let tool = body.get("effect").map_or(&Value::Null, |effect| work(events, effect));
        let tool = tool["call_tool"]["tool"].as_str().unwrap_or_default();
        let detail = match kind.as_str() {
            "proposed" => match body.get("call_tool") {
                Some(call) => format!("{} {}", call["tool"], call["call"]),
                None => body.to_string(),
            },
            "decided" => body["verdict"].to_string(),
            "started" if body["attempt"] != 1 => return None,
            "started" => format!("in {}", body["place"]["sandbox"]),
            "settled" if tool == "task" => return None,
            "settled" if tool.starts_with("mcp__") => tool.to_owned(),
            "settled" => match &body["outcome"]["done"] {
                Value::Null => body["outcome"].to_string(),
                done if !done["sandbox"].is_null() => {
                    format!("sandbox {}", done["sandbox"]["replaces"])
                }
                done if !done["reply"].is_null() => done["reply"]["parts"].to_string(),
                done => done.to_string(),
            },
            "sandbox_kept" => body["sandbox"].to_string(),
            "opened" | "said" => String::new(),
            _ => body.to_string(),
        };
        Some(format!("{kind} {detail}"))
    };
    events.iter().filter_map(text).collect()
}
