//! Images that become templates of the native backend.
//!
//! Owns the way from an image's name to a template: one that is there, or one that is pulled.

use outrigger_sandbox::Error;
use outrigger_sandbox_native::{Native, Progress, Registry, Template, Transport};
use std::sync::{Mutex, PoisonError};

use super::context::failed;
use crate::compose::{self, HOST_TOOLS};
use crate::config::{BackendName, Config};
use crate::exit::{Failure, Outcome};
use crate::limits;
use crate::paths::Paths;
use crate::show::{Screen, Tone};

/// How far an image is, in words that change while it goes on.
#[derive(Debug, Default)]
pub(crate) struct ImageProgress(Mutex<String>);

impl ImageProgress {
    pub(crate) fn note(&self, progress: &Progress) {
        let Progress { layers, layers_total, bytes, bytes_total, .. } = progress;
        let mut text = format!("layer {layers} of {layers_total}");
        if let Some(total) = Some(*bytes_total).filter(|total| *total > 0) {
            text += &format!(" · {} of {} MiB", bytes >> 20, total >> 20);
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    pub(crate) fn words(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Makes a template of an image of a registry.
pub(crate) async fn pull(
    native: &Native,
    name: &str,
    source: &Registry,
    screen: &mut Screen,
) -> Result<Template, Error> {
    let reached = ImageProgress::default();
    let note = |progress: Progress| reached.note(&progress);
    screen.watching(|| reached.words(), native.pull(name, source, &note)).await
}

/// Lets the first sandbox stand on an image. With Docker it is the engine's, by its name; else
/// a template of that name, or one that was made of the image, or the image is pulled.
pub(crate) async fn choose(
    paths: &Paths,
    config: &mut Config,
    image: String,
    screen: &mut Screen,
) -> Outcome {
    let is_native = config.sandboxes.first().is_some_and(|it| it.backend == BackendName::Native);
    let template = match is_native && image != HOST_TOOLS {
        true => template(paths, config, &image, screen).await?,
        false => image,
    };
    if let Some(sandbox) = config.sandboxes.first_mut() {
        sandbox.stand_on(template);
    }
    Ok(())
}

async fn template(
    paths: &Paths,
    config: &Config,
    image: &str,
    screen: &mut Screen,
) -> Outcome<String> {
    paths.prepare()?;
    let native = compose::native(paths, config, None).await?;
    let known = native.templates().await.map_err(|error| failed(&error))?;
    let by_name = known.iter().find(|it| it.name == image);
    if let Some(found) = by_name.or_else(|| known.iter().find(|it| it.source == image)) {
        return Ok(found.name.clone());
    }
    let name = unused(&known, image);
    screen.note(Tone::Detail, format!("pulling {image} as the template {name}"));
    let (reference, transport) = (image.to_owned(), Transport::Https);
    let source = Registry { reference, transport, hosts: Vec::new() };
    let pulled = pull(&native, &name, &source, screen).await.map_err(|error| {
        let failure = failed(&error);
        let message = format!("the image {image}: {}", failure.message);
        Failure { message, ..failure }
            .hint("`outrigger sandbox templates ls` lists what is here; `outrigger sandbox import NAME FILE` takes an archive, of `docker save` for example.")
    });
    pulled.map(|template| template.name)
}

/// A template's name after an image's, which no other template has.
fn unused(known: &[Template], image: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = image.chars().map(|c| if plain(c) { c } else { '-' }).collect();
    let name = name.trim_start_matches(['.', '-', '_']);
    let name: String = name.chars().take(limits::IMAGE_NAME_CHARS_MAX).collect();
    let is_taken = |name: &String| known.iter().any(|it| it.name == *name);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or(name)
}
