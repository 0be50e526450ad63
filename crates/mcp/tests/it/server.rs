//! A server of our own on loopback: it speaks both eras of the protocol, counts what it is
//! asked by key, and misbehaves as it is told.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How a server answers calls of its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// As it should.
    Well,
    /// Never.
    Hang,
    /// It ends the connection.
    HangUp,
    /// With these words, as they are: a head and a body.
    Raw(&'static str, &'static str),
    /// With an answer that never ends.
    Endless(&'static str),
    /// With requests of its own without end; it takes no answers to them.
    Flood,
    /// With an error of the protocol.
    Refuse,
    /// It wants to know something first.
    AskBack,
    /// As it should, once that many calls are there at the same time.
    Meet(u64),
}

/// What a server is like.
#[derive(Debug, Clone)]
pub(crate) struct Nature {
    /// Names and descriptions.
    pub(crate) tools: Vec<(String, String)>,
    /// Whether it speaks only the revisions that keep a session.
    pub(crate) older: bool,
    /// How it answers a call.
    pub(crate) way: Way,
    /// What it answers any request with, if that is not the protocol.
    pub(crate) first: Option<Way>,
    /// Whether its list of tools goes on for ever.
    pub(crate) pages: bool,
}

impl Nature {
    pub(crate) fn new(tools: &[(&str, &str)]) -> Self {
        let own = |(name, says): &(&str, &str)| ((*name).to_owned(), (*says).to_owned());
        let tools = tools.iter().map(own).collect();
        Self { tools, older: false, way: Way::Well, first: None, pages: false }
    }

    pub(crate) fn that(way: Way) -> Self {
        Self { way, ..Self::new(&[("note", "Writes a note.")]) }
    }
}

/// What a server was asked.
#[derive(Debug, Default, Clone)]
pub(crate) struct Asked {
    /// Calls by key, in the order of their first.
    pub(crate) keys: Vec<(String, u64)>,
    /// Methods, and how often.
    pub(crate) methods: BTreeMap<String, u64>,
    /// The last value of the header `authorization`.
    pub(crate) authorization: Option<String>,
}

/// A server. Its threads end with the test's process.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) nature: Arc<Mutex<Nature>>,
    asked: Arc<Mutex<Asked>>,
}

impl Server {
    pub(crate) fn new(nature: Nature) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Asked::default()));
        let nature = Arc::new(Mutex::new(nature));
        let shared = (Arc::clone(&nature), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (nature, asked) = (Arc::clone(&shared.0), Arc::clone(&shared.1));
                // A client that has gone is its own affair.
                std::thread::spawn(move || while serve(&stream, &nature, &asked).is_some() {});
            }
        });
        Self { url, nature, asked }
    }

    pub(crate) fn asked(&self) -> Asked {
        self.asked.lock().unwrap().clone()
    }

    /// How many calls it was asked to do.
    pub(crate) fn calls(&self) -> u64 {
        self.asked().keys.iter().map(|(_, times)| times).sum()
    }

    pub(crate) fn becomes(&self, change: impl FnOnce(&mut Nature)) {
        change(&mut self.nature.lock().unwrap());
    }
}

