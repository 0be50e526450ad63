//! Places that no sandbox reaches, in all their spellings.

use outrigger_gate::{Scheme, grant_of};

use crate::support::{Gate, grant, run};
use crate::upstream::{Answer, Authority, Upstream};

/// Each is asked for by CONNECT and by URL.
const SPELLINGS: &[&str] = &[
    "169.254.169.254",
    "169.254.169.254.",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[0:0:0:0:0:ffff:169.254.169.254]",
    "0xa9fea9fe",
    "0xA9.0xFE.0xA9.0xFE",
    "2852039166",
    "0251.0376.0251.0376",
    "169.254.43518",
    "169.16689662",
    "0251.254.169.254",
    "[fd00:ec2::254]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b::169.254.169.254]",
    "[2002:a9fe:a9fe::]",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "metadata.google.internal",
    "metadata",
    "instance-data",
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "0x7f000001",
    "2130706433",
    "017700000001",
    "127.0.0.1.",
    "127.0.0.01",
    "127.000.000.001",
    "127.0.0.1%00.example.com",
    "0",
    "0.0.0.0",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::1%25lo]",
    "[::127.0.0.1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "localhost.localdomain",
    "127.127.127.127",
    "10.0.0.1",
    "10.1",
    "012.0.0.1",
    "167772161",
    "172.16.0.1",
    "192.168.0.1",
    "192.168.1",
    "0xc0a80001",
    "100.64.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "240.0.0.1",
    "[fe80::1]",
    "[fc00::1]",
    "[ff02::1]",
    "example.com@127.0.0.1",
    "127.0.0.1@example.com",
    "example.com%2e127.0.0.1",
    "example.com.",
    "example.com..",
    ".example.com",
    "ex%61mple.com",
    "example。com",
    "example.com#@127.0.0.1",
    "example.com\\.evil.test",
    "notexample.com",
    "example.com.evil.test",
    "xn--exmple-cua.com",
    "example.com:80@127.0.0.1",
];

#[test]
fn no_spelling_of_a_forbidden_place_is_reached() {
    run(async {
        assert!(SPELLINGS.len() >= 60);
        let gate = Gate::new(&Authority::new());
        let upstream = Upstream::start(None, Answer::Echo).await;
        let port = upstream.port();
        // What is granted is another host, on the ports where something would answer.
        let inside = gate
            .open(
                "a",
                vec![
                    grant("example.com", port, Scheme::Http),
                    grant("example.com", port, Scheme::Https),
                ],
            )
            .await;
        for place in SPELLINGS {
            let connect =
                format!("CONNECT {place}:{port} HTTP/1.1\r\nHost: {place}:{port}\r\n\r\n");
            let status = inside.ask(&connect).await.map(|reply| reply.status);
            assert!(matches!(status, Some(400 | 403) | None), "{place}: {status:?}");
            let url =
                format!("GET http://{place}:{port}/ HTTP/1.1\r\nHost: {place}:{port}\r\n\r\n");
            let status = inside.ask(&url).await.map(|reply| reply.status);
            assert!(matches!(status, Some(400 | 403) | None), "{place}: {status:?}");
        }
        assert_eq!(upstream.connections(), 0);
    });
}

#[test]
fn a_granted_name_that_leads_inside_is_refused() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let upstream = Upstream::start(None, Answer::Echo).await;
        let port = upstream.port();
        for (sandbox, host) in [("a", "localhost"), ("b", "127.0.0.1")] {
            let mut public = grant(host, port, Scheme::Http);
            public.private = false;
            let inside = gate.open(sandbox, vec![public]).await;
            let request =
                format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
            let reply = inside.ask(&request).await.unwrap();
            assert_eq!((reply.status, reply.refused()), (403, Some("private")), "{reply:?}");
            // What a person writes for it is enough.
            let granted = grant_of(&format!("{host}:{port}")).unwrap();
            let inside = gate.open(sandbox, granted).await;
            assert_eq!(inside.ask(&request).await.unwrap().status, 200);
        }
        assert_eq!(upstream.connections(), 2);
    });
}
