//! Templates and image layers in the state directory.
//!
//! Owns `templates/<name>`, each a whole JSON file, and which directories of `layers/`
//! something still stands on. Layers of images are named by the digest of their content
//! and shared; nothing here reads what is in them.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use outrigger_sandbox::Error;

use super::ids::write_whole;
use super::remove;
use crate::image::Digest;
use crate::image::ask::{Template, is_name};
use crate::limits;

fn backend(what: &str, error: &io::Error) -> Error {
    Error::Backend(format!("cannot {what}: {error}"))
}

/// A name for a layer that is being unpacked, never used before.
pub(super) fn unfinished() -> io::Result<String> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Moves what an earlier spawner did not finish to the trash.
pub(super) fn sweep(state: &Path) -> io::Result<()> {
    match trash(state, Path::new("incoming")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn names(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Moves a directory to the trash; gives its name there.
fn trash(state: &Path, path: &Path) -> io::Result<String> {
    let dir = state.join("trash");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    let name = unfinished()?;
    fs::rename(state.join(path), dir.join(&name))?;
    Ok(name)
}

/// The tree of a layer.
pub(super) fn tree(state: &Path, layer: &Digest) -> PathBuf {
    state.join("layers").join(layer.hex()).join("tree")
}

/// Which of these layers are not there.
pub(super) fn missing(state: &Path, layers: &[Digest]) -> Vec<Digest> {
    layers.iter().filter(|layer| !tree(state, layer).is_dir()).copied().collect()
}

/// Keeps a template, unless layers of it are missing: gives those.
pub(super) fn save(state: &Path, template: &Template) -> Result<Vec<Digest>, Error> {
    check(template)?;
    let missing = missing(state, &template.layers);
    if !missing.is_empty() {
        return Ok(missing);
    }
    let dir = state.join("templates");
    let text = serde_json::to_string(template).map_err(io::Error::other);
    text.and_then(|text| {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        write_whole(&dir.join(&template.name), &text)
    })
    .map_err(|error| backend("keep the template", &error))?;
    Ok(Vec::new())
}

fn check(template: &Template) -> Result<(), Error> {
    if !is_name(&template.name) {
        return Err(Error::Invalid(format!("`{}` can't be the name of a template", template.name)));
    }
    if template.layers.is_empty() || template.layers.len() > limits::IMAGE_LAYERS_MAX {
        let most = limits::IMAGE_LAYERS_MAX;
        return Err(Error::Invalid(format!("a template has 1 to {most} layers")));
    }
    Ok(())
}

/// The template of that name.
pub(super) fn load(state: &Path, name: &str) -> Result<Option<Template>, Error> {
    if !is_name(name) {
        return Ok(None);
    }
    let path = state.join("templates").join(name);
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| {
        file.take(limits::SPAWNER_MESSAGE_BYTES_MAX as u64).read_to_string(&mut text)
    });
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(backend("read the template", &error)),
        Ok(_) => {}
    }
    let template: Template = serde_json::from_str(&text)
        .map_err(|error| backend(&format!("read the template `{name}`"), &error.into()))?;
    check(&template)?;
    Ok(Some(template))
}

/// All templates, sorted by name.
pub(super) fn list(state: &Path) -> Result<Vec<Template>, Error> {
    let names =
        names(&state.join("templates")).map_err(|error| backend("list the templates", &error))?;
    names.iter().filter_map(|name| load(state, name).transpose()).collect()
}

/// Forgets a template. One that is not there is fine.
pub(super) fn forget(state: &Path, name: &str) -> Result<(), Error> {
    if !is_name(name) {
        return Ok(());
    }
    match fs::remove_file(state.join("templates").join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(backend("forget the template", &error))
        }
        _ => Ok(()),
    }
}

/// Moves every layer of an image that neither a template nor `used` stands on to the
/// trash; gives where they are there.
pub(super) fn collect(state: &Path, used: &BTreeSet<String>) -> Result<Vec<String>, Error> {
    let kept: BTreeSet<String> =
        list(state)?.iter().flat_map(|template| &template.layers).map(Digest::hex).collect();
    let collected = || {
        let mut moved = Vec::new();
        for name in names(&state.join("layers"))? {
            let image = Digest::from_hex(&name).is_some();
            if image && !kept.contains(&name) && !used.contains(&name) {
                moved.push(trash(state, &Path::new("layers").join(&name))?);
            }
        }
        Ok(moved)
    };
    collected().map_err(|error| backend("delete unused layers", &error))
}

/// Deletes what was moved to the trash. To be called in a process of its own.
pub(super) fn delete(state: &Path, trash: &[String]) -> Result<(), Error> {
    let deleted = || {
        let dir = fs::File::open(state.join("trash"))?;
        trash.iter().try_for_each(|name| {
            remove::remove(dir.as_fd(), &CString::new(name.as_str()).map_err(io::Error::other)?)
        })
    };
    if trash.is_empty() {
        return Ok(());
    }
    deleted().map_err(|error: io::Error| backend("delete all unused layers", &error))
}
