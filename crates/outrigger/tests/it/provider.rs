//! A provider on loopback that answers what it is told.

use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

/// The provider. Its thread ends with the test's process.
pub(crate) struct Provider {
    pub(crate) url: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    /// One that answers always with this head (status line and headers) and body.
    pub(crate) fn new(head: &'static str, body: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::listening(listener, head, vec![Some(body.to_owned())])
    }

    /// One that answers with these streams, and then with the last one again and again.
    pub(crate) fn streaming(bodies: Vec<String>) -> Self {
        Self::answering(bodies.into_iter().map(Some).collect())
    }

    /// One that answers nothing the first time, and with this stream from then on.
    pub(crate) fn hanging_first(body: String) -> Self {
        Self::answering(vec![None, Some(body)])
    }

    /// One that streams these, and leaves a request open where there is none.
    fn answering(bodies: Vec<Option<String>>) -> Self {
        let head = "200 OK\r\ncontent-type: text/event-stream";
        Self::listening(TcpListener::bind("127.0.0.1:0").unwrap(), head, bodies)
    }

    fn listening(listener: TcpListener, head: &'static str, bodies: Vec<Option<String>>) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heard);
        std::thread::spawn(move || {
            // Connections that are left open without an answer.
            let mut hanging = Vec::new();
            for stream in listener.incoming().flatten() {
                // A client that has gone is its own affair.
                if let Some(request) = read(&stream) {
                    let at = {
                        let mut kept = kept.lock().unwrap();
                        kept.push(request);
                        kept.len() - 1
                    };
                    let body = bodies.get(at).or(bodies.last()).unwrap();
                    match body {
                        Some(body) => drop(answer(&stream, head, body)),
                        None => hanging.push(stream),
                    }
                }
            }
        });
        Self { url, heard }
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> usize {
        self.heard.lock().unwrap().len()
    }

    /// The bodies of what it was asked.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

/// Reads a request to its end; gives its body.
fn read(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(bytes) = line.strip_prefix("content-length:") {
            length = bytes.trim().parse().ok()?;
        }
    }
    let mut body = String::new();
    reader.take(length).read_to_string(&mut body).ok().map(|_| body)
}

fn answer(mut stream: &TcpStream, head: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(stream, "HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

/// An address on which nobody listens, nor can anybody else.
pub(crate) struct Nobody {
    pub(crate) url: String,
    socket: OwnedFd,
}

impl Nobody {
    pub(crate) fn new() -> Self {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap();
        Self { url: format!("http://{address}"), socket }
    }

    /// From now on a provider does, as [`Provider::new`] makes one.
    pub(crate) fn becomes(self, head: &'static str, body: &'static str) -> Provider {
        listen(&self.socket, 128).unwrap();
        Provider::listening(TcpListener::from(self.socket), head, vec![Some(body.to_owned())])
    }
}
