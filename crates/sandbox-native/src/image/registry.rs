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

use oci_spec::distribution::Reference;
use outrigger_sandbox::Error;
use reqwest::StatusCode;
use sha2::Digest as _;

use super::ImageDigest;
use super::fetch::{self, Failure, RepositoryClient};
use super::hosts::AllowedHosts;
use super::manifest::{self, Document, Image, Layer, invalid};
use super::route::RegistryRoute;
use super::scratch::scratch;
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
    /// Hosts to which it may lead although they are not public, or without TLS: where it
    /// keeps blobs, or has tokens given.
    pub hosts: Vec<String>,
}

/// A registry that can be asked for one image.
pub(super) struct RemoteImage<'a> {
    fetch: RepositoryClient<'a>,
    reference: Reference,
}

/// Types of manifests and indexes that are understood.
const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, \
                         application/vnd.oci.image.index.v1+json, \
                         application/vnd.docker.distribution.manifest.v2+json, \
                         application/vnd.docker.distribution.manifest.list.v2+json";
/// Any type.
const BLOBS: &str = "*/*";

/// Whether a `host[:port]` is this host's own, by its spelling: names are not resolved.
fn is_loopback(registry: &str) -> bool {
    let host = match registry.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => registry,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl<'a> RemoteImage<'a> {
    pub(super) fn new(from: &Registry, route: &'a dyn RegistryRoute) -> Result<Self, Error> {
        let unnamed = |error: &dyn std::fmt::Display| {
            Error::Invalid(format!("`{}` does not name an image: {error}", from.reference))
        };
        let reference: Reference = from.reference.parse().map_err(|error| unnamed(&error))?;
        let registry = reference.resolve_registry();
        let plain = from.transport == Transport::Http || is_loopback(registry);
        let scheme = if plain { "http" } else { "https" };
        let registry = format!("{scheme}://{registry}").parse();
        let hosts = AllowedHosts::new(registry.map_err(|error| unnamed(&error))?, &from.hosts);
        let fetch = RepositoryClient::new(hosts, reference.repository(), route);
        Ok(Self { fetch, reference })
    }

    fn failed(&self, failure: Failure) -> Error {
        let (registry, name) = (self.reference.resolve_registry(), self.reference.to_string());
        match failure {
            Failure::Final(error) => error,
            Failure::Status(StatusCode::NOT_FOUND) => {
                Error::Absent { what: "image".to_owned(), name }
            }
            Failure::Status(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Error::Unavailable {
                    reason: format!("`{registry}` does not give `{name}` to everybody"),
                    advice: "save the image with a program that can log in, and import the archive"
                        .to_owned(),
                }
            }
            Failure::Status(status) => {
                Error::Backend(format!("cannot pull from `{registry}`: it answers {status}"))
            }
            Failure::Lost(reason) => {
                Error::Backend(format!("cannot pull from `{registry}`: {reason}"))
            }
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

    async fn manifest(&self, reference: &Reference) -> Result<(Vec<u8>, ImageDigest), Error> {
        let named = reference.digest().or(reference.tag()).unwrap_or("latest");
        let part = format!("manifests/{named}");
        let asked = async {
            let response = self.fetch.get(&part, MANIFESTS, 0).await?;
            fetch::whole(response, limits::IMAGE_DOCUMENT_BYTES_MAX).await
        };
        let limit = Duration::from_millis(limits::REGISTRY_MANIFEST_MS_MAX);
        let bytes = tokio::time::timeout(limit, asked)
            .await
            .map_err(|_| Error::Backend("the registry takes too long".to_owned()))?
            .map_err(|failure| self.failed(failure))?;
        let digest = ImageDigest::of(&bytes);
        match reference.digest() {
            Some(wanted) if ImageDigest::parse(wanted) != Some(digest) => {
                Err(invalid(format_args!("what is named {wanted} has another digest")))
            }
            _ => Ok((bytes, digest)),
        }
    }

    async fn document(&self, manifest: &manifest::Manifest) -> Result<Vec<u8>, Error> {
        let digest = manifest.config.digest()?;
        if manifest.config.size > limits::IMAGE_DOCUMENT_BYTES_MAX {
            return Err(invalid("its configuration is too long"));
        }
        let mut blob = BlobDownload { to: Vec::new(), ..BlobDownload::new(manifest.config.size) };
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
            BlobDownload { to: file, state: sha2::Sha256::new(), bytes: 0, wanted: layer.length };
        self.blob(&digest, &mut blob, progress).await?;
        Ok(blob.to)
    }

    /// Gets a blob, going on where a lost connection left it.
    async fn blob<W: Sink>(
        &self,
        digest: &ImageDigest,
        blob: &mut BlobDownload<W>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), Error> {
        let part = format!("blobs/{digest}");
        let mut attempts = 0;
        while let Err(failure) = self.some(&part, blob, progress).await {
            attempts += 1;
            let again = match &failure {
                Failure::Lost(_) => attempts < limits::REGISTRY_ATTEMPTS_MAX,
                Failure::Status(status) => {
                    status.is_server_error() && attempts < limits::REGISTRY_ATTEMPTS_MAX
                }
                Failure::Final(_) => false,
            };
            if !again {
                return Err(self.failed(failure));
            }
            tokio::time::sleep(Duration::from_millis(limits::REGISTRY_PAUSE_MS)).await;
        }
        let found = ImageDigest::parse(&format!("sha256:{}", hex(&blob.state.clone().finalize())));
        if blob.bytes != blob.wanted || found != Some(*digest) {
            return Err(invalid(format_args!("what is named {digest} has another digest")));
        }
        Ok(())
    }

    /// One attempt at the rest of a blob.
    async fn some<W: Sink>(
        &self,
        part: &str,
        blob: &mut BlobDownload<W>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), Failure> {
        let response = self.fetch.get(part, BLOBS, blob.bytes).await?;
        if response.status() != StatusCode::PARTIAL_CONTENT {
            blob.restart().map_err(Failure::Final)?;
        }
        let take = |piece: &[u8]| {
            blob.take(piece)?;
            progress(blob.bytes);
            Ok(())
        };
        fetch::pieces(response, take).await?;
        if blob.bytes < blob.wanted {
            return Err(Failure::Lost("the connection ended early".to_owned()));
        }
        Ok(())
    }
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
struct BlobDownload<W> {
    to: W,
    state: sha2::Sha256,
    bytes: u64,
    wanted: u64,
}

impl BlobDownload<Vec<u8>> {
    fn new(wanted: u64) -> Self {
        Self { to: Vec::new(), state: sha2::Sha256::new(), bytes: 0, wanted }
    }
}

impl<W: Sink> BlobDownload<W> {
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
