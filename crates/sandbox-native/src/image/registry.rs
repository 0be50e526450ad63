//! Images in registries (OCI distribution spec).
//!
//! Owns the way from a reference to blobs in files. Only what anybody may read is
//! pulled: this process holds no credentials of registries. What comes is checked
//! against the digest that names it; a tag is followed once, and the digest it led to
//! is recorded.

use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use oci_client::client::{BlobResponse, ClientConfig, ClientProtocol, SizedStream};
use oci_client::errors::OciDistributionError as Refusal;
use oci_client::manifest::OciDescriptor;
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};
use outrigger_sandbox::Error;
use sha2::Digest as _;

use super::Digest;
use super::install::scratch;
use super::manifest::{self, Document, Image, Layer, invalid};
use crate::limits;

/// How a registry is talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// TLS, except for a registry on this host's loopback interface.
    #[default]
    Https,
    /// Without TLS. What comes is still checked, against the digest in the reference
    /// if there is one; a tag can then be forged by whoever is on the way.
    Http,
}

/// An image in a registry.
#[derive(Debug, Clone)]
pub struct Registry {
    /// `[host[:port]/]name[:tag][@sha256:digest]`; without a host that of Docker Hub,
    /// without tag and digest the tag `latest`.
    pub reference: String,
    /// How its registry is talked to.
    pub transport: Transport,
}

/// A registry that can be asked for one image.
pub(super) struct Remote {
    client: Client,
    reference: Reference,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("reference", &self.reference).finish_non_exhaustive()
    }
}

const MANIFESTS: [&str; 4] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];

