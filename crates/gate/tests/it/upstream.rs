//! Hosts outside, friendly and hostile.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Who signs for hosts.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// A host's TLS, for names, from now until so many days hence.
    pub(crate) fn server(&self, names: &[&str], days: i32) -> TlsAcceptor {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = (SystemTime::now() - DAY * 400).into();
        let span = DAY * days.unsigned_abs();
        let end = if days < 0 { SystemTime::now() - span } else { SystemTime::now() + span };
        params.not_after = end.into();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        acceptor(certificate.der().to_vec(), &key)
    }
}

/// TLS with a certificate that nobody signed.
pub(crate) fn self_signed(name: &str) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    acceptor(params.self_signed(&key).unwrap().der().to_vec(), &key)
}

fn acceptor(certificate: Vec<u8>, key: &KeyPair) -> TlsAcceptor {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.into()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// What a host answers.
#[derive(Clone)]
pub(crate) enum Answer {
    /// What it was asked, as the body.
    Echo,
    /// These bytes, and nothing more; the connection stays.
    Bytes(Vec<u8>),
    /// These bytes, then these others without end.
    Endless(Vec<u8>, Vec<u8>),
}

/// A host.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    /// Connections whose other side left.
    left: AtomicUsize,
    requests: Mutex<Vec<String>>,
    bytes: AtomicUsize,
}

impl Upstream {
    pub(crate) async fn start(tls: Option<TlsAcceptor>, answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        start(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, answer, seen) = (tls.clone(), answer.clone(), Arc::clone(&shared));
                seen.connections.fetch_add(1, Ordering::SeqCst);
                start(async move {
                    stream.set_nodelay(true).unwrap();
                    match tls {
                        None => serve(stream, &answer, &seen).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, &answer, &seen).await;
                            }
                        }
                    }
                    seen.left.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, seen }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// Bytes that came, below TLS.
    pub(crate) fn bytes(&self) -> usize {
        self.seen.bytes.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// Waits until every connection so far was left.
    pub(crate) async fn is_left(&self) {
        while self.seen.left.load(Ordering::SeqCst) < self.connections() {
            // poll: a counter of another task
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "what a test starts ends with its runtime")]
pub(crate) fn start(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &Answer, seen: &Seen) {
    let mut read = Vec::new();
    loop {
        let Some(request) = request(&mut stream, &mut read, seen).await else { return };
        seen.requests.lock().unwrap().push(request.clone());
        let bytes = match answer {
            Answer::Echo => {
                let length = request.len();
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{request}").into_bytes()
            }
            Answer::Bytes(bytes) | Answer::Endless(bytes, _) => bytes.clone(),
        };
        if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        if let Answer::Endless(_, more) = answer {
            while stream.write_all(more).await.is_ok() && stream.flush().await.is_ok() {}
            return;
        }
    }
}

/// The next request: its head, and its body if that has a length.
async fn request(
    stream: &mut (impl AsyncRead + Unpin),
    read: &mut Vec<u8>,
    seen: &Seen,
) -> Option<String> {
    loop {
        if let Some(at) = read.windows(4).position(|end| end == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&read[..at + 4]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
            let end = if head.contains("transfer-encoding: chunked") {
                let body = read[at + 4..].windows(5).position(|end| end == b"0\r\n\r\n");
                body.map(|body| at + 4 + body + 5)
            } else {
                (read.len() >= at + 4 + length).then_some(at + 4 + length)
            };
            if let Some(end) = end {
                let request: Vec<u8> = read.drain(..end).collect();
                return Some(String::from_utf8_lossy(&request).into_owned());
            }
        }
        let got = stream.read_buf(read).await.ok()?;
        seen.bytes.fetch_add(got, Ordering::SeqCst);
        if got == 0 {
            return None;
        }
    }
}

/// An operator's proxy, for which every name leads to one address.
pub(crate) async fn proxy(to: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&heads);
    start(async move {
        while let Ok((mut inside, _)) = listener.accept().await {
            let heads = Arc::clone(&shared);
            start(async move {
                let mut read = Vec::new();
                let seen = Seen::default();
                let Some(head) = request(&mut inside, &mut read, &seen).await else { return };
                let connect = head.starts_with("CONNECT ");
                heads.lock().unwrap().push(head.clone());
                let Ok(mut outside) = TcpStream::connect(to).await else { return };
                let begun = if connect {
                    inside.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await
                } else {
                    outside.write_all(head.as_bytes()).await
                };
                if begun.is_ok() {
                    let _ = copy_bidirectional(&mut inside, &mut outside).await;
                }
            });
        }
    });
    (address, heads)
}

/// A host that speaks HTTP/2 alone, and says how long each body was. Counts its connections.
pub(crate) async fn upstream_two(tls: TlsAcceptor) -> (SocketAddr, Arc<AtomicUsize>) {
    let mut config = ServerConfig::clone(tls.config());
    config.alpn_protocols = vec![b"h2".to_vec()];
    let tls = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    start(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (tls, counted) = (tls.clone(), Arc::clone(&counted));
            start(async move {
                let Ok(stream) = tls.accept(stream).await else { return };
                counted.fetch_add(1, Ordering::SeqCst);
                let service = service_fn(async |mut request: Request<Incoming>| {
                    let mut length = 0;
                    while let Some(frame) = frame(request.body_mut()).await {
                        length += frame.data_ref().map_or(0, |data| data.len());
                    }
                    Response::builder().header("x-length", length).body(String::new())
                });
                let _ = http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    (address, connections)
}

async fn frame(body: &mut Incoming) -> Option<Frame<Bytes>> {
    let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
    frame.map(Result::unwrap)
}
