//! CONNECT, TLS and the request name one host, in three places.

use std::sync::atomic::Ordering;

use http_body_util::BodyExt;
use hyper::Request;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use outrigger_gate::{Network, Proxy, Refusal, Scheme};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::support::{Gate, Inside, client_config, grant, run};
use crate::upstream::{Answer, Authority, Upstream, proxy, upstream_two};

const NAMES: [&str; 3] = ["alpha.test", "beta.test", "gamma.test"];

/// A gate whose sandbox may reach the first two of the names, by way of a proxy that
/// leads every name to one host.
async fn world() -> (Gate, Inside, Upstream) {
    let authority = Authority::new();
    let gate = Gate::new(&authority);
    let upstream = Upstream::start(Some(authority.server(&NAMES, 9)), Answer::Echo).await;
    let (proxy, _) = proxy(upstream.address).await;
    let grants = NAMES[..2].iter().map(|name| grant(name, 443, Scheme::Https)).collect();
    let proxy = Some(Proxy { url: format!("http://{proxy}"), no_proxy: Vec::new() });
    let inside = gate.open_network("a", Network { grants, proxy, ..Network::default() }).await;
    (gate, inside, upstream)
}

#[test]
fn only_one_host_in_all_three_places_passes() {
    run(async {
        let (gate, inside, upstream) = world().await;
        let mut passed = Vec::new();
        for connect in NAMES {
            for sni in NAMES {
                for host in NAMES {
                    let tunnel = inside.tunnel(&format!("{connect}:443"), Some(sni)).await;
                    let Some(mut tunnel) = tunnel else { continue };
                    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
                    let reply = tunnel.ask(&request).await.unwrap();
                    if reply.status == 200 {
                        passed.push((connect, sni, host));
                    } else {
                        assert_eq!((reply.status, reply.refused()), (421, Some("mismatch")));
                    }
                }
            }
        }
        let diagonal = NAMES[..2].iter().map(|name| (*name, *name, *name)).collect::<Vec<_>>();
        assert_eq!(passed, diagonal);
        assert_eq!(upstream.requests().len(), 2);
        let flows = gate.flows("a").await;
        let count = |host: &str, refusal| {
            let mut rows = flows.iter().filter(|flow| flow.host == host);
            rows.find(|flow| flow.refusal == refusal).map_or(0, |flow| flow.requests)
        };
        assert_eq!(count("gamma.test", Some(Refusal::NotGranted)), 9);
        // Six of each CONNECT had another name in TLS, two another in the request.
        assert_eq!(count("alpha.test", Some(Refusal::Mismatch)), 8);
        assert_eq!(count("alpha.test", None), 1);
    });
}

#[test]
fn tls_names_the_host_unless_it_is_an_address() {
    run(async {
        let (gate, inside, upstream) = world().await;
        assert!(inside.tunnel("alpha.test:443", None).await.is_none());
        gate.wait_for("a", |flow| flow.refusal == Some(Refusal::Mismatch)).await;
        // What is not TLS gets nowhere either.
        let mut plain = inside.connect().await;
        let connect = "CONNECT alpha.test:443 HTTP/1.1\r\nHost: alpha.test:443\r\n\r\n";
        assert_eq!(plain.ask_connect(connect).await.unwrap().status, 200);
        plain.ask("GET / HTTP/1.1\r\nHost: alpha.test\r\n\r\n").await;
        gate.wait_for("a", |flow| flow.refusal == Some(Refusal::NotTls)).await;
        assert_eq!(upstream.connections(), 0);
    });
}

#[test]
fn an_address_is_a_host_without_a_name() {
    run(async {
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let tls = authority.server(&["127.0.0.1"], 9);
        let upstream = Upstream::start(Some(tls), Answer::Echo).await;
        let host = format!("127.0.0.1:{}", upstream.port());
        let inside = gate.open("a", vec![grant("127.0.0.1", upstream.port(), Scheme::Https)]).await;
        let mut tunnel = inside.tunnel(&host, None).await.unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(tunnel.ask(&request).await.unwrap().status, 200);
        assert!(inside.tunnel(&host, Some("localhost")).await.is_none());
    });
}

