//! What grants allow, what they end, and what is counted.

use outrigger_gate::{Network, Proxy, Refusal, Scheme, ready};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Gate, grant, run};
use crate::upstream::{Answer, Authority, Upstream, proxy};

#[test]
fn methods_and_paths_are_as_granted() {
    run(async {
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let tls = authority.server(&["localhost"], 9);
        let upstream = Upstream::start(Some(tls), Answer::Echo).await;
        let port = upstream.port();
        let mut read = grant("localhost", port, Scheme::Https);
        read.methods = vec!["GET".to_owned(), "HEAD".to_owned()];
        let mut write = grant("localhost", port, Scheme::Https);
        write.name = "write".to_owned();
        write.methods = vec!["POST".to_owned()];
        write.paths = vec!["/in/*".to_owned()];
        let inside = gate.open("a", vec![read, write]).await;
        let host = format!("localhost:{port}");
        let mut tunnel = inside.tunnel(&host, Some("localhost")).await.unwrap();
        for (asked, status, refused) in [
            ("GET /a", 200, None),
            ("POST /in/1", 200, None),
            ("POST /out", 403, Some("path")),
            ("POST /in/../out", 403, Some("path")),
            ("POST /in/%2e%2e/out", 403, Some("path")),
            ("DELETE /in/1", 403, Some("method")),
            ("get /a", 403, Some("method")),
        ] {
            let request = format!("{asked} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n");
            let reply = tunnel.ask(&request).await.unwrap();
            assert_eq!((reply.status, reply.refused()), (status, refused), "{asked}");
        }
        let refused =
            inside.ask("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n");
        let refused = refused.await.unwrap();
        assert!(refused.head.starts_with("HTTP/1.1 403 Not in the sandbox's network\r\n"));
        assert_eq!(
            refused.body,
            "outrigger: the network of this sandbox does not include example.com:443; \
             `--net example.com` would allow it.\n"
        );
        let flows = gate.flows("a").await;
        let of = |wanted: Result<&str, Refusal>| {
            let mut rows = flows.iter().filter(|flow| flow.host == "localhost");
            rows.find(|flow| flow.grant.as_deref() == wanted.ok() && flow.refusal == wanted.err())
        };
        assert_eq!(of(Ok("test")).unwrap().requests, 1);
        assert_eq!(of(Ok("write")).unwrap().requests, 1);
        assert_eq!(of(Err(Refusal::Method)).unwrap().requests, 2);
        let path = of(Err(Refusal::Path)).unwrap();
        assert_eq!((path.requests, path.path.as_deref()), (3, Some("/in/%2e%2e/out")));
        assert_eq!(upstream.requests().len(), 2);
    });
}

