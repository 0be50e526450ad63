//! WebSockets: through TLS and without it, as far as a grant allows them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use outrigger_gate::{Grant, Network, Scheme, SecretPlace, SecretTerms, SecretValue};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::support::{Connection, Gate, grant, run};
use crate::upstream::{Authority, start};

const LONG: usize = 300_000;
/// As RFC 6455 has it in 1.3.
const WISH: &str = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const AGREED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                        Connection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// A host that agrees to websockets, and then sends back what comes.
struct Host {
    address: SocketAddr,
    /// Connections that are over.
    left: Arc<AtomicUsize>,
    /// What was asked last.
    head: Arc<Mutex<String>>,
}

impl Host {
    async fn start(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, left) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let (over, head) = (Arc::clone(&left), Arc::<Mutex<String>>::default());
        let heard = Arc::clone(&head);
        start(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, over, head) = (tls.clone(), Arc::clone(&over), Arc::clone(&heard));
                start(async move {
                    match tls {
                        None => echo(stream, &head).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => echo(stream, &head).await,
                            Err(_) => None,
                        },
                    };
                    over.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, left, head }
    }

    fn grant(&self, scheme: Scheme) -> Grant {
        grant("localhost", self.address.port(), scheme)
    }

    fn name(&self) -> String {
        format!("localhost:{}", self.address.port())
    }
}

async fn echo(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    heard: &Mutex<String>,
) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    heard.lock().unwrap().clone_from(&String::from_utf8_lossy(&head).into_owned());
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    if !head.contains("\r\nupgrade: websocket\r\n") || !head.contains("\r\nconnection: upgrade\r\n")
    {
        stream.write_all(b"HTTP/1.1 400 x\r\nContent-Length: 0\r\n\r\n").await.ok()?;
        return stream.shutdown().await.ok();
    }
    stream.write_all(AGREED).await.ok()?;
    stream.flush().await.ok()?;
    let (mut reads, mut writes) = tokio::io::split(stream);
    tokio::io::copy(&mut reads, &mut writes).await.ok()?;
    writes.shutdown().await.ok()
}

/// Has a connection carry frames, there and back.
async fn frames<S: AsyncRead + AsyncWrite + Unpin>(connection: &mut Connection<S>, wish: &str) {
    connection.stream.write_all(wish.as_bytes()).await.unwrap();
    connection.stream.flush().await.unwrap();
    let head = connection.head().await.unwrap().to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    for part in ["upgrade: websocket", "connection: upgrade", "sec-websocket-accept: s3pplmb"] {
        assert!(head.contains(part), "{head}");
    }
    connection.stream.write_all(b"\x81\x05hello").await.unwrap();
    connection.stream.flush().await.unwrap();
    connection.until("\u{5}hello").await;
}

#[test]
fn frames_pass_both_ways_and_are_counted() {
    run(async {
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let secure = Host::start(Some(authority.server(&["localhost"], 9))).await;
        let plain = Host::start(None).await;
        let grants = vec![secure.grant(Scheme::Https), plain.grant(Scheme::Http)];
        let inside = gate.open("a", grants).await;
        let mut by_url = inside.connect().await;
        let host = plain.name();
        let wish = format!("GET http://{host}/chat HTTP/1.1\r\nHost: {host}\r\n{WISH}\r\n");
        frames(&mut by_url, &wish).await;
        let host = secure.name();
        let mut tunnel = inside.tunnel(&host, Some("localhost")).await.unwrap();
        frames(&mut tunnel, &format!("GET /chat HTTP/1.1\r\nHost: {host}\r\n{WISH}\r\n")).await;
        let (mut reads, mut writes) = tokio::io::split(tunnel.stream);
        let send = async {
            writes.write_all(&[b'x'; LONG]).await.unwrap();
            writes.shutdown().await.unwrap();
        };
        let mut back = Vec::new();
        let (_, ()) = tokio::join!(reads.read_to_end(&mut back), send);
        assert_eq!(back.iter().filter(|byte| **byte == b'x').count(), LONG);
        let port = secure.address.port();
        let flow = gate.wait_for("a", |flow| flow.port == port).await;
        assert!(flow.sent_bytes >= LONG as u64 && flow.received_bytes >= LONG as u64, "{flow:?}");
    });
}

#[test]
fn they_end_when_the_host_is_not_granted_any_more() {
    run(async {
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let host = Host::start(Some(authority.server(&["localhost"], 9))).await;
        let inside = gate.open("a", vec![host.grant(Scheme::Https)]).await;
        let name = host.name();
        let mut tunnel = inside.tunnel(&name, Some("localhost")).await.unwrap();
        frames(&mut tunnel, &format!("GET / HTTP/1.1\r\nHost: {name}\r\n{WISH}\r\n")).await;
        gate.client.open("a", &Network::default(), &[], None).await.unwrap();
        while tunnel.stream.read(&mut [0; 64]).await.is_ok_and(|length| length > 0) {}
        while host.left.load(Ordering::SeqCst) == 0 {
            // poll: a counter of another task
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });
}

#[test]
fn who_may_read_alone_has_none() {
    run(async {
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let host = Host::start(Some(authority.server(&["localhost"], 9))).await;
        let mut reading = host.grant(Scheme::Https);
        reading.methods = vec!["GET".to_owned(), "HEAD".to_owned()];
        let inside = gate.open("a", vec![reading]).await;
        let name = host.name();
        let mut tunnel = inside.tunnel(&name, Some("localhost")).await.unwrap();
        let wish = format!("GET / HTTP/1.1\r\nHost: {name}\r\n{WISH}\r\n");
        let reply = tunnel.ask(&wish).await.unwrap();
        assert_eq!((reply.status, reply.refused()), (403, Some("method")), "{reply:?}");
        assert!(reply.body.contains("(GET, HEAD), not websocket"), "{}", reply.body);
        assert_eq!(host.left.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_placeholder_in_the_handshake_is_swapped() {
    const SECRET: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    run(async {
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let host = Host::start(Some(authority.server(&["localhost"], 9))).await;
        let mut inside = gate.open("a", Vec::new()).await;
        let terms = SecretTerms {
            name: "TOKEN".to_owned(),
            organisation: "o".to_owned(),
            places: vec![SecretPlace::new(host.grant(Scheme::Https))],
            ends_ms: None,
            verifies: false,
        };
        let value = SecretValue::new(SECRET.to_owned().into()).unwrap();
        let secret = gate.client.seal(None, terms, value).await.unwrap();
        let opened = gate.client.open("a", &Network::default(), &[secret], None).await.unwrap();
        inside.authority = opened.authority;
        let name = host.name();
        let mut tunnel = inside.tunnel(&name, Some("localhost")).await.unwrap();
        let token = &opened.placeholders["TOKEN"];
        let wish = format!(
            "GET / HTTP/1.1\r\nHost: {name}\r\nAuthorization: Bearer {token}\r\n{WISH}\r\n"
        );
        frames(&mut tunnel, &wish).await;
        let head = host.head.lock().unwrap().clone();
        assert!(head.contains(SECRET) && !head.contains(token), "{head}");
    });
}
