//! Callers: requests of the installation itself, on a socket of the gate's directory.

use outrigger_gate::{
    CallerSocket, Network, Scheme, SealedSecret, SecretPlace, SecretTerms, SecretValue,
};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use crate::support::{Connection, Gate, Reply, grant, run, unheard};
use crate::upstream::{Answer, Authority, Upstream};

const SECRET: &str = "sk-ant-api03-canaryCANARY0123456789abcdefghijklmn";

/// A gate, and a host with TLS that it trusts.
async fn world(answer: Answer) -> (Gate, Upstream) {
    let authority = Authority::new();
    let gate = Gate::new(&authority);
    let host = Upstream::start(Some(authority.server(&["localhost"], 9)), answer).await;
    (gate, host)
}

/// A caller with a key for one port of this machine. Gives what it has instead of the key.
async fn caller(gate: &Gate, port: u16) -> (CallerSocket, String) {
    let place = SecretPlace::new(grant("localhost", port, Scheme::Https));
    let (name, organisation) = ("KEY".to_owned(), "o".to_owned());
    let terms =
        SecretTerms { name, organisation, places: vec![place], ends_ms: None, verifies: false };
    let value = SecretValue::new(SECRET.to_owned().into()).unwrap();
    let sealed: SealedSecret = gate.client.seal(None, terms, value).await.unwrap();
    let called = gate.client.call(Network::default(), vec![sealed]).await;
    let (caller, placeholders) = called.unwrap();
    (caller, placeholders["KEY"].clone())
}

async fn connect(caller: &CallerSocket) -> Connection<UnixStream> {
    caller.ready().await.unwrap();
    Connection::new(UnixStream::connect(caller.path()).await.unwrap())
}

