//! A provider that is not one: a process that answers Anthropic's Messages over
//! HTTP/1.1 on loopback, with the events that the real one streams.
//!
//! Owns what the measured model says: it calls `execute` once a reply, as often as
//! the path of the request says, and then ends. It keeps nothing between requests:
//! the conversation says how far it is. Must never run in the measured process.

use outrigger_sim::limits;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::error::{ErrorContext, Outcome};

/// What stands in a request once for each call that was performed.
const RESULT: &str = r#""type":"tool_result""#;

/// What an answer begins with that is a stream of events.
pub(crate) const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
    cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";

/// Where a model is asked that ends after so many turns.
pub(crate) fn base_url(port: u16, turns: u64) -> String {
    format!("http://127.0.0.1:{port}/{turns}")
}

/// Serves until standard input ends; says its port first.
pub(crate) fn serve() -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0").doing("opening the provider's port")?;
    let port = listener.local_addr().doing("opening the provider's port")?.port();
    writeln!(std::io::stdout(), "{port}").doing("telling the provider's port")?;
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // A connection that breaks is the client's to notice.
            std::thread::spawn(move || drop(answer(connection)));
        }
    });
    // Whoever started this holds the other end, and lets go of it however it ends.
    std::io::stdin().read_to_end(&mut Vec::new()).doing("waiting for the end")?;
    Ok(())
}

fn answer(connection: TcpStream) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let mut writes = connection.try_clone()?;
    let mut reads = BufReader::with_capacity(64 << 10, connection);
    while let Some((turns, body)) = request(&mut reads)? {
        let done = body.matches(RESULT).count() as u64;
        writes.write_all(HEAD)?;
        for event in reply(done, turns, body.len()) {
            send(&mut writes, &event)?;
        }
        writes.write_all(b"0\r\n\r\n")?;
    }
    Ok(())
}

/// Writes an event as a piece of its own, as a model does.
pub(crate) fn send(writes: &mut impl Write, event: &Event) -> std::io::Result<()> {
    let text = format!("event: {}\ndata: {}\n\n", event.name, event.data);
    write!(writes, "{:x}\r\n{text}\r\n", text.len())
}

/// The turns that the path asks for, and the body. Nothing when the client is gone.
pub(crate) fn request(reads: &mut impl BufRead) -> std::io::Result<Option<(u64, String)>> {
    let (mut turns, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        if reads.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if let Some(path) = line.strip_prefix("POST /") {
            turns = path.split('/').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        } else if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        } else if line.is_empty() {
            let mut body = String::new();
            reads.take(length.min(limits::BENCH_BODY_BYTES_MAX)).read_to_string(&mut body)?;
            return Ok(Some((turns, body)));
        }
    }
}

/// One event of a stream.
pub(crate) struct Event {
    name: &'static str,
    data: String,
}

fn event(name: &'static str, rest: &str) -> Event {
    Event { name, data: format!(r#"{{"type":"{name}"{rest}}}"#) }
}

/// The first event of a reply.
pub(crate) fn begin(number: u64, body_bytes: usize) -> Event {
    let start = format!(
        r#","message":{{"id":"msg_{number}","type":"message","role":"assistant","model":"fake","content":[],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":{},"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}}"#,
        body_bytes / 4
    );
    event("message_start", &start)
}

/// The last events of a reply.
pub(crate) fn end(reason: &str) -> [Event; 2] {
    let end = format!(
        r#","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":60}}"#
    );
    [event("message_delta", &end), event("message_stop", "")]
}

fn reply(done: u64, turns: u64, body_bytes: usize) -> Vec<Event> {
    let step = done + 1;
    let mut events = vec![begin(step, body_bytes)];
    let text = if done < turns {
        format!("This is step {step}. I run the next command and look at what it gives.")
    } else {
        format!("All {turns} steps are done, and every one of them did what it should.")
    };
    let block = r#"{"type":"text","text":""}"#;
    let deltas =
        text.split_inclusive(' ').map(|text| format!(r#"{{"type":"text_delta","text":"{text}"}}"#));
    events.extend(content(0, block, deltas));
    events.insert(2, event("ping", ""));
    if done < turns {
        let block =
            format!(r#"{{"type":"tool_use","id":"toolu_{step}","name":"execute","input":{{}}}}"#);
        let number = format!(r#"{step}\"}}"#);
        let pieces = ["", r#"{\"command\""#, r#": \"echo"#, " step ", &number];
        let deltas =
            pieces.map(|text| format!(r#"{{"type":"input_json_delta","partial_json":"{text}"}}"#));
        events.extend(content(1, &block, deltas));
    }
    let reason = if done < turns { "tool_use" } else { "end_turn" };
    events.extend(end(reason));
    events
}

/// The events of one content block.
pub(crate) fn content(
    index: usize,
    block: &str,
    deltas: impl IntoIterator<Item = String>,
) -> impl Iterator<Item = Event> {
    let start = format!(r#","index":{index},"content_block":{block}"#);
    let deltas = deltas.into_iter().map(move |delta| {
        event("content_block_delta", &format!(r#","index":{index},"delta":{delta}"#))
    });
    let stop = event("content_block_stop", &format!(r#","index":{index}"#));
    std::iter::once(event("content_block_start", &start)).chain(deltas).chain([stop])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_json_and_the_arguments_come_whole() {
        for (done, calls) in [(0, 1), (1, 1), (2, 0)] {
            let mut arguments = String::new();
            let mut blocks = 0;
            for event in reply(done, 2, 100) {
                let data: serde_json::Value = serde_json::from_str(&event.data).unwrap();
                assert_eq!(data["type"], event.name);
                arguments += data["delta"]["partial_json"].as_str().unwrap_or_default();
                blocks += usize::from(data["content_block"]["name"] == "execute");
            }
            assert_eq!(blocks, calls);
            let expected = format!(r#"{{"command": "echo step {}"}}"#, done + 1);
            assert!(arguments == expected || (calls == 0 && arguments.is_empty()), "{arguments}");
        }
    }

    #[test]
    fn a_request_says_how_many_turns() {
        let text = "POST /7/v1/messages HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
        let (turns, body) = request(&mut text.as_bytes()).unwrap().unwrap();
        assert_eq!((turns, body.as_str()), (7, "{}"));
        assert!(request(&mut &b""[..]).unwrap().is_none());
    }
}
