//! How many bytes a sandbox may send.

use outrigger_gate::{Network, Scheme};

use crate::support::{Gate, grant, run};
use crate::upstream::{Answer, Authority, Upstream};

#[test]
fn what_may_not_be_sent_any_more_does_not_leave() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let host = Upstream::start(None, Answer::Echo).await;
        let at = format!("127.0.0.1:{}", host.port());
        let network = |most| Network {
            grants: vec![grant("127.0.0.1", host.port(), Scheme::Http)],
            sent_bytes_max: Some(most),
            ..Network::default()
        };
        let post = |bytes: usize| {
            let head = format!("POST http://{at}/ HTTP/1.1\r\nHost: {at}\r\n");
            format!("{head}Content-Length: {bytes}\r\n\r\n{}", "x".repeat(bytes))
        };
        let inside = gate.open_network("a", network(1_000)).await;
        assert_eq!(inside.ask(&post(300)).await.unwrap().status, 200);
        // What was sent and not told yet counts.
        gate.client.open("a", &network(1_000), &[], None).await.unwrap();
        // The second is small enough, and what it follows was not.
        for bytes in [900, 1] {
            let reply = inside.ask(&post(bytes)).await.unwrap();
            assert_eq!((reply.status, reply.refused()), (429, Some("spent")), "{bytes}");
        }
        let flows = gate.flows("a").await;
        let sent: u64 = flows.iter().map(|flow| flow.sent_bytes).sum();
        assert!((300..=1_000).contains(&sent), "{sent}");
        gate.client.open("a", &network(1_000), &[], None).await.unwrap();
        assert_eq!(inside.ask(&post(300)).await.unwrap().status, 200);
    });
}
