//! A registry that says too much, and leads elsewhere.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::direct_route::DirectRoute;
use crate::support::*;
use outrigger_sandbox::Error;
use outrigger_sandbox_native::{Registry, Transport};

/// What an endless answer is given up after by itself.
const ENDLESS_BYTES: u64 = 1 << 30;
/// What may be on its way when somebody stops reading: an answer's bound, and buffers.
const READ_BYTES_MAX: u64 = 64 << 20;

/// A server on this host's loopback interface, until the test's process ends.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    sent: Arc<AtomicU64>,
}

impl Server {
    /// `answer` gives the head for a path; a body that is `chunked` never ends.
    fn start(answer: impl Fn(u16, &str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (asked, sent) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicU64>::default());
        let (noted, counted) = (Arc::clone(&asked), Arc::clone(&sent));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let path = path(&stream);
                noted.lock().unwrap().push(path.clone());
                let head = answer(port, &path);
                let endless = head.contains("chunked");
                if write!(stream, "HTTP/1.1 {head}\r\nconnection: close\r\n\r\n").is_err() {
                    continue;
                }
                let piece = [&b"10000\r\n"[..], &[b'['; 0x10000], b"\r\n"].concat();
                while endless && counted.load(Ordering::SeqCst) < ENDLESS_BYTES {
                    if stream.write_all(&piece).is_err() {
                        break;
                    }
                    counted.fetch_add(piece.len() as u64, Ordering::SeqCst);
                }
            }
        });
        Self { port, asked, sent }
    }

    fn image(&self, hosts: &[&str]) -> Registry {
        let reference = format!("127.0.0.1:{}/test/image:one", self.port);
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        Registry { reference, transport: Transport::Https, hosts }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// What a request asks for.
fn path(stream: &TcpStream) -> String {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    lines.find(String::is_empty);
    first.split(' ').nth(1).unwrap_or_default().to_owned()
}

fn challenge(realm: &str) -> String {
    format!(
        "401 No\r\nwww-authenticate: Bearer realm=\"{realm}\",service=\"s\"\r\ncontent-length: 0"
    )
}

#[tokio::test]
async fn an_endless_answer_is_read_up_to_its_bound() {
    let world = world().await;
    let endless = "200 OK\r\ntransfer-encoding: chunked";
    let manifest = Server::start(move |_, _| endless.to_owned());
    let token = Server::start(move |port, path| match path.starts_with("/token") {
        true => endless.to_owned(),
        false => challenge(&format!("http://127.0.0.1:{port}/token")),
    });
    for (name, server) in [("manifest", &manifest), ("token", &token)] {
        let error = world
            .native
            .pull("x", &server.image(&[]), &DirectRoute::new(), &|_| ())
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{name}: {error:?}");
        assert!(error.to_string().contains("longer than"), "{name}: {error}");
        let sent = server.sent.load(Ordering::SeqCst);
        assert!(sent < READ_BYTES_MAX, "{name}: {sent} bytes were taken");
    }
}

#[tokio::test]
async fn a_registry_leads_to_private_hosts_only_where_they_are_named() {
    let world = world().await;
    let other = Server::start(|_, path| match path.starts_with("/token") {
        true => "200 OK\r\ncontent-length: 13\r\n\r\n{\"token\":\"t\"}".to_owned(),
        false => "404 Not Found\r\ncontent-length: 0".to_owned(),
    });
    let elsewhere = format!("http://127.0.0.1:{}/token", other.port);
    let places = [
        elsewhere.as_str(),
        "http://registry.example/x",
        "https://10.255.255.254/x",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/x",
        "https://localhost/x",
        "file:///etc/passwd",
    ];
    for place in places {
        for answer in
            [format!("302 Found\r\nlocation: {place}\r\ncontent-length: 0"), challenge(place)]
        {
            let server = Server::start(move |_, _| answer.clone());
            let error = world
                .native
                .pull("x", &server.image(&[]), &DirectRoute::new(), &|_| ())
                .await
                .unwrap_err();
            assert!(matches!(error, Error::Unavailable { .. }), "{place}: {error:?}");
            assert!(error.to_string().contains("not followed"), "{place}: {error}");
            assert_eq!(server.asked().len(), 1);
        }
    }
    assert_eq!(other.asked(), Vec::<String>::new());
    // Named, it is asked, and the token goes to the registry alone, which then has no image.
    let server = Server::start(move |_, _| challenge(&elsewhere));
    let error = world
        .native
        .pull("x", &server.image(&["127.0.0.1"]), &DirectRoute::new(), &|_| ())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("to everybody"), "{error}");
    assert_eq!(other.asked(), ["/token?service=s&scope=repository%3Atest%2Fimage%3Apull"]);
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    let world = world().await;
    let server = Server::start(|port, _| {
        format!("302 Found\r\nlocation: http://127.0.0.1:{port}/again\r\ncontent-length: 0")
    });
    let error =
        world.native.pull("x", &server.image(&[]), &DirectRoute::new(), &|_| ()).await.unwrap_err();
    assert!(matches!(error, Error::Backend(_)), "{error:?}");
    assert_eq!(server.asked().len(), 6);
}