#[test]
fn a_connection_inside_has_one_outside() {
    run(async {
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let tls = authority.server(&["localhost"], 9);
        let upstream = Upstream::start(Some(tls), Answer::Echo).await;
        let host = format!("localhost:{}", upstream.port());
        let inside = gate.open("a", vec![grant("localhost", upstream.port(), Scheme::Https)]).await;
        let mut tunnel = inside.tunnel(&host, Some("localhost")).await.unwrap();
        for number in 0..200 {
            let request = format!("GET /{number} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(tunnel.ask(&request).await.unwrap().status, 200);
        }
        assert_eq!(upstream.connections(), 1);
        let flows = gate.flows("a").await;
        assert_eq!((flows.len(), flows[0].requests), (1, 200));
        assert!(flows[0].sent_bytes > 200 * 20 && flows[0].received_bytes > 200 * 20, "{flows:?}");
        // Another one inside has its own.
        let mut other = inside.tunnel(&host, Some("localhost")).await.unwrap();
        other.ask(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).await.unwrap();
        assert_eq!(upstream.connections(), 2);
    });
}

#[test]
fn a_sandbox_is_not_vouched_for_by_another() {
    run(async {
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let tls = authority.server(&["localhost"], 9);
        let upstream = Upstream::start(Some(tls), Answer::Echo).await;
        let host = format!("localhost:{}", upstream.port());
        let grants = vec![grant("localhost", upstream.port(), Scheme::Https)];
        let a = gate.open("a", grants.clone()).await;
        let b = gate.open("b", grants).await;
        let trusting =
            async |trusted: &str| a.tunnel_trusting(&host, Some("localhost"), trusted).await;
        assert!(trusting(&a.authority).await.is_some());
        assert!(trusting(&b.authority).await.is_none());
        assert!(trusting(authority.pem()).await.is_none());
    });
}

/// Begins a download that has no end, and says whether what the caller does ends it.
async fn ends(sandbox: &'static str, what: impl AsyncFn(&Gate, u16)) {
    let authority = Authority::new();
    let gate = Gate::new(&authority);
    let begin = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n".to_vec();
    let tls = authority.server(&["localhost"], 9);
    let answer = Answer::Endless(begin, vec![b'x'; 1 << 14]);
    let upstream = Upstream::start(Some(tls), answer).await;
    let port = upstream.port();
    let inside = gate.open(sandbox, vec![grant("localhost", port, Scheme::Https)]).await;
    let host = format!("localhost:{port}");
    let mut tunnel = inside.tunnel(&host, Some("localhost")).await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    tunnel.stream.write_all(request.as_bytes()).await.unwrap();
    assert!(tunnel.head().await.unwrap().starts_with("HTTP/1.1 200"));
    what(&gate, port).await;
    let mut space = vec![0; 1 << 16];
    while tunnel.stream.read(&mut space).await.is_ok_and(|length| length > 0) {}
    upstream.is_left().await;
}

#[test]
fn what_is_not_granted_any_more_ends() {
    run(ends("a", async |gate, _| {
        gate.client.open("a", &Network::default(), &[], None).await.unwrap();
    }));
}

#[test]
fn what_is_closed_ends() {
    run(ends("a", async |gate, _| {
        let flows = gate.client.close("a").await.unwrap();
        assert_eq!(flows.flows.len(), 1);
    }));
}

#[test]
fn grants_change_for_live_connections() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let upstream = Upstream::start(None, Answer::Echo).await;
        let port = upstream.port();
        let all = grant("localhost", port, Scheme::Http);
        let mut reading = all.clone();
        reading.methods = vec!["GET".to_owned()];
        let inside = gate.open("a", vec![reading]).await;
        let mut connection = inside.connect().await;
        let ask = |method: &str| {
            format!(
                "{method} http://localhost:{port}/ HTTP/1.1\r\nHost: localhost:{port}\r\n\
                 Content-Length: 0\r\n\r\n"
            )
        };
        assert_eq!(connection.ask(&ask("GET")).await.unwrap().status, 200);
        assert_eq!(connection.ask(&ask("PUT")).await.unwrap().status, 403);
        let network = Network { grants: vec![all], ..Network::default() };
        gate.client.open("a", &network, &[], None).await.unwrap();
        assert_eq!(connection.ask(&ask("PUT")).await.unwrap().status, 200);
        assert_eq!(upstream.connections(), 1);
    });
}

#[test]
fn a_flood_of_refusals_is_one_row() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let inside = gate.open("a", Vec::new()).await;
        let mut connection = inside.connect().await;
        for number in 0..1000 {
            let request =
                format!("GET http://example.com/{number} HTTP/1.1\r\nHost: example.com\r\n\r\n");
            assert_eq!(connection.ask(&request).await.unwrap().status, 403);
        }
        let flows = gate.client.flows("a").await.unwrap();
        assert_eq!((flows.flows.len(), flows.flows[0].requests, flows.lost), (1, 1000, 0));
        assert_eq!(flows.flows[0].path.as_deref(), Some("/999"));
        assert!(gate.client.flows("a").await.unwrap().flows.is_empty());
    });
}

#[test]
fn what_is_not_a_request_for_a_proxy_is_told_so() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let upstream = Upstream::start(None, Answer::Echo).await;
        let host = format!("localhost:{}", upstream.port());
        let inside = gate.open("a", vec![grant("localhost", upstream.port(), Scheme::Http)]).await;
        for (request, status) in [
            ("GET / HTTP/1.1\r\nHost: §\r\n\r\n", 400),
            ("GET https://§/ HTTP/1.1\r\nHost: §\r\n\r\n", 400),
            ("GET ftp://§/ HTTP/1.1\r\nHost: §\r\n\r\n", 400),
            ("GET http://§/ HTTP/1.1\r\nHost: other.test\r\n\r\n", 421),
            ("CONNECT § HTTP/1.1\r\nHost: other.test\r\n\r\n", 421),
            ("CONNECT localhost HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
            ("CONNECT § HTTP/1.1\r\nHost: §\r\n\r\n", 403),
            (
                "GET http://§/ HTTP/1.1\r\nHost: §\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
                501,
            ),
        ] {
            let reply = inside.ask(&request.replace('§', &host)).await.unwrap();
            assert_eq!(reply.status, status, "{request:?} {reply:?}");
            assert!(reply.body.starts_with("outrigger: "), "{reply:?}");
        }
        assert_eq!(upstream.connections(), 0);
    });
}

