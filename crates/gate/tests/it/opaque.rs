//! Hosts that are passed on unread: by CONNECT, and at ports to which names lead.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outrigger_gate::{Error, Grant, Network, Proxy, Refusal, Scheme, grant_of};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::captured::straight;
use crate::support::{Connection, Gate, Inside, grant, run, unheard};
use crate::upstream::{Answer, Authority, Upstream, proxy, start};

const GREETING: &str = "SSH-2.0-host\r\n";
const LAST: &str = "last words";
const MANY: usize = 100 << 20;

/// A host that greets whoever connects, sends back what comes, and speaks once more when there is
/// no more.
struct Host {
    address: SocketAddr,
    /// Connections that are over.
    left: Arc<AtomicUsize>,
}

impl Host {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, left) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let over = Arc::clone(&left);
        start(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let over = Arc::clone(&over);
                start(async move {
                    let _ = greet(stream).await;
                    over.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, left }
    }

    fn words(&self) -> String {
        format!("tcp:localhost:{}", self.address.port())
    }

    fn grants(&self) -> Vec<Grant> {
        grant_of(&self.words()).unwrap()
    }

    fn name(&self) -> String {
        format!("localhost:{}", self.address.port())
    }

    /// Waits until a connection was left.
    async fn is_left(&self) {
        while self.left.load(Ordering::SeqCst) == 0 {
            // poll: a counter of another task
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

async fn greet(mut stream: TcpStream) -> std::io::Result<()> {
    stream.write_all(GREETING.as_bytes()).await?;
    let (mut reads, mut writes) = stream.split();
    tokio::io::copy(&mut reads, &mut writes).await?;
    writes.write_all(LAST.as_bytes()).await?;
    writes.shutdown().await
}

/// Where names lead, at a port of a host's own, so that tests leave each other alone.
fn capture(port: u16) -> TcpListener {
    TcpListener::bind(("127.64.0.1", port)).unwrap()
}

async fn connect(inside: &Inside, to: &str) -> Connection<TcpStream> {
    let mut connection = inside.connect().await;
    let connect = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n");
    let reply = connection.ask_connect(&connect).await.unwrap();
    assert_eq!(reply.status, 200, "{reply:?}");
    connection
}

/// The host greets, sends back so many bytes, and has the last word after the program has ended.
async fn talk(mut connection: Connection<impl AsyncRead + AsyncWrite + Unpin>, bytes: usize) {
    connection.until(GREETING).await;
    let (mut reads, mut writes) = tokio::io::split(connection.stream);
    let send = async {
        for part in vec![b'x'; bytes].chunks(1 << 20) {
            writes.write_all(part).await.unwrap();
        }
        writes.shutdown().await.unwrap();
    };
    let mut back = Vec::with_capacity(bytes + LAST.len());
    let (read, ()) = tokio::join!(reads.read_to_end(&mut back), send);
    read.unwrap();
    assert_eq!(back.len(), bytes + LAST.len());
    assert!(back[..bytes].iter().all(|byte| *byte == b'x') && back.ends_with(LAST.as_bytes()));
}

#[test]
fn it_is_reached_by_each_way_and_counted() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let host = Host::start().await;
        let port = host.address.port();
        let inside = gate.open("a", host.grants()).await;
        talk(connect(&inside, &host.name()).await, 1_000).await;
        let listener = capture(port);
        let at = listener.local_addr().unwrap();
        let network = Network { grants: host.grants(), ..Network::default() };
        gate.client.open("a", &network, &[], Some(OwnedFd::from(listener))).await.unwrap();
        talk(Connection::new(TcpStream::connect(at).await.unwrap()), 1_000).await;
        let (ours, theirs) = UnixStream::pair().unwrap();
        let theirs = OwnedFd::from(theirs.into_std().unwrap());
        gate.client.connection("a", Some(port), theirs).await.unwrap();
        talk(Connection::new(ours), 1_000).await;
        let flows = gate.flows("a").await;
        let [flow] = &flows[..] else { panic!("{flows:?}") };
        assert_eq!((flow.host.as_str(), flow.port, flow.requests), ("localhost", port, 3));
        assert_eq!(flow.grant, Some(host.words()));
        let back = 3 * (GREETING.len() + 1_000 + LAST.len()) as u64;
        assert_eq!((flow.sent_bytes, flow.received_bytes), (3_000, back));
    });
}