/// A request.
struct Request {
    method: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// One request and its answer. `None` when the connection is over.
fn serve(stream: &TcpStream, nature: &Mutex<Nature>, asked: &Mutex<Asked>) -> Option<()> {
    let shared = asked;
    let request = read(stream)?;
    let nature = nature.lock().unwrap().clone();
    let authorization = request.headers.get("authorization").cloned();
    asked.lock().unwrap().authorization = authorization;
    if let Some(way) = nature.first {
        return misbehave(stream, way);
    }
    if request.method != "POST" {
        return raw(stream, "405 Method Not Allowed", "");
    }
    let message: Value = serde_json::from_slice(&request.body).ok()?;
    if nature.way == Way::Flood && message["method"].is_null() {
        return misbehave(stream, Way::Hang);
    }
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    *asked.lock().unwrap().methods.entry(method.clone()).or_default() += 1;
    let result = match method.as_str() {
        "server/discover" if !nature.older => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "public",
        }),
        "initialize" if nature.older => json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "ours", "version": "1" },
        }),
        "tools/list" => {
            let tools: Vec<_> = nature.tools.iter().map(tool).collect();
            let next = nature.pages.then_some("more");
            let mut listed = json!({
                "resultType": "complete", "tools": tools, "ttlMs": 86_400_000, "cacheScope": "public",
            });
            if let Some(next) = next {
                listed["nextCursor"] = json!(next);
            }
            listed
        }
        "tools/call" => {
            let key = message["params"]["_meta"]["outrigger/idempotency-key"].as_str();
            let key = key.unwrap_or_default().to_owned();
            let mut asked = asked.lock().unwrap();
            match asked.keys.iter_mut().find(|(known, _)| *known == key) {
                Some((_, times)) => *times += 1,
                None => asked.keys.push((key, 1)),
            }
            drop(asked);
            match nature.way {
                Way::Well | Way::Meet(_) => {
                    if let Way::Meet(wanted) = nature.way {
                        meet(wanted, shared);
                    }
                    let text = format!("noted: {}", message["params"]["arguments"]);
                    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
                }
                Way::AskBack => json!({ "resultType": "input_required", "inputRequests": {} }),
                way => return misbehave_to(stream, way, &message["id"]),
            }
        }
        _ if message["id"].is_null() => return raw(stream, "202 Accepted", ""),
        _ => {
            let error = json!({ "code": -32601, "message": "no such method" });
            return json_answer(
                stream,
                &json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }),
            );
        }
    };
    json_answer(stream, &json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
}

/// Waits until so many calls were begun, which happens only if they come beside each other.
fn meet(wanted: u64, asked: &Mutex<Asked>) {
    let begun = std::time::Instant::now();
    while asked.lock().unwrap().keys.iter().map(|(_, times)| times).sum::<u64>() < wanted {
        assert!(begun.elapsed() < Duration::from_secs(30), "the calls never met");
        std::thread::sleep(Duration::from_millis(5)); // poll: other connections raise no event for this one
    }
}

fn tool((name, says): &(String, String)) -> Value {
    json!({
        "name": name, "description": says,
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
        "annotations": { "readOnlyHint": true, "idempotentHint": true },
    })
}

fn misbehave_to(stream: &TcpStream, way: Way, id: &Value) -> Option<()> {
    if way == Way::Refuse {
        let error = json!({ "code": -32000, "message": "not today\u{1b}[2J" });
        return json_answer(stream, &json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }
    misbehave(stream, way)
}

fn misbehave(mut stream: &TcpStream, way: Way) -> Option<()> {
    match way {
        Way::Hang => {
            // Until the client has gone.
            drop(stream.read(&mut [0]));
            None
        }
        Way::HangUp => {
            drop(stream.shutdown(std::net::Shutdown::Both));
            None
        }
        Way::Raw(head, body) => raw(stream, head, body),
        Way::Endless(kind) => {
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).ok()?;
            let piece = if kind == "text/event-stream" { "data: x\n\n" } else { "[[[[[[[[" };
            let piece = piece.repeat(8_192);
            while stream.write_all(piece.as_bytes()).is_ok() {}
            None
        }
        Way::Flood => {
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            stream.write_all(head.as_bytes()).ok()?;
            for id in 0_u64.. {
                let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
                stream.write_all(format!("data: {ping}\n\n").as_bytes()).ok()?;
            }
            None
        }
        Way::Well | Way::Meet(_) | Way::Refuse | Way::AskBack => None,
    }
}

fn json_answer(stream: &TcpStream, message: &Value) -> Option<()> {
    raw(stream, "200 OK\r\ncontent-type: application/json", &message.to_string())
}

fn raw(mut stream: &TcpStream, head: &str, body: &str) -> Option<()> {
    let length = body.len();
    let text = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).ok()
}

fn read(stream: &TcpStream) -> Option<Request> {
    // A client may keep a connection for later; the thread ends with the process.
    stream.set_read_timeout(Some(Duration::from_secs(120))).ok()?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let method = line.split(' ').next()?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok());
    let mut body = Vec::new();
    reader.take(length.unwrap_or(0)).read_to_end(&mut body).ok()?;
    Some(Request { method, headers, body })
}
