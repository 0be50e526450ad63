//! What the server says while it runs: lines for people, or an object in JSON for each request and
//! for each thing that a session did.

use clap::ValueEnum;
use outrigger_agent::EgressFlow;
use outrigger_server::AnsweredRequest;
use outrigger_telemetry::{Operation, Span};
use serde_json::{Map, Value, json};
use std::io::Write;

use crate::exit::Failure;
use crate::flags::Output;
use crate::session;
use crate::show::{self, Screen, Tone, inert};

/// How it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A few lines for people; of requests those alone that failed by the server's fault.
    Text,
    /// One object in JSON on each line of standard error.
    Json,
}

/// Says it on standard error.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerLog {
    format: LogFormat,
    output: Output,
}

impl ServerLog {
    pub(super) fn new(format: LogFormat, output: Output) -> Self {
        Self { format, output }
    }

    /// Something that people may want to know.
    pub(super) fn note(self, tone: Tone, text: &str) {
        match self.format {
            LogFormat::Text => Screen::new(self.output).note(tone, text),
            LogFormat::Json => {
                let level = if tone == Tone::Warning { "warn" } else { "info" };
                write(level, text.trim_start_matches([' ', '●', '!']), json!({}));
            }
        }
    }

    /// Something went wrong, and the server goes on.
    pub(super) fn failure(self, failure: &Failure) {
        match self.format {
            LogFormat::Text => show::failure(failure, false),
            LogFormat::Json => write("error", &failure.message, json!({ "hints": failure.hints })),
        }
    }

    pub(super) fn request(self, request: &AnsweredRequest) {
        if self.format == LogFormat::Text {
            if let Some(fault) = &request.fault {
                let route = request.route.as_deref().unwrap_or("?");
                let text = format!("! {} {route} was answered 500: {fault}", request.method);
                Screen::new(self.output).note(Tone::Warning, inert(&text));
                Screen::new(self.output).note(Tone::Detail, format!("  request {}", request.id));
            }
            return;
        }
        let level = if request.status >= 500 { "error" } else { "info" };
        let fields = json!({
            "request_id": request.id,
            "method": request.method,
            "route": request.route,
            "status": request.status,
            "duration_ms": request.took_ms,
            "principal": request.person,
            "session": request.session,
            "fault": request.fault,
        });
        write(level, "request", fields);
    }

    /// What a person's sandbox reached, which has no journal that says it.
    pub(super) fn flow(self, person: &str, sandbox: &str, flow: &EgressFlow) {
        if self.format == LogFormat::Text {
            return;
        }
        let fields = json!({
            "principal": person,
            "sandbox": sandbox,
            "host": flow.host,
            "port": flow.port,
            "grant": flow.grant,
            "refusal": flow.refusal,
            "requests": flow.requests,
            "sent_bytes": flow.sent_bytes,
            "received_bytes": flow.received_bytes,
        });
        write(if flow.refusal.is_some() { "warn" } else { "info" }, "egress", fields);
    }

    /// Names, times and counts, whatever a collector is told beside them.
    pub(super) fn span(self, span: &Span) {
        if self.format == LogFormat::Text {
            return;
        }
        let (exec, exit_code) = match &span.operation {
            Operation::ExecuteTool { exec, exit_code, .. } => (exec.as_deref(), *exit_code),
            Operation::InvokeAgent { .. }
            | Operation::Chat { .. }
            | Operation::Approval { .. }
            | Operation::ProvisionSandbox { .. } => (None, None),
        };
        let fields = json!({
            "session": span.session,
            "seq": span.seq,
            "exec_id": exec,
            "exit_code": exit_code,
            "duration_ms": span.took_ms(),
            "error": span.error,
            "trace_id": span.trace.to_string(),
            "span_id": span.id.to_string(),
        });
        write(if span.error.is_some() { "warn" } else { "info" }, &span.name(), fields);
    }
}

/// A line. What is null is left out; that it can't be written stops nothing.
fn write(level: &str, message: &str, fields: Value) {
    let ms = i64::try_from(session::now_ms()).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_millisecond(ms).map(|time| format!("{time:.3}"));
    let mut line = Map::new();
    line.insert("time".to_owned(), json!(time.unwrap_or_default()));
    line.insert("level".to_owned(), json!(level));
    line.insert("message".to_owned(), json!(message));
    let Value::Object(fields) = fields else { return };
    line.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
    let line = Value::Object(line).to_string() + "\n";
    drop(std::io::stderr().lock().write_all(line.as_bytes()));
}
