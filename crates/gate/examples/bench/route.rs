//! A way to the host: straight, or through a proxy.
//!
//! Owns that every route is asked by the same client, so that what it costs itself is the
//! same everywhere.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::host;
use crate::limits;

const END: &[u8] = b"\r\n\r\n";

/// A way to the host.
#[derive(Clone)]
pub(crate) struct Route {
    host: SocketAddr,
    proxy: Option<SocketAddr>,
    tls: TlsConnector,
}

/// A connection to the host.
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    port: u16,
    read: Vec<u8>,
}

impl Route {
    /// To the host, trusting an authority. `proxy`: what is between, if anything is.
    pub(crate) fn new(
        host: SocketAddr,
        proxy: Option<SocketAddr>,
        trusted: &str,
    ) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(trusted.as_bytes()) {
            let certificate = certificate.map_err(io::Error::other)?;
            roots.add(certificate).map_err(io::Error::other)?;
        }
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(io::Error::other)?
                .with_root_certificates(roots)
                .with_no_client_auth();
        // Most connections of a sandbox are the first of a program, which remembers none.
        config.resumption = Resumption::disabled();
        Ok(Self { host, proxy, tls: TlsConnector::from(Arc::new(config)) })
    }

    pub(crate) async fn connect(&self) -> io::Result<Connection> {
        let port = self.host.port();
        let mut stream = TcpStream::connect(self.proxy.unwrap_or(self.host)).await?;
        stream.set_nodelay(true)?;
        let mut read = Vec::with_capacity(limits::PIECE_BYTES);
        if self.proxy.is_some() {
            let name = host::NAME;
            let connect = format!("CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n");
            stream.write_all(connect.as_bytes()).await?;
            head(&mut stream, &mut read).await?;
            read.clear();
        }
        let name = ServerName::try_from(host::NAME).map_err(io::Error::other)?;
        let stream = self.tls.connect(name, stream).await?;
        Ok(Connection { stream, port, read })
    }
}

impl Connection {
    /// A request and its answer.
    pub(crate) async fn ask(&mut self) -> io::Result<()> {
        self.fetch("/", None).await.map(drop)
    }

    /// A request and the bytes of its body, or what came of it until then; after that the
    /// connection is of no use.
    pub(crate) async fn fetch(&mut self, path: &str, until: Option<Instant>) -> io::Result<u64> {
        let (name, port) = (host::NAME, self.port);
        let request = format!("GET {path} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n");
        self.stream.write_all(request.as_bytes()).await?;
        self.stream.flush().await?;
        self.read.clear();
        let end = head(&mut self.stream, &mut self.read).await?;
        let length = length(&self.read[..end])?;
        let mut got = (self.read.len() - end) as u64;
        while got < length && until.is_none_or(|until| Instant::now() < until) {
            self.read.clear();
            got += more(&mut self.stream, &mut self.read).await? as u64;
        }
        Ok(got)
    }
}

/// Reads a head, and says where it ends.
async fn head(stream: &mut (impl AsyncRead + Unpin), read: &mut Vec<u8>) -> io::Result<usize> {
    loop {
        if let Some(at) = read.windows(END.len()).position(|end| end == END) {
            return if read.get(9..12) == Some(b"200") {
                Ok(at + END.len())
            } else {
                let head = String::from_utf8_lossy(&read[..at]);
                Err(io::Error::other(head.lines().next().unwrap_or_default().to_owned()))
            };
        }
        if read.len() > limits::HEAD_BYTES_MAX {
            return Err(io::Error::other("a head without an end"));
        }
        more(stream, read).await?;
    }
}

async fn more(stream: &mut (impl AsyncRead + Unpin), read: &mut Vec<u8>) -> io::Result<usize> {
    match stream.read_buf(read).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        length => Ok(length),
    }
}

fn length(head: &[u8]) -> io::Result<u64> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse().ok());
    length.ok_or_else(|| io::Error::other("an answer without a length"))
}
