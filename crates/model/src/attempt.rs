//! One attempt: send a request, read its stream to the end, or say why not.
//!
//! Owns every timeout and size limit of an answer, the same for all wires. Must
//! never retry, and never takes a stream for whole that its wire does not.

use futures_util::stream::{self, Stream, TryStreamExt as _};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode};
use std::error::Error as _;
use std::pin::pin;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;

use crate::fault::Fault;
use crate::patience::retry_after;
use crate::wire::{Answer, Api, Decoder, Delta, Flow};
use crate::{Frame, Frames, Patience, limits, sse};

/// What stays the same over the attempts of a call.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) http: &'a reqwest::Client,
    pub(crate) api: Api,
    pub(crate) patience: &'a Patience,
    pub(crate) frames: &'a dyn Frames,
}

/// Makes one attempt.
pub(crate) async fn attempt(
    call: Call<'_>,
    number: u32,
    request: reqwest::Request,
) -> Result<Answer, Fault> {
    let whole = Duration::from_millis(call.patience.attempt_ms);
    match timeout(whole, exchange(call, number, request)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Fault::unavailable(format!("no end after {} s", whole.as_secs()))),
    }
}

async fn exchange(call: Call<'_>, number: u32, request: reqwest::Request) -> Result<Answer, Fault> {
    let first = Duration::from_millis(call.patience.first_byte_ms);
    let response = match timeout(first, call.http.execute(request)).await {
        Ok(response) => response.map_err(|error| Fault::unavailable(reason(error)))?,
        Err(_) => {
            return Err(Fault::unavailable(format!("no answer within {} ms", first.as_millis())));
        }
    };
    if response.status() != StatusCode::OK {
        return Err(refused(call.patience, response).await);
    }
    if let Some(kind) = not_a_stream(&response) {
        let body = error_body(call.patience, response).await;
        return Err(Fault::garbled(format!("the answer is {kind} and no stream: {body}")));
    }
    call.frames.frame(Frame::Answered { attempt: number });
    read(call, number, response).await
}

/// Reads a stream to its end.
async fn read(call: Call<'_>, number: u32, response: Response) -> Result<Answer, Fault> {
    let pieces = pin!(stream::try_unfold(response, |mut response| async move {
        Ok(next(call.patience, &mut response).await?.map(|piece| (piece, response)))
    }));
    let mut events = pin!(sse::events(pieces, call.patience));
    let mut decoder = call.api.decoder();
    let show = &mut |delta: Delta<'_>| call.frames.frame(frame(number, delta));
    if decode(events.as_mut(), &mut *decoder, show).await? == Flow::Done {
        drain(events).await;
    }
    decoder.finish()
}

/// Hands events to a decoder until it has seen its finish marker, or they end.
pub(crate) async fn decode(
    mut events: impl Stream<Item = Result<sse::OwnedEvent, Fault>> + Unpin,
    decoder: &mut dyn Decoder,
    sink: &mut (dyn FnMut(Delta<'_>) + Send),
) -> Result<Flow, Fault> {
    while let Some(event) = events.try_next().await? {
        if decoder.event(sse::Event::from(&event), sink)? == Flow::Done {
            return Ok(Flow::Done);
        }
    }
    Ok(Flow::More)
}

fn frame(attempt: u32, delta: Delta<'_>) -> Frame<'_> {
    match delta {
        Delta::Text(delta) => Frame::Text { attempt, delta },
        Delta::Thinking(delta) => Frame::Thinking { attempt, delta },
        Delta::Arguments { call, name, delta } => {
            Frame::ToolArguments { attempt, call, name, delta }
        }
    }
}

async fn next(
    patience: &Patience,
    response: &mut Response,
) -> Result<Option<impl AsRef<[u8]> + std::ops::Deref<Target = [u8]> + use<>>, Fault> {
    let idle = Duration::from_millis(patience.idle_ms);
    match timeout(idle, response.chunk()).await {
        Ok(Ok(chunk)) => Ok(chunk),
        Ok(Err(error)) => Err(Fault::garbled(format!("the stream broke off: {}", reason(error)))),
        Err(_) => {
            Err(Fault::unavailable(format!("the stream was silent for {} ms", idle.as_millis())))
        }
    }
}

/// Lets a finished stream close, so that its connection can be used again.
/// Whatever happens here, the reply is whole.
async fn drain<T>(mut events: impl Stream<Item = Result<T, Fault>> + Unpin) {
    let rest = async { while let Ok(Some(_)) = events.try_next().await {} };
    // A stream that stays open costs its connection, nothing else.
    let _closed = timeout(Duration::from_millis(limits::DRAIN_MS), rest).await;
}

/// What an answer says that is not 200.
async fn refused(patience: &Patience, response: Response) -> Fault {
    let status = response.status().as_u16();
    let wait = retry_after(response.headers(), SystemTime::now());
    if response.status().is_redirection() {
        let message = "it redirects elsewhere, which is not followed; the base URL is wrong";
        return Fault::of_answer(status, None, &format!("{{\"message\":\"{message}\"}}"));
    }
    Fault::of_answer(status, wait, &error_body(patience, response).await)
}

/// The beginning of a body that is no stream.
async fn error_body(patience: &Patience, mut response: Response) -> String {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = next(patience, &mut response).await {
        let room = limits::ERROR_BODY_BYTES_MAX - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == limits::ERROR_BODY_BYTES_MAX {
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}

/// The type of an answer that says itself that it is no stream of events. Servers
/// that say nothing, or something vague, are believed until their stream fails.
fn not_a_stream(response: &Response) -> Option<&'static str> {
    let kind = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    ["application/json", "text/html"].into_iter().find(|other| kind.starts_with(other))
}

/// A transport's error with its causes, on one line, without the URL.
fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !reason.contains(&text) {
            reason = format!("{reason}: {text}");
        }
        source = cause.source();
    }
    reason
}
