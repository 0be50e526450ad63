//! A gate of its own with hosts outside, and sandboxes that have a way out by it.
//!
//! Owns the gate's process and its end, and how a sandbox gets its network: as the engine does
//! it, by the backend's listener, or by its connections where it can't hand that out.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use outrigger_gate::{
    Grant, Network, NetworkClient, Proxy, Refusal, Scheme, SealedSecret, SecretPlace, SecretTerms,
    SecretValue, ServerLaunch,
};
use outrigger_sandbox::{ConnectionSink, SandboxId, capture};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::hosts::{HostLog, TestHosts, start};
use super::wire::{HostReply, ask, wire, word};
use crate::stage::{OnStage, Room};
use crate::target::GATE;

/// The secret, which must never be inside.
pub(super) const SECRET: &str = "ghp_canaryCANARY0123456789abcdefghijklmn";
/// Its name.
const NAME: &str = "TOKEN";

/// The outside and the gate to it.
#[derive(Debug)]
pub(super) struct GateWorld {
    pub(super) stage: OnStage,
    pub(super) hosts: TestHosts,
    pub(super) client: NetworkClient,
    dir: tempfile::TempDir,
}

/// A sandbox that has its network.
#[derive(Debug)]
pub(super) struct GateRoom {
    pub(super) room: Room,
    pub(super) authority: String,
    pub(super) placeholder: String,
    pub(super) port: u16,
}

/// Hands connections to the gate that a backend carries.
struct CarriedConnections(mpsc::UnboundedSender<(OwnedFd, Option<u16>)>);

impl ConnectionSink for CarriedConnections {
    fn connection(&self, connection: OwnedFd, captured: Option<u16>) {
        let _ = self.0.send((connection, captured));
    }
}

/// All of a host, which must be public.
pub(super) fn grant(host: &str, scheme: Scheme) -> Grant {
    Grant {
        name: "attack".to_owned(),
        host: host.to_owned(),
        port: if scheme == Scheme::Https { 443 } else { 80 },
        scheme,
        methods: Vec::new(),
        paths: Vec::new(),
        queries: Vec::new(),
        private: false,
    }
}

/// A place where a secret is sent in the usual headers.
pub(super) fn place(grant: Grant) -> SecretPlace {
    SecretPlace::new(grant)
}

impl GateWorld {
    pub(super) async fn new(stage: OnStage) -> Result<Self, String> {
        let hosts = TestHosts::start().await?;
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let roots = dir.path().join("roots.pem");
        std::fs::write(&roots, &hosts.roots).map_err(|error| error.to_string())?;
        let args = vec![OsString::from(GATE), roots.into()];
        let program = stage.target().program.clone();
        let launch = ServerLaunch { program, args, master_key_command: Vec::new() };
        let client = NetworkClient::new(dir.path().join("gate"), launch);
        Ok(Self { stage, hosts, client, dir })
    }

    /// The gate's own directory.
    pub(super) fn gate_dir(&self) -> PathBuf {
        self.dir.path().join("gate")
    }

    /// The processes that are gates of this world: those that were started with its directory.
    pub(super) fn gates(&self) -> Vec<Pid> {
        let dir = self.gate_dir();
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let is_gate = |process: &Path| {
            let words = std::fs::read(process.join("cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|word| word == dir.as_os_str().as_encoded_bytes())
        };
        processes
            .filter(|process| is_gate(&process.path()))
            .filter_map(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?))
            .collect()
    }

    /// Ends the gate as a crash would.
    pub(super) fn kill(&self) {
        for gate in self.gates() {
            // One that has ended is as dead.
            let _ = kill_process(gate, Signal::KILL);
        }
    }

    /// What a sandbox may reach, by names that all lead to the hosts here.
    pub(super) fn network(&self, grants: Vec<Grant>) -> Network {
        let proxy = Proxy { url: format!("http://{}", self.hosts.address), no_proxy: Vec::new() };
        Network { grants, proxy: Some(proxy), ..Network::default() }
    }

    /// `good.test` and `other.test` with and without TLS, all of them.
    pub(super) fn usual(&self) -> Network {
        let both = |host| [grant(host, Scheme::Https), grant(host, Scheme::Http)];
        self.network(["good.test", "other.test"].into_iter().flat_map(both).collect())
    }

    /// Seals a value; with the one of `before`, it is rotated.
    pub(super) async fn seal(
        &self,
        before: Option<&SealedSecret>,
        places: Vec<SecretPlace>,
        value: &str,
    ) -> Result<SealedSecret, String> {
        let (name, organisation) = (NAME.to_owned(), "attack".to_owned());
        let terms = SecretTerms { name, organisation, places, ends_ms: None, verifies: false };
        let value = SecretValue::new(value.to_owned().into())?;
        let id = before.map(|secret| secret.id.as_str());
        self.client.seal(id, terms, value).await.map_err(|error| error.to_string())
    }

    /// The secret as it is for `good.test`.
    pub(super) async fn secret(&self) -> Result<SealedSecret, String> {
        self.seal(None, vec![place(grant("good.test", Scheme::Https))], SECRET).await
    }

    /// A new sandbox with a way out.
    pub(super) async fn room(
        &self,
        what: &str,
        network: &Network,
        secrets: &[SealedSecret],
    ) -> Result<GateRoom, String> {
        let room = self.stage.room(what, |_| {}).await?;
        self.open(room, network, secrets).await
    }

    /// Gives a sandbox its way out, or another one.
    pub(super) async fn open(
        &self,
        room: Room,
        network: &Network,
        secrets: &[SealedSecret],
    ) -> Result<GateRoom, String> {
        let sink = Arc::new(carry(self.client.clone(), room.id.clone()));
        let listener = self.stage.target().networks.listen(&room.id, &[], sink).await;
        let listener = listener.map_err(|error| format!("no way out: {error}"))?;
        let opened =
            self.client.open(room.id.as_str(), network, secrets, listener.descriptors).await;
        let opened = opened.map_err(|error| format!("the gate: {error}"))?;
        let placeholder = opened.placeholders.get(NAME).cloned().unwrap_or_default();
        Ok(GateRoom { room, authority: opened.authority, placeholder, port: listener.port })
    }

    /// A sandbox whose way out is the usual, with the secret.
    pub(super) async fn usual_room(&self, what: &str) -> Result<GateRoom, String> {
        let secret = self.secret().await?;
        self.room(what, &self.usual(), &[secret]).await
    }

    /// Whether the gate wrote a refusal down for a sandbox since it was asked last.
    pub(super) async fn alarm(&self, room: &GateRoom, wanted: Refusal) -> &'static str {
        let flows = self.client.flows(room.room.id.as_str()).await.unwrap_or_default();
        let alarm = flows.flows.iter().any(|flow| flow.refusal == Some(wanted));
        if alarm { "alarm" } else { "no alarm" }
    }

