//! A gate for one test, and programs inside its sandboxes.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outrigger_gate::{Flow, Grant, Network, NetworkClient, Scheme, ServerLaunch};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::upstream::Authority;

/// For anything to happen on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A port of this machine at which nobody listens, for as long as it is held.
pub(crate) fn unheard() -> tokio::net::TcpSocket {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket
}

/// Runs a test with a deadline.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(3 * PATIENCE, test).await.unwrap() });
    runtime.shutdown_background();
}

/// A gate whose process ends with the test.
pub(crate) struct Gate {
    dir: TempDir,
    pub(crate) client: NetworkClient,
}

/// A sandbox that has its network.
pub(crate) struct Inside {
    pub(crate) address: SocketAddr,
    pub(crate) authority: String,
}

impl Gate {
    /// A gate that trusts an authority, and nobody else.
    pub(crate) fn new(trusted: &Authority) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let roots = dir.path().join("roots.pem");
        std::fs::write(&roots, trusted.pem()).unwrap();
        let script = dir.path().join("gate.sh");
        // The test's own program becomes the gate: see `process::serve_for_others`.
        let text = format!(
            "echo $$ >>'{}'\nunset SSL_CERT_DIR\nSSL_CERT_FILE='{}' OUTRIGGER_TEST_GATE=\"$1\" exec '{}' \
             --exact process::serve_for_others --nocapture --test-threads=1\n",
            dir.path().join("pids").display(),
            roots.display(),
            std::env::current_exe().unwrap().display(),
        );
        std::fs::write(&script, text).unwrap();
        let launch = ServerLaunch {
            program: "/bin/sh".into(),
            args: vec![script.into()],
            master_key_command: Vec::new(),
        };
        let client = NetworkClient::new(dir.path().join("gate"), launch);
        Self { dir, client }
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.dir.path().join("gate")
    }

    /// The processes that were started as gates, the last one last.
    pub(crate) fn pids(&self) -> Vec<String> {
        let pids = std::fs::read_to_string(self.dir.path().join("pids")).unwrap_or_default();
        pids.lines().map(str::to_owned).collect()
    }

    pub(crate) fn kill(&self) {
        for pid in self.pids() {
            // One that ended is not another's yet: its program is asked first.
            let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
            let id = pid.parse().ok().and_then(rustix::process::Pid::from_raw);
            if let (Some(program), Some(id)) = (program, id)
                && program == std::env::current_exe().unwrap()
            {
                let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
                while std::path::Path::new(&format!("/proc/{pid}")).exists() {
                    // poll: what it had open is closed when all of its threads are gone
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// Opens a sandbox with a listener.
    pub(crate) async fn open(&self, sandbox: &str, grants: Vec<Grant>) -> Inside {
        self.open_network(sandbox, Network { grants, ..Network::default() }).await
    }

    pub(crate) async fn open_network(&self, sandbox: &str, network: Network) -> Inside {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let listener = Some(OwnedFd::from(listener));
        let opened = self.client.open(sandbox, &network, &[], listener).await.unwrap();
        let authority = opened.authority;
        Inside { address, authority }
    }

    /// What came of a sandbox since it was asked last.
    pub(crate) async fn flows(&self, sandbox: &str) -> Vec<Flow> {
        self.client.flows(sandbox).await.unwrap().flows
    }

    /// Waits for a flow.
    pub(crate) async fn wait_for(&self, sandbox: &str, wanted: impl Fn(&Flow) -> bool) -> Flow {
        loop {
            if let Some(flow) = self.flows(sandbox).await.into_iter().find(&wanted) {
                return flow;
            }
            // poll: the gate writes a flow down after it has closed the connection
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A private grant of everything on a port.
pub(crate) fn grant(host: &str, port: u16, scheme: Scheme) -> Grant {
    Grant {
        name: "test".to_owned(),
        host: host.to_owned(),
        port,
        scheme,
        methods: Vec::new(),
        paths: Vec::new(),
        queries: Vec::new(),
        private: true,
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    /// The kind of a refusal.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.header("x-outrigger-refused")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// A connection of a program inside.
pub(crate) struct Connection<S> {
    pub(crate) stream: S,
    read: Vec<u8>,
}

impl Inside {
    pub(crate) async fn connect(&self) -> Connection<TcpStream> {
        Connection::new(TcpStream::connect(self.address).await.unwrap())
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(&self, request: &str) -> Option<Reply> {
        let mut connection = self.connect().await;
        connection.ask(request).await
    }

    /// CONNECT, then TLS for a name. `None`: one of them was refused.
    pub(crate) async fn tunnel(
        &self,
        authority: &str,
        name: Option<&str>,
    ) -> Option<Connection<TlsStream<TcpStream>>> {
        self.tunnel_trusting(authority, name, &self.authority).await
    }

    pub(crate) async fn tunnel_trusting(
        &self,
        authority: &str,
        name: Option<&str>,
        trusted: &str,
    ) -> Option<Connection<TlsStream<TcpStream>>> {
        let mut connection = self.connect().await;
        let connect = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
        if connection.ask_connect(&connect).await?.status != 200 {
            return None;
        }
        let config = client_config(trusted, &[]);
        let name = match name {
            Some(name) => ServerName::try_from(name.to_owned()).unwrap(),
            None => ServerName::try_from("127.0.0.1").unwrap(),
        };
        let tls = TlsConnector::from(config).connect(name, connection.stream).await.ok()?;
        Some(Connection::new(tls))
    }
}

pub(crate) fn client_config(trusted: &str, protocols: &[&[u8]]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(trusted.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Arc::new(config)
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, read: Vec::new() }
    }

    /// Sends a request and takes its answer. `None`: there is none.
    pub(crate) async fn ask(&mut self, request: &str) -> Option<Reply> {
        self.ask_bytes(request.as_bytes()).await
    }

    pub(crate) async fn ask_bytes(&mut self, request: &[u8]) -> Option<Reply> {
        // The other side may have hung up already, and yet have answered.
        let _ = self.stream.write_all(request).await;
        let _ = self.stream.flush().await;
        self.reply().await
    }

    /// As [`Self::ask`], for CONNECT, whose answer has no body if it is yes.
    pub(crate) async fn ask_connect(&mut self, request: &str) -> Option<Reply> {
        self.stream.write_all(request.as_bytes()).await.ok()?;
        let head = self.head().await?;
        let status = head.get(9..12)?.parse().ok()?;
        let body = if status == 200 { String::new() } else { self.body(&head).await };
        Some(Reply { status, head, body })
    }

    pub(crate) async fn reply(&mut self) -> Option<Reply> {
        let head = self.head().await?;
        let body = self.body(&head).await;
        Some(Reply { status: head.get(9..12)?.parse().ok()?, head, body })
    }

    async fn more(&mut self) -> bool {
        let read = self.stream.read_buf(&mut self.read);
        let read = tokio::time::timeout(PATIENCE, read).await.unwrap();
        read.is_ok_and(|length| length > 0)
    }

    pub(crate) async fn head(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.read.windows(4).position(|end| end == b"\r\n\r\n") {
                let head: Vec<u8> = self.read.drain(..at + 4).collect();
                return Some(String::from_utf8_lossy(&head).into_owned());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Waits for a text.
    pub(crate) async fn until(&mut self, text: &str) {
        while !self.read.windows(text.len()).any(|read| read == text.as_bytes()) {
            assert!(self.more().await, "it ended before {text:?}");
        }
    }

    async fn body(&mut self, head: &str) -> String {
        let lower = head.to_ascii_lowercase();
        if lower.starts_with("http/1.1 100") {
            return String::new();
        }
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.and_then(|length| length.parse::<usize>().ok());
        let chunked = lower.contains("transfer-encoding: chunked");
        let end = |read: &[u8]| match length {
            Some(length) => (read.len() >= length).then_some(length),
            None if chunked => read.windows(5).position(|end| end == b"0\r\n\r\n").map(|at| at + 5),
            None => None,
        };
        while end(&self.read).is_none() {
            if !self.more().await {
                break;
            }
        }
        let end = end(&self.read).unwrap_or(self.read.len());
        let body: Vec<u8> = self.read.drain(..end).collect();
        String::from_utf8_lossy(&body).into_owned()
    }
}
