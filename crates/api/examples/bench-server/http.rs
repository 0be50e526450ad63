//! As much of HTTP/1.1 as it takes to ask a server on loopback, and to follow it.
//!
//! Owns one connection for each request. Must never keep one: what is measured is the server.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::limits;

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) server: SocketAddr,
    /// What lets it in, where the server wants that.
    pub(crate) key: Option<String>,
}

/// An answer, of which the head was read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    reads: BufReader<TcpStream>,
    /// Bytes of the body, where it does not come in pieces.
    length: Option<usize>,
    /// What came of a frame that is not whole.
    begun: Vec<u8>,
}

/// One event of a stream.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub(crate) name: String,
    pub(crate) data: String,
    pub(crate) id: Option<u64>,
}

impl Client {
    /// Asks, and reads the head of the answer.
    pub(crate) async fn ask(
        &self,
        (method, path): (&str, &str),
        header: Option<(&str, &str)>,
        body: Option<&Value>,
    ) -> io::Result<Answer> {
        let mut stream = TcpStream::connect(self.server).await?;
        stream.set_nodelay(true)?;
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.server);
        let key = self.key.iter().map(|key| ("authorization", format!("Bearer {key}")));
        let own = header.map(|(name, value)| (name, value.to_owned()));
        let body = body.map(Value::to_string);
        let typed = body.iter().flat_map(|body| {
            let length = body.len().to_string();
            [("content-type", "application/json".to_owned()), ("content-length", length)]
        });
        for (name, value) in key.chain(own).chain(typed) {
            head += &format!("{name}: {value}\r\n");
        }
        head += "connection: close\r\n\r\n";
        head += body.as_deref().unwrap_or_default();
        stream.write_all(head.as_bytes()).await?;
        Answer::read(BufReader::new(stream)).await
    }

    /// Asks, and gives status and body.
    pub(crate) async fn json(
        &self,
        asked: (&str, &str),
        header: Option<(&str, &str)>,
        body: Option<&Value>,
    ) -> io::Result<(u16, Value)> {
        let whole = async {
            let mut answer = self.ask(asked, header, body).await?;
            let mut bytes = Vec::new();
            while let Some(piece) = answer.piece().await? {
                bytes.extend(piece);
            }
            Ok((answer.status, serde_json::from_slice(&bytes).unwrap_or_default()))
        };
        let most = std::time::Duration::from_millis(limits::REQUEST_MS_MAX);
        tokio::time::timeout(most, whole).await?
    }

    /// Asks for what has to be there.
    pub(crate) async fn get(&self, path: &str) -> io::Result<Value> {
        match self.json(("GET", path), None, None).await? {
            (200, body) => Ok(body),
            (status, body) => Err(io::Error::other(format!("GET {path}: {status} {body}"))),
        }
    }
}

/// A line without its end; an error where there is none any more.
pub(crate) async fn line<R: AsyncBufReadExt + Unpin>(reads: &mut R) -> io::Result<String> {
    let mut line = String::new();
    reads.take(limits::LINE_BYTES_MAX).read_line(&mut line).await?;
    match line.strip_suffix('\n') {
        Some(line) => Ok(line.trim_end().to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

impl Answer {
    async fn read(mut reads: BufReader<TcpStream>) -> io::Result<Self> {
        let first = line(&mut reads).await?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status: {first}")))?;
        let mut length = Some(0);
        loop {
            let line = line(&mut reads).await?.to_ascii_lowercase();
            match line.split_once(':') {
                Some(("content-length", value)) => length = value.trim().parse().ok(),
                Some(("transfer-encoding", _)) => length = None,
                Some(_) => {}
                None => break,
            }
        }
        Ok(Self { status, reads, length, begun: Vec::new() })
    }

    /// The next piece of the body; nothing behind its end.
    async fn piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        let length = match self.length.as_mut() {
            Some(length) => std::mem::take(length),
            None => {
                let line = line(&mut self.reads).await?;
                usize::from_str_radix(&line, 16).map_err(io::Error::other)?
            }
        };
        if length == 0 {
            return Ok(None);
        }
        if length > limits::BODY_BYTES_MAX {
            return Err(io::Error::other("a body is too large"));
        }
        let mut piece = vec![0; length];
        self.reads.read_exact(&mut piece).await?;
        if self.length.is_none() {
            line(&mut self.reads).await?;
        }
        Ok(Some(piece))
    }

    /// The next frame of a stream of events; nothing behind its end.
    pub(crate) async fn frame(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(end) = self.begun.windows(2).position(|two| two == b"\n\n") {
                let rest = self.begun.split_off(end + 2);
                let bytes = std::mem::replace(&mut self.begun, rest);
                return Ok(Some(Frame::read(&String::from_utf8_lossy(&bytes))));
            }
            let Some(piece) = self.piece().await? else { return Ok(None) };
            self.begun.extend(piece);
        }
    }
}

impl Frame {
    fn read(text: &str) -> Self {
        let mut frame = Self::default();
        for line in text.lines() {
            match line.split_once(": ") {
                Some(("event", name)) => name.clone_into(&mut frame.name),
                Some(("data", data)) => frame.data += data,
                Some(("id", id)) => frame.id = id.parse().ok(),
                _ => {}
            }
        }
        frame
    }
}
