//! The host outside that is asked, on a thread of its own.
//!
//! Owns its certificate and who signed it, and that answering costs next to nothing.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::limits;

/// What it is called.
pub(crate) const NAME: &str = "localhost";
/// How it is asked for a body that is large.
pub(crate) const BODY_PATH: &str = "/body";

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Who signs for hosts.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    key_pem: String,
}

impl Authority {
    pub(crate) fn new() -> io::Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // One that is called like whom it signs for looks self-signed to OpenSSL.
        params.distinguished_name.push(DnType::CommonName, "bench authority");
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let pem = params.self_signed(&key).map_err(io::Error::other)?.pem();
        let key_pem = key.serialize_pem();
        Ok(Self { issuer: Issuer::new(params, key), pem, key_pem })
    }

    /// What clients trust.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// What a peer signs with.
    pub(crate) fn pem_with_key(&self) -> String {
        format!("{}{}", self.pem, self.key_pem)
    }

    fn server(&self) -> io::Result<TlsAcceptor> {
        let names = vec![NAME.to_owned()];
        let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
        params.distinguished_name.push(DnType::CommonName, NAME);
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(io::Error::other)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .map_err(io::Error::other)?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Starts the host. It ends with the process.
pub(crate) fn start(authority: &Authority) -> io::Result<SocketAddr> {
    let tls = authority.server()?;
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        // Where it fails nobody is answered, and the measurement says so.
        let _ = runtime.block_on(accept(listener, tls));
    });
    Ok(address)
}

async fn accept(listener: std::net::TcpListener, tls: TlsAcceptor) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        connections.spawn(serve(stream, tls.clone()));
        while connections.try_join_next().is_some() {}
    }
}

/// Answers until the other side leaves.
async fn serve(stream: TcpStream, tls: TlsAcceptor) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = tls.accept(stream).await?;
    let mut read = Vec::with_capacity(limits::HEAD_BYTES_MAX);
    loop {
        read.clear();
        while !read.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut read).await? == 0 {
                return Ok(());
            }
        }
        if !read.starts_with(format!("GET {BODY_PATH} ").as_bytes()) {
            stream.write_all(ANSWER).await?;
            stream.flush().await?;
            continue;
        }
        let length = limits::BODY_BYTES;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        let piece = vec![b'x'; limits::PIECE_BYTES];
        let mut left = usize::try_from(length).expect("a machine of 64 bits");
        while left > 0 {
            let now = left.min(piece.len());
            stream.write_all(&piece[..now]).await?;
            left -= now;
        }
        stream.flush().await?;
    }
}