async fn ask(caller: &CallerSocket, host: &str, key: &str) -> Reply {
    let request = format!(
        "POST /v1/messages HTTP/1.1\r\nHost: {host}\r\nX-Api-Key: {key}\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    connect(caller).await.ask(&request).await.unwrap()
}

#[test]
fn a_key_is_added_on_the_way_to_its_host_and_taken_out_of_the_answer() {
    run(async {
        let (gate, upstream) = world(Answer::Echo).await;
        let (caller, placeholder) = caller(&gate, upstream.port()).await;
        assert!(placeholder.starts_with("sk-ant-") && placeholder != SECRET);
        let host = format!("localhost:{}", upstream.port());
        let reply = ask(&caller, &host, &placeholder).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let seen = upstream.requests().pop().unwrap();
        let line = format!("x-api-key: {SECRET}");
        assert!(seen.starts_with("POST /v1/messages HTTP/1.1\r\n") && seen.contains(&line));
        assert!(seen.contains(&format!("host: {host}")), "{seen}");
        assert!(reply.body.contains(&placeholder) && !reply.body.contains(SECRET));
    });
}

#[test]
fn a_caller_reaches_what_it_was_granted_and_nothing_else() {
    run(async {
        let (gate, upstream) = world(Answer::Echo).await;
        let (caller, placeholder) = caller(&gate, upstream.port()).await;
        for host in ["localhost:1", "example.com:443", "localhost"] {
            let reply = ask(&caller, host, &placeholder).await;
            assert_eq!((reply.status, reply.refused()), (403, Some("not_granted")), "{host}");
            assert!(reply.body.starts_with("outrigger: ") && reply.body.contains("not granted"));
        }
        let host = format!("localhost:{}", upstream.port());
        for request in [
            format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            format!("GET / HTTP/1.1\r\nHost: {host}.\r\n\r\n"),
            "GET / HTTP/1.0\r\n\r\n".to_owned(),
        ] {
            let reply = connect(&caller).await.ask(&request).await.unwrap();
            assert_eq!((reply.status, reply.refused()), (400, Some("malformed")), "{request}");
        }
        assert_eq!(upstream.requests(), Vec::<String>::new());
    });
}

/// A call that may be done once only is told from one of which nothing was sent.
#[test]
fn what_was_never_sent_has_a_status_of_its_own() {
    run(async {
        let says_so = b"HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n".to_vec();
        let (gate, upstream) = world(Answer::Bytes(says_so)).await;
        let (caller, placeholder) = caller(&gate, upstream.port()).await;
        let reply = ask(&caller, &format!("localhost:{}", upstream.port()), &placeholder).await;
        assert_eq!((reply.status, reply.refused()), (502, Some("unreachable")), "{reply:?}");
        let held = unheard();
        let nobody = held.local_addr().unwrap();
        let grants = vec![grant("127.0.0.1", nobody.port(), Scheme::Http)];
        let called = gate.client.call(Network { grants, ..Network::default() }, Vec::new()).await;
        let reply = ask(&called.unwrap().0, &nobody.to_string(), "none").await;
        assert_eq!((reply.status, reply.refused()), (421, Some("unreachable")), "{reply:?}");
    });
}

#[test]
fn what_is_spoken_with_a_host_is_what_its_grant_says() {
    run(async {
        let (gate, plain) = (Gate::new(&Authority::new()), Upstream::start(None, Answer::Echo));
        let plain = plain.await;
        let grants = vec![grant("127.0.0.1", plain.port(), Scheme::Http)];
        let called = gate.client.call(Network { grants, ..Network::default() }, Vec::new()).await;
        let (caller, placeholders) = called.unwrap();
        assert!(placeholders.is_empty());
        let reply = ask(&caller, &format!("127.0.0.1:{}", plain.port()), "none").await;
        assert_eq!(reply.status, 200, "{reply:?}");
    });
}

#[test]
fn an_answer_arrives_piece_by_piece() {
    run(async {
        let event = "data: {\"delta\":\"s\"}\n\n";
        let begin = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{event}\r\n",
            event.len()
        );
        // The host says nothing more, and leaves the connection open.
        let (gate, upstream) = world(Answer::Bytes(begin.into_bytes())).await;
        let (caller, placeholder) = caller(&gate, upstream.port()).await;
        let mut connection = connect(&caller).await;
        let request = format!(
            "GET / HTTP/1.1\r\nHost: localhost:{}\r\nX-Api-Key: {placeholder}\r\n\r\n",
            upstream.port()
        );
        connection.stream.write_all(request.as_bytes()).await.unwrap();
        assert!(connection.head().await.unwrap().starts_with("HTTP/1.1 200"));
        connection.until(event).await;
    });
}

#[test]
fn a_gate_that_died_is_asked_again_before_the_next_request() {
    run(async {
        let (gate, upstream) = world(Answer::Echo).await;
        let (caller, placeholder) = caller(&gate, upstream.port()).await;
        let host = format!("localhost:{}", upstream.port());
        assert_eq!(ask(&caller, &host, &placeholder).await.status, 200);
        gate.kill();
        while caller.path().exists() && UnixStream::connect(caller.path()).await.is_ok() {}
        assert_eq!(ask(&caller, &host, &placeholder).await.status, 200);
        assert!(upstream.requests().iter().all(|seen| seen.contains(SECRET)));
        assert_eq!(upstream.requests().len(), 2);
        // One that still ends may have kept another from starting.
        assert!(gate.pids().len() > 1);
    });
}

#[test]
fn a_caller_ends_with_its_process() {
    run(async {
        let (gate, upstream) = world(Answer::Echo).await;
        let (caller, _) = caller(&gate, upstream.port()).await;
        let sockets = || {
            let names = std::fs::read_dir(gate.dir()).unwrap().flatten().map(|it| it.file_name());
            names.filter(|name| name.to_string_lossy().starts_with("caller-")).count()
        };
        assert_eq!(sockets(), 1);
        let mut connection = connect(&caller).await;
        drop(caller);
        assert!(connection.head().await.is_none(), "it is closed");
        while sockets() > 0 {
            // poll: the gate sees the end of a connection by itself
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    });
}
