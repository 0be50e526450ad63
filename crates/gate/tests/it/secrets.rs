//! Placeholders on their way out and secrets on their way back.

use std::os::fd::OwnedFd;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_gate::{
    Network, OpenedNetwork, Refusal, Scheme, SealedSecret, SecretPlace, SecretTerms, SecretValue,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Gate, Inside, grant, run};
use crate::upstream::{Answer, Authority, Upstream};

const SECRET: &str = "ghp_canaryCANARY0123456789abcdefghijklmn";

fn value(text: &str) -> SecretValue {
    SecretValue::new(text.to_owned().into()).unwrap()
}

/// A place on a port of this machine, for these paths.
fn place(port: u16, paths: &[&str]) -> SecretPlace {
    let mut grant = grant("localhost", port, Scheme::Https);
    grant.paths = paths.iter().map(|path| (*path).to_owned()).collect();
    SecretPlace::new(grant)
}

fn terms(places: Vec<SecretPlace>) -> SecretTerms {
    let (name, organisation) = ("TOKEN".to_owned(), "o".to_owned());
    SecretTerms { name, organisation, places, ends_ms: None, verifies: false }
}

/// A gate with a host that shows what it was asked.
struct World {
    gate: Gate,
    authority: Authority,
    host: Upstream,
}

impl World {
    async fn new(answer: Answer) -> Self {
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let host = Upstream::start(Some(authority.server(&["localhost"], 9)), answer).await;
        Self { gate, authority, host }
    }

    async fn seal(&self, place: SecretPlace) -> SealedSecret {
        self.gate.client.seal(None, terms(vec![place]), value(SECRET)).await.unwrap()
    }

    /// Opens a sandbox in which everything of a few ports is granted. Gives the placeholder.
    async fn open(&self, name: &str, ports: &[u16], secret: &SealedSecret) -> (Inside, String) {
        let grants = ports.iter().map(|port| grant("localhost", *port, Scheme::Https)).collect();
        let network = Network { grants, ..Network::default() };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let listener = Some(OwnedFd::from(listener));
        let secrets = std::slice::from_ref(secret);
        let opened = self.gate.client.open(name, &network, secrets, listener).await.unwrap();
        let OpenedNetwork { authority, placeholders } = opened;
        (Inside { address, authority }, placeholders["TOKEN"].clone())
    }
}

/// Asks a host over TLS. Gives the status and the body.
async fn ask(inside: &Inside, port: u16, request: &str) -> Option<(u16, String)> {
    let host = format!("localhost:{port}");
    let mut tunnel = inside.tunnel(&host, Some("localhost")).await?;
    let reply = tunnel.ask(&request.replace('§', &host)).await?;
    Some((reply.status, reply.body))
}

#[test]
fn a_placeholder_is_swapped_where_the_secret_is_for_and_comes_back_as_it_was() {
    run(async {
        let world = World::new(Answer::Echo).await;
        let port = world.host.port();
        let mut place = place(port, &["/ok/*"]);
        place.queries = vec!["key".to_owned()];
        let secret = world.seal(place).await;
        assert!(!serde_json::to_string(&secret).unwrap().contains(SECRET));
        let (inside, placeholder) = world.open("a", &[], &secret).await;
        assert_eq!(placeholder.len(), SECRET.len());
        assert!(placeholder.starts_with("ghp_") && placeholder != SECRET);
        let basic = |token: &str| STANDARD.encode(format!("x-access-token:{token}"));
        for (template, coded) in [
            ("GET /ok/1 HTTP/1.1\r\nHost: §\r\nAuthorization: Bearer @\r\n\r\n", false),
            ("GET /ok/1 HTTP/1.1\r\nHost: §\r\nAuthorization: token @\r\n\r\n", false),
            ("GET /ok/1 HTTP/1.1\r\nHost: §\r\nX-Api-Key: @\r\n\r\n", false),
            ("GET /ok/1?a=b&key=@ HTTP/1.1\r\nHost: §\r\n\r\n", false),
            ("GET /ok/1 HTTP/1.1\r\nHost: §\r\nAuthorization: Basic @\r\n\r\n", true),
        ] {
            let written = if coded { basic(&placeholder) } else { placeholder.clone() };
            let sent = if coded { basic(SECRET) } else { SECRET.to_owned() };
            let request = template.replace('@', &written);
            let (status, body) = ask(&inside, port, &request).await.unwrap();
            assert_eq!(status, 200, "{body}");
            let seen = world.host.requests().pop().unwrap();
            assert!(seen.contains(&sent) && !seen.contains(&written), "{seen}");
            // The host sent all of it back. In base64 the letters at either end also have bits of
            // what is around it, and stay.
            let core = |text: &str| if coded { text[24..70].to_owned() } else { text.to_owned() };
            assert!(body.contains(&core(&written)) && !body.contains(&core(&sent)), "{body}");
        }
        let flow = |flow: &outrigger_gate::Flow| flow.refusal == Some(Refusal::Echo);
        assert!(world.gate.flows("a").await.iter().any(flow));
    });
}