#[test]
fn headers_for_the_next_hop_stay_behind() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let upstream = Upstream::start(None, Answer::Echo).await;
        let host = format!("localhost:{}", upstream.port());
        let inside = gate.open("a", vec![grant("localhost", upstream.port(), Scheme::Http)]).await;
        let request = format!(
            "GET http://{host}/a?b=c HTTP/1.1\r\nHost: {host}\r\nConnection: X-Gone\r\nX-Gone: 1\r\n\
             Proxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\nX-Kept: 1\r\n\r\n"
        );
        let seen = inside.ask(&request).await.unwrap().body.to_ascii_lowercase();
        assert!(seen.starts_with("get /a?b=c http/1.1\r\n"), "{seen}");
        assert!(seen.contains("x-kept: 1") && seen.contains(&format!("host: {host}")), "{seen}");
        assert!(
            !seen.contains("gone") && !seen.contains("proxy") && !seen.contains("basic"),
            "{seen}"
        );
    });
}

#[test]
fn the_operators_proxy_is_asked_for_everything() {
    run(async {
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let tls = authority.server(&["a.test"], 9);
        let upstream = Upstream::start(Some(tls), Answer::Echo).await;
        let plain = Upstream::start(None, Answer::Echo).await;
        let (to_tls, tls_heads) = proxy(upstream.address).await;
        let (to_plain, plain_heads) = proxy(plain.address).await;
        let network = |proxy, scheme, port| Network {
            grants: vec![grant("a.test", port, scheme)],
            proxy: Some(Proxy { url: format!("http://me:pw@{proxy}"), no_proxy: Vec::new() }),
            ..Network::default()
        };
        let inside = gate.open_network("a", network(to_tls, Scheme::Https, 443)).await;
        let mut tunnel = inside.tunnel("a.test:443", Some("a.test")).await.unwrap();
        let reply = tunnel.ask("GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n").await.unwrap();
        assert_eq!(reply.status, 200);
        assert!(!reply.body.contains("roxy"), "{reply:?}");
        let head = tls_heads.lock().unwrap().concat();
        assert!(head.starts_with("CONNECT a.test:443 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("Proxy-Authorization: Basic bWU6cHc="), "{head}");
        let inside = gate.open_network("b", network(to_plain, Scheme::Http, 80)).await;
        let reply = inside.ask("GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
        assert_eq!(reply.unwrap().status, 200);
        let head = plain_heads.lock().unwrap().concat();
        assert!(head.starts_with("GET http://a.test/x HTTP/1.1\r\n"), "{head}");
    });
}

#[test]
fn one_repository_can_be_fetched_from() {
    run(async {
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let tls = authority.server(&["git.test"], 9);
        let upstream = Upstream::start(Some(tls), Answer::Echo).await;
        let (through, _) = proxy(upstream.address).await;
        let grants = ready::git("https://git.test/org/repo.git").unwrap();
        let proxy = Some(Proxy { url: format!("http://{through}"), no_proxy: Vec::new() });
        let inside = gate.open_network("a", Network { grants, proxy, ..Network::default() }).await;
        let mut tunnel = inside.tunnel("git.test:443", Some("git.test")).await.unwrap();
        for (asked, status) in [
            ("GET /org/repo.git/info/refs?service=git-upload-pack", 200),
            ("POST /org/repo.git/git-upload-pack", 200),
            ("GET /org/repo.git/info/refs?service=git-receive-pack", 403),
            ("GET /org/repo.git/info/refs", 403),
            ("POST /org/repo.git/git-receive-pack", 403),
            ("GET /org/other.git/info/refs?service=git-upload-pack", 403),
            ("POST /org/repo.git/info/lfs/objects/batch", 403),
        ] {
            let request =
                format!("{asked} HTTP/1.1\r\nHost: git.test\r\nContent-Length: 0\r\n\r\n");
            assert_eq!(tunnel.ask(&request).await.unwrap().status, status, "{asked}");
        }
    });
}
