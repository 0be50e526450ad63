//! What a span says of itself, by the names of the semantic conventions for generative AI
//! (open-telemetry/semantic-conventions-genai, all of it still in development; as of November
//! 2026). Names of our own begin with `outrigger.`.

use outrigger_agent::{Stop, Usage};

use crate::Span;
use crate::span::{ChatResponse, Operation};

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Number(u64),
    Flag(bool),
    /// A list of one text.
    List(&'static str),
}

type Attributes = Vec<(&'static str, Value)>;

/// A provider of ours, as the conventions call it.
pub(crate) fn provider(name: &str) -> &str {
    match name {
        "openai-chat" => "openai",
        "gemini" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        name => name,
    }
}

/// All that a span says, without what people, models and tools said.
pub(crate) fn of(span: &Span) -> Attributes {
    let text = |text: &str| Value::Text(text.to_owned());
    let mut all = vec![
        ("gen_ai.conversation.id", text(span.session.as_str())),
        ("gen_ai.provider.name", text(&span.provider)),
        ("gen_ai.request.model", text(&span.model)),
        ("outrigger.seq", Value::Number(span.seq.0)),
    ];
    // Names of ours there are none of the conventions'.
    let known = match &span.operation {
        Operation::InvokeAgent { .. } | Operation::Chat { .. } | Operation::ExecuteTool { .. } => {
            "gen_ai.operation.name"
        }
        Operation::Approval { .. } | Operation::ProvisionSandbox { .. } => {
            "outrigger.operation.name"
        }
    };
    all.push((known, text(span.operation.name())));
    all.extend(span.error.map(|error| ("error.type", text(error))));
    match &span.operation {
        Operation::InvokeAgent { agent, usage } => {
            all.push(("gen_ai.agent.name", text(agent)));
            all.extend(tokens(usage));
        }
        Operation::Chat { compaction, response, money_nanos } => {
            all.extend(response.iter().flat_map(answered));
            all.push(("outrigger.compaction", Value::Flag(*compaction)));
            all.push(("outrigger.usage.money_nanos", Value::Number(*money_nanos)));
        }
        Operation::ExecuteTool { tool, call, sandbox, exec, exit_code } => {
            all.push(("gen_ai.tool.name", text(tool)));
            all.push(("gen_ai.tool.type", text("function")));
            all.push(("gen_ai.tool.call.id", text(call)));
            all.extend(sandbox.as_ref().map(|it| ("outrigger.sandbox.name", text(it))));
            all.extend(exec.as_ref().map(|it| ("outrigger.exec.id", text(it))));
            let code = exit_code.and_then(|code| u64::try_from(code).ok());
            all.extend(code.map(|code| ("process.exit.code", Value::Number(code))));
        }
        Operation::Approval { tool, answer } => {
            all.push(("gen_ai.tool.name", text(tool)));
            all.push(("outrigger.approval.answer", text(answer)));
        }
        Operation::ProvisionSandbox { sandbox } => {
            all.push(("outrigger.sandbox.name", text(sandbox)));
        }
    }
    all
}

fn answered(response: &ChatResponse) -> Attributes {
    let mut all = vec![
        ("gen_ai.response.model", Value::Text(response.model.clone())),
        ("gen_ai.response.finish_reasons", Value::List(finish_reason(&response.stop))),
    ];
    all.extend(response.id.iter().map(|id| ("gen_ai.response.id", Value::Text(id.clone()))));
    all.extend(tokens(&response.usage));
    all
}

pub(crate) fn finish_reason(stop: &Stop) -> &'static str {
    match stop {
        Stop::End => "stop",
        Stop::OutputLimit => "length",
        Stop::Refused(_) => "content_filter",
        Stop::Paused => "pause",
    }
}

fn tokens(usage: &Usage) -> Attributes {
    let all = [
        ("gen_ai.usage.input_tokens", usage.input_tokens),
        ("gen_ai.usage.output_tokens", usage.output_tokens),
        ("gen_ai.usage.cache_read.input_tokens", usage.cache_read_tokens),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens),
    ];
    all.into_iter().map(|(name, tokens)| (name, Value::Number(tokens))).collect()
}
