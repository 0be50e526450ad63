//! Templates in the state directory.
//!
//! Owns their records: which layers a name stands for. Nothing here reads what is in
//! a layer.

use std::fs;
use std::io;

use outrigger_sandbox::Error;

use super::layer::Layer;
use crate::image::ImageDigest;
use crate::image::request::{HostPaths, Template, is_name, is_over_host_tools};
use crate::limits;
use crate::spawner::create::request::is_plain;
use crate::spawner::error::backend;
use crate::spawner::record::{self, Durability};
use crate::spawner::store::{Store, private};

/// Which of these layers are not there.
pub(crate) fn missing(store: &Store, layers: &[ImageDigest]) -> Vec<ImageDigest> {
    let is_there =
        |layer: &ImageDigest| Layer::of_image(layer).is_ok_and(|layer| store.tree(&layer).is_dir());
    layers.iter().filter(|layer| !is_there(layer)).copied().collect()
}

/// Keeps a template, unless layers of it are missing: gives those.
pub(crate) fn save(store: &Store, template: &Template) -> Result<Vec<ImageDigest>, Error> {
    if !is_name(&template.name) {
        return Err(Error::Invalid(format!("`{}` can't be the name of a template", template.name)));
    }
    let least = usize::from(!is_over_host_tools(&template.name));
    let most = limits::IMAGE_LAYERS_MAX;
    if !(least..=most).contains(&template.layers.len()) {
        return Err(Error::Invalid(format!("a template has {least} to {most} layers")));
    }
    check_host_paths(&template.host)?;
    let missing = missing(store, &template.layers);
    if missing.is_empty() {
        let dir = store.templates();
        private(&dir)
            .and_then(|()| record::write(&dir.join(&template.name), template, Durability::Power))
            .map_err(|error| backend("cannot keep the template", &error))?;
    }
    Ok(missing)
}

fn check_host_paths(host: &HostPaths) -> Result<(), Error> {
    let elsewhere = host.elsewhere.iter().flat_map(|(from, to)| [from, to]);
    match host.read_only.iter().chain(elsewhere).chain(&host.workspace).find(|path| !is_plain(path))
    {
        None => Ok(()),
        Some(path) => {
            Err(Error::Invalid(format!("`{}` is not a plain absolute path", path.display())))
        }
    }
}

/// The template of that name.
pub(crate) fn load(store: &Store, name: &str) -> Result<Option<Template>, Error> {
    if !is_name(name) {
        return Ok(None);
    }
    record::read(&store.templates().join(name))
        .map_err(|error| backend(&format!("cannot read the template `{name}`"), &error))
}

/// All templates, sorted by name.
pub(crate) fn list(store: &Store) -> Result<Vec<Template>, Error> {
    let entries = match fs::read_dir(store.templates()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| backend("cannot list the templates", &error))?,
    };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names.iter().filter_map(|name| load(store, name).transpose()).collect()
}

/// The layers of all templates.
pub(crate) fn layers(store: &Store) -> Result<Vec<Layer>, Error> {
    let all = list(store)?;
    let layers = all.iter().flat_map(|template| &template.layers).map(Layer::of_image);
    layers.collect::<io::Result<_>>().map_err(|error| backend("cannot name the layers", &error))
}

/// Forgets a template. One that is not there is fine.
pub(crate) fn forget(store: &Store, name: &str) -> Result<(), Error> {
    if !is_name(name) {
        return Ok(());
    }
    record::remove(&store.templates().join(name))
        .map_err(|error| backend("cannot forget the template", &error))
}
