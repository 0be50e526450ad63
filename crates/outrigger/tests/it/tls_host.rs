//! A host with TLS on this machine, and an authority that vouches for it.

use crate::support::{World, processes, until};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustix::process::{Pid, Signal};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Where the host is: of this machine, and no address that programs reach without a proxy.
pub(crate) const ADDRESS: &str = "127.0.0.2";

/// A name that it has for whoever asks by its proxy.
pub(crate) const NAME: &str = "forge.example";

/// A connection to the host.
pub(crate) type HostStream = StreamOwned<ServerConnection, TcpStream>;

/// A host with TLS. It ends with the test's process.
pub(crate) struct TlsHost {
    pub(crate) port: u16,
    /// The certificate that vouches for it.
    pub(crate) authority: PathBuf,
}

impl TlsHost {
    pub(crate) fn start(
        world: &World,
        serve: impl Fn(HostStream) + Clone + Send + 'static,
    ) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = world.path("authority.pem");
        fs::write(&authority, params.self_signed(&key).unwrap().pem()).unwrap();
        let issuer = Issuer::new(params, key);
        let own = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([ADDRESS, NAME].map(str::to_owned)).unwrap();
        let certificate = certificate.signed_by(&own, &issuer).unwrap().der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.serialize_der()));
        let config = ServerConfig::builder().with_no_client_auth();
        let config = Arc::new(config.with_single_cert(vec![certificate], key).unwrap());
        let listener = TcpListener::bind((ADDRESS, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let session = ServerConnection::new(Arc::clone(&config)).unwrap();
                let serve = serve.clone();
                std::thread::spawn(move || serve(StreamOwned::new(session, stream)));
            }
        });
        Self { port, authority }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{ADDRESS}:{}{path}", self.port)
    }

    /// Starts a proxy by which every name leads to it, as an operator has one. Gives its URL.
    pub(crate) fn proxy(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let port = self.port;
        std::thread::spawn(move || {
            for inside in listener.incoming().flatten() {
                std::thread::spawn(move || tunnel(inside, port));
            }
        });
        url
    }

    pub(crate) fn word(&self) -> String {
        format!("{ADDRESS}:{}", self.port)
    }

    /// The program, of which the gate trusts the host.
    pub(crate) fn trusting(&self, world: &World, args: &[&str]) -> Command {
        let mut command = world.outrigger(args);
        command.env("SSL_CERT_FILE", &self.authority);
        command
    }
}

fn tunnel(inside: TcpStream, port: u16) -> Option<()> {
    let mut reading = BufReader::new(inside.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reading.read_line(&mut head).ok().filter(|length| *length > 0)?;
    }
    let outside = TcpStream::connect((ADDRESS, port)).ok()?;
    (&inside).write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok()?;
    let (mut from, mut to) = (outside.try_clone().ok()?, inside.try_clone().ok()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
    std::io::copy(&mut reading, &mut &outside).ok()?;
    outside.shutdown(std::net::Shutdown::Write).ok()
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct HostRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl HostRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// Answers each request of a connection; `answer` gives a status, headers and a body.
pub(crate) fn answer_all(
    stream: HostStream,
    answer: impl Fn(&HostRequest) -> (u16, String, Vec<u8>),
) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = request(&mut stream) {
        let (status, headers, body) = answer(&request);
        let length = body.len();
        let head = format!("HTTP/1.1 {status} x\r\n{headers}content-length: {length}\r\n\r\n");
        let stream = stream.get_mut();
        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        if sent.and_then(|()| stream.flush()).is_err() {
            return;
        }
    }
}

/// Reads a request. `None`: there is no other one.
pub(crate) fn request(stream: &mut BufReader<HostStream>) -> Option<HostRequest> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        // A program that left, or does not trust us.
        stream.read_line(&mut head).ok().filter(|length| *length > 0)?;
    }
    let mut words = head.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut request = HostRequest { method, path, head, body: Vec::new() };
    if request.header("transfer-encoding").is_some() {
        loop {
            let mut size = String::new();
            stream.read_line(&mut size).ok()?;
            let length = usize::from_str_radix(size.trim(), 16).ok()?;
            let mut chunk = vec![0; length + 2];
            stream.read_exact(&mut chunk).ok()?;
            request.body.extend_from_slice(&chunk[..length]);
            if length == 0 {
                break;
            }
        }
    } else {
        let length = request.header("content-length").and_then(|length| length.parse().ok());
        request.body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut request.body).ok()?;
    }
    Some(request)
}

/// The process ids of this world's gate.
pub(crate) fn gates(world: &World) -> Vec<u32> {
    let dir = world.data().join("gate");
    let wanted = [b"gate-server", dir.as_os_str().as_encoded_bytes()].join(&0);
    let is_one = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(wanted.len()).any(|window| window == wanted)
    };
    processes().into_iter().filter(is_one).collect()
}

pub(crate) fn kill_gates(world: &World) {
    for pid in gates(world) {
        let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        // It may have ended by itself.
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    until("the gate ended", || gates(world).is_empty().then_some(()));
}
