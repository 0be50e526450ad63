//! Sends spans to a collector, by OTLP over HTTP in JSON, through the gate.
//!
//! Owns the queue of what waits to be sent: it is bounded, and what has no room in it is dropped
//! and counted, so that a collector that is down, slow or talks nonsense costs memory up to a
//! limit and nothing else. Sessions never wait for it; what they did stands in their journals.

use outrigger_model::HttpClient;
use outrigger_server::ExportCounts;
use outrigger_telemetry::{Resource, Span, encode, request};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, OnceCell};
use tokio::time::{sleep, timeout};

use crate::config::Collector;
use crate::header_keys;
use crate::limits;
use crate::paths::Paths;
use crate::show::Tone;

use super::log::ServerLog;

/// Spans on their way to a collector.
#[derive(Debug)]
pub(super) struct TraceExporter {
    paths: Paths,
    collector: Collector,
    resource: Resource,
    log: ServerLog,
    queue: Mutex<Queue>,
    comes: Notify,
    /// The way to it, with its headers.
    way: OnceCell<(HttpClient, Vec<(String, String)>)>,
}

#[derive(Debug, Default)]
struct Queue {
    spans: VecDeque<String>,
    bytes: usize,
    /// Those of the request that is under way.
    sending: u64,
    exported: u64,
    dropped: u64,
}

impl Queue {
    fn add(&mut self, spans: Vec<String>) {
        for span in spans {
            let bytes = self.bytes + span.len();
            let is_full = self.spans.len() >= limits::SPANS_QUEUED_MAX;
            if is_full || bytes > limits::SPAN_BYTES_QUEUED_MAX {
                self.dropped += 1;
            } else {
                self.bytes = bytes;
                self.spans.push_back(span);
            }
        }
    }

    /// The next ones, up to the size of a request.
    fn take(&mut self) -> Vec<String> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < limits::SPANS_PER_REQUEST_MAX && bytes < limits::EXPORT_BYTES_MAX {
            let Some(span) = self.spans.pop_front() else { break };
            bytes += span.len();
            batch.push(span);
        }
        self.bytes -= bytes;
        self.sending = batch.len() as u64;
        batch
    }
}

/// What became of a request.
enum ExportOutcome {
    /// The collector took it, but for so many spans.
    Taken { rejected: u64 },
    /// It would refuse it again.
    Refused(String),
    /// It may take it later.
    Later { why: String, wait: Option<Duration> },
}

impl TraceExporter {
    pub(super) fn new(paths: &Paths, collector: Collector, instance: &str, log: ServerLog) -> Self {
        let (version, instance) = (env!("CARGO_PKG_VERSION").to_owned(), instance.to_owned());
        let resource = Resource { version, instance };
        let (queue, comes, paths) = (Mutex::default(), Notify::new(), paths.clone());
        let way = OnceCell::new();
        Self { paths, collector, resource, log, queue, comes, way }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("nobody panics while they hold the queue")
    }

    pub(super) fn wants_content(&self) -> bool {
        self.collector.content
    }

    /// Takes spans, as many as there is room for.
    pub(super) fn add(&self, spans: &[Span]) {
        let encoded: Vec<_> = spans.iter().map(encode).collect();
        self.queue().add(encoded);
        self.comes.notify_one();
    }

    pub(super) fn counts(&self) -> ExportCounts {
        let Queue { spans, sending, exported, dropped, .. } = &*self.queue();
        let waiting = spans.len() as u64 + sending;
        ExportCounts { exported: *exported, dropped: *dropped, waiting }
    }

    /// Sends, as long as the server runs.
    pub(super) async fn run(&self) {
        loop {
            let batch = self.queue().take();
            if batch.is_empty() {
                self.comes.notified().await;
                continue;
            }
            self.deliver(&batch).await;
        }
    }

    /// Sends what still waits, each once: the server ends.
    pub(super) async fn flush(&self) {
        let whole = async {
            loop {
                let batch = self.queue().take();
                if batch.is_empty() {
                    return;
                }
                let sent = self.send(&batch).await;
                if let ExportOutcome::Later { .. } = sent {
                    return;
                }
                self.count(batch.len() as u64, &sent);
            }
        };
        // What it does not take in time stays in the journals.
        drop(timeout(Duration::from_millis(limits::EXPORT_FLUSH_MS_MAX), whole).await);
    }

