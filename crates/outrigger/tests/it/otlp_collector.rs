//! A collector of traces on loopback: what arrives is read by the types of OpenTelemetry's own
//! crate, and nothing of it may get lost by that.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyValue;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What it does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Takes,
    Rejects,
    Fails,
    Busy,
    Nonsense,
    Hangs,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

#[derive(Clone)]
pub(crate) struct Collector {
    pub(crate) url: String,
    answer: Arc<Mutex<Answer>>,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Collector {
    pub(crate) fn new(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let collector =
            Self { url, answer: Arc::new(Mutex::new(answer)), received: Arc::default() };
        let serving = collector.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(stream));
            }
        });
        collector
    }

    pub(crate) fn set(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }

    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                let read = reader.read_line(&mut head).ok()?;
                if read == 0 {
                    return None;
                }
            }
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
            });
            let mut body = vec![0; length?];
            reader.read_exact(&mut body).ok()?;
            let answer = *self.answer.lock().unwrap();
            self.received.lock().unwrap().push(Received { head, body });
            let json = "application/json";
            let (status, kind, text) = match answer {
                Answer::Takes => ("200 OK", json, "{}".to_owned()),
                Answer::Rejects => {
                    let said = r#"{"partialSuccess":{"rejectedSpans":"1","errorMessage":"no"}}"#;
                    ("200 OK", json, said.to_owned())
                }
                Answer::Fails => ("500 Oh", json, "{}".to_owned()),
                Answer::Busy => ("503 Later", json, String::new()),
                Answer::Nonsense => ("200 OK", "text/html", "<!".repeat(1 << 20)),
                Answer::Hangs => {
                    // Until who asks gives up.
                    drop(std::io::copy(&mut reader, &mut std::io::sink()));
                    return None;
                }
            };
            let length = text.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{text}"
            )
            .ok()?;
        }
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// All spans that came, in order.
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.received().iter().flat_map(|received| read(&received.body)).collect()
    }
}

/// The spans of a request. What the types of OpenTelemetry do not know is an error.
fn read(body: &[u8]) -> Vec<Span> {
    let request: ExportTraceServiceRequest = serde_json::from_slice(body).unwrap();
    let ours: Value = serde_json::from_slice(body).unwrap();
    is_within(&ours, &serde_json::to_value(&request).unwrap(), "");
    let scopes = request.resource_spans.into_iter().flat_map(|resource| {
        let name = attribute(&resource.resource.as_ref().unwrap().attributes, "service.name");
        assert_eq!(name.as_deref(), Some("outrigger"));
        resource.scope_spans
    });
    scopes.flat_map(|scope| scope.spans).collect()
}

/// Whether all that is in `ours` came through in `theirs`.
fn is_within(ours: &Value, theirs: &Value, at: &str) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (name, value) in ours {
                let at = format!("{at}.{name}");
                let other = theirs.get(name).unwrap_or_else(|| panic!("{at} is no field"));
                is_within(value, other, &at);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            assert_eq!(ours.len(), theirs.len(), "{at}");
            ours.iter().zip(theirs).for_each(|(ours, theirs)| is_within(ours, theirs, at));
        }
        (ours, theirs) => {
            let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
            assert_eq!(text(ours), text(theirs), "{at}");
        }
    }
}

/// An attribute as a text.
pub(crate) fn attribute(
    all: &[opentelemetry_proto::tonic::common::v1::KeyValue],
    name: &str,
) -> Option<String> {
    let value = all.iter().find(|it| it.key == name)?.value.clone()?.value?;
    match value {
        AnyValue::StringValue(text) => Some(text),
        AnyValue::IntValue(number) => Some(number.to_string()),
        AnyValue::BoolValue(flag) => Some(flag.to_string()),
        _ => None,
    }
}