#[test]
fn a_hundred_megabytes_pass() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let host = Host::start().await;
        let inside = gate.open("a", host.grants()).await;
        talk(connect(&inside, &host.name()).await, MANY).await;
    });
}

#[test]
fn a_host_may_end_first() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let name = listener.local_addr().unwrap().to_string();
        let inside = gate.open("a", grant_of(&format!("tcp:{name}")).unwrap()).await;
        let (mut program, accepted) = tokio::join!(connect(&inside, &name), listener.accept());
        let (mut host, _) = accepted.unwrap();
        host.write_all(LAST.as_bytes()).await.unwrap();
        host.shutdown().await.unwrap();
        let mut read = String::new();
        program.stream.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, LAST);
        program.stream.write_all(b"and yet").await.unwrap();
        program.stream.shutdown().await.unwrap();
        read.clear();
        host.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "and yet");
    });
}

#[test]
fn it_ends_when_it_is_not_granted_any_more() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let host = Host::start().await;
        let inside = gate.open("a", host.grants()).await;
        let mut connection = connect(&inside, &host.name()).await;
        connection.until(GREETING).await;
        // What is granted otherwise is of no use to it.
        let others = grant_of(&host.name()).unwrap();
        gate.client
            .open("a", &Network { grants: others, ..Network::default() }, &[], None)
            .await
            .unwrap();
        assert!(!connection.stream.read(&mut [0; 64]).await.is_ok_and(|length| length > 0));
        host.is_left().await;
    });
}

#[test]
fn what_may_not_be_sent_any_more_does_not_leave() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let host = Host::start().await;
        let (grants, sent_bytes_max) = (host.grants(), Some(1_000));
        let network = Network { grants, sent_bytes_max, ..Network::default() };
        let inside = gate.open_network("a", network).await;
        let mut connection = connect(&inside, &host.name()).await;
        connection.stream.write_all(&[b'x'; 900]).await.unwrap();
        connection.until(&"x".repeat(900)).await;
        connection.stream.write_all(&[b'y'; 900]).await.unwrap();
        assert!(!connection.stream.read(&mut [0; 64]).await.is_ok_and(|length| length > 0));
        let flow = gate.wait_for("a", |flow| flow.refusal == Some(Refusal::Spent)).await;
        assert_eq!((flow.host.as_str(), flow.port), ("localhost", host.address.port()));
        host.is_left().await;
    });
}

#[test]
fn nothing_else_is_granted_with_it() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let (host, other) = (Host::start().await, Host::start().await);
        let inside = gate.open("a", host.grants()).await;
        let others = [other.name(), format!("127.0.0.1:{}", host.address.port())];
        for to in others {
            let connect = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n");
            let reply = inside.connect().await.ask_connect(&connect).await.unwrap();
            assert_eq!((reply.status, reply.refused()), (403, Some("not_granted")), "{to}");
        }
        let name = host.name();
        let request = format!("GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\n\r\n");
        let reply = inside.ask(&request).await.unwrap();
        assert_eq!((reply.status, reply.refused()), (403, Some("not_granted")));
        let port = other.address.port();
        let network = Network { grants: host.grants(), ..Network::default() };
        let listener = capture(port);
        let at = listener.local_addr().unwrap();
        gate.client.open("a", &network, &[], Some(OwnedFd::from(listener))).await.unwrap();
        let mut straight = TcpStream::connect(at).await.unwrap();
        assert_eq!(straight.read(&mut [0; 64]).await.unwrap_or(0), 0);
        gate.wait_for("a", |flow| {
            (flow.host.as_str(), flow.port, flow.refusal) == ("", port, Some(Refusal::NotGranted))
        })
        .await;
        assert_eq!(host.left.load(Ordering::SeqCst) + other.left.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn what_can_not_be_told_apart_is_refused() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let network = |words: &[&str]| Network {
            grants: words.iter().flat_map(|word| grant_of(word).unwrap()).collect(),
            ..Network::default()
        };
        let two = network(&["tcp:a.test:22", "tcp:b.test:22"]);
        let refused = gate.client.open("a", &two, &[], None).await.unwrap_err();
        let Error::Refused(why) = refused else { panic!("{refused}") };
        assert!(why.starts_with("a.test and b.test can't both be passed on unread at port 22"));
        let fine = ["tcp:a.test:443", "tcp:b.test:443", "tcp:a.test:22", "tcp:a.test:23"];
        let fine = network(&fine);
        assert_eq!(fine.captured_ports().unwrap(), [22, 23]);
        gate.client.open("a", &fine, &[], None).await.unwrap();
        let mut beneath = grant("*.test", 22, Scheme::Tcp);
        beneath.private = false;
        let beneath = Network { grants: vec![beneath], ..Network::default() };
        assert!(gate.client.open("a", &beneath, &[], None).await.is_err());
    });
}

