//! A provider that is not one: it speaks OpenAI Chat Completions on loopback, on a thread of its
//! own, at the pace of a model.
//!
//! Owns what the measured model says, and when it said it. It keeps nothing of a conversation:
//! each request says how far it is.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::{http, limits};

/// The model that works, piece by piece.
pub(crate) const WORKS: &str = "works";
/// The model that answers at once.
pub(crate) const ANSWERS: &str = "answers";
/// Tools that cost next to nothing, each with its arguments. The first that is offered is called.
const TOOLS: [(&str, &str); 2] =
    [("ls", r#"{"path":"/memory/user"}"#), ("todowrite", r#"{"todos":[]}"#)];
/// What the last word of each reply begins with; its number follows.
const MARK: &str = "reply-";

/// When each reply was written to its end, by its number.
#[derive(Debug, Default)]
pub(crate) struct Replies(Mutex<(u64, HashMap<u64, Instant>)>);

impl Replies {
    fn next(&self) -> u64 {
        let mut replies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        replies.0 += 1;
        replies.0
    }

    fn wrote(&self, number: u64) {
        let mut replies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        replies.1.insert(number, Instant::now());
    }

    /// The milliseconds since the reply was written that this text is; nothing the second time.
    pub(crate) fn since(&self, text: &str) -> Option<f64> {
        let (_, number) = text.rsplit_once(MARK)?;
        let digits = number.find(|it: char| !it.is_ascii_digit()).unwrap_or(number.len());
        let number = number[..digits].parse().ok()?;
        let at = self.0.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&number)?;
        Some(at.elapsed().as_secs_f64() * 1e3)
    }
}

/// Starts the provider. It ends with the process.
pub(crate) fn start() -> io::Result<(SocketAddr, Arc<Replies>)> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let (address, replies) = (listener.local_addr()?, Arc::<Replies>::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let given = Arc::clone(&replies);
    std::thread::spawn(move || {
        // Where it fails nobody is answered, and the measurement says so.
        let _ = runtime.block_on(accept(listener, given));
    });
    Ok((address, replies))
}

async fn accept(listener: std::net::TcpListener, replies: Arc<Replies>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        connections.spawn(serve(stream, Arc::clone(&replies)));
        while connections.try_join_next().is_some() {}
    }
}

/// Answers until the other side leaves.
async fn serve(stream: TcpStream, replies: Arc<Replies>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let line = http::line(&mut stream).await?.to_ascii_lowercase();
            match line.split_once(':') {
                Some(("content-length", value)) => length = value.trim().parse().unwrap_or(0),
                _ if line.is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length.min(limits::BODY_BYTES_MAX)];
        stream.read_exact(&mut body).await?;
        let asked = serde_json::from_slice(&body).unwrap_or_default();
        answer(&mut stream, &asked, &replies).await?;
    }
}

async fn answer(
    stream: &mut BufReader<TcpStream>,
    asked: &Value,
    replies: &Replies,
) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                transfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let works = asked["model"] == WORKS;
    let number = replies.next();
    // No two replies are equally fast, and sessions that began together do not stay so.
    let pause_ms = limits::PIECE_PAUSE_MS / 2 + number * 37 % limits::PIECE_PAUSE_MS;
    for piece in 0..if works { limits::PIECES } else { 1 } {
        if works {
            // poll: it is the pace of a model
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        }
        let text = format!("Piece {piece} of what is said. ");
        send(stream, &json!({ "content": text }), None).await?;
    }
    send(stream, &json!({ "content": format!("{MARK}{number}") }), None).await?;
    let call = if works { call(asked, number) } else { None };
    let reason = if call.is_some() { "tool_calls" } else { "stop" };
    if let Some(call) = call {
        send(stream, &json!({ "tool_calls": [call] }), None).await?;
    }
    send(stream, &json!({}), Some(reason)).await?;
    let last = b"data: [DONE]\n\n";
    stream.write_all(format!("{:x}\r\n", last.len()).as_bytes()).await?;
    replies.wrote(number);
    stream.write_all(&[&last[..], b"\r\n0\r\n\r\n"].concat()).await
}

/// What is called next, until there were enough calls since something was said last.
fn call(asked: &Value, number: u64) -> Option<Value> {
    let messages = asked["messages"].as_array()?;
    let results = messages.iter().rev().take_while(|it| it["role"] != "user");
    let done = results.filter(|it| it["role"] == "tool").count();
    let offered = asked["tools"].as_array()?;
    let offers = |name: &str| offered.iter().any(|it| it["function"]["name"] == name);
    let (name, arguments) = TOOLS.into_iter().find(|(name, _)| offers(name))?;
    let function = json!({ "name": name, "arguments": arguments });
    let call = json!({ "index": 0, "id": format!("call_{number}"), "type": "function", "function": function });
    (done < limits::CALLS).then_some(call)
}

async fn send(
    stream: &mut BufReader<TcpStream>,
    delta: &Value,
    reason: Option<&str>,
) -> io::Result<()> {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
    let usage = json!({ "prompt_tokens": 2_000, "completion_tokens": 60, "total_tokens": 2_060 });
    let mut chunk = json!({ "id": "1", "object": "chat.completion.chunk", "created": 1,
        "model": "fake", "choices": [choice] });
    if reason.is_some() {
        chunk["usage"] = usage;
    }
    let text = format!("data: {chunk}\n\n");
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await
}
