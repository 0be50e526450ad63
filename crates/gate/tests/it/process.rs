//! The process: its start, its confinement, its end, and what outlives it.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use outrigger_gate::{Error, Network, Scheme};

use crate::support::{Connection, Gate, grant, run};
use crate::upstream::{Answer, Authority, Upstream};

/// Not a test: a gate is this program, started with the directory in its environment.
#[test]
fn serve_for_others() {
    if let Some(dir) = std::env::var_os("OUTRIGGER_TEST_GATE") {
        let _ = outrigger_gate::serve(Path::new(&dir));
    }
}

#[test]
fn a_gate_that_is_started_again_has_the_same_authority() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let first = gate.open("a", Vec::new()).await;
        let other = gate.open("b", Vec::new()).await;
        assert_ne!(first.authority, other.authority);
        gate.kill();
        while gate.client.is_open("a").await.unwrap() {}
        let again = gate.open("a", Vec::new()).await;
        assert_eq!(first.authority, again.authority);
        assert_eq!(gate.pids().len(), 2);
    });
}

#[test]
fn a_closed_sandbox_gets_another_authority() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let first = gate.open("a", Vec::new()).await;
        gate.client.close("a").await.unwrap();
        assert!(std::fs::read_dir(gate.dir().join("authorities")).unwrap().next().is_none());
        let again = gate.open("a", Vec::new()).await;
        assert_ne!(first.authority, again.authority);
    });
}

#[test]
fn who_is_not_known_is_to_be_opened() {
    run(async {
        let gate = Gate::new(&Authority::new());
        // No gate is started to say so.
        assert_eq!(gate.client.flows("a").await.unwrap().flows, []);
        assert_eq!(gate.client.close("a").await.unwrap().flows, []);
        assert!(gate.pids().is_empty());
        gate.open("b", Vec::new()).await;
        assert!(matches!(gate.client.flows("a").await, Err(Error::Unknown)));
        assert!(matches!(gate.client.close("a").await, Err(Error::Unknown)));
        let (end, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let connection = gate.client.connection("a", None, OwnedFd::from(end)).await;
        assert!(matches!(connection, Err(Error::Unknown)));
    });
}

#[test]
fn many_who_ask_first_get_one_gate() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let network = Network::default();
        let open = |name: &'static str| gate.client.open(name, &network, &[], None);
        let (a, b, c, d) = tokio::join!(open("a"), open("b"), open("c"), open("d"));
        for opened in [a, b, c, d] {
            opened.unwrap();
        }
        // Those that were too many have ended, or the sandboxes would not all be in one.
        for sandbox in ["a", "b", "c", "d"] {
            gate.client.flows(sandbox).await.unwrap();
        }
    });
}

#[test]
fn names_that_are_paths_are_refused() {
    run(async {
        let gate = Gate::new(&Authority::new());
        for name in ["", ".", "..", ".a", "a/b", "../a", "a\0b", "ä", &"a".repeat(129)] {
            let opened = gate.client.open(name, &Network::default(), &[], None).await;
            assert!(matches!(opened, Err(Error::Refused(_))), "{name:?}");
        }
        let network =
            Network { grants: vec![grant("127.1", 1, Scheme::Http)], ..Network::default() };
        let opened = gate.client.open("a", &network, &[], None).await;
        assert!(matches!(opened, Err(Error::Refused(_))));
        let file = std::fs::File::open("/dev/null").unwrap();
        let opened = gate.client.open("a", &Network::default(), &[], Some(file.into())).await;
        assert!(matches!(opened, Err(Error::Refused(_))));
    });
}

#[test]
fn what_has_no_room_in_a_request_is_the_callers_fault() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let mut grant = grant("example.com", 443, Scheme::Https);
        grant.paths = vec!["/".repeat(2 << 20)];
        let network = Network { grants: vec![grant], ..Network::default() };
        let opened = gate.client.open("a", &network, &[], None).await;
        assert!(matches!(opened, Err(Error::Refused(_))), "{opened:?}");
    });
}

