//! Programs that know no proxy: TLS and paths, straight to where a name led.

use std::net::TcpListener;
use std::os::fd::OwnedFd;

use outrigger_gate::{Grant, Network, Proxy, Refusal, Scheme, grant_of};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::support::{Connection, Gate, Inside, client_config, run};
use crate::upstream::{Answer, Authority, Upstream, proxy};

const NAMES: [&str; 3] = ["alpha.test", "beta.test", "gamma.test"];

/// What two of the names may be reached by, through a proxy that leads all to one host.
async fn network(upstream: &Upstream) -> Network {
    let (proxy, _) = proxy(upstream.address).await;
    let grants = NAMES[..2].iter().flat_map(|name| grant_of(name).unwrap()).collect();
    Network {
        grants,
        proxy: Some(Proxy { url: format!("http://{proxy}"), no_proxy: Vec::new() }),
        ..Network::default()
    }
}

async fn world(tls: bool) -> (Gate, Inside, Upstream) {
    let authority = Authority::new();
    let gate = Gate::new(&authority);
    let tls = tls.then(|| authority.server(&NAMES, 9));
    let upstream = Upstream::start(tls, Answer::Echo).await;
    let inside = gate.open_network("a", network(&upstream).await).await;
    (gate, inside, upstream)
}

/// TLS as the first thing that is said. `None`: it did not come about.
pub(crate) async fn straight(
    inside: &Inside,
    name: &str,
    trusted: &str,
) -> Option<Connection<TlsStream<TcpStream>>> {
    let stream = TcpStream::connect(inside.address).await.unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let tls = TlsConnector::from(client_config(trusted, &[])).connect(name, stream).await;
    tls.ok().map(Connection::new)
}

fn get(host: &str) -> String {
    format!("GET /path HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

#[test]
fn tls_goes_to_the_host_that_it_names_if_that_is_granted() {
    run(async {
        let (gate, inside, upstream) = world(true).await;
        let mut passed = Vec::new();
        for sni in NAMES {
            for host in NAMES {
                let mut stream = straight(&inside, sni, &inside.authority).await.unwrap();
                let reply = stream.ask(&get(host)).await.unwrap();
                match (reply.status, reply.refused()) {
                    (200, None) => passed.push((sni, host)),
                    (421, Some("mismatch")) => assert_ne!(sni, host),
                    // The answer says what would allow it, under a certificate that is trusted.
                    (403, Some("not_granted")) => {
                        assert_eq!((sni, host), (NAMES[2], NAMES[2]));
                        assert!(reply.body.contains("`--net gamma.test` would allow it"));
                    }
                    _ => panic!("{sni} {host} {reply:?}"),
                }
            }
        }
        assert_eq!(passed, [(NAMES[0], NAMES[0]), (NAMES[1], NAMES[1])]);
        assert_eq!(upstream.requests().len(), 2);
        let flows = gate.flows("a").await;
        let has = |host: &str, refusal| {
            flows.iter().any(|flow| flow.host == host && flow.refusal == refusal)
        };
        assert!(has("alpha.test", None) && has("alpha.test", Some(Refusal::Mismatch)));
        assert!(has("gamma.test", Some(Refusal::NotGranted)) && !has("gamma.test", None));
    });
}

#[test]
fn tls_that_is_not_answered_is_told_of_in_the_flows() {
    run(async {
        let (gate, inside, upstream) = world(true).await;
        // An address is named by nobody.
        assert!(straight(&inside, "127.64.0.1", &inside.authority).await.is_none());
        gate.wait_for("a", |flow| flow.refusal == Some(Refusal::Unnamed)).await;
        let stranger = Authority::new();
        for (name, refusal) in [(NAMES[0], Refusal::NotTls), (NAMES[2], Refusal::NotGranted)] {
            assert!(straight(&inside, name, stranger.pem()).await.is_none());
            gate.wait_for("a", |flow| flow.host == name && flow.refusal == Some(refusal)).await;
        }
        let garbage = inside.connect().await.ask_bytes(b"\x16garbage, not a handshake").await;
        assert!(garbage.is_none());
        gate.wait_for("a", |flow| flow.host.is_empty() && flow.refusal == Some(Refusal::NotTls))
            .await;
        assert_eq!(upstream.connections(), 0);
    });
}

#[test]
fn a_path_goes_to_the_host_of_its_request() {
    run(async {
        let (gate, inside, upstream) = world(false).await;
        for host in ["alpha.test", "ALPHA.test:80"] {
            let reply = inside.ask(&get(host)).await.unwrap();
            assert_eq!(reply.status, 200, "{reply:?}");
            assert!(reply.body.starts_with("GET http://alpha.test/path "), "{}", reply.body);
        }
        let refused = inside.ask(&get("gamma.test")).await.unwrap();
        assert_eq!((refused.status, refused.refused()), (403, Some("not_granted")));
        let two = "GET / HTTP/1.1\r\nHost: alpha.test\r\nHost: beta.test\r\n\r\n";
        let nobody = "GET / HTTP/1.0\r\n\r\n";
        let others = ["alpha.test:8080", "127.0.0.1", "169.254.169.254", "alpha.test."].map(get);
        for request in [two, nobody].map(str::to_owned).iter().chain(&others) {
            let reply = inside.ask(request).await.unwrap();
            assert!(matches!(reply.status, 400 | 421), "{request}: {reply:?}");
        }
        assert_eq!(upstream.requests().len(), 2);
        let flow = gate.wait_for("a", |flow| flow.host == "gamma.test").await;
        assert_eq!((flow.port, flow.refusal), (80, Some(Refusal::NotGranted)));
    });
}

#[test]
fn each_listener_is_accepted_on_and_what_is_taken_back_ends() {
    run(async {
        let (gate, mut inside, upstream) = world(true).await;
        let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let addresses = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
        let mut network = network(&upstream).await;
        gate.client.open("a", &network, &[], listeners.map(OwnedFd::from)).await.unwrap();
        let mut streams = Vec::new();
        for address in addresses {
            inside.address = address;
            let mut stream = straight(&inside, NAMES[0], &inside.authority).await.unwrap();
            assert_eq!(stream.ask(&get(NAMES[0])).await.unwrap().status, 200);
            streams.push(stream);
        }
        network.grants.clear();
        gate.client.open("a", &network, &[], None).await.unwrap();
        for mut stream in streams {
            assert!(stream.reply().await.is_none());
        }
    });
}

#[test]
fn somebody_is_asked_while_it_waits() {
    run(async {
        let (gate, inside, upstream) = world(true).await;
        let mut network = network(&upstream).await;
        gate.client.open_asking("a", &network, &[], &[], None).await.unwrap();
        let answer = async {
            loop {
                if let Some(asked) = gate.client.questions("a").await.unwrap().first() {
                    break asked.words();
                }
                // poll: the gate has not read the first message yet
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        let (stream, asked) = tokio::join!(straight(&inside, NAMES[2], &inside.authority), async {
            let asked = answer.await;
            let more: Vec<Grant> = grant_of(&asked).unwrap();
            assert!(more.iter().any(|grant| grant.scheme == Scheme::Https));
            network.grants.extend(more);
            gate.client.open_asking("a", &network, &[], &[], None).await.unwrap();
            asked
        });
        assert_eq!(asked, NAMES[2]);
        assert_eq!(stream.unwrap().ask(&get(NAMES[2])).await.unwrap().status, 200);
    });
}
