//! What an image is made of, read from its JSON documents.
//!
//! Owns manifests, indexes and configurations (OCI image spec; Docker's schema 2 has
//! the same shape), and the choice of a platform. Reads bytes that the caller has
//! checked against their digest.

use outrigger_sandbox::Error;
use serde::Deserialize;

use super::ImageDigest;
use crate::limits;

/// An image to make a template of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image {
    /// Digest of its manifest.
    pub(super) manifest: Option<ImageDigest>,
    /// The lowest first.
    pub(super) layers: Vec<Layer>,
    pub(super) env: Vec<String>,
    pub(super) workdir: Option<String>,
}

/// One of its layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layer {
    /// Digest of the blob, where it has one.
    pub(super) blob: Option<ImageDigest>,
    /// Length of the blob in bytes.
    pub(super) length: u64,
    /// Digest of the tar stream in it.
    pub(super) diff: ImageDigest,
}

/// A part named in a document.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Descriptor {
    #[serde(rename = "mediaType", default)]
    media_type: String,
    digest: String,
    pub(super) size: u64,
    platform: Option<Platform>,
}

#[derive(Debug, Clone, Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

/// A manifest or an index. Never both: which of the two is taken would be a matter of
/// taste (CVE-2021-41190).
#[derive(Debug, Deserialize)]
struct ManifestOrIndex {
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
}

/// What a document is.
#[derive(Debug)]
pub(super) enum Document {
    /// Images for several platforms.
    Index(Vec<Descriptor>),
    Manifest(Manifest),
}

/// One image.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Debug, Deserialize)]
struct Config {
    architecture: Option<String>,
    os: Option<String>,
    rootfs: Rootfs,
    #[serde(default)]
    config: Option<Run>,
}

#[derive(Debug, Deserialize)]
struct Rootfs {
    diff_ids: Vec<ImageDigest>,
}

#[derive(Debug, Default, Deserialize)]
struct Run {
    #[serde(rename = "Env", default)]
    env: Option<Vec<String>>,
    #[serde(rename = "WorkingDir", default)]
    workdir: Option<String>,
}

pub(super) fn invalid(reason: impl std::fmt::Display) -> Error {
    Error::Invalid(format!("the image was refused: {reason}"))
}

/// The architecture of this host, as images call it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

impl Descriptor {
    pub(super) fn digest(&self) -> Result<ImageDigest, Error> {
        let parsed = ImageDigest::parse(&self.digest);
        parsed.ok_or_else(|| invalid(format_args!("`{:.80}` is no SHA-256 digest", self.digest)))
    }

    fn fits(&self) -> bool {
        let fits =
            |platform: &Platform| platform.os == "linux" && platform.architecture == architecture();
        self.platform.as_ref().is_none_or(fits)
    }
}

/// The first image of an index that runs here.
pub(super) fn choose(index: &[Descriptor]) -> Result<&Descriptor, Error> {
    index
        .iter()
        .find(|entry| entry.fits())
        .ok_or_else(|| invalid(format_args!("it has nothing for linux on {}", architecture())))
}

/// The images of an index that run here, each once.
pub(super) fn candidates(index: Vec<Descriptor>) -> Vec<Descriptor> {
    let mut all: Vec<Descriptor> = index.into_iter().filter(Descriptor::fits).collect();
    all.sort_by(|a, b| a.digest.cmp(&b.digest));
    all.dedup_by(|a, b| a.digest == b.digest);
    all
}

/// Reads a manifest or an index.
pub(super) fn parse(bytes: &[u8]) -> Result<Document, Error> {
    let either: ManifestOrIndex = serde_json::from_slice(bytes)
        .map_err(|error| invalid(format_args!("its manifest can't be read: {error}")))?;
    match either {
        ManifestOrIndex { manifests: Some(index), config: None, layers: None } => {
            Ok(Document::Index(index))
        }
        ManifestOrIndex { manifests: None, config: Some(config), layers: Some(layers) } => {
            Ok(Document::Manifest(Manifest { config, layers }))
        }
        ManifestOrIndex { .. } => {
            Err(invalid("its manifest is neither one of an image nor an index"))
        }
    }
}

/// Puts a manifest and its configuration together.
pub(super) fn image(
    digest: ImageDigest,
    manifest: &Manifest,
    config: &[u8],
) -> Result<Image, Error> {
    let ImageConfig { diffs, env, workdir } = configuration(config)?;
    if diffs.len() != manifest.layers.len() {
        return Err(invalid("its manifest and its configuration name different layers"));
    }
    let layers = manifest.layers.iter().zip(diffs).map(|(layer, diff)| {
        if ["nondistributable", "foreign", "encrypted"]
            .iter()
            .any(|kind| layer.media_type.contains(kind))
        {
            return Err(invalid(format_args!("a layer is of type `{:.80}`", layer.media_type)));
        }
        if layer.size > limits::LAYER_BLOB_BYTES_MAX {
            return Err(invalid("a layer is too large"));
        }
        Ok(Layer { blob: Some(layer.digest()?), length: layer.size, diff })
    });
    let layers = layers.collect::<Result<_, _>>()?;
    Ok(Image { manifest: Some(digest), layers, env, workdir })
}

/// What is taken of a configuration.
#[derive(Debug)]
pub(super) struct ImageConfig {
    /// Digests of the layers' tar streams, the lowest first.
    pub(super) diffs: Vec<ImageDigest>,
    pub(super) env: Vec<String>,
    pub(super) workdir: Option<String>,
}

/// Reads a configuration.
pub(super) fn configuration(config: &[u8]) -> Result<ImageConfig, Error> {
    let config: Config = serde_json::from_slice(config)
        .map_err(|error| invalid(format_args!("its configuration can't be read: {error}")))?;
    let os = config.os.as_deref().unwrap_or("linux");
    let made_for = config.architecture.as_deref().unwrap_or(architecture());
    if os != "linux" || made_for != architecture() {
        let here = architecture();
        return Err(invalid(format_args!("it is for {os} on {made_for}, this is linux on {here}")));
    }
    let diffs = config.rootfs.diff_ids;
    if diffs.is_empty() || diffs.len() > limits::IMAGE_LAYERS_MAX {
        let (have, most) = (diffs.len(), limits::IMAGE_LAYERS_MAX);
        return Err(invalid(format_args!("it has {have} layers, 1 to {most} are taken")));
    }
    let run = config.config.unwrap_or_default();
    let workdir = run.workdir.filter(|dir| dir.starts_with('/'));
    let env = run.env.unwrap_or_default();
    let env = env.into_iter().filter(|pair| pair.contains('=') && !pair.contains('\0')).collect();
    Ok(ImageConfig { diffs, env, workdir })
}
