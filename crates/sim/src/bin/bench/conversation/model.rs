//! A provider that answers what it is told to, and says when it was asked and when it answered.
//!
//! It lives in the process of the measurement, so that its times and those of the terminal are
//! of one clock: the program that is measured is another process.

use std::collections::VecDeque;
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use outrigger_sim::limits;

use crate::error::{ErrorContext, Outcome};
use crate::provider::{self, Event};

/// What is answered once.
#[derive(Debug)]
pub(super) enum Reply {
    /// These, after a pause, each written by itself some time after the one before.
    Words { words: Vec<String>, pause: Duration, between: Duration },
    /// A text, as fast as it can be written.
    Text(String),
    /// A command is to be executed.
    Command(String),
}

/// That a request arrived, whole.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) at: Instant,
    pub(super) body_bytes: usize,
}

/// The provider.
#[derive(Debug)]
pub(super) struct FakeModel {
    pub(super) port: u16,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    asked: UnboundedReceiver<Request>,
    /// Each word, and when it was about to be written.
    words: UnboundedReceiver<(String, Instant)>,
}

/// What each connection has.
#[derive(Debug, Clone)]
struct Shared {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    asked: UnboundedSender<Request>,
    words: UnboundedSender<(String, Instant)>,
}

impl FakeModel {
    /// Serves until the process ends.
    pub(super) fn start() -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").doing("opening the provider's port")?;
        let port = listener.local_addr().doing("opening the provider's port")?.port();
        let replies = Arc::<Mutex<VecDeque<Reply>>>::default();
        let ((asks, asked), (writes, words)) = (unbounded_channel(), unbounded_channel());
        let shared = Shared { replies: Arc::clone(&replies), asked: asks, words: writes };
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shared = shared.clone();
                // A connection that breaks is the client's to notice.
                std::thread::spawn(move || drop(serve(connection, &shared)));
            }
        });
        Ok(Self { port, replies, asked, words })
    }

    /// What is answered next, after what was told before.
    pub(super) fn answers(&self, reply: Reply) {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner).push_back(reply);
    }

    /// Waits for the next request; nothing if none came in time.
    pub(super) async fn asked(&mut self) -> Option<Request> {
        let most = Duration::from_millis(limits::BENCH_TERMINAL_MS_MAX);
        tokio::time::timeout(most, self.asked.recv()).await.ok().flatten()
    }

    /// Forgets what happened so far.
    pub(super) fn forget(&mut self) {
        while self.asked.try_recv().is_ok() {}
        drop(self.words());
    }

    /// The words that were written since this was asked last.
    pub(super) fn words(&mut self) -> Vec<(String, Instant)> {
        std::iter::from_fn(|| self.words.try_recv().ok()).collect()
    }
}

fn serve(connection: TcpStream, shared: &Shared) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let mut writes = connection.try_clone()?;
    let mut reads = BufReader::with_capacity(64 << 10, connection);
    let mut number = 0;
    while let Some((_, body)) = provider::request(&mut reads)? {
        let asked = Request { at: Instant::now(), body_bytes: body.len() };
        drop(shared.asked.send(asked));
        number += 1;
        let reply = shared.replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let reply = reply.unwrap_or_else(|| Reply::Text("There is nothing to add.".to_owned()));
        answer(&mut writes, &reply, number, body.len(), shared)?;
    }
    Ok(())
}

fn answer(
    writes: &mut TcpStream,
    reply: &Reply,
    number: u64,
    body_bytes: usize,
    shared: &Shared,
) -> std::io::Result<()> {
    writes.write_all(provider::HEAD)?;
    provider::send(writes, &provider::begin(number, body_bytes))?;
    let events = content(reply, number);
    for (index, event) in events.into_iter().enumerate() {
        if let Reply::Words { words, pause, between } = reply
            && let Some(word) = index.checked_sub(1).and_then(|index| words.get(index))
        {
            std::thread::sleep(if index == 1 { *pause } else { *between }); // pace: that of a model
            drop(shared.words.send((word.clone(), Instant::now())));
        }
        provider::send(writes, &event)?;
    }
    let reason = if matches!(reply, Reply::Command(_)) { "tool_use" } else { "end_turn" };
    for event in provider::end(reason) {
        provider::send(writes, &event)?;
    }
    writes.write_all(b"0\r\n\r\n")
}

/// The events of a reply's content: the first one begins it, and each further one is a piece.
fn content(reply: &Reply, number: u64) -> Vec<Event> {
    let text = |text: &str| serde_json::json!({ "type": "text_delta", "text": text }).to_string();
    let block = r#"{"type":"text","text":""}"#;
    match reply {
        Reply::Words { words, .. } => {
            let words = words.iter().map(|word| text(&format!("{word} ")));
            provider::content(0, block, words).collect()
        }
        Reply::Text(all) => {
            let lines = all.split_inclusive('\n').map(text);
            provider::content(0, block, lines).collect()
        }
        Reply::Command(command) => {
            let block = format!(
                r#"{{"type":"tool_use","id":"toolu_{number}","name":"execute","input":{{}}}}"#
            );
            let arguments = serde_json::json!({ "command": command }).to_string();
            let delta =
                serde_json::json!({ "type": "input_json_delta", "partial_json": arguments });
            provider::content(0, &block, [delta.to_string()]).collect()
        }
    }
}
