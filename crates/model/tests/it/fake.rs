//! A provider on loopback that answers what it is told, byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// An answer to one request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// A whole answer.
    Whole { status: u16, headers: Vec<(&'static str, String)>, body: Vec<u8> },
    /// A stream in pieces of so many bytes, with an end.
    Stream { body: String, piece_bytes: usize, end: End },
    /// Nothing, ever.
    Nothing,
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// As HTTP wants it.
    Clean,
    /// The connection is closed in the middle.
    Cut,
    /// The connection is reset.
    Reset,
    /// Nothing more comes, and nothing ends.
    Silence,
}

/// A request as it was received.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Lines of its head.
    pub(crate) head: Vec<String>,
    /// Its body.
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// The server. Stops when it is dropped.
#[derive(Debug)]
pub(crate) struct Fake {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    answers: Vec<Answer>,
    seen: Mutex<Vec<Seen>>,
    connections: Mutex<usize>,
    stopped: AtomicBool,
}

impl Answer {
    pub(crate) fn stream(body: &str) -> Self {
        Self::Stream { body: body.into(), piece_bytes: 7, end: End::Clean }
    }

    pub(crate) fn ending(body: &str, end: End) -> Self {
        Self::Stream { body: body.into(), piece_bytes: 1_000, end }
    }

    pub(crate) fn status(status: u16, body: &str) -> Self {
        Self::Whole { status, headers: Vec::new(), body: body.into() }
    }

    pub(crate) fn packed(status: u16, body: &str) -> Self {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(body.as_bytes()).unwrap();
        let headers = vec![("content-encoding", "gzip".to_owned())];
        Self::Whole { status, headers, body: gzip.finish().unwrap() }
    }

    pub(crate) fn with(self, name: &'static str, value: &str) -> Self {
        match self {
            Self::Whole { status, mut headers, body } => {
                headers.push((name, value.into()));
                Self::Whole { status, headers, body }
            }
            other => other,
        }
    }
}

impl Fake {
    /// Starts it; the last answer is given again and again.
    pub(crate) fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            answers,
            seen: Mutex::default(),
            connections: Mutex::default(),
            stopped: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.stopped.load(Ordering::SeqCst) {
                    return;
                }
                *shared.connections.lock().unwrap() += 1;
                let shared = Arc::clone(&shared);
                // A client that goes away ends its thread, and that is all.
                thread::spawn(move || shared.serve(stream.unwrap()).ok());
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.state.connections.lock().unwrap()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.state.stopped.store(true, Ordering::SeqCst);
        // Wakes the listener; if it is gone, so much the better.
        drop(TcpStream::connect(self.address));
    }
}

impl State {
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some(request) = receive(&mut reader)? {
            let at = {
                let mut seen = self.seen.lock().unwrap();
                seen.push(request);
                seen.len() - 1
            };
            let answer = self.answers.get(at).or(self.answers.last()).unwrap();
            match answer {
                Answer::Whole { status, headers, body } => {
                    let mut head =
                        format!("HTTP/1.1 {status} Whatever\r\ncontent-length: {}\r\n", body.len());
                    for (name, value) in headers {
                        head.push_str(&format!("{name}: {value}\r\n"));
                    }
                    stream.write_all(&[format!("{head}\r\n").as_bytes(), body].concat())?;
                }
                Answer::Stream { body, piece_bytes, end } => {
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n")?;
                    let mut chunk = Vec::new();
                    for piece in body.as_bytes().chunks(*piece_bytes) {
                        stream.write_all(&chunk)?;
                        chunk = format!("{:x}\r\n", piece.len()).into_bytes();
                        chunk.extend_from_slice(piece);
                        chunk.extend_from_slice(b"\r\n");
                    }
                    if *end == End::Clean {
                        // With the last piece: a client does not wait long for the end.
                        chunk.extend_from_slice(b"0\r\n\r\n");
                    }
                    stream.write_all(&chunk)?;
                    match end {
                        End::Clean => {}
                        End::Cut => return Ok(()),
                        End::Reset => {
                            return Ok(rustix::net::sockopt::set_socket_linger(
                                &stream,
                                Some(Duration::ZERO),
                            )?);
                        }
                        End::Silence => return wait_for_the_client_to_go(&mut reader),
                    }
                }
                Answer::Nothing => return wait_for_the_client_to_go(&mut reader),
            }
        }
        Ok(())
    }
}

fn wait_for_the_client_to_go(reader: &mut BufReader<TcpStream>) -> std::io::Result<()> {
    reader.read_to_end(&mut Vec::new()).map(|_| ())
}

fn receive(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Seen>> {
    let mut seen = Seen { head: Vec::new(), body: String::new() };
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end() {
            "" => break,
            line => seen.head.push(line.to_owned()),
        }
    }
    let length = seen.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    seen.body = String::from_utf8(body).unwrap();
    Ok(Some(seen))
}
