//! Heads that two servers could read as different requests.

use outrigger_gate::{Refusal, Scheme};

use crate::support::{Gate, grant, run};
use crate::upstream::{Answer, Authority, Upstream};

/// Requests with `T` for their target and `H` for their host.
const CORPUS: &[&str] = &[
    "POST T HTTP/1.1\r\nHost: H\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST T HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "POST T HTTP/1.1\r\nHost: H\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nhello",
    "POST T HTTP/1.1\r\nHost: H\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "POST T HTTP/1.1\r\nHost: H\r\nContent-Length: 5, 5\r\n\r\nhello",
    "POST T HTTP/1.1\r\nHost: H\r\nContent-Length: +5\r\n\r\nhello",
    "POST T HTTP/1.1\r\nHost: H\r\nContent-Length: -5\r\n\r\nhello",
    "POST T HTTP/1.1\r\nHost: H\r\nContent-Length: 0x5\r\n\r\nhello",
    "POST T HTTP/1.1\r\nHost: H\r\nContent-Length: 5 5\r\n\r\nhello",
    "POST T HTTP/1.1\r\nHost: H\r\nContent-Length: \r\n\r\nhello",
    "POST T HTTP/1.1\r\nHost: H\r\nContent-Length: 99999999999999999999999\r\n\r\nhello",
    "POST T HTTP/1.1\r\nHost: H\r\nContent_Length: 5\r\n\r\nhello",
    "POST T HTTP/1.1\r\nHost: H\r\nContent-Length : 5\r\n\r\nhello",
    "POST T HTTP/1.1\r\nHost: H\r\n Content-Length: 5\r\n\r\nhello",
    "POST T HTTP/1.1\r\nHost: H\r\nX: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST T HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "POST T HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "POST T HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "POST T HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: identity\r\n\r\n",
    "POST T HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST T HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
    "POST T HTTP/1.1\r\nHost: H\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "POST T HTTP/1.1\r\nHost: H\r\nTransfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n",
    "POST T HTTP/1.1\r\nHost: H\r\nTransfer_Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST T HTTP/1.0\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET T HTTP/1.1\r\nHost: H\r\nHost: evil.test\r\n\r\n",
    "GET T HTTP/1.1\r\nHost: H\r\nHost: H\r\n\r\n",
    "GET T HTTP/1.1\r\n\r\n",
    "GET T HTTP/1.1\nHost: H\n\n",
    "GET T HTTP/1.1\r\nHost: H\nX: y\r\n\r\n",
    "GET T HTTP/1.1\r\nHost: H\r\nX: y\n\r\n",
    "GET T HTTP/1.1\r\nHost: H\r\nX: a\rb\r\n\r\n",
    "GET T HTTP/1.1\r\nHost: H\r\nX: a\0b\r\n\r\n",
    "GET T HTTP/1.1\r\nHost: H\r\nX y: a\r\n\r\n",
    "GET T HTTP/1.1\r\nHost: H\r\nX(y: a\r\n\r\n",
    "GET T HTTP/1.1\r\nHost: H\r\n: a\r\n\r\n",
    "GET T HTTP/1.1\r\nHost: H\r\nX\r\n\r\n",
    "GET T HTTP/1.1\r\nHost: H\r\nX\u{e4}: a\r\n\r\n",
    "GET  T HTTP/1.1\r\nHost: H\r\n\r\n",
    "GET T  HTTP/1.1\r\nHost: H\r\n\r\n",
    "GET\tT\tHTTP/1.1\r\nHost: H\r\n\r\n",
    "GET T HTTP/1.1 \r\nHost: H\r\n\r\n",
    "GET T HTTP/2.0\r\nHost: H\r\n\r\n",
    "GET T HTTP/1.2\r\nHost: H\r\n\r\n",
    "GET T\r\nHost: H\r\n\r\n",
    "GET T#x HTTP/1.1\r\nHost: H\r\n\r\n",
    "G(T T HTTP/1.1\r\nHost: H\r\n\r\n",
    "TRACE T HTTP/1.1\r\nHost: H\r\n\r\n",
    "\r\nGET T HTTP/1.1\r\nHost: H\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
];

