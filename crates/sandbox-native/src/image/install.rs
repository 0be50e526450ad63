//! From an image to a template.
//!
//! Owns the order: what it is made of, which layers are missing, each of them handed
//! to the spawner, the template last. Whatever is cut off in the middle leaves layers
//! that the next attempt finds, and no template.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use outrigger_sandbox::Error;

use super::archive::{Archive, ArchiveIndex};
use super::manifest::{Image, Layer};
use super::registry::{Registry, RemoteImage};
use super::request::{
    HostPaths, ImageAnswer, ImageRequest, Template, UnpackRequest, is_name, is_of_project,
};
use super::route::RegistryRoute;
use crate::backend::{Native, astray, blocking};
use crate::clock::now_ms;
use crate::limits;

/// How far the making of a template is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Layers of the image that are there.
    pub layers: usize,
    /// All its layers.
    pub layers_total: usize,
    /// Bytes of blobs that are there: of layers that are, or that were downloaded.
    pub bytes: u64,
    /// All its bytes, compressed where they are.
    pub bytes_total: u64,
    /// Device nodes and FIFOs that were left out.
    pub left_out: u64,
}

/// Takes progress. Called from one task, often; must not block.
pub(super) type ProgressCallback<'a> = &'a (dyn Fn(Progress) + Send + Sync);

/// Where the blobs of an image are.
enum Source<'a> {
    Archive(ArchiveIndex),
    Remote(Box<RemoteImage<'a>>),
}

/// A blob in a file.
struct Blob {
    file: File,
    offset: u64,
    length: u64,
}

fn backend(what: &str, error: &io::Error) -> Error {
    Error::Backend(format!("cannot {what}: {error}"))
}

fn not_a_name(name: &str) -> Error {
    Error::Invalid(format!(
        "`{name:.80}` can't be the name of a template: 1 to 128 characters of [A-Za-z0-9._-], \
         not starting with a dot, with `host-tools.` or with `image.`, and not `host-tools`"
    ))
}

/// Whether an image can have that name.
fn check_name(name: &str) -> Result<(), Error> {
    if is_name(name) && !is_of_project(name) { Ok(()) } else { Err(not_a_name(name)) }
}

impl Native {
    /// Makes a template of the image in an archive: an OCI image layout, the output of
    /// `docker save`, or a plain root filesystem. One of that name is replaced;
    /// sandboxes that were made from it stay as they are. Repeating it is harmless,
    /// and so is doing it twice at once.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that can't be one, and for an image that is
    /// damaged, hostile or above a limit; nothing of it is kept then.
    pub async fn import(
        &self,
        template: &str,
        source: Archive,
        progress: ProgressCallback<'_>,
    ) -> Result<Template, Error> {
        check_name(template)?;
        let scratch = self.scratch().to_owned();
        let inspect = move || {
            let mut opened = source.inspect(&scratch)?;
            let (image, kind) = opened.image()?;
            Ok((opened, image, kind))
        };
        let (opened, image, kind) = blocking(inspect).await?;
        self.install(template, kind.to_owned(), image, Source::Archive(opened), progress).await
    }

    /// Makes a template of an image in a registry that everybody may read. Otherwise
    /// as [`Native::import`]. `route`: the way to its registry, and to where that keeps blobs.
    ///
    /// # Errors
    /// Those of [`Native::import`]; [`Error::Absent`] if there is no such image,
    /// [`Error::Unavailable`] if it takes credentials, [`Error::Backend`] if the
    /// registry can't be reached.
    pub async fn pull(
        &self,
        template: &str,
        source: &Registry,
        route: &dyn RegistryRoute,
        progress: ProgressCallback<'_>,
    ) -> Result<Template, Error> {
        check_name(template)?;
        let remote = RemoteImage::new(source, route)?;
        let image = remote.image().await?;
        let from = source.reference.clone();
        self.install(template, from, image, Source::Remote(Box::new(remote)), progress).await
    }

    /// All templates, of images and of projects ([`is_of_project`]), sorted by name.
    /// `host-tools`, which every host has, is not among them.
    ///
    /// # Errors
    /// [`Error::Backend`] if the spawner can't be asked.
    pub async fn templates(&self) -> Result<Vec<Template>, Error> {
        match self.ask_image(ImageRequest::List, None).await? {
            ImageAnswer::List(all) => Ok(all),
            _ => Err(astray()),
        }
    }