#[test]
fn a_placeholder_goes_nowhere_else() {
    run(async {
        let world = World::new(Answer::Echo).await;
        let other = world.authority.server(&["localhost"], 9);
        let other = Upstream::start(Some(other), Answer::Echo).await;
        let (port, other_port) = (world.host.port(), other.port());
        let secret = world.seal(place(port, &["/ok/*"])).await;
        let (inside, placeholder) = world.open("a", &[port, other_port], &secret).await;
        let coded = STANDARD.encode(format!("user:{placeholder}"));
        let hex: String = placeholder.bytes().map(|byte| format!("{byte:02x}")).collect();
        let long = format!("{}{placeholder}", "x".repeat(100_000));
        for (port, template, token) in [
            (
                other_port,
                "GET /ok/1 HTTP/1.1\r\nHost: §\r\nAuthorization: Bearer @\r\n\r\n",
                &placeholder,
            ),
            (port, "GET /no HTTP/1.1\r\nHost: §\r\nAuthorization: Bearer @\r\n\r\n", &placeholder),
            (
                port,
                "GET /ok/../no HTTP/1.1\r\nHost: §\r\nAuthorization: Bearer @\r\n\r\n",
                &placeholder,
            ),
            (port, "GET /ok/1 HTTP/1.1\r\nHost: §\r\nUser-Agent: a @\r\n\r\n", &placeholder),
            (
                port,
                "GET /ok/1 HTTP/1.1\r\nHost: §\r\nAuthorization: Bearer x@\r\n\r\n",
                &placeholder,
            ),
            (port, "GET /ok/1?key=@ HTTP/1.1\r\nHost: §\r\n\r\n", &placeholder),
            (port, "GET /ok/@ HTTP/1.1\r\nHost: §\r\n\r\n", &placeholder),
            (other_port, "GET / HTTP/1.1\r\nHost: §\r\nAuthorization: Basic @\r\n\r\n", &coded),
            (other_port, "GET /@ HTTP/1.1\r\nHost: §\r\n\r\n", &hex),
            (port, "POST /ok/1 HTTP/1.1\r\nHost: §\r\nContent-Length: #\r\n\r\n@", &placeholder),
            (port, "POST /ok/1 HTTP/1.1\r\nHost: §\r\nContent-Length: #\r\n\r\n@", &long),
            (other_port, "POST / HTTP/1.1\r\nHost: §\r\nContent-Length: #\r\n\r\n@", &coded),
        ] {
            let request = template.replace('#', &token.len().to_string()).replace('@', token);
            let answer = ask(&inside, port, &request).await;
            let status = answer.as_ref().map(|(status, _)| *status);
            assert!(matches!(status, Some(403) | None), "{template}: {answer:?}");
        }
        for request in [world.host.requests(), other.requests()].concat() {
            assert!(!request.contains(SECRET), "{request}");
            assert!(!request.contains(&placeholder), "{request}");
        }
        let flows = world.gate.flows("a").await;
        let refused = flows.iter().filter(|flow| flow.refusal == Some(Refusal::Secret));
        assert_eq!(refused.map(|flow| flow.requests).sum::<u64>(), 12, "{flows:?}");
    });
}