/// Whether a `host[:port]` is this host's own, by its spelling: names are not resolved.
fn is_loopback(registry: &str) -> bool {
    let host = match registry.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => registry,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Remote {
    pub(super) fn new(from: &Registry) -> Result<Self, Error> {
        let reference: Reference = from.reference.parse().map_err(|error| {
            Error::Invalid(format!("`{}` does not name an image: {error}", from.reference))
        })?;
        let plain = from.transport == Transport::Http || is_loopback(reference.resolve_registry());
        let protocol = if plain { ClientProtocol::Http } else { ClientProtocol::Https };
        let config = ClientConfig {
            protocol,
            connect_timeout: Some(Duration::from_millis(limits::REGISTRY_CONNECT_MS_MAX)),
            read_timeout: Some(Duration::from_millis(limits::REGISTRY_READ_MS_MAX)),
            user_agent: "outrigger",
            ..ClientConfig::default()
        };
        Ok(Self { client: Client::new(config), reference })
    }

    fn failed(&self, error: &Refusal) -> Error {
        let (registry, name) = (self.reference.resolve_registry(), self.reference.to_string());
        let absent = || Error::Absent { what: "image".to_owned(), name: name.clone() };
        match error {
            Refusal::ImageManifestNotFoundError(_) => absent(),
            Refusal::ServerError { code: 404, .. } => absent(),
            Refusal::RegistryError { envelope, .. }
                if envelope.errors.iter().any(|error| {
                    let code = format!("{:?}", error.code);
                    ["ManifestUnknown", "NameUnknown", "BlobUnknown"].contains(&code.as_str())
                }) =>
            {
                absent()
            }
            Refusal::UnauthorizedError { .. } | Refusal::AuthenticationFailure(_) => {
                Error::Unavailable {
                    reason: format!("`{registry}` does not give `{name}` to everybody"),
                    advice: "save the image with a program that can log in, and import the archive"
                        .to_owned(),
                }
            }
            error => Error::Backend(format!("cannot pull from `{registry}`: {error}")),
        }
    }

    /// What the image is made of.
    pub(super) async fn image(&self) -> Result<Image, Error> {
        let mut reference = self.reference.clone();
        for _ in 0..limits::ARCHIVE_LINKS_MAX {
            let (bytes, digest) = self.manifest(&reference).await?;
            match manifest::parse(&bytes)? {
                Document::Index(index) => {
                    let digest = manifest::choose(&index)?.digest()?;
                    reference = reference.clone_with_digest(digest.to_string());
                }
                Document::Manifest(found) => {
                    let config = self.document(&found).await?;
                    return manifest::image(digest, &found, &config);
                }
            }
        }
        Err(invalid("its indexes are nested too deep"))
    }

    async fn manifest(&self, reference: &Reference) -> Result<(Vec<u8>, Digest), Error> {
        let asked = self.client.pull_manifest_raw(reference, &RegistryAuth::Anonymous, &MANIFESTS);
        let limit = Duration::from_millis(limits::REGISTRY_MANIFEST_MS_MAX);
        let (bytes, _) = tokio::time::timeout(limit, asked)
            .await
            .map_err(|_| Error::Backend("the registry takes too long".to_owned()))?
            .map_err(|error| self.failed(&error))?;
        if bytes.len() as u64 > limits::IMAGE_DOCUMENT_BYTES_MAX {
            return Err(invalid("its manifest is too long"));
        }
        let digest = Digest::of(&bytes);
        match reference.digest() {
            Some(wanted) if Digest::parse(wanted) != Some(digest) => {
                Err(invalid(format_args!("what is named {wanted} has another digest")))
            }
            _ => Ok((bytes.to_vec(), digest)),
        }
    }

    async fn document(&self, manifest: &manifest::Manifest) -> Result<Vec<u8>, Error> {
        let digest = manifest.config.digest()?;
        if manifest.config.size > limits::IMAGE_DOCUMENT_BYTES_MAX {
            return Err(invalid("its configuration is too long"));
        }
        let mut blob = Received { to: Vec::new(), ..Received::new(manifest.config.size) };
        self.blob(&digest, &mut blob, &|_| ()).await?;
        Ok(blob.to)
    }

    /// Gets the blob of a layer into a file without a name in `state`. Tells how many
    /// bytes of it are there.
    pub(super) async fn layer(
        &self,
        layer: &Layer,
        state: &Path,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<File, Error> {
        let digest = layer.blob.ok_or_else(|| invalid("a layer has no digest"))?;
        let file = scratch(state)
            .map_err(|error| Error::Backend(format!("cannot make a file for a layer: {error}")))?;
        let mut blob =
            Received { to: file, state: sha2::Sha256::new(), bytes: 0, wanted: layer.length };
        self.blob(&digest, &mut blob, progress).await?;
        Ok(blob.to)
    }

    /// Gets a blob, going on where a lost connection left it.
    async fn blob<W: Sink>(
        &self,
        digest: &Digest,
        blob: &mut Received<W>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), Error> {
        let size = i64::try_from(blob.wanted).map_err(|_| invalid("a blob is too large"))?;
        let layer = OciDescriptor { digest: digest.to_string(), size, ..Default::default() };
        let mut attempts = 0;
        loop {
            attempts += 1;
            let reason = match self.some(&layer, blob, progress).await {
                Ok(()) => break,
                Err(Attempt::Final(error)) => return Err(error),
                Err(Attempt::Lost(reason)) => reason,
            };
            if attempts >= limits::REGISTRY_ATTEMPTS_MAX {
                return Err(Error::Backend(format!(
                    "cannot pull from `{}`: {reason}",
                    self.reference.resolve_registry()
                )));
            }
            tokio::time::sleep(Duration::from_millis(limits::REGISTRY_PAUSE_MS)).await;
        }
        let found = Digest::parse(&format!("sha256:{}", hex(&blob.state.clone().finalize())));
        if blob.bytes != blob.wanted || found != Some(*digest) {
            return Err(invalid(format_args!("what is named {digest} has another digest")));
        }
        Ok(())
    }

    /// One attempt at the rest of a blob.
    async fn some<W: Sink>(
        &self,
        layer: &OciDescriptor,
        blob: &mut Received<W>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), Attempt> {
        let asked = if blob.bytes == 0 {
            self.client.pull_blob_stream(&self.reference, layer).await.map(BlobResponse::Full)
        } else {
            self.client.pull_blob_stream_partial(&self.reference, layer, blob.bytes, None).await
        };
        let SizedStream { mut stream, .. } = match asked {
            Ok(BlobResponse::Partial(stream)) => stream,
            Ok(BlobResponse::Full(stream)) => {
                blob.restart().map_err(Attempt::Final)?;
                stream
            }
            Err(error @ (Refusal::RequestError(_) | Refusal::IoError(_))) => {
                return Err(Attempt::Lost(error.to_string()));
            }
            Err(Refusal::ServerError { code, message, .. }) if code >= 500 => {
                return Err(Attempt::Lost(format!("{code} {message:.200}")));
            }
            Err(error) => return Err(Attempt::Final(self.failed(&error))),
        };
        while let Some(chunk) = stream.next().await {
            // A wrong digest comes as an error too; it is found out by the caller again.
            let chunk = chunk.map_err(|error| Attempt::Lost(error.to_string()))?;
            blob.take(&chunk).map_err(Attempt::Final)?;
            progress(blob.bytes);
        }
        if blob.bytes < blob.wanted {
            return Err(Attempt::Lost("the connection ended early".to_owned()));
        }
        Ok(())
    }
}

/// Why an attempt failed.
enum Attempt {
    /// Another one may not.
    Lost(String),
    Final(Error),
}

/// Where a blob goes.
trait Sink: Write + Send {
    /// Drops what is there.
    fn empty(&mut self) -> std::io::Result<()>;
}

impl Sink for Vec<u8> {
    fn empty(&mut self) -> std::io::Result<()> {
        self.clear();
        Ok(())
    }
}

impl Sink for File {
    fn empty(&mut self) -> std::io::Result<()> {
        use std::io::Seek;
        self.set_len(0)?;
        self.rewind()
    }
}

/// A blob as far as it came.
struct Received<W> {
    to: W,
    state: sha2::Sha256,
    bytes: u64,
    wanted: u64,
}

impl Received<Vec<u8>> {
    fn new(wanted: u64) -> Self {
        Self { to: Vec::new(), state: sha2::Sha256::new(), bytes: 0, wanted }
    }
}

impl<W: Sink> Received<W> {
    fn restart(&mut self) -> Result<(), Error> {
        (self.state, self.bytes) = (sha2::Sha256::new(), 0);
        self.to.empty().map_err(|error| Error::Backend(format!("cannot write a layer: {error}")))
    }

    fn take(&mut self, chunk: &[u8]) -> Result<(), Error> {
        self.bytes += chunk.len() as u64;
        if self.bytes > self.wanted {
            return Err(invalid("a blob is longer than its manifest says"));
        }
        self.state.update(chunk);
        self.to
            .write_all(chunk)
            .map_err(|error| Error::Backend(format!("cannot write a layer: {error}")))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn only_spellings_of_this_host_go_without_tls() {
        for registry in ["localhost", "localhost:5000", "127.0.0.1:5000", "127.9.9.9", "[::1]:80"] {
            assert!(is_loopback(registry), "{registry}");
        }
        for registry in ["docker.io", "localhost.example:5000", "10.0.0.1:5000", "127.0.0.1.nip.io"]
        {
            assert!(!is_loopback(registry), "{registry}");
        }
    }
}