    /// Forgets a template and deletes its layers, except those that other templates,
    /// sandboxes or snapshots stand on. One that is not there is fine; one of a project
    /// that a sandbox or a snapshot stands on stays.
    ///
    /// # Errors
    /// [`Error::Backend`] if the spawner can't be asked or could not delete it all.
    pub async fn remove_template(&self, name: &str) -> Result<(), Error> {
        if !is_name(name) {
            return Err(not_a_name(name));
        }
        match self.ask_image(ImageRequest::Remove(name.to_owned()), None).await? {
            ImageAnswer::Done => Ok(()),
            _ => Err(astray()),
        }
    }

    async fn install(
        &self,
        name: &str,
        source: String,
        image: Image,
        blobs: Source<'_>,
        progress: ProgressCallback<'_>,
    ) -> Result<Template, Error> {
        let template = Template {
            name: name.to_owned(),
            layers: image.layers.iter().map(|layer| layer.diff).collect(),
            source,
            manifest: image.manifest,
            env: image.env.clone(),
            workdir: image.workdir.clone(),
            host: HostPaths::default(),
            made_at_ms: now_ms(),
        };
        let mut left_out = 0;
        // Layers that nothing stands on yet may be deleted by whoever removes a template.
        for _ in 0..limits::IMAGE_ATTEMPTS_MAX {
            self.unpack_missing(&image, &blobs, &mut left_out, progress).await?;
            match self.ask_image(ImageRequest::Save(template.clone()), None).await? {
                ImageAnswer::Done => return Ok(template),
                ImageAnswer::Missing(_) => {}
                _ => return Err(astray()),
            }
        }
        Err(Error::Backend("layers are deleted as fast as they are unpacked; try again".to_owned()))
    }

    async fn unpack_missing(
        &self,
        image: &Image,
        blobs: &Source<'_>,
        left_out: &mut u64,
        progress: ProgressCallback<'_>,
    ) -> Result<(), Error> {
        let layers = image.layers.iter().map(|layer| layer.diff).collect();
        let ImageAnswer::Missing(missing) =
            self.ask_image(ImageRequest::Missing(layers), None).await?
        else {
            return Err(astray());
        };
        let mut now = Progress {
            layers_total: image.layers.len(),
            bytes_total: image.layers.iter().map(|layer| layer.length).sum(),
            left_out: *left_out,
            ..Progress::default()
        };
        for (number, layer) in image.layers.iter().enumerate() {
            progress(now);
            let before = now.bytes;
            if missing.contains(&layer.diff) {
                let watch = |bytes| progress(Progress { bytes: before + bytes, ..now });
                let blob = blobs.blob(self.scratch(), number, layer, &watch).await?;
                now.left_out += self.unpack(layer, blob).await?;
                *left_out = now.left_out;
            }
            (now.layers, now.bytes) = (number + 1, before + layer.length);
        }
        progress(now);
        Ok(())
    }

    /// Has a layer unpacked; gives what was left out of it.
    async fn unpack(&self, layer: &Layer, blob: Blob) -> Result<u64, Error> {
        let Blob { file, offset, length } = blob;
        let request = UnpackRequest { offset, length, blob: layer.blob, diff: layer.diff };
        let file = Some(OwnedFd::from(file));
        match self.ask_image(ImageRequest::Unpack(request), file).await? {
            ImageAnswer::Unpacked { left_out } => Ok(left_out),
            _ => Err(astray()),
        }
    }
}

impl Source<'_> {
    async fn blob(
        &self,
        state: &Path,
        number: usize,
        layer: &Layer,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Blob, Error> {
        match self {
            Self::Archive(opened) => {
                let (offset, length) = opened.layer(number).ok_or_else(astray)?;
                let file = opened.file.try_clone();
                let file = file.map_err(|error| backend("read the archive", &error))?;
                Ok(Blob { file, offset, length })
            }
            Self::Remote(remote) => {
                let file = remote.layer(layer, state, progress).await?;
                Ok(Blob { file, offset: 0, length: layer.length })
            }
        }
    }
}