fn filled(template: &str, target: &str, host: &str) -> Vec<u8> {
    // `T` and `H` stand alone, between what no word has around it.
    template
        .replace(" T", &format!(" {target}"))
        .replace("\tT", &format!("\t{target}"))
        .replace("Host: H", &format!("Host: {host}"))
        .into_bytes()
}

#[test]
fn ambiguous_heads_reach_nobody() {
    run(async {
        assert!(CORPUS.len() >= 30);
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let plain = Upstream::start(None, Answer::Echo).await;
        let tls = Upstream::start(Some(authority.server(&["localhost"], 9)), Answer::Echo).await;
        let (port, tls_port) = (plain.port(), tls.port());
        let inside = gate
            .open(
                "a",
                vec![
                    grant("localhost", port, Scheme::Http),
                    grant("localhost", tls_port, Scheme::Https),
                ],
            )
            .await;
        let (host, tls_host) = (format!("localhost:{port}"), format!("localhost:{tls_port}"));
        for template in CORPUS {
            let mut connection = inside.connect().await;
            let head = filled(template, &format!("http://{host}/"), &host);
            let reply = connection.ask_bytes(&head).await.expect(template);
            assert_eq!((reply.status, reply.refused()), (400, Some("malformed")), "{template:?}");
            // Nothing of what follows is taken for a request.
            let next = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert!(connection.ask(&next).await.is_none(), "{template:?}");
            let mut tunnel = inside.tunnel(&tls_host, Some("localhost")).await.unwrap();
            let head = filled(template, "/", &tls_host);
            let reply = tunnel.ask_bytes(&head).await.expect(template);
            assert_eq!((reply.status, reply.refused()), (400, Some("malformed")), "{template:?}");
        }
        assert_eq!((plain.connections(), tls.connections()), (0, 0));
        let flow = gate.wait_for("a", |flow| flow.refusal == Some(Refusal::Malformed)).await;
        assert!(flow.requests >= CORPUS.len() as u64);
    });
}

#[test]
fn heads_have_limits() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let upstream = Upstream::start(None, Answer::Echo).await;
        let host = format!("localhost:{}", upstream.port());
        let inside = gate.open("a", vec![grant("localhost", upstream.port(), Scheme::Http)]).await;
        let begin = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n");
        let many = (0..100).map(|number| format!("X-{number}: y\r\n")).collect::<String>();
        let long = format!("X: {}\r\n", "y".repeat(1 << 20));
        for headers in [many, long] {
            let reply = inside.ask(&format!("{begin}{headers}\r\n")).await;
            // What is too long may be cut off before it was sent whole, and the answer with it.
            if let Some(reply) = reply {
                assert_eq!((reply.status, reply.refused()), (400, Some("malformed")));
            }
        }
        assert_eq!(upstream.connections(), 0);
        let few = (0..99).map(|number| format!("X-{number}: y\r\n")).collect::<String>();
        assert_eq!(inside.ask(&format!("{begin}{few}\r\n")).await.unwrap().status, 200);
    });
}

#[test]
fn requests_behind_each_other_stay_apart() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let upstream = Upstream::start(None, Answer::Echo).await;
        let host = format!("localhost:{}", upstream.port());
        let inside = gate.open("a", vec![grant("localhost", upstream.port(), Scheme::Http)]).await;
        let mut connection = inside.connect().await;
        let post = |path: &str, rest: &str| {
            format!("POST http://{host}/{path} HTTP/1.1\r\nHost: {host}\r\n{rest}")
        };
        let all = [
            post("1", "Content-Length: 5\r\n\r\nhello"),
            post("2", "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n"),
            post("3", "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi"),
            post("4", "Content-Length: 0\r\n\r\n"),
        ];
        let mut bodies = Vec::new();
        let mut reply = connection.ask(&all.concat()).await.unwrap();
        loop {
            if reply.status == 200 {
                bodies.push(reply.body);
            }
            if bodies.len() == 4 {
                break;
            }
            reply = connection.reply().await.unwrap();
        }
        for (at, (end, body)) in
            ["hello", "5\r\nhello\r\n0\r\n\r\n", "hi", ""].iter().zip(&bodies).enumerate()
        {
            assert!(body.starts_with(&format!("POST /{} HTTP/1.1\r\n", at + 1)), "{body}");
            assert!(body.ends_with(&format!("\r\n\r\n{end}")), "{body}");
        }
        assert_eq!(upstream.connections(), 1);
    });
}
