//! Spans as OTLP has them in JSON (opentelemetry.io/docs/specs/otlp, 1.x): ids in hexadecimal
//! digits, numbers of 64 bits as texts.

use serde_json::{Map, Value as Json, json};

use crate::Span;
use crate::attributes::{self, Value};
use crate::span::Operation;

/// `SPAN_KIND_INTERNAL` and `SPAN_KIND_CLIENT`.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
/// `STATUS_CODE_ERROR`.
const ERROR: u8 = 2;

/// Whose spans they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The version of the program.
    pub version: String,
    /// Which of several servers it is.
    pub instance: String,
}

/// A span, encoded.
#[must_use]
pub fn encode(span: &Span) -> String {
    let kind = match span.operation {
        Operation::Chat { .. } => CLIENT,
        Operation::InvokeAgent { .. }
        | Operation::ExecuteTool { .. }
        | Operation::Approval { .. }
        | Operation::ProvisionSandbox { .. } => INTERNAL,
    };
    let content = span.content.iter().map(|(name, text)| (*name, Value::Text(text.clone())));
    let attributes = attributes::of(span).into_iter().chain(content);
    let mut object = Map::new();
    let mut put = |name: &str, value: Json| drop(object.insert(name.to_owned(), value));
    put("traceId", json!(span.trace.to_string()));
    put("spanId", json!(span.id.to_string()));
    if let Some(parent) = span.parent {
        put("parentSpanId", json!(parent.to_string()));
    }
    put("name", json!(span.name()));
    put("kind", json!(kind));
    put("startTimeUnixNano", nanos(span.begun_ms));
    put("endTimeUnixNano", nanos(span.ended_ms));
    put("attributes", attributes.map(|(name, value)| attribute(name, &value)).collect());
    if let Some(error) = span.error {
        put("status", json!({ "code": ERROR, "message": error }));
    }
    Json::Object(object).to_string()
}

fn nanos(ms: u64) -> Json {
    json!((u128::from(ms) * 1_000_000).to_string())
}

fn attribute(name: &str, value: &Value) -> Json {
    let value = match value {
        Value::Text(text) => json!({ "stringValue": text }),
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::Flag(flag) => json!({ "boolValue": flag }),
        Value::List(text) => json!({ "arrayValue": { "values": [{ "stringValue": text }] } }),
    };
    json!({ "key": name, "value": value })
}

/// The body of a request to a collector, of encoded spans.
#[must_use]
pub fn request(resource: &Resource, spans: &[String]) -> String {
    let text = |name, text: &str| attribute(name, &Value::Text(text.to_owned()));
    let resource = json!({ "attributes": [
        text("service.name", "outrigger"),
        text("service.version", &resource.version),
        text("service.instance.id", &resource.instance),
    ] });
    let scope = json!({ "name": "outrigger" });
    let spans = spans.join(",");
    format!(
        r#"{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"scope":{scope},"spans":[{spans}]}}]}}]}}"#
    )
}
