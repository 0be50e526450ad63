//! Hosts of the outside, friendly and hostile, all of them in this process.
//!
//! Owns what they answer and what they saw. The gate reaches them by an operator's proxy, for
//! which every name leads here: so no name has to be known to a resolver, and every name that
//! leaves the gate is seen.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Hosts with a certificate of the authority that the gate trusts.
const VALID: [&str; 5] = ["good.test", "other.test", "evil.test", "git.test", "data.wide.test"];
/// Hosts without a valid one.
pub(super) const INVALID: [&str; 3] = ["wrong.test", "expired.test", "stranger.test"];
/// A token that a host makes.
pub(super) const MINTED: &str = "minted-0123456789abcdefghijABCDEFGHIJ";

/// All of them.
#[derive(Debug)]
pub(super) struct TestHosts {
    pub(super) address: SocketAddr,
    /// The authority that signs for the valid ones, PEM.
    pub(super) roots: String,
    seen: Arc<Mutex<HostLog>>,
}

/// What they saw since it was taken last.
#[derive(Debug, Default, Clone)]
pub(super) struct HostLog {
    /// Names that the gate asked for.
    pub(super) names: Vec<String>,
    /// Requests, whole or cut off.
    pub(super) requests: Vec<String>,
}

fn certificate(
    issuer: Option<&Issuer<'_, KeyPair>>,
    name: &str,
    ends: SystemTime,
) -> Result<TlsAcceptor, rcgen::Error> {
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    params.not_before = (SystemTime::now() - 400 * DAY).into();
    params.not_after = ends.into();
    let key = KeyPair::generate()?;
    let signed = match issuer {
        Some(issuer) => params.signed_by(&key, issuer)?,
        None => params.self_signed(&key)?,
    };
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has both versions")
        .with_no_client_auth()
        .with_single_cert(vec![signed.der().clone()], key)
        .expect("the key is of the certificate");
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// What begins in the background ends with its connection, or with this process.
#[expect(clippy::disallowed_methods, reason = "hosts end with the connections made to them")]
pub(super) fn start(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}

impl TestHosts {
    pub(super) async fn start() -> Result<Self, String> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let roots = params.self_signed(&key).map_err(|error| error.to_string())?.pem();
        let issuer = Issuer::new(params, key);
        let mut tls = HashMap::new();
        let later = SystemTime::now() + 9 * DAY;
        let of = |name: &str| match name {
            "wrong.test" => certificate(Some(&issuer), "another.test", later),
            "expired.test" => certificate(Some(&issuer), name, SystemTime::now() - 2 * DAY),
            "stranger.test" => certificate(None, name, later),
            name => certificate(Some(&issuer), name, later),
        };
        for name in VALID.into_iter().chain(INVALID) {
            tls.insert(name, of(name).map_err(|error| error.to_string())?);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let (seen, tls) = (Arc::<Mutex<HostLog>>::default(), Arc::new(tls));
        let shared = Arc::downgrade(&seen);
        start(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Some(seen) = shared.upgrade() else { return };
                let tls = Arc::clone(&tls);
                start(async move { drop(proxied(stream, &tls, &seen).await) });
            }
        });
        Ok(Self { address, roots, seen })
    }

    /// What they saw since then.
    pub(super) fn take(&self) -> HostLog {
        std::mem::take(&mut lock(&self.seen))
    }
}

fn lock(seen: &Mutex<HostLog>) -> MutexGuard<'_, HostLog> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One connection of the gate: CONNECT, or requests with whole URLs.
async fn proxied(
    mut stream: TcpStream,
    tls: &HashMap<&str, TlsAcceptor>,
    seen: &Mutex<HostLog>,
) -> std::io::Result<()> {
    let mut read = Vec::new();
    while !read.windows(4).any(|end| end == b"\r\n\r\n") {
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&read).into_owned();
    let name = head.split(' ').nth(1).unwrap_or_default();
    lock(seen).names.push(name.to_owned());
    if !head.starts_with("CONNECT ") {
        return serve(stream, read, seen).await;
    }
    let Some(tls) = name.split(':').next().and_then(|name| tls.get(name)) else { return Ok(()) };
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    serve(tls.accept(stream).await?, Vec::new(), seen).await
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    mut read: Vec<u8>,
    seen: &Mutex<HostLog>,
) -> std::io::Result<()> {
    loop {
        while request_end(&read).is_none() {
            if stream.read_buf(&mut read).await? == 0 {
                if !read.is_empty() {
                    lock(seen).requests.push(String::from_utf8_lossy(&read).into_owned());
                }
                return Ok(());
            }
        }
        let request: Vec<u8> = read.drain(..request_end(&read).unwrap_or(0)).collect();
        let request = String::from_utf8_lossy(&request).into_owned();
        let before = lock(seen).requests.last().cloned().unwrap_or_default();
        lock(seen).requests.push(request.clone());
        stream.write_all(&answer(&request, &before)).await?;
        stream.flush().await?;
        if path(&request) == "/endless" {
            while stream.write_all(&[b'x'; 16 << 10]).await.is_ok() {}
        }
    }
}

/// Where the first request ends, if it is whole.
fn request_end(read: &[u8]) -> Option<usize> {
    let body = read.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&read[..body]).to_ascii_lowercase();
    if head.contains("transfer-encoding: chunked") {
        let end = read[body - 2..].windows(7).position(|end| end == b"\r\n0\r\n\r\n")?;
        return Some(body - 2 + end + 7);
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let end = body + length.unwrap_or(0);
    (read.len() >= end).then_some(end)
}

fn path(request: &str) -> &str {
    let target = request.split(' ').nth(1).unwrap_or_default();
    let target = target
        .strip_prefix("http://")
        .map_or(target, |rest| rest.find('/').map_or("/", |at| &rest[at..]));
    target.split('?').next().unwrap_or_default()
}

/// What a host makes of a request: an echo, the word behind `Bearer` in another form, or what
/// any of them was asked before.
fn answer(request: &str, before: &str) -> Vec<u8> {
    let token = request.split("Bearer ").nth(1).unwrap_or_default();
    let token = token.split("\r\n").next().unwrap_or_default();
    let whole = |header: &str, body: &str| {
        format!("HTTP/1.1 200 OK\r\n{header}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    let first = &token[..token.len() / 2];
    match path(request) {
        "/redirect" => "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/\r\n\
                        Content-Length: 0\r\n\r\n"
            .to_owned(),
        "/hold" | "/endless" => "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\nx".to_owned(),
        "/header" => whole(&format!("X-Token: {token}\r\n"), ""),
        "/name" => whole(&format!("X-{token}: 1\r\n"), ""),
        "/hex" => whole("", &token.bytes().map(|byte| format!("{byte:02x}")).collect::<String>()),
        "/base64" => whole("", &STANDARD.encode(format!("a:{token}"))),
        "/trailer" => format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Token\r\n\r\n\
             1\r\nx\r\n0\r\nX-Token: {token}\r\n\r\n"
        ),
        "/packed" => whole("Content-Encoding: gzip\r\n", token),
        "/reversed" => whole("", &token.chars().rev().collect::<String>()),
        "/first" => whole("", first),
        "/last" => whole("", before),
        "/token" => whole("", &format!("{{\"access_token\":\"{MINTED}\"}}")),
        _ => whole("", request),
    }
    .into_bytes()
}
