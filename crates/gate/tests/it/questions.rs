//! Hosts that somebody is asked about.

use std::net::TcpListener;
use std::os::fd::OwnedFd;

use outrigger_gate::{Destination, Error, Grant, Network, grant_of};
use tokio::task::JoinSet;

use crate::support::{Gate, Inside, run};
use crate::upstream::Authority;

/// A host that leads nowhere: what comes behind CONNECT is not looked at here.
const HOST: &str = "held.test:8443";

fn connect_to(host: &str) -> String {
    format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

fn destination(words: &str) -> Destination {
    let (host, port) = words.split_once(':').unwrap();
    Destination { host: host.to_owned(), port: port.parse().unwrap() }
}

fn network(words: &[&str]) -> Network {
    let grants: Vec<Grant> = words.iter().flat_map(|words| grant_of(words).unwrap()).collect();
    Network { grants, ..Network::default() }
}

/// A sandbox about which somebody is asked.
async fn asking(gate: &Gate) -> Inside {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let listener = Some(OwnedFd::from(listener));
    let network = network(&["known.test"]);
    let opened = gate.client.open_asking("a", &network, &[], &[], listener).await.unwrap();
    let authority = opened.authority;
    Inside { address, authority }
}

/// Sends requests, each on a connection of its own, and waits until they are asked about.
async fn held(gate: &Gate, inside: &Inside, requests: &[String]) -> JoinSet<(u16, Option<String>)> {
    let mut all = JoinSet::new();
    for request in requests {
        let (mut connection, request) = (inside.connect().await, request.clone());
        all.spawn(async move {
            let reply = match request.starts_with("CONNECT") {
                true => connection.ask_connect(&request).await,
                false => connection.ask(&request).await,
            };
            let reply = reply.map(|reply| (reply.status, reply.refused().map(str::to_owned)));
            reply.unwrap_or((0, None))
        });
    }
    while gate.client.questions("a").await.unwrap().is_empty() {
        // poll: the gate has read none of them yet
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    all
}

#[test]
fn what_is_held_goes_on_when_it_is_granted() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let inside = asking(&gate).await;
        let plain = format!("GET http://{HOST}/ HTTP/1.1\r\nHost: {HOST}\r\n\r\n");
        let mut requests = vec![connect_to(HOST); 20];
        requests.push(plain);
        let all = held(&gate, &inside, &requests).await;
        assert_eq!(gate.client.questions("a").await.unwrap(), [destination(HOST)]);
        let wider = network(&["known.test", HOST]);
        gate.client.open_asking("a", &wider, &[], &[], None).await.unwrap();
        let mut replies = all.join_all().await;
        replies.sort();
        let granted = vec![(200, None); 20];
        assert_eq!(replies[..20], granted);
        // It was let go on, to a host that is not there.
        assert_eq!(replies[20], (502, Some("unresolved".to_owned())));
        assert!(gate.client.questions("a").await.unwrap().is_empty());
    });
}

#[test]
fn what_was_declined_is_refused_from_then_on() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let inside = asking(&gate).await;
        let all = held(&gate, &inside, &[connect_to(HOST), connect_to(HOST)]).await;
        let declined = [destination(HOST)];
        gate.client
            .open_asking("a", &network(&["known.test"]), &[], &declined, None)
            .await
            .unwrap();
        let refused = (403, Some("declined".to_owned()));
        assert_eq!(all.join_all().await, [refused.clone(), refused.clone()]);
        let again = inside.ask(&connect_to(HOST)).await.unwrap();
        assert_eq!(again.refused(), Some("declined"));
        assert!(again.body.contains("the network of this sandbox does not include held.test:8443"));
        assert!(gate.client.questions("a").await.unwrap().is_empty());
        // Whoever names it in the network has changed their mind.
        let named = network(&[HOST]);
        gate.client.open_asking("a", &named, &[], &declined, None).await.unwrap();
        let mut connection = inside.connect().await;
        assert_eq!(connection.ask_connect(&connect_to(HOST)).await.unwrap().status, 200);
    });
}

#[test]
fn a_sandbox_that_is_closed_holds_nothing() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let inside = asking(&gate).await;
        let all = held(&gate, &inside, &[connect_to(HOST)]).await;
        gate.client.close("a").await.unwrap();
        let replies = all.join_all().await;
        assert_ne!(replies[0].0, 200);
        assert!(matches!(gate.client.questions("a").await, Err(Error::Unknown)));
    });
}

#[test]
fn nobody_is_asked_about_what_is_not_public_or_too_much() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let inside = asking(&gate).await;
        let hosts = ["localhost:8443", "127.0.0.1:443", "10.0.0.1:443", "169.254.169.254:443"];
        for host in hosts.into_iter().chain(["[::1]:443", "a.test:80"]) {
            let reply = inside.ask(&connect_to(host)).await.unwrap();
            assert_eq!(reply.refused(), Some("not_granted"), "{host}");
        }
        let hosts: Vec<String> = (0..16).map(|number| format!("{number}.held.test:443")).collect();
        let requests: Vec<String> = hosts.iter().map(|host| connect_to(host)).collect();
        let all = held(&gate, &inside, &requests).await;
        while gate.client.questions("a").await.unwrap().len() < hosts.len() {
            // poll: the gate has not read all of them yet
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let beyond = inside.ask(&connect_to(HOST)).await.unwrap();
        assert_eq!(beyond.refused(), Some("not_granted"));
        // Nobody is there any more: what waits is refused as ever.
        gate.client.open("a", &network(&["known.test"]), &[], None).await.unwrap();
        let refused = (403, Some("not_granted".to_owned()));
        assert_eq!(all.join_all().await, vec![refused; hosts.len()]);
        let reply = inside.ask(&connect_to(HOST)).await.unwrap();
        assert_eq!(reply.refused(), Some("not_granted"));
    });
}
