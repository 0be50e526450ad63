//! Templates of projects: what one needs beside the host's tools, or beside an image.
//!
//! Owns their names, which say what is in them, so that two sessions of a project share one
//! and a change of it is another. Their layers are archives of the caller's own making.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use outrigger_sandbox::Error;

use super::ImageDigest;
use super::request::{
    HOST_TOOLS, HostPaths, ImageAnswer, ImageRequest, OVER_IMAGE, Template, UnpackRequest,
    is_of_project,
};
use crate::backend::{Native, astray, blocking};
use crate::clock::now_ms;
use crate::limits;

/// What a project needs beside the host's tools, or beside an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectTemplate {
    /// The image that it stands on instead of the host's tools. Nothing of the host is shown
    /// at the same place then.
    pub image: Option<Template>,
    /// Layers that are there, the lowest first ([`Native::add_layer`]).
    pub layers: Vec<ImageDigest>,
    /// `NAME=value`, variables of every command.
    pub env: Vec<String>,
    /// What is shown of the host.
    pub host: HostPaths,
    /// Where it came from, in words.
    pub source: String,
}

impl ProjectTemplate {
    /// The name of the template: the same for the same content.
    #[must_use]
    pub fn name(&self) -> String {
        let base = if self.image.is_some() { OVER_IMAGE } else { HOST_TOOLS };
        let layers = self.all_layers().map(|layer| layer.hex());
        let paths = self.host.read_only.iter().map(|path| path.display().to_string());
        let shown = |(from, to): &(PathBuf, PathBuf)| [from, to].map(|it| it.display().to_string());
        let elsewhere = self.host.elsewhere.iter().flat_map(shown);
        let workspace = self.host.workspace.iter().map(|path| path.display().to_string());
        let groups: [Vec<String>; 5] = [
            layers.collect(),
            self.env.clone(),
            paths.collect(),
            elsewhere.collect(),
            workspace.collect(),
        ];
        // Neither stands in what it parts.
        let text = groups.map(|group| group.join("\0")).join("\0\0");
        format!("{base}.{:.20}", ImageDigest::of(text.as_bytes()).hex())
    }

    /// Those of the image and its own, the lowest first.
    fn all_layers(&self) -> impl Iterator<Item = &ImageDigest> {
        self.image.iter().flat_map(|image| &image.layers).chain(&self.layers)
    }
}

impl Native {
    /// Which of these layers are not there.
    ///
    /// # Errors
    /// [`Error::Backend`] if the spawner can't be asked.
    pub async fn missing_layers(&self, layers: &[ImageDigest]) -> Result<Vec<ImageDigest>, Error> {
        match self.ask_image(ImageRequest::Missing(layers.to_vec()), None).await? {
            ImageAnswer::Missing(missing) => Ok(missing),
            _ => Err(astray()),
        }
    }

    /// Takes in a tar archive, uncompressed and at its beginning, as a layer. Its paths
    /// begin at the root of a sandbox; user 1000 in it is the user of commands.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an archive above a limit.
    pub async fn add_layer(&self, mut archive: File) -> Result<ImageDigest, Error> {
        let digested = move || {
            let read = digest(&mut archive);
            let (diff, length) =
                read.map_err(|error| Error::Backend(format!("cannot read the archive: {error}")))?;
            Ok((archive, diff, length))
        };
        let (archive, diff, length) = blocking(digested).await?;
        let request = UnpackRequest { offset: 0, length, blob: None, diff };
        let file = Some(OwnedFd::from(archive));
        match self.ask_image(ImageRequest::Unpack(request), file).await? {
            ImageAnswer::Unpacked { .. } => Ok(diff),
            _ => Err(astray()),
        }
    }

    /// Removes templates of projects that were not saved again for
    /// [`limits::PROJECT_MS_MAX`] and that nothing stands on. Says how many.
    pub(crate) async fn remove_old_projects(&self) -> Result<usize, Error> {
        let before = self.templates().await?;
        let is_old = |it: &&Template| {
            is_of_project(&it.name)
                && it.made_at_ms.saturating_add(limits::PROJECT_MS_MAX) < now_ms()
        };
        for old in before.iter().filter(is_old) {
            self.remove_template(&old.name).await?;
        }
        Ok(before.len().saturating_sub(self.templates().await?.len()))
    }

    /// Saves a template of a project, and gives its name. One that is kept again counts as
    /// used now.
    ///
    /// # Errors
    /// [`Error::Absent`] if a layer is not there, [`Error::Invalid`] for a path that is not
    /// plain.
    pub async fn save_project(&self, project: ProjectTemplate) -> Result<String, Error> {
        let name = project.name();
        let layers = project.all_layers().copied().collect();
        let ProjectTemplate { env, host, source, .. } = project;
        let (manifest, workdir, made_at_ms) = (None, None, now_ms());
        let template = Template { name, layers, source, manifest, env, workdir, host, made_at_ms };
        match self.ask_image(ImageRequest::Save(template.clone()), None).await? {
            ImageAnswer::Done => Ok(template.name),
            ImageAnswer::Missing(missing) => {
                let name = missing.first().map_or_else(String::new, |layer| layer.hex());
                Err(Error::Absent { what: "layer".to_owned(), name })
            }
            _ => Err(astray()),
        }
    }
}

/// Digests a file from its beginning, with its length.
fn digest(file: &mut File) -> io::Result<(ImageDigest, u64)> {
    file.rewind()?;
    let mut reader = super::HashingReader::new(file);
    let length = io::copy(&mut reader.by_ref(), &mut io::sink())?;
    Ok((reader.finish().1, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_is_in_it() {
        let plain = ProjectTemplate::default();
        assert!(super::super::request::is_over_host_tools(&plain.name()));
        let image = Template {
            name: "an-image".to_owned(),
            layers: vec![ImageDigest::of(b"a layer")],
            source: "a test".to_owned(),
            manifest: None,
            env: Vec::new(),
            workdir: None,
            host: HostPaths::default(),
            made_at_ms: 0,
        };
        let over_image = ProjectTemplate { image: Some(image), ..ProjectTemplate::default() };
        assert!(is_of_project(&over_image.name()) && is_of_project(&plain.name()));
        assert!(!super::super::request::is_over_host_tools(&over_image.name()));
        let with = |change: fn(&mut ProjectTemplate)| {
            let mut project = ProjectTemplate::default();
            change(&mut project);
            project.name()
        };
        let names = [
            plain.name(),
            with(|project| project.env = vec!["A=b".to_owned()]),
            with(|project| project.host.read_only = vec!["A=b".into()]),
            with(|project| project.host.workspace = Some("/srv/a".into())),
        ];
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "{names:?}");
        assert_eq!(with(|project| project.source = "elsewhere".to_owned()), plain.name());
    }
}
