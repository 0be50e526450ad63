//! A terminal in a sandbox, over a WebSocket: binary frames are what is typed and what is shown, a
//! text frame is another size. What passes is kept by nobody here and written to no log.

use axum::extract::State as Extract;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderMap;
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use outrigger_api::{ProblemCode, SHELL_ENDED, TerminalDimensions};
use outrigger_sandbox::{
    Command, End, Error, ExecId, ExecOutcome, Execute, Input, Output, OutputSink, Sandbox, limits,
};
use serde::Deserialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use utoipa::IntoParams;

use super::access::SandboxUse;
use super::command::{fresh_exec, size};
use crate::admission::{Admission, AdmittedTo};
use crate::input::{Name, QueryParams};
use crate::limits::{
    CLOSE_REASON_BYTES_MAX, TERMINAL_FRAME_BYTES_MAX, TERMINAL_LOOK_MS, TERMINAL_QUEUE_BYTES_MAX,
    TERMINALS_MAX,
};
use crate::login::Person;
use crate::problems::ChangeProblems;
use crate::server::ended;
use crate::{RequestError, Server};

/// The best shell that there is, as one that a person types to.
const LINE: &str = "command -v bash > /dev/null && exec bash -i; exec sh -i";

/// How large a terminal is.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TerminalQuery {
    /// Characters of a line.
    #[serde(default = "columns")]
    #[param(minimum = 1, maximum = 1000, default = 80)]
    cols: u16,
    /// Lines.
    #[serde(default = "lines")]
    #[param(minimum = 1, maximum = 1000, default = 24)]
    rows: u16,
}

fn columns() -> u16 {
    80
}

fn lines() -> u16 {
    24
}

/// Opens a shell on a terminal in a sandbox, over a WebSocket (RFC 6455): a binary message is what
/// is typed, or what is shown; a text message `{"cols": 80, "rows": 24}` is another size. The shell
/// ends with the connection, which is closed with the reason `the shell ended with CODE` once it ended.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/terminal",
    operation_id = "open_terminal", tag = "sandboxes",
    params(("id" = String, Path, description = "The sandbox"), TerminalQuery),
    responses(
        (status = 101, description = "It is a WebSocket from now on"),
        ChangeProblems,
    ))]
