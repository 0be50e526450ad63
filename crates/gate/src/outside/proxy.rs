//! The operator's proxy.
//!
//! Owns how it is asked for a tunnel (RFC 9110, 9.3.6).

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::host::Target;
use crate::limits;
use crate::rules::UpstreamProxy;

fn basic(proxy: &UpstreamProxy) -> Option<String> {
    proxy.user.as_ref().map(|user| format!("Basic {}", STANDARD.encode(user)))
}

/// What the proxy is shown with a request.
pub(super) fn authorization(proxy: &UpstreamProxy) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(basic(proxy)?).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Makes a connection to the proxy one to a host.
pub(super) async fn tunnel(
    stream: &mut TcpStream,
    proxy: &UpstreamProxy,
    target: &Target,
) -> io::Result<()> {
    let (host, port) = (&target.host, target.port);
    let mut head = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
    if let Some(basic) = basic(proxy) {
        head.push_str(&format!("Proxy-Authorization: {basic}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut answer = Vec::new();
    // Byte by byte: what follows is the host's, which may speak first.
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() > limits::PROXY_HEAD_BYTES_MAX {
            return Err(io::Error::other("its answer is too long"));
        }
        answer.push(stream.read_u8().await?);
    }
    let status = answer.get(9..12).unwrap_or_default();
    if !answer.starts_with(b"HTTP/1.") || status.first() != Some(&b'2') {
        let status = String::from_utf8_lossy(status).into_owned();
        return Err(io::Error::other(format!("it answers {status:?}")));
    }
    Ok(())
}