#[test]
fn a_placeholder_is_found_over_the_seams_of_a_body() {
    run(async {
        let world = World::new(Answer::Echo).await;
        let port = world.host.port();
        let secret = world.seal(place(port, &[])).await;
        let (inside, placeholder) = world.open("a", &[], &secret).await;
        let host = format!("localhost:{port}");
        let mut tunnel = inside.tunnel(&host, Some("localhost")).await.unwrap();
        let head = format!("POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n");
        tunnel.stream.write_all(head.as_bytes()).await.unwrap();
        for letter in placeholder.chars() {
            // The gate may have hung up already.
            let _ = tunnel.stream.write_all(format!("1\r\n{letter}\r\n").as_bytes()).await;
            let _ = tunnel.stream.flush().await;
        }
        let reply = tunnel.ask("0\r\n\r\n").await;
        assert!(reply.is_none_or(|reply| reply.status == 403));
        assert!(world.host.requests().is_empty());
    });
}

#[test]
fn a_placeholder_is_of_one_sandbox_and_stays_when_the_gate_or_the_value_changes() {
    run(async {
        let world = World::new(Answer::Echo).await;
        let port = world.host.port();
        let secret = world.seal(place(port, &[])).await;
        let (_, placeholder) = world.open("a", &[], &secret).await;
        let (other, other_placeholder) = world.open("b", &[], &secret).await;
        assert_ne!(placeholder, other_placeholder);
        let request = format!("GET / HTTP/1.1\r\nHost: §\r\nX-Key: {placeholder}\r\n\r\n");
        let (status, _) = ask(&other, port, &request).await.unwrap();
        // To the other sandbox it is a text like any other.
        assert_eq!(status, 200);
        assert!(world.host.requests().iter().all(|request| !request.contains(SECRET)));
        world.gate.kill();
        let next = "ghp_rotatedROTATED0123456789abcdefghijkl";
        let id = Some(secret.id.as_str());
        let rotated = world.gate.client.seal(id, secret.terms.clone(), value(next)).await.unwrap();
        let (inside, after) = world.open("a", &[], &rotated).await;
        assert_eq!(after, placeholder);
        ask(&inside, port, &request).await.unwrap();
        assert!(world.host.requests().pop().unwrap().contains(next));
    });
}

#[test]
fn terms_that_were_changed_open_nothing() {
    run(async {
        let world = World::new(Answer::Echo).await;
        let secret = world.seal(place(1, &["/ok"])).await;
        let mut changed = Vec::new();
        for change in 0..5 {
            let mut secret = secret.clone();
            match change {
                0 => secret.terms.places[0].grant.port = 2,
                1 => secret.terms.places[0].grant.paths.clear(),
                2 => secret.terms.ends_ms = Some(u64::MAX),
                3 => secret.id.push('0'),
                _ => secret.terms.organisation = "other".to_owned(),
            }
            changed.push(secret);
        }
        for secret in changed {
            let secrets = std::slice::from_ref(&secret);
            let network = Network::default();
            let error = world.gate.client.open("a", &network, secrets, None).await.unwrap_err();
            assert!(error.to_string().contains("can't be opened"), "{error}");
        }
        let secrets = std::slice::from_ref(&secret);
        world.gate.client.open("a", &Network::default(), secrets, None).await.unwrap();
    });
}

