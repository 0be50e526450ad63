//! Images in archives: OCI layouts, what `docker save` writes, plain root filesystems.
//!
//! Owns which of the three an archive is, by what is in it, and where its parts are.
//! Extracts nothing: layers stay where they are and are read from there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use outrigger_sandbox::Error;
use serde::Deserialize;

use super::manifest::{self, Document, Image, ImageConfig, Layer, invalid};
use super::scratch::scratch;
use super::stream::{BoundedReader, Decoder, FileSlice};
use super::tar::{self, Kind};
use super::{HashingReader, ImageDigest};
use crate::limits;

/// An archive with one image: an OCI image layout, the output of `docker save`, or a
/// plain root filesystem (`docker export`, `debootstrap`); compressed by gzip, zstd or not.
#[derive(Debug)]
pub struct Archive {
    file: File,
}

/// Where a part of an archive is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum EntryLocation {
    File { offset: u64, length: u64 },
    Link(Vec<u8>),
}

/// An archive whose parts are known.
#[derive(Debug)]
pub(super) struct ArchiveIndex {
    pub(super) file: File,
    parts: BTreeMap<Vec<u8>, EntryLocation>,
    /// Of the whole archive.
    length: u64,
    digest: ImageDigest,
    /// Whether it has an end mark.
    ended: bool,
    /// Where the layers of the image are, in its order.
    layers: Vec<(u64, u64)>,
}

/// An image of `manifest.json` of `docker save`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerSaveImage {
    config: String,
    layers: Vec<String>,
}

impl Archive {
    /// Opens a file.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        File::open(path).map(Self::new)
    }

    /// Takes an open file, for example standard input; a pipe will do.
    #[must_use]
    pub fn new(file: File) -> Self {
        Self { file }
    }

    /// Finds the parts. What is compressed or can't be read twice is first written to
    /// a file without a name in `state`.
    pub(super) fn inspect(self, state: &Path) -> Result<ArchiveIndex, Error> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => invalid(error),
            _ => Error::Backend(format!("cannot read the archive: {error}")),
        };
        let file = plain(self.file, state).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut archive = tar::Reader::new(HashingReader::new(FileSlice::new(&file, 0, length)));
        let parts = index(&mut archive).map_err(invalid)?;
        let ended = archive.ended();
        let (_, digest) = archive.drain().map_err(failed)?.finish();
        Ok(ArchiveIndex { file, parts, length, digest, ended, layers: Vec::new() })
    }
}

/// The archive itself if it can be read where it is, else a copy of its content.
fn plain(mut file: File, state: &Path) -> io::Result<File> {
    let regular = file.metadata()?.is_file();
    if regular {
        let length = file.metadata()?.len();
        let decoded = Decoder::new(FileSlice::new(&file, 0, length))?;
        if decoded.is_plain() {
            return Ok(file);
        }
        let mut bounded = BoundedReader::new(decoded, length, limits::ARCHIVE_BYTES_MAX);
        let mut copy = scratch(state)?;
        io::copy(&mut bounded, &mut copy)?;
        return Ok(copy);
    }
    let mut copy = scratch(state)?;
    let copied = io::copy(&mut (&mut file).take(limits::ARCHIVE_BYTES_MAX + 1), &mut copy)?;
    if copied > limits::ARCHIVE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the archive is too large"));
    }
    copy.flush()?;
    copy.rewind()?;
    // Now it is a file that can be read twice, and may be compressed.
    plain(copy, state)
}

/// Where what may be part of an image is. A root filesystem has many names that can't be.
fn index<R: Read>(
    archive: &mut tar::Reader<R>,
) -> Result<BTreeMap<Vec<u8>, EntryLocation>, tar::Error> {
    let mut parts = BTreeMap::new();
    while let Some(entry) = archive.next()? {
        let path = entry.path.strip_prefix(b"./").unwrap_or(&entry.path);
        let known = path == b"oci-layout"
            || path.starts_with(b"blobs/")
            || path.ends_with(b".json")
            || path.ends_with(b".tar");
        let shallow = path.split(|byte| *byte == b'/').count() <= 3;
        if !known || !shallow || parts.len() >= limits::ARCHIVE_PARTS_MAX {
            continue;
        }
        let location = match entry.kind {
            Kind::File => EntryLocation::File { offset: archive.position(), length: entry.size },
            Kind::Symlink => EntryLocation::Link(entry.link),
            Kind::Directory | Kind::Hard | Kind::Special => continue,
        };
        parts.insert(path.to_vec(), location);
    }
    Ok(parts)
}