    /// What became of the secret and its placeholder in a request and its answer.
    pub(super) fn fate(&self, room: &GateRoom, reply: Option<&HostReply>) -> String {
        let HostLog { requests, .. } = self.hosts.take();
        let reply = reply.map_or(String::new(), |reply| format!("{}{}", reply.head, reply.body));
        let has = |text: &str, word: &str| {
            let coded =
                (0..3).map(|before| STANDARD_NO_PAD.encode(format!("{:before$}{word}", "")));
            // But for the letters at either end, which also have bits of what is beside it.
            text.contains(word) || coded.into_iter().any(|it| text.contains(&it[4..it.len() - 2]))
        };
        let seen = |word: &str| requests.iter().any(|request| has(request, word));
        match () {
            () if has(&reply, SECRET) => "the secret came in",
            () if seen(SECRET) => "swapped",
            () if seen(&room.placeholder) => "the placeholder left",
            () if requests.is_empty() => "blocked",
            () => "left without it",
        }
        .to_owned()
    }
}

impl Drop for GateWorld {
    fn drop(&mut self) {
        self.kill();
    }
}

fn carry(client: NetworkClient, id: SandboxId) -> CarriedConnections {
    let (sender, mut connections) = mpsc::unbounded_channel();
    start(async move {
        while let Some((connection, captured)) = connections.recv().await {
            // Refused, it is closed, which the program inside sees.
            let _ = client.connection(id.as_str(), captured, connection).await;
        }
    });
    CarriedConnections(sender)
}

impl GateRoom {
    /// A connection of a program inside to its way out.
    pub(super) async fn wire(&self) -> Result<DuplexStream, String> {
        wire(&self.room, SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port)).await
    }

    /// A connection to where every name leads.
    pub(super) async fn captured(&self, port: u16) -> Result<DuplexStream, String> {
        wire(&self.room, SocketAddrV4::new(capture::ADDRESS, port)).await
    }

    /// A request to the gate as to a proxy.
    pub(super) async fn plain(&self, request: &str) -> Result<Option<HostReply>, String> {
        Ok(ask(&mut self.wire().await?, request.as_bytes()).await)
    }

    /// What comes of CONNECT; with `passed` the connection goes on.
    pub(super) async fn connect(&self, to: &str) -> Result<(String, DuplexStream), String> {
        let mut wire = self.wire().await?;
        let request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n");
        let reply = ask(&mut wire, request.as_bytes()).await;
        Ok((word(reply.as_ref()), wire))
    }

    /// A tunnel with TLS in it, for a name (none: an address), trusting an authority.
    pub(super) async fn tunnel(
        &self,
        to: &str,
        name: Option<&str>,
        trusted: &str,
        protocols: &[&[u8]],
    ) -> Result<Option<TlsStream<DuplexStream>>, String> {
        let (word, wire) = self.connect(to).await?;
        if word != "passed" {
            return Ok(None);
        }
        tls(wire, name, trusted, protocols).await
    }

    /// TLS as the first thing that is said where every name leads.
    pub(super) async fn straight(
        &self,
        name: Option<&str>,
    ) -> Result<Option<TlsStream<DuplexStream>>, String> {
        tls(self.captured(443).await?, name, &self.authority, &[]).await
    }

    /// The request of a program that means well, by TLS: `§` stands for the host, `@` for the
    /// placeholder, `#` for its length.
    pub(super) async fn https(
        &self,
        host: &str,
        template: &str,
    ) -> Result<Option<HostReply>, String> {
        let request = self.filled(host, template);
        let tunnel = self.tunnel(&format!("{host}:443"), Some(host), &self.authority, &[]).await?;
        let Some(mut tunnel) = tunnel else { return Ok(None) };
        Ok(ask(&mut tunnel, request.as_bytes()).await)
    }

    pub(super) fn filled(&self, host: &str, template: &str) -> String {
        let length = self.placeholder.len().to_string();
        template.replace('§', host).replace('#', &length).replace('@', &self.placeholder)
    }
}

/// TLS for a name (none: an address), trusting an authority. `None`: it did not come about.
async fn tls(
    wire: DuplexStream,
    name: Option<&str>,
    trusted: &str,
    protocols: &[&[u8]],
) -> Result<Option<TlsStream<DuplexStream>>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(trusted.as_bytes()).flatten() {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let name = ServerName::try_from(name.unwrap_or("127.0.0.1").to_owned());
    let name = name.map_err(|error| error.to_string())?;
    Ok(TlsConnector::from(Arc::new(config)).connect(name, wire).await.ok())
}
