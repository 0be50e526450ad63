//! TLS for a host: what comes after CONNECT.
//!
//! Owns that it is for the host that CONNECT named, and that every request in it names
//! the same: three names, one host.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::{HttpService, service_fn};
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;
use tokio_rustls::StartHandshake;
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::server::TlsStream;

use super::body::Outgoing;
use super::names::{hosts_agree, mismatch};
use super::relay::relay;
use super::serving::{self, Graceful};
use super::session::Session;
use super::socket::Socket;
use super::strict::Strict;
use crate::flow::Refusal;
use crate::host::Target;
use crate::limits;

/// On the heap: it is moved on, and each place that it was in stays a part of the connection.
type Tls = Box<TlsStream<Strict<Socket>>>;
/// The first that a program says, before it is answered.
pub(super) struct Hello {
    start: StartHandshake<Strict<Socket>>,
    /// As it came.
    bytes: Vec<u8>,
}

impl Hello {
    /// The host that it names, in lower case. For an address no name may be given (RFC 6066, 3).
    pub(super) fn name(&self) -> Option<String> {
        self.start.client_hello().server_name().map(str::to_ascii_lowercase)
    }

    /// The connection, as if nothing had been read.
    pub(super) fn unread(self) -> Strict<Socket> {
        self.start.io.unread(self.bytes)
    }
}

/// Serves what comes behind CONNECT.
pub(super) async fn serve(session: &Arc<Session>, target: Target, stream: Strict<Socket>) {
    // What a connection has here it has for all its life, so what is over by then is apart.
    match Box::pin(begin(session, &target, stream)).await {
        Ok(stream) => serve_requests(session, &target, stream).await,
        Err(refusal) => session.refused(Some(&target), refusal, None),
    }
}

/// Serves the requests in it.
pub(super) async fn serve_requests(session: &Arc<Session>, target: &Target, stream: Tls) {
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        Box::pin(serve_two(session, target, stream)).await;
    } else {
        serve_one(session, target, stream).await;
    }
}

async fn begin(session: &Session, target: &Target, stream: Strict<Socket>) -> Result<Tls, Refusal> {
    let hello = hello(stream).await?;
    if hello.name().as_deref() != target.host.name() {
        return Err(Refusal::Mismatch);
    }
    handshake(session, target, hello).await
}

/// Waits for what a program says first.
pub(super) async fn hello(stream: Strict<Socket>) -> Result<Hello, Refusal> {
    let limit = Duration::from_millis(limits::HANDSHAKE_MS_MAX);
    let hello = timeout(limit, read_hello(stream)).await.ok().flatten();
    hello.ok_or(Refusal::NotTls)
}

async fn read_hello(mut stream: Strict<Socket>) -> Option<Hello> {
    let (mut acceptor, mut bytes) = (Acceptor::default(), Vec::new());
    loop {
        let read = bytes.len();
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let mut unread = &bytes[read..];
        while !unread.is_empty() {
            // It takes no more than a hello may have.
            acceptor.read_tls(&mut unread).ok().filter(|taken| *taken > 0)?;
        }
        if let Some(accepted) = acceptor.accept().ok()? {
            return Some(Hello { start: StartHandshake::from_parts(accepted, stream), bytes });
        }
    }
}

/// Plays a host towards a program.
pub(super) async fn handshake(
    session: &Session,
    target: &Target,
    hello: Hello,
) -> Result<Tls, Refusal> {
    let limit = Duration::from_millis(limits::HANDSHAKE_MS_MAX);
    let authority = session.sandbox.authority.as_ref().ok_or(Refusal::NotTls)?;
    let config = authority.server(&target.host).map_err(|_| Refusal::Limit)?;
    // Who does not trust the authority leaves here, which says nothing about the host.
    let stream = timeout(limit, Box::pin(hello.start.into_stream(config))).await;
    stream.map_err(|_| Refusal::NotTls)?.map(Box::new).map_err(|_| Refusal::NotTls)
}

async fn answer(
    session: &Arc<Session>,
    target: &Target,
    request: Request<Incoming>,
) -> Result<Response<Outgoing>, Infallible> {
    let uri = request.uri();
    let named = uri.authority().is_none_or(|authority| target.is_named(authority.as_str()))
        && uri.scheme_str().is_none_or(|scheme| scheme == "https")
        && (uri.authority().is_some() || request.headers().contains_key(hyper::header::HOST))
        && hosts_agree(&request, target);
    if !named {
        session.refused(Some(target), Refusal::Mismatch, Some(uri.path()));
        return Ok(mismatch().response());
    }
    Ok(Box::pin(relay(session, target, request)).await)
}

async fn serve_one(session: &Arc<Session>, target: &Target, stream: Tls) {
    let stream = Strict::new(stream, Arc::clone(&session.activity));
    let fault = stream.fault();
    let service = service_fn(|request: Request<Incoming>| {
        let fault = &fault;
        async move {
            match fault.get() {
                Some(fault) => Ok(serving::faulty(session, Some(target), fault)),
                None => answer(session, target, request).await,
            }
        }
    });
    let connection = serving::one().serve_connection(TokioIo::new(stream), service);
    serving::drive(pin!(connection.with_upgrades()), session, Some(target)).await;
    if let Some(websocket) = session.switched() {
        websocket.pass::<Tls>().await;
    }
}

async fn serve_two(session: &Arc<Session>, target: &Target, stream: Tls) {
    let shared = (Arc::clone(session), target.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let (session, target) = shared.clone();
        let head_alone = request.method() == Method::HEAD;
        async move {
            let response = answer(&session, &target, request).await?;
            Ok::<_, Infallible>(response.map(|body| match body {
                // With HTTP/2 nobody else leaves out what a HEAD is not answered with.
                Outgoing::Text(_) if head_alone => Outgoing::empty(),
                body => body,
            }))
        }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(limits::STREAMS_MAX)
        .max_header_list_size(limits::HEAD_BYTES_MAX as u32)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service);
    serving::drive(pin!(connection), session, Some(target)).await;
}

impl<S> Graceful for http2::Connection<TokioIo<Tls>, S, TokioExecutor>
where
    S: HttpService<Incoming, ResBody = Outgoing>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Future: Send + 'static,
{
    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}