impl ArchiveIndex {
    /// Finds out which kind of archive it is, and what the image in it is made of.
    pub(super) fn image(&mut self) -> Result<(Image, &'static str), Error> {
        if self.parts.contains_key(&b"oci-layout"[..])
            && self.parts.contains_key(&b"index.json"[..])
        {
            return Ok((self.layout()?, "an OCI archive"));
        }
        if let Some(location) = self.find(b"manifest.json") {
            let saved = self.document(location)?;
            if let Ok(saved) = serde_json::from_slice::<Vec<DockerSaveImage>>(&saved) {
                return Ok((self.saved(saved)?, "an archive of docker save"));
            }
        }
        if !self.ended {
            return Err(invalid("the archive was cut, or is none"));
        }
        self.layers = vec![(0, self.length)];
        let layer = Layer { blob: None, length: self.length, diff: self.digest };
        let image = Image { manifest: None, layers: vec![layer], env: Vec::new(), workdir: None };
        Ok((image, "a root filesystem"))
    }

    /// Where the blob of a layer is.
    pub(super) fn layer(&self, number: usize) -> Option<(u64, u64)> {
        self.layers.get(number).copied()
    }

    /// A part by its name, through links as old versions of docker and podman write them.
    fn find(&self, name: &[u8]) -> Option<(u64, u64)> {
        let mut name = name.to_vec();
        for _ in 0..limits::ARCHIVE_LINKS_MAX {
            match self.parts.get(&name)? {
                EntryLocation::File { offset, length } => return Some((*offset, *length)),
                EntryLocation::Link(target) => name = beside(&name, target),
            }
        }
        None
    }

    fn document(&self, (offset, length): (u64, u64)) -> Result<Vec<u8>, Error> {
        if length > limits::IMAGE_DOCUMENT_BYTES_MAX {
            return Err(invalid("a document of it is too long"));
        }
        let mut bytes = Vec::new();
        FileSlice::new(&self.file, offset, length)
            .read_to_end(&mut bytes)
            .map_err(|error| Error::Backend(format!("cannot read the archive: {error}")))?;
        Ok(bytes)
    }

    fn blob(&self, digest: &ImageDigest) -> Result<(u64, u64), Error> {
        let found = self.find(format!("blobs/sha256/{}", digest.hex()).as_bytes());
        found.ok_or_else(|| invalid(format_args!("the archive does not hold {digest}")))
    }

    fn verified(&self, digest: &ImageDigest) -> Result<Vec<u8>, Error> {
        let bytes = self.document(self.blob(digest)?)?;
        if ImageDigest::of(&bytes) == *digest {
            return Ok(bytes);
        }
        Err(invalid(format_args!("what is named {digest} has another digest")))
    }

    fn layout(&mut self) -> Result<Image, Error> {
        let top = self.find(b"index.json").ok_or_else(|| invalid("its index is no file"))?;
        let Document::Index(index) = manifest::parse(&self.document(top)?)? else {
            return Err(invalid("its index is none"));
        };
        let mut digest = match &manifest::candidates(index)[..] {
            [one] => one.digest()?,
            [] => return Err(invalid("the archive holds no image that runs here")),
            _ => return Err(invalid("the archive holds several images; save one alone")),
        };
        for _ in 0..limits::ARCHIVE_LINKS_MAX {
            let bytes = self.verified(&digest)?;
            match manifest::parse(&bytes)? {
                Document::Index(index) => digest = manifest::choose(&index)?.digest()?,
                Document::Manifest(found) => {
                    let config = self.verified(&found.config.digest()?)?;
                    let image = manifest::image(digest, &found, &config)?;
                    let blobs = image.layers.iter().filter_map(|layer| layer.blob);
                    self.layers = blobs.map(|blob| self.blob(&blob)).collect::<Result<_, _>>()?;
                    return Ok(image);
                }
            }
        }
        Err(invalid("its indexes are nested too deep"))
    }

    fn saved(&mut self, saved: Vec<DockerSaveImage>) -> Result<Image, Error> {
        let [saved] = &saved[..] else {
            return Err(invalid("the archive holds several images; save one alone"));
        };
        let absent = |name: &str| invalid(format_args!("the archive does not hold `{name:.200}`"));
        let location = self.find(saved.config.as_bytes()).ok_or_else(|| absent(&saved.config))?;
        let ImageConfig { diffs, env, workdir } =
            manifest::configuration(&self.document(location)?)?;
        if diffs.len() != saved.layers.len() {
            return Err(invalid("its manifest and its configuration name different layers"));
        }
        let locations =
            saved.layers.iter().map(|name| self.find(name.as_bytes()).ok_or_else(|| absent(name)));
        let locations: Vec<(u64, u64)> = locations.collect::<Result<_, _>>()?;
        let layers = diffs.into_iter().zip(&locations);
        let layers = layers.map(|(diff, (_, length))| Layer { blob: None, length: *length, diff });
        let layers = layers.collect();
        self.layers = locations;
        Ok(Image { manifest: None, layers, env, workdir })
    }
}

/// The path that a link at `name` leads to.
fn beside(name: &[u8], target: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = name.split(|byte| *byte == b'/').collect();
    parts.pop();
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join(&b'/')
}