    /// Sends until the collector took it or refused it.
    async fn deliver(&self, batch: &[String]) {
        let mut wait = Duration::from_millis(limits::EXPORT_RETRY_MS);
        let longest = Duration::from_millis(limits::EXPORT_RETRY_MS_MAX);
        let mut is_told = false;
        loop {
            let sent = self.send(batch).await;
            let ExportOutcome::Later { why, wait: asked } = &sent else {
                return self.count(batch.len() as u64, &sent);
            };
            if !std::mem::replace(&mut is_told, true) {
                let text =
                    format!("! traces wait, because the collector does not take them: {why}");
                self.log.note(Tone::Warning, &text);
            }
            sleep(asked.unwrap_or(wait).min(longest)).await;
            wait = (wait * 2).min(longest);
        }
    }

    fn count(&self, spans: u64, sent: &ExportOutcome) {
        let lost = match sent {
            ExportOutcome::Taken { rejected } => (*rejected).min(spans),
            ExportOutcome::Refused(_) | ExportOutcome::Later { .. } => spans,
        };
        let mut queue = self.queue();
        queue.exported += spans - lost;
        queue.dropped += lost;
        queue.sending = 0;
        drop(queue);
        if let ExportOutcome::Refused(why) = sent {
            self.log.note(Tone::Warning, &format!("! the collector refuses traces: {why}"));
        }
    }

    async fn send(&self, batch: &[String]) -> ExportOutcome {
        let limit = Duration::from_millis(limits::EXPORT_MS_MAX);
        let sent = timeout(limit, self.ask(request(&self.resource, batch))).await;
        let later = |why: String| ExportOutcome::Later { why, wait: None };
        match sent {
            Ok(Ok(sent)) => sent,
            Ok(Err(why)) => later(why),
            Err(_) => later(format!("nothing came within {} s", limit.as_secs())),
        }
    }

    /// Asks once. An error is a sentence, and may pass.
    async fn ask(&self, body: String) -> Result<ExportOutcome, String> {
        let Collector { url, server, headers_env, .. } = &self.collector;
        let way = self.way.get_or_try_init(|| async {
            let keys = headers_env.iter();
            let keys: Vec<_> =
                keys.map(|(name, variable)| (name.as_str(), variable.as_str(), "")).collect();
            header_keys::client(&self.paths, server, &keys).await
        });
        let (http, headers) = way.await?;
        let answer = http.post(url, headers, body, limits::EXPORT_ANSWER_BYTES_MAX).await?;
        Ok(match answer.status {
            200..=299 => ExportOutcome::Taken { rejected: rejected(&answer.body) },
            // Those that the specification has sent again.
            status @ (429 | 502 | 503 | 504) => {
                let why = format!("it answered {status}");
                ExportOutcome::Later { why, wait: answer.retry_after }
            }
            status => ExportOutcome::Refused(format!("it answered {status}")),
        })
    }
}

/// How many spans a collector says that it did not take. One that says nothing of it took all.
fn rejected(body: &[u8]) -> u64 {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    // A number of 64 bits is a text in JSON; some write it as a number.
    match &said["partialSuccess"]["rejectedSpans"] {
        Value::String(text) => text.parse().unwrap_or_default(),
        number => number.as_u64().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_dropped_and_counted() {
        let mut queue = Queue::default();
        queue.add(vec!["{}".to_owned(); limits::SPANS_QUEUED_MAX + 5]);
        assert_eq!((queue.spans.len(), queue.dropped), (limits::SPANS_QUEUED_MAX, 5));
        assert_eq!(queue.take().len(), limits::SPANS_PER_REQUEST_MAX);
        queue.add(vec!["x".repeat(limits::SPAN_BYTES_QUEUED_MAX)]);
        assert_eq!(queue.dropped, 6);
        while !queue.take().is_empty() {}
        assert_eq!((queue.bytes, queue.sending), (0, 0));
        // A large one goes alone.
        queue.add(vec!["x".repeat(limits::EXPORT_BYTES_MAX), "{}".to_owned()]);
        assert_eq!((queue.take().len(), queue.take().len()), (1, 1));
    }

    #[test]
    fn what_a_collector_did_not_take_is_read_as_it_may_say_it() {
        for (said, rejected_spans) in [
            (r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"no"}}"#, 3),
            (r#"{"partialSuccess":{"rejectedSpans":3}}"#, 3),
            (r#"{"partialSuccess":{"rejectedSpans":-3}}"#, 0),
            ("{}", 0),
            ("", 0),
            ("<html>", 0),
        ] {
            assert_eq!(rejected(said.as_bytes()), rejected_spans, "{said}");
        }
    }
}
