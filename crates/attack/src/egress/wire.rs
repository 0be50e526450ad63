//! One connection that a program inside made, in the hands of this process.
//!
//! Owns the way of its bytes: by a terminal of the evil program, which passes them on as they
//! are. So TLS and all that is malformed is made here, and yet comes from inside.

use std::net::SocketAddrV4;
use std::time::Duration;

use outrigger_sandbox::{Input, Output, OutputSink, TerminalSize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;

use super::hosts::start;
use crate::limits;
use crate::stage::{EVIL, Room};

/// What the evil program says once it is connected.
const READY: u8 = 6;

struct WireSink(mpsc::UnboundedSender<Vec<u8>>);

impl OutputSink for WireSink {
    fn output(&self, output: Output<'_>) {
        let (Output::Stdout(bytes) | Output::Stderr(bytes)) = output;
        // Nobody reads on: the connection was let go.
        let _ = self.0.send(bytes.to_vec());
    }
}

/// A connection from inside to a place of its own loopback. It ends when it is dropped.
pub(super) async fn wire(room: &Room, place: SocketAddrV4) -> Result<DuplexStream, String> {
    let (mut ours, theirs) = tokio::io::duplex(limits::WIRE_BYTES);
    let mut request = room.request(&[EVIL, "egress", "wire", &place.to_string()]);
    request.terminal = Some(TerminalSize { rows: 24, columns: 80 });
    request.stdout_bytes_max = limits::WIRE_OUTPUT_BYTES_MAX;
    request.deadline_ms = limits::ATTACK_MS_MAX;
    let (id, sandbox) = (request.id.clone(), std::sync::Arc::clone(&room.sandbox));
    let (sender, mut pieces) = mpsc::unbounded_channel();
    let (mut typed, mut shown) = tokio::io::split(theirs);
    start(async move {
        let run = async {
            let sink = WireSink(sender);
            // However it ends, what is below sees the end of it.
            let _ = sandbox.execute(request, &sink).await;
        };
        let down = async {
            while let Some(piece) = pieces.recv().await {
                if shown.write_all(&piece).await.is_err() {
                    break;
                }
            }
            let _ = shown.shutdown().await;
        };
        let up = async {
            let mut space = vec![0; limits::WIRE_BYTES];
            while let Ok(length @ 1..) = typed.read(&mut space).await {
                let bytes = Input::Bytes(space[..length].to_vec());
                if sandbox.input(&id, bytes).await.is_err() {
                    return;
                }
            }
            let _ = sandbox.kill(&id).await;
        };
        tokio::join!(run, down, up);
    });
    match tokio::time::timeout(patience(), ours.read_u8()).await {
        Ok(Ok(READY)) => Ok(ours),
        Ok(Ok(_)) | Ok(Err(_)) | Err(_) => Err("nothing inside listens for the gate".to_owned()),
    }
}

fn patience() -> Duration {
    Duration::from_millis(limits::ANSWER_MS_MAX)
}

/// An answer.
#[derive(Debug, Default)]
pub(super) struct HostReply {
    pub(super) head: String,
    pub(super) body: String,
}

impl HostReply {
    pub(super) fn status(&self) -> &str {
        self.head.get(9..12).unwrap_or_default()
    }

    /// The gate's word for why it refused, or the status of what did not come from it.
    pub(super) fn word(&self) -> String {
        let refused = self.head.lines().find_map(|line| line.strip_prefix("x-outrigger-refused: "));
        match (refused, self.status()) {
            (Some(word), _) => word.to_owned(),
            (None, "200") => "passed".to_owned(),
            // Its parser answers by itself what it can't read.
            (None, "400" | "431") => "malformed".to_owned(),
            (None, status) => format!("status {status}"),
        }
    }
}

/// The word for what came, or that nothing did.
pub(super) fn word(reply: Option<&HostReply>) -> String {
    reply.map_or_else(|| "closed".to_owned(), HostReply::word)
}

/// Sends a request and takes its answer. `None`: there is none.
pub(super) async fn ask(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    request: &[u8],
) -> Option<HostReply> {
    // The gate may have hung up already, and yet have answered.
    let _ = stream.write_all(request).await;
    let _ = stream.flush().await;
    let answered = tokio::time::timeout(patience(), reply(stream, request));
    answered.await.ok().flatten()
}

async fn reply(stream: &mut (impl AsyncRead + Unpin), request: &[u8]) -> Option<HostReply> {
    let mut read = Vec::new();
    loop {
        let end = read.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4);
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let connected = request.starts_with(b"CONNECT ") && head.contains(" 200 ");
            let length = length.and_then(|length| length.parse().ok()).filter(|_| !connected);
            if read.len() >= end + length.unwrap_or(0) {
                let body = String::from_utf8_lossy(&read[end..]).into_owned();
                let head = String::from_utf8_lossy(&read[..end]).into_owned();
                return Some(HostReply { head, body });
            }
        }
        if !matches!(stream.read_buf(&mut read).await, Ok(1..)) {
            return None;
        }
    }
}