#[test]
fn requests_name_their_host_in_every_form() {
    run(async {
        let (_gate, inside, upstream) = world().await;
        for (request, expected) in [
            ("GET / HTTP/1.1\r\nHost: alpha.test\r\n\r\n", 200),
            ("GET / HTTP/1.1\r\nHost: Alpha.Test:443\r\n\r\n", 200),
            ("GET https://alpha.test/ HTTP/1.1\r\nHost: alpha.test\r\n\r\n", 200),
            ("GET https://beta.test/ HTTP/1.1\r\nHost: alpha.test\r\n\r\n", 421),
            ("GET https://alpha.test/ HTTP/1.1\r\nHost: beta.test\r\n\r\n", 421),
            ("GET http://alpha.test/ HTTP/1.1\r\nHost: alpha.test\r\n\r\n", 421),
            ("GET / HTTP/1.1\r\nHost: alpha.test:80\r\n\r\n", 421),
            ("GET / HTTP/1.1\r\nHost: alpha.test.\r\n\r\n", 421),
            ("GET / HTTP/1.1\r\nHost: me@alpha.test\r\n\r\n", 421),
            ("GET / HTTP/1.1\r\nHost: \r\n\r\n", 421),
            ("GET / HTTP/1.0\r\n\r\n", 421),
            ("CONNECT beta.test:443 HTTP/1.1\r\nHost: beta.test:443\r\n\r\n", 421),
        ] {
            let mut tunnel = inside.tunnel("alpha.test:443", Some("alpha.test")).await.unwrap();
            let reply = tunnel.ask(request).await.unwrap();
            assert_eq!(reply.status, expected, "{request:?}: {reply:?}");
        }
        assert_eq!(upstream.requests().len(), 3);
    });
}

/// A tunnel in which HTTP/2 is spoken.
async fn two(inside: &Inside, host: &str, port: u16) -> SendRequest<String> {
    let mut connection = inside.connect().await;
    let connect = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
    assert_eq!(connection.ask_connect(&connect).await.unwrap().status, 200);
    let config = client_config(&inside.authority, &[b"h2"]);
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let tls = TlsConnector::from(config).connect(name, connection.stream).await.unwrap();
    let (sender, driver) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tls))
            .await
            .unwrap();
    crate::upstream::start(async move { drop(driver.await) });
    sender
}

#[test]
fn http_2_outside_is_spoken_with_http_2_inside() {
    run(async {
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let (address, connections) = upstream_two(authority.server(&["localhost"], 9)).await;
        let port = address.port();
        let inside = gate.open("a", vec![grant("localhost", port, Scheme::Https)]).await;
        let sender = two(&inside, "localhost", port).await;
        let mut asked = tokio::task::JoinSet::new();
        for number in 0..50 {
            let mut sender = sender.clone();
            asked.spawn(async move {
                let url = format!("https://localhost:{port}/{number}");
                let request = Request::post(url).body("x".repeat(number)).unwrap();
                let reply = sender.send_request(request).await.unwrap();
                assert_eq!(reply.status(), 200);
                let length = reply.headers()["x-length"].to_str().unwrap().to_owned();
                assert_eq!(length, number.to_string());
            });
        }
        while let Some(asked) = asked.join_next().await {
            asked.unwrap();
        }
        assert_eq!(connections.load(Ordering::SeqCst), 1);
        // HTTP/1 inside is HTTP/1 outside, for the same host.
        let host = format!("localhost:{port}");
        let mut tunnel = inside.tunnel(&host, Some("localhost")).await.unwrap();
        let reply = tunnel.ask(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert_eq!(reply.unwrap().status, 502);
    });
}

#[test]
fn authorities_of_http_2_are_names_too() {
    run(async {
        let (_gate, inside, upstream) = world().await;
        let mut sender = two(&inside, "alpha.test", 443).await;
        for (authority, expected) in
            [("alpha.test", 200), ("alpha.test:443", 200), ("beta.test", 421), ("gamma.test", 421)]
        {
            let request =
                Request::get(format!("https://{authority}/")).body(String::new()).unwrap();
            let reply = sender.send_request(request).await.unwrap();
            assert_eq!(reply.status(), expected, "{authority}");
        }
        let head = Request::head("https://beta.test/").body(String::new()).unwrap();
        let reply = sender.send_request(head).await.unwrap();
        assert_eq!(reply.status(), 421);
        assert_eq!(reply.into_body().collect().await.unwrap().to_bytes().len(), 0);
        let forged = Request::get("https://alpha.test/").header("host", "beta.test");
        let reply = sender.send_request(forged.body(String::new()).unwrap()).await.unwrap();
        assert_eq!(reply.status(), 421);
        assert_eq!(upstream.requests().len(), 2);
    });
}
