//! A provider on loopback that always answers the same.

use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The provider. Its thread ends with the test's process.
pub(crate) struct Provider {
    pub(crate) url: String,
    asked: Arc<AtomicUsize>,
}

impl Provider {
    /// One that answers with this head (status line and headers) and body.
    pub(crate) fn new(head: &'static str, body: &'static str) -> Self {
        Self::listening(TcpListener::bind("127.0.0.1:0").unwrap(), head, body)
    }

    fn listening(listener: TcpListener, head: &'static str, body: &'static str) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that has gone is its own affair.
                if read(&stream).is_some() {
                    counted.fetch_add(1, Ordering::SeqCst);
                    drop(answer(&stream, head, body));
                }
            }
        });
        Self { url, asked }
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Reads a request to its end.
fn read(stream: &TcpStream) -> Option<()> {
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
    reader.take(length).read_to_end(&mut Vec::new()).ok().map(drop)
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
        Provider::listening(TcpListener::from(self.socket), head, body)
    }
}