#[test]
fn a_program_that_is_no_gate_is_said_to_be_none() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let launch = outrigger_gate::ServerLaunch {
            program: "/bin/true".into(),
            args: Vec::new(),
            master_key_command: Vec::new(),
        };
        let client = outrigger_gate::NetworkClient::new(dir.path().join("gate"), launch);
        let opened = client.open("a", &Network::default(), &[], None).await;
        assert!(matches!(opened, Err(Error::Start(_))), "{opened:?}");
    });
}

#[test]
fn the_process_is_confined_and_its_files_are_its_own() {
    use std::os::unix::fs::PermissionsExt;
    run(async {
        let gate = Gate::new(&Authority::new());
        gate.open("a", Vec::new()).await;
        let pid = gate.pids().pop().unwrap();
        let mut confined = 0;
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
            let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            if status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2") {
                confined += 1;
            }
        }
        // The thread of the test harness waits for the one that serves.
        assert!(confined > 0);
        let mode = |path: &str| gate.dir().join(path).metadata().unwrap().permissions().mode();
        assert_eq!(mode("") & 0o777, 0o700);
        assert_eq!(mode("authorities/a.pem") & 0o777, 0o600);
    });
}

#[test]
fn names_are_resolved_under_the_confinement() {
    run(async {
        let authority = Authority::new();
        let gate = Gate::new(&authority);
        let upstream =
            Upstream::start(Some(authority.server(&["localhost"], 9)), Answer::Echo).await;
        let port = upstream.port();
        let grants = vec![
            grant("localhost", port, Scheme::Https),
            grant("nowhere.invalid", port, Scheme::Https),
        ];
        let inside = gate.open("a", grants).await;
        let mut tunnel =
            inside.tunnel(&format!("localhost:{port}"), Some("localhost")).await.unwrap();
        let request = format!("GET /x HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n");
        assert_eq!(tunnel.ask(&request).await.unwrap().status, 200);
        let authority = format!("nowhere.invalid:{port}");
        let mut tunnel = inside.tunnel(&authority, Some("nowhere.invalid")).await.unwrap();
        let reply = tunnel.ask(&format!("GET / HTTP/1.1\r\nHost: {authority}\r\n\r\n")).await;
        let reply = reply.unwrap();
        assert_eq!((reply.status, reply.refused()), (502, Some("unresolved")), "{reply:?}");
    });
}

#[test]
fn one_connection_can_be_handed_over() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let upstream = Upstream::start(None, Answer::Echo).await;
        let port = upstream.port();
        let network =
            Network { grants: vec![grant("127.0.0.1", port, Scheme::Http)], ..Network::default() };
        gate.client.open("a", &network, &[], None).await.unwrap();
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        gate.client.connection("a", None, theirs.into()).await.unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut connection = Connection::new(tokio::net::UnixStream::from_std(ours).unwrap());
        let request =
            format!("GET http://127.0.0.1:{port}/x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
        assert_eq!(connection.ask(&request).await.unwrap().status, 200);
    });
}

#[test]
fn a_listener_that_blocks_ends_alone() {
    run(async {
        let gate = Gate::new(&Authority::new());
        let upstream = Upstream::start(None, Answer::Echo).await;
        let port = upstream.port();
        let good = gate.open("good", vec![grant("127.0.0.1", port, Scheme::Http)]).await;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let handed = listener.try_clone().unwrap();
        gate.client.open("bad", &Network::default(), &[], Some(handed.into())).await.unwrap();
        // The guest has the same open file, and makes it block.
        listener.set_nonblocking(false).unwrap();
        let mut first = Connection::new(tokio::net::TcpStream::connect(address).await.unwrap());
        assert_eq!(first.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap().status, 403);
        let request =
            format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
        assert_eq!(good.ask(&request).await.unwrap().status, 200);
        // The gate gives the listener up, which its backlog sees as the end of it.
        while std::net::TcpStream::connect(address).is_ok() {
            // poll: the gate waits for accept(2) for a while before it shuts the listener down
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(good.ask(&request).await.unwrap().status, 200);
    });
}