#[test]
fn what_was_revoked_or_has_ended_is_not_sent() {
    run(async {
        let begin = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nx".to_vec();
        let world = World::new(Answer::Bytes(begin)).await;
        let port = world.host.port();
        let secret = world.seal(place(port, &[])).await;
        let (inside, placeholder) = world.open("a", &[port], &secret).await;
        let host = format!("localhost:{port}");
        let mut tunnel = inside.tunnel(&host, Some("localhost")).await.unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nX-Key: {placeholder}\r\n\r\n");
        tunnel.stream.write_all(request.as_bytes()).await.unwrap();
        assert!(tunnel.head().await.unwrap().starts_with("HTTP/1.1 200"));
        world.gate.client.revoke(&secret.id).await.unwrap();
        // The host is granted still, but what was under way with the secret ends.
        let mut space = vec![0; 1 << 16];
        while tunnel.stream.read(&mut space).await.is_ok_and(|length| length > 0) {}
        world.host.is_left().await;
        let before = world.host.requests().len();
        let mut tunnel = inside.tunnel(&host, Some("localhost")).await.unwrap();
        tunnel.stream.write_all(request.as_bytes()).await.unwrap();
        assert!(tunnel.head().await.unwrap().starts_with("HTTP/1.1 200"));
        let seen = world.host.requests();
        assert!(seen.len() > before && !seen.last().unwrap().contains(SECRET));

        let mut ended = terms(vec![place(port, &[])]);
        ended.ends_ms = Some(1);
        let ended = world.gate.client.seal(None, ended, value(SECRET)).await.unwrap();
        let (inside, placeholder) = world.open("b", &[], &ended).await;
        let request = format!("GET / HTTP/1.1\r\nHost: §\r\nX-Key: {placeholder}\r\n\r\n");
        let (status, body) = ask(&inside, port, &request).await.unwrap();
        assert_eq!((status, body.contains("has ended")), (403, true), "{body}");
    });
}

#[test]
fn a_secret_is_not_sent_to_who_has_no_certificate() {
    run(async {
        let world = World::new(Answer::Echo).await;
        let stranger =
            Upstream::start(Some(crate::upstream::self_signed("localhost")), Answer::Echo);
        let stranger = stranger.await;
        let secret = world.seal(place(stranger.port(), &[])).await;
        let (inside, placeholder) = world.open("a", &[], &secret).await;
        let request = format!("GET / HTTP/1.1\r\nHost: §\r\nX-Key: {placeholder}\r\n\r\n");
        let (status, _) = ask(&inside, stranger.port(), &request).await.unwrap();
        assert_eq!(status, 502);
        assert!(stranger.requests().is_empty());
    });
}

#[test]
fn an_answer_that_is_encoded_or_has_the_secret_in_a_header_is_looked_after() {
    run(async {
        let head = format!(
            "HTTP/1.1 302 Found\r\nLocation: https://x.test/?t={SECRET}\r\nContent-Length: 0\r\n\r\n"
        );
        let world = World::new(Answer::Bytes(head.into_bytes())).await;
        let port = world.host.port();
        let secret = world.seal(place(port, &[])).await;
        let (inside, placeholder) = world.open("a", &[], &secret).await;
        let host = format!("localhost:{port}");
        let mut tunnel = inside.tunnel(&host, Some("localhost")).await.unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: gzip\r\n\r\n");
        let reply = tunnel.ask(&request).await.unwrap();
        assert_eq!(reply.header("location"), Some(&*format!("https://x.test/?t={placeholder}")));
        assert!(
            world.host.requests()[0].to_ascii_lowercase().contains("accept-encoding: identity")
        );

        let encoded = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx";
        let authority = world.authority.server(&["localhost"], 9);
        let encoded = Upstream::start(Some(authority), Answer::Bytes(encoded.to_vec())).await;
        let secret = world.seal(place(encoded.port(), &[])).await;
        let (inside, _) = world.open("b", &[], &secret).await;
        let request = "GET / HTTP/1.1\r\nHost: §\r\n\r\n";
        let (status, body) = ask(&inside, encoded.port(), request).await.unwrap();
        assert_eq!(status, 502, "{body}");
    });
}

