//! Hosts that mean harm, or are not who they say.

use outrigger_gate::{Refusal, Scheme};

use crate::support::{Gate, Reply, grant, run};
use crate::upstream::{Answer, Authority, Upstream, self_signed};

/// Asks a host once, through TLS.
async fn ask(gate: &Gate, sandbox: &str, port: u16) -> Option<Reply> {
    let inside = gate.open(sandbox, vec![grant("localhost", port, Scheme::Https)]).await;
    let authority = format!("localhost:{port}");
    let mut tunnel = inside.tunnel(&authority, Some("localhost")).await.unwrap();
    tunnel.ask(&format!("GET /secret HTTP/1.1\r\nHost: {authority}\r\n\r\n")).await
}

#[test]
fn hosts_without_a_valid_certificate_see_nothing() {
    run(async {
        let (trusted, stranger) = (Authority::new(), Authority::new());
        let gate = Gate::new(&trusted);
        for (sandbox, tls) in [
            ("wrong", trusted.server(&["other.test"], 9)),
            ("expired", trusted.server(&["localhost"], -2)),
            ("self-signed", self_signed("localhost")),
            ("stranger", stranger.server(&["localhost"], 9)),
        ] {
            let upstream = Upstream::start(Some(tls), Answer::Echo).await;
            let reply = ask(&gate, sandbox, upstream.port()).await.unwrap();
            assert_eq!((reply.status, reply.refused()), (502, Some("certificate")), "{reply:?}");
            upstream.is_left().await;
            assert_eq!(upstream.bytes(), 0, "{sandbox}");
            let flows = gate.flows(sandbox).await;
            assert_eq!(flows.len(), 1);
            assert_eq!(flows[0].refusal, Some(Refusal::Certificate));
            assert_eq!(flows[0].path.as_deref(), Some("/secret"));
        }
    });
}

#[test]
fn hosts_that_do_not_speak_tls_are_not_spoken_to() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let upstream =
            Upstream::start(None, Answer::Bytes(b"HTTP/1.1 400 Bad\r\n\r\n".to_vec())).await;
        // The host waits for the end of a head that TLS does not have: let it hang up first.
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = closed.local_addr().unwrap().port();
        drop(closed);
        let reply = ask(&gate, "closed", port).await.unwrap();
        assert_eq!((reply.status, reply.refused()), (502, Some("unreachable")), "{reply:?}");
        let talker = Upstream::start(None, Answer::Echo).await;
        let reply = ask(&gate, "silent", talker.port()).await.unwrap();
        assert_eq!(reply.refused(), Some("unreachable"), "{reply:?}");
        assert!(talker.requests().is_empty() && upstream.requests().is_empty());
    });
}

#[test]
fn endless_and_huge_heads_end_the_connection() {
    run(async {
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let begin = b"HTTP/1.1 200 OK\r\n".to_vec();
        let huge = [&begin[..], b"X: ", &vec![b'y'; 1 << 20], b"\r\n\r\n"].concat();
        for (sandbox, answer) in [
            ("endless", Answer::Endless(begin.clone(), b"X: y\r\n".to_vec())),
            ("endless-line", Answer::Endless(begin, vec![b'x'; 4096])),
            ("huge", Answer::Bytes(huge)),
            ("garbage", Answer::Bytes(b"\0\0\0\0\r\n\r\n".to_vec())),
            ("two-lengths", Answer::Bytes(
                b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab".to_vec(),
            )),
            ("switch", Answer::Bytes(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n".to_vec(),
            )),
        ] {
            let tls = authority.server(&["localhost"], 9);
            let upstream = Upstream::start(Some(tls), answer).await;
            let reply = ask(&gate, sandbox, upstream.port()).await.unwrap();
            assert_eq!((reply.status, reply.refused()), (502, Some("unreachable")), "{sandbox}: {reply:?}");
        }
    });
}

#[test]
fn a_redirect_is_the_programs_to_follow() {
    run(async {
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let location = "http://169.254.169.254/latest/meta-data/";
        let answer = format!(
            "HTTP/1.1 302 Found\r\nLocation: {location}\r\nAlt-Svc: h3=\":443\"\r\nContent-Length: 0\r\n\r\n"
        );
        let tls = authority.server(&["localhost"], 9);
        let upstream = Upstream::start(Some(tls), Answer::Bytes(answer.into_bytes())).await;
        let reply = ask(&gate, "a", upstream.port()).await.unwrap();
        assert_eq!((reply.status, reply.header("location")), (302, Some(location)));
        assert_eq!(reply.header("alt-svc"), None);
        let inside = gate.open("a", vec![grant("localhost", upstream.port(), Scheme::Https)]).await;
        let followed = format!("GET {location} HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n");
        let reply = inside.ask(&followed).await.unwrap();
        assert_eq!((reply.status, reply.refused()), (403, Some("not_granted")));
    });
}

#[test]
fn a_body_that_nobody_reads_is_given_up() {
    run(async {
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let begin = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n".to_vec();
        let tls = authority.server(&["localhost"], 9);
        let answer = Answer::Endless(begin, vec![b'x'; 1 << 16]);
        let upstream = Upstream::start(Some(tls), answer).await;
        let port = upstream.port();
        let inside = gate.open("a", vec![grant("localhost", port, Scheme::Https)]).await;
        let authority = format!("localhost:{port}");
        let mut tunnel = inside.tunnel(&authority, Some("localhost")).await.unwrap();
        use tokio::io::AsyncWriteExt;
        let request = format!("GET / HTTP/1.1\r\nHost: {authority}\r\n\r\n");
        tunnel.stream.write_all(request.as_bytes()).await.unwrap();
        assert!(tunnel.head().await.unwrap().starts_with("HTTP/1.1 200"));
        drop(tunnel);
        upstream.is_left().await;
    });
}