pub(crate) async fn open(
    Extract(server): Extract<Server>,
    person: Person,
    Name(name): Name,
    QueryParams(asked): QueryParams<TerminalQuery>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, RequestError> {
    server.sandbox(&person, &name, SandboxUse::Drive)?;
    let upgrade = upgrade.map_err(|error| {
        let text = format!("a terminal is a WebSocket: {}", error.body_text());
        RequestError::new(ProblemCode::InvalidRequest, text)
    })?;
    let size = size(TerminalDimensions { rows: asked.rows, cols: asked.cols })?;
    let one = Arc::clone(&server.terminals).try_acquire_owned().map_err(|_| {
        let text = format!("{TERMINALS_MAX} terminals are open, which is the most");
        RequestError::new(ProblemCode::RateLimited, text)
    })?;
    let sandbox = server.opened(&person, &name, SandboxUse::Drive).await?;
    let mut request = Execute::new(fresh_exec("terminal"), Command::Shell(LINE.to_owned()));
    request.deadline_ms = limits::DEADLINE_MS_MAX;
    request.stdout_bytes_max = limits::OUTPUT_BYTES_MAX;
    request.terminal = Some(size);
    request.env.insert("TERM".to_owned(), "xterm-256color".to_owned());
    server.connect(&person, &*sandbox, &mut request).await?;
    let upgrade =
        upgrade.max_message_size(limits::INPUT_BYTES_MAX).max_frame_size(limits::INPUT_BYTES_MAX);
    Ok(upgrade.on_upgrade(async move |socket| {
        let to = AdmittedTo::Sandbox(name, SandboxUse::Drive);
        let admission = Admission::new(&server, &headers, to);
        serve(socket, &*sandbox, request, (admission, server.ends)).await;
        drop(one);
    }))
}

async fn serve(
    socket: WebSocket,
    sandbox: &dyn Sandbox,
    request: Execute,
    (admission, ends): (Admission, watch::Receiver<bool>),
) {
    let (mut sends, mut receives) = socket.split();
    let (id, shown) = (request.id.clone(), ShownBytes::default());
    let mut runs = Box::pin(sandbox.execute(request, &shown));
    let close = {
        let mut shows = Box::pin(show(&shown, &mut sends));
        let mut takes = Box::pin(take(sandbox, &id, &shown, &mut receives));
        tokio::select! {
            done = &mut runs => Some(over(done)),
            () = &mut shows => None,
            () = &mut takes => None,
            () = admission.until_dismissed() => {
                Some((close_code::POLICY, "you may not use this sandbox any more".to_owned()))
            }
            () = ended(ends) => Some((close_code::AWAY, "the server ends".to_owned())),
        }
    };
    drop(runs);
    // A shell that ended is fine.
    drop(sandbox.kill(&id).await);
    let Some((code, mut reason)) = close else { return };
    let grace = Duration::from_millis(TERMINAL_LOOK_MS);
    let closing = async {
        while let Some(bytes) = shown.take() {
            sends.send(Message::Binary(bytes.into())).await?;
        }
        reason.truncate(reason.floor_char_boundary(CLOSE_REASON_BYTES_MAX));
        sends.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await
    };
    // Who is not there any more needs no answer.
    drop(timeout(grace, closing).await);
}

/// With which code and which words a terminal whose shell is over is closed.
fn over(done: Result<ExecOutcome, Error>) -> (u16, String) {
    match done {
        Ok(ExecOutcome { end: End::Exited(code), .. }) => {
            (close_code::NORMAL, format!("{SHELL_ENDED}{code}"))
        }
        Ok(ExecOutcome { end: End::Deadline, .. }) => {
            (close_code::NORMAL, "the terminal was open for a day".to_owned())
        }
        Ok(_) => (close_code::NORMAL, "the shell was killed".to_owned()),
        Err(error) => (close_code::ERROR, error.to_string()),
    }
}

/// Sends what is shown, until nobody takes it.
async fn show(shown: &ShownBytes, sends: &mut SplitSink<WebSocket, Message>) {
    let look = Duration::from_millis(TERMINAL_LOOK_MS);
    loop {
        let message = match shown.take() {
            Some(bytes) => Message::Binary(bytes.into()),
            None => match timeout(look, shown.changed.notified()).await {
                Ok(()) => continue,
                // Whether somebody is there.
                Err(_) => Message::Ping(Vec::new().into()),
            },
        };
        if sends.send(message).await.is_err() {
            return;
        }
    }
}

/// Gives the shell what is typed, in order: one message after the other is taken, so that a shell
/// that does not read slows whoever types.
async fn take(
    sandbox: &dyn Sandbox,
    id: &ExecId,
    shown: &ShownBytes,
    receives: &mut SplitStream<WebSocket>,
) {
    // What is typed before there is a shell would be nobody's.
    shown.began.notified().await;
    while let Some(Ok(message)) = receives.next().await {
        let input = match message {
            Message::Binary(bytes) => Input::Bytes(bytes.into()),
            Message::Text(text) => {
                let asked = serde_json::from_str::<TerminalDimensions>(&text).ok();
                match asked.and_then(|asked| size(asked).ok()) {
                    Some(size) => Input::Size(size),
                    None => continue,
                }
            }
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Close(_) => return,
        };
        // What comes after it ended is nobody's.
        drop(sandbox.input(id, input).await);
    }
}

/// What is shown and was not sent yet. Where a browser is too slow, what is oldest is dropped, and
/// it is told how much.
#[derive(Debug, Default)]
struct ShownBytes {
    held: Mutex<HeldBytes>,
    changed: Notify,
    /// The shell wrote something, so that there is one.
    began: Notify,
}

#[derive(Debug, Default)]
struct HeldBytes {
    pieces: VecDeque<Vec<u8>>,
    bytes: usize,
    dropped: u64,
}

impl OutputSink for ShownBytes {
    fn output(&self, output: Output<'_>) {
        let (Output::Stdout(bytes) | Output::Stderr(bytes)) = output;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in bytes.chunks(TERMINAL_FRAME_BYTES_MAX) {
            held.bytes += piece.len();
            held.pieces.push_back(piece.to_vec());
        }
        while held.bytes > TERMINAL_QUEUE_BYTES_MAX
            && let Some(piece) = held.pieces.pop_front()
        {
            held.bytes -= piece.len();
            held.dropped += piece.len() as u64;
        }
        drop(held);
        self.changed.notify_one();
        self.began.notify_one();
    }
}

impl ShownBytes {
    /// The next bytes to send, of several pieces where they are small.
    fn take(&self) -> Option<Vec<u8>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.dropped > 0 {
            let text = format!("\r\n[{} bytes are not shown]\r\n", held.dropped);
            held.dropped = 0;
            return Some(text.into_bytes());
        }
        let mut taken = held.pieces.pop_front()?;
        while let Some(next) = held.pieces.front()
            && taken.len() + next.len() <= TERMINAL_FRAME_BYTES_MAX
            && let Some(next) = held.pieces.pop_front()
        {
            taken.extend_from_slice(&next);
        }
        held.bytes = held.bytes.saturating_sub(taken.len());
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_browser_is_told_what_it_does_not_see() {
        let shown = ShownBytes::default();
        for byte in *b"ab" {
            shown.output(Output::Stdout(&[byte]));
        }
        assert_eq!(shown.take().unwrap(), b"ab");
        for _ in 0..40 {
            shown.output(Output::Stdout(&[b'x'; TERMINAL_FRAME_BYTES_MAX]));
        }
        let told = String::from_utf8(shown.take().unwrap()).unwrap();
        let dropped = 24 * TERMINAL_FRAME_BYTES_MAX;
        assert_eq!(told, format!("\r\n[{dropped} bytes are not shown]\r\n"));
        let rest: usize = std::iter::from_fn(|| shown.take()).map(|it| it.len()).sum();
        assert_eq!(rest, TERMINAL_QUEUE_BYTES_MAX);
    }
}