#[test]
fn a_host_that_is_not_there_is_told_of_before_the_stream() {
    run(async {
        let gate = Gate::new(&Authority::new());
        // Held, so that nobody else comes to listen there.
        let held = unheard();
        let port = held.local_addr().unwrap().port();
        let inside = gate.open("a", grant_of(&format!("tcp:127.0.0.1:{port}")).unwrap()).await;
        let connect =
            format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
        let reply = inside.connect().await.ask_connect(&connect).await.unwrap();
        assert_eq!((reply.status, reply.refused()), (502, Some("unreachable")), "{reply:?}");
        let flow = gate.wait_for("a", |flow| flow.port == port).await;
        assert_eq!((flow.refusal, flow.grant), (Some(Refusal::Unreachable), None));
    });
}

#[test]
fn a_host_is_reached_through_the_operators_proxy() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let host = Host::start().await;
        let (proxy, heads) = proxy(host.address).await;
        let network = Network {
            grants: grant_of("tcp:db.test:5432").unwrap(),
            proxy: Some(Proxy { url: format!("http://{proxy}"), no_proxy: Vec::new() }),
            ..Network::default()
        };
        let inside = gate.open_network("a", network).await;
        talk(connect(&inside, "db.test:5432").await, 1_000).await;
        let heads = heads.lock().unwrap();
        assert!(heads[0].starts_with("CONNECT db.test:5432 HTTP/1.1\r\n"), "{heads:?}");
    });
}

#[test]
fn tls_is_between_the_program_and_the_host() {
    run(async {
        let (trusted, theirs) = (Authority::new(), Authority::new());
        let gate = Gate::new(&trusted);
        let tls = theirs.server(&["localhost", "other.test"], 9);
        let upstream = Upstream::start(Some(tls), Answer::Echo).await;
        let name = format!("localhost:{}", upstream.port());
        let words = [name.clone(), format!("tcp:{name}")];
        let grants = words.iter().flat_map(|word| grant_of(word).unwrap()).collect();
        let inside = gate.open("a", grants).await;
        // Whatever name is in it.
        for host in ["localhost", "other.test"] {
            let tunnel = inside.tunnel_trusting(&name, Some(host), theirs.pem()).await;
            let request = "GET /pinned HTTP/1.1\r\nHost: x\r\n\r\n";
            assert_eq!(tunnel.unwrap().ask(request).await.unwrap().status, 200);
        }
        assert!(inside.tunnel(&name, Some("localhost")).await.is_none());
        assert_eq!(upstream.requests().len(), 2);
    });
}

#[test]
fn tls_that_a_name_led_here_is_so_too() {
    run(async {
        let (trusted, theirs) = (Authority::new(), Authority::new());
        let gate = Gate::new(&trusted);
        let tls = theirs.server(&["pinned.test"], 9);
        let upstream = Upstream::start(Some(tls), Answer::Echo).await;
        let (proxy, _) = proxy(upstream.address).await;
        let words = ["tcp:pinned.test:443", "read.test"];
        let network = Network {
            grants: words.iter().flat_map(|word| grant_of(word).unwrap()).collect(),
            proxy: Some(Proxy { url: format!("http://{proxy}"), no_proxy: Vec::new() }),
            ..Network::default()
        };
        let inside = gate.open_network("a", network).await;
        let mut tls = straight(&inside, "pinned.test", theirs.pem()).await.unwrap();
        let request = "GET /pinned HTTP/1.1\r\nHost: x\r\n\r\n";
        assert_eq!(tls.ask(request).await.unwrap().status, 200);
        assert!(straight(&inside, "pinned.test", &inside.authority).await.is_none());
        assert!(straight(&inside, "read.test", &inside.authority).await.is_some());
        let flow = gate.wait_for("a", |flow| flow.host == "pinned.test").await;
        assert_eq!((flow.port, flow.grant.as_deref()), (443, Some("tcp:pinned.test:443")));
        assert!(flow.sent_bytes > request.len() as u64, "with the first message: {flow:?}");
    });
}