#[test]
fn a_push_changes_what_it_may_and_nothing_else() {
    run(async {
        let world = World::new(Answer::Echo).await;
        let port = world.host.port();
        let mut place = place(port, &["/o/r.git/*"]);
        place.refs = Some(vec!["refs/heads/agent/*".to_owned()]);
        let secret = world.seal(place).await;
        let (inside, placeholder) = world.open("a", &[], &secret).await;
        let basic = STANDARD.encode(format!("x:{placeholder}"));
        let (zero, id) = ("0".repeat(40), "1".repeat(40));
        let push = async |repository: &str, new: &str, name: &str| {
            let line = format!("{zero} {new} {name}\0 report-status");
            let body = format!("{:04x}{line}0000PACK", line.len() + 4);
            let request = format!(
                "POST /o/{repository}/git-receive-pack HTTP/1.1\r\nHost: §\r\nAuthorization: Basic {basic}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            ask(&inside, port, &request).await.unwrap()
        };
        let (status, body) = push("r.git", &id, "refs/heads/agent/x").await;
        assert_eq!(status, 200, "{body}");
        let seen = world.host.requests().pop().unwrap();
        assert!(
            seen.contains("0000PACK") && seen.contains(&STANDARD.encode(format!("x:{SECRET}")))
        );
        for (new, name, why) in [
            (&id, "refs/heads/main", "would change"),
            (&id, "refs/tags/v1", "would change"),
            (&zero, "refs/heads/agent/x", "would delete"),
        ] {
            let (status, body) = push("r.git", new, name).await;
            let said = body.contains(&format!("ng {name} the push {why} {name}"));
            assert!(status == 200 && said, "{name}: {status} {body}");
        }
        let (status, body) = push("other.git", &id, "refs/heads/agent/x").await;
        assert_eq!(status, 403, "{body}");
        assert_eq!(world.host.requests().len(), 1);
    });
}

#[test]
fn a_token_that_a_host_answers_with_is_a_secret_too() {
    run(async {
        let token = "tok_freshFRESH0123456789abcdefghijklmnop";
        let answer = format!("{{\"access_token\": \"{token}\", \"expires_in\": 9}}");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length";
        let answer = format!("{head}: {}\r\n\r\n{answer}", answer.len());
        let world = World::new(Answer::Bytes(answer.into_bytes())).await;
        let api = Upstream::start(Some(world.authority.server(&["localhost"], 9)), Answer::Echo);
        let api = api.await;
        let mut asking = place(world.host.port(), &["/token"]);
        asking.fields = vec!["client_secret".to_owned()];
        asking.mints = vec!["access_token".to_owned()];
        let terms = terms(vec![asking, place(api.port(), &[])]);
        let secret = world.gate.client.seal(None, terms, value(SECRET)).await.unwrap();
        let (inside, placeholder) = world.open("a", &[], &secret).await;
        for (kind, body) in [
            (
                "application/x-www-form-urlencoded",
                format!("grant_type=x&client_secret={placeholder}"),
            ),
            ("application/json", format!("{{\"client_secret\": \"{placeholder}\"}}")),
        ] {
            let request = format!(
                "POST /token HTTP/1.1\r\nHost: §\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let (status, body) = ask(&inside, world.host.port(), &request).await.unwrap();
            assert_eq!(status, 200, "{body}");
            assert!(world.host.requests().pop().unwrap().contains(SECRET));
            assert!(body.contains("tok_") && !body.contains(token), "{body}");
            let minted = body.split('"').nth(3).unwrap();
            assert_eq!(minted.len(), token.len());
            let request =
                format!("GET / HTTP/1.1\r\nHost: §\r\nAuthorization: Bearer {minted}\r\n\r\n");
            let (status, body) = ask(&inside, api.port(), &request).await.unwrap();
            assert_eq!(status, 200, "{body}");
            assert!(api.requests().pop().unwrap().contains(token));
            assert!(body.contains(minted) && !body.contains(token), "{body}");
        }
        // A field that is none of the secret's.
        let body = format!("other={placeholder}");
        let request = format!(
            "POST /token HTTP/1.1\r\nHost: §\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = ask(&inside, world.host.port(), &request).await;
        assert!(answer.is_none_or(|(status, _)| status == 403));
    });
}
