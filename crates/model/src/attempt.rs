//! One attempt: send a request, read its stream to the end, or say why not.
//!
//! Owns every timeout and size limit of an answer, the same for all wires. Must
//! never retry, and never takes a stream for whole that its wire does not.

use flate2::read::GzDecoder;
use futures_util::stream::{self, Stream, TryStreamExt as _};
use outrigger_agent::json::depth;
use outrigger_agent::limits::JSON_DEPTH_MAX;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};
use reqwest::{Response, StatusCode, Url};
use std::io::Read as _;
use std::pin::pin;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;

use crate::fault::{Fault, JSON};
use crate::halves::Halves;
use crate::http::{SendError, reason};
use crate::retry_policy::retry_after;
use crate::wire::{Answer, CallIds, Decoder, Delta, Flow};
use crate::{Api, Frame, Frames, HttpClient, RetryPolicy, codec, limits, sse};

/// What stays the same over the attempts of a call.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) http: &'a HttpClient,
    pub(crate) api: Api,
    pub(crate) ids: CallIds,
    pub(crate) policy: &'a RetryPolicy,
    pub(crate) frames: &'a dyn Frames,
}

/// Makes one attempt.
pub(crate) async fn attempt(
    call: Call<'_>,
    number: u32,
    request: reqwest::Request,
) -> Result<Answer, Fault> {
    let whole = Duration::from_millis(call.policy.attempt_ms);
    match timeout(whole, exchange(call, number, request)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Fault::unavailable(format!("no end after {} s", whole.as_secs()))),
    }
}

async fn exchange(call: Call<'_>, number: u32, request: reqwest::Request) -> Result<Answer, Fault> {
    let first = Duration::from_millis(call.policy.first_byte_ms);
    let place = place(request.url());
    let response = match timeout(first, call.http.execute(request)).await {
        Ok(response) => response.map_err(|error| unreached(&place, error))?,
        Err(_) => {
            return Err(Fault::unavailable(format!("no answer within {} ms", first.as_millis())));
        }
    };
    if response.status() != StatusCode::OK {
        return Err(refused(call.policy, response).await);
    }
    if let Some(kind) = not_a_stream(&response) {
        let body = error_body(call.policy, response).await;
        return Err(Fault::of_no_stream(kind, &body));
    }
    call.frames.frame(Frame::Answered { attempt: number });
    read(call, number, response).await
}

/// Reads a stream to its end.
async fn read(call: Call<'_>, number: u32, response: Response) -> Result<Answer, Fault> {
    let pieces = pin!(stream::try_unfold(response, |mut response| async move {
        Ok(next(call.policy, &mut response).await?.map(|piece| (piece, response)))
    }));
    let mut events = pin!(sse::events(pieces, call.policy));
    let mut decoder = codec::decoder(call.api, call.ids);
    let show = &mut |delta: Delta<'_>| call.frames.frame(frame(number, delta));
    if decode(events.as_mut(), &mut *decoder, show).await? == Flow::Done {
        drain(events).await;
    }
    decoder.finish()
}

/// Hands events to a decoder until it has seen its finish marker, or they end. Where they
/// break off behind a whole reply, which is paid for, nothing is missing.
pub(crate) async fn decode(
    mut events: impl Stream<Item = Result<sse::OwnedEvent, Fault>> + Unpin,
    decoder: &mut dyn Decoder,
    sink: &mut (dyn FnMut(Delta<'_>) + Send),
) -> Result<Flow, Fault> {
    let mut halves = Halves::default();
    loop {
        let event = match events.try_next().await {
            Ok(Some(event)) => event,
            Ok(None) => break,
            Err(_) if decoder.is_whole() => break,
            Err(fault) => return Err(fault),
        };
        if depth(&event.data) > JSON_DEPTH_MAX {
            return Err(Fault::too_deep());
        }
        for event in halves.take(event) {
            if decoder.event(sse::Event::from(&event), sink)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
    }
    halves.rest().map_or(Ok(Flow::More), |event| decoder.event(sse::Event::from(&event), sink))
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
    policy: &RetryPolicy,
    response: &mut Response,
) -> Result<Option<impl AsRef<[u8]> + std::ops::Deref<Target = [u8]> + use<>>, Fault> {
    let idle = Duration::from_millis(policy.idle_ms);
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
async fn refused(policy: &RetryPolicy, response: Response) -> Fault {
    let status = response.status().as_u16();
    let wait = retry_after(response.headers(), SystemTime::now());
    if response.status().is_redirection() {
        let message = "it redirects elsewhere, which is not followed; the base URL is wrong";
        return Fault::of_answer(status, None, &format!("{{\"message\":\"{message}\"}}"));
    }
    Fault::of_answer(status, wait, &error_body(policy, response).await)
}

/// The beginning of a body that is no stream, unpacked: proxies pack theirs unasked.
async fn error_body(policy: &RetryPolicy, mut response: Response) -> String {
    let packed = response.headers().get(CONTENT_ENCODING);
    let packed = packed.is_some_and(|how| how == "gzip" || how == "x-gzip");
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = next(policy, &mut response).await {
        let room = limits::ERROR_BODY_BYTES_MAX - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == limits::ERROR_BODY_BYTES_MAX {
            break;
        }
    }
    if packed {
        let mut plain = Vec::new();
        let most = limits::ERROR_BODY_BYTES_MAX as u64;
        // What comes before it breaks off says enough.
        drop(GzDecoder::new(&body[..]).take(most).read_to_end(&mut plain));
        body = plain;
    }
    String::from_utf8_lossy(&body).into_owned()
}

/// The type of an answer that says itself that it is no stream of events. Servers
/// that say nothing, or something vague, are believed until their stream fails.
fn not_a_stream(response: &Response) -> Option<&'static str> {
    let kind = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    [JSON, "text/html"].into_iter().find(|other| kind.starts_with(other))
}

/// The server of a URL, with its port also where that is the usual one.
pub(crate) fn place(url: &Url) -> String {
    let (scheme, host) = (url.scheme(), url.host_str().unwrap_or_default());
    let port = url.port_or_known_default();
    port.map_or_else(|| format!("{scheme}://{host}"), |port| format!("{scheme}://{host}:{port}"))
}

/// A request that got no answer: where nobody is there, the place is what is wrong.
fn unreached(place: &str, error: SendError) -> Fault {
    match error {
        SendError::Transport(error) if error.is_connect() => {
            Fault::unavailable(format!("no connection to {place}: {}", reason(error)))
        }
        SendError::Unreached(said) | SendError::Private(said) => {
            Fault::unavailable(format!("no connection to {place}: {said}"))
        }
        SendError::Denied(said) => Fault::denied(said),
        error @ (SendError::Transport(_) | SendError::NoGate(_)) => {
            Fault::unavailable(error.words())
        }
    }
}
