//! What a session's first sandbox stands on, if that is not this machine's tools.
//!
//! Owns the way from a name to it: a template that is there, an image that is pulled, or what a
//! file of the repository asks for. Must never do anything that such a file says unless a person
//! trusts it as it is.

mod build;
pub(crate) mod devcontainer;

use outrigger_repository::WorkTree;
use outrigger_sandbox::Error;
use outrigger_sandbox_native::{
    Archive, Native, Progress, Registry, Template, Transport, is_of_project,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use self::build::{docker_build, docker_save};
use self::devcontainer::{BuildPlan, DevContainer, ImageSource, is_devcontainer};
use crate::compose::{self, HOST_TOOLS};
use crate::config::{BackendName, Config, Sandbox};
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::network::GateRoute;
use crate::paths::Paths;
use crate::project_file::ProjectFile;
use crate::sandbox::failed;
use crate::show::{Screen, Tone, inert, word};
use crate::trust::{self, Standing};

/// How far an image is, in words that change while it goes on.
#[derive(Debug, Default)]
struct ImageProgress(Mutex<String>);

impl ImageProgress {
    fn note(&self, progress: &Progress) {
        let Progress { layers, layers_total, bytes, bytes_total, .. } = progress;
        let mut text = format!("layer {layers} of {layers_total}");
        if let Some(total) = Some(*bytes_total).filter(|total| *total > 0) {
            text += &format!(" · {} of {} MiB", bytes >> 20, total >> 20);
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn words(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Makes a template of an image of a registry.
pub(crate) async fn pull(
    paths: &Paths,
    native: &Native,
    name: &str,
    source: &Registry,
    screen: &mut Screen,
) -> Result<Template, Error> {
    let reached = ImageProgress::default();
    let note = |progress: Progress| reached.note(&progress);
    let route = GateRoute::new(paths);
    screen.watching(|| reached.words(), native.pull(name, source, &route, &note)).await
}

/// Makes a template of an image in an archive.
pub(crate) async fn import(
    native: &Native,
    name: &str,
    source: Archive,
    screen: &mut Screen,
) -> Result<Template, Error> {
    let reached = ImageProgress::default();
    let note = |progress: Progress| reached.note(&progress);
    screen.watching(|| reached.words(), native.import(name, source, &note)).await
}

/// What a sandbox stands on, and the variables of the image, as far as they are known.
struct ImageRoot {
    template: String,
    env: Vec<String>,
}

impl From<Template> for ImageRoot {
    fn from(template: Template) -> Self {
        Self { template: template.name, env: template.env }
    }
}

/// The way from a name to what the first sandbox stands on.
struct ImageChoice<'a> {
    paths: &'a Paths,

    tree: &'a WorkTree,
    /// None: the engine's own images are.
    native: Option<Arc<Native>>,
    /// Those that are there. What was made for a project is none of them: it holds that
    /// project's own files.
    templates: Vec<Template>,
}

/// The configuration with a first sandbox that stands on what its template names: a template
/// that is there, a `devcontainer.json` or a Dockerfile of the directory, or an image, which is
/// pulled. With Docker an image that the engine has.
pub(crate) async fn settled(
    paths: &Paths,
    config: &Config,
    tree: &WorkTree,
    screen: &mut Screen,
) -> Outcome<Config> {
    let mut settled = config.clone();
    let Some(sandbox) = settled.sandboxes.first_mut() else { return Ok(settled) };
    let name = sandbox.template().filter(|name| *name != HOST_TOOLS).map(str::to_owned);
    let Some(name) = name else { return Ok(settled) };
    let native = match sandbox.backend {
        BackendName::Native => {
            paths.prepare()?;
            Some(compose::native(paths, config, None).await?)
        }
        BackendName::Docker => None,
    };
    let mut templates = match &native {
        Some(native) => native.templates().await.map_err(|error| failed(&error))?,
        None => Vec::new(),
    };
    templates.retain(|template| !is_of_project(&template.name));
    let choice = ImageChoice { paths, tree, native, templates };
    if let Some(known) = choice.known(&name) {
        sandbox.stand_on(known.template);
        return Ok(settled);
    }
    match tree.dir().join(&name) {
        path if path.is_file() => choice.of_file(sandbox, &tree.prefix.join(&name), screen).await?,
        // A name that was mistyped is not looked for elsewhere.
        _ if choice.native.is_some() && !is_reference(&name) => {}
        _ => sandbox.stand_on(choice.image(&name, screen).await?.template),
    }
    Ok(settled)
}

impl ImageChoice<'_> {
    /// A template of that name, or one that was made of that image.
    fn known(&self, name: &str) -> Option<ImageRoot> {
        let by_name = self.templates.iter().find(|it| it.name == name);
        let found = by_name.or_else(|| self.templates.iter().find(|it| it.source == name));
        found.cloned().map(ImageRoot::from)
    }

    /// An image by its name.
    async fn image(&self, image: &str, screen: &mut Screen) -> Outcome<ImageRoot> {
        let Some(native) = &self.native else {
            return Ok(ImageRoot { template: image.to_owned(), env: Vec::new() });
        };
        if let Some(known) = self.known(image) {
            return Ok(known);
        }
        let name = unused(&self.templates, image);
        screen.note(Tone::Detail, format!("pulling {image} as the template {name}"));
        let (reference, transport) = (image.to_owned(), Transport::Https);
        let source = Registry { reference, transport, hosts: Vec::new() };
        let pulled = pull(self.paths, native, &name, &source, screen).await.map_err(|error| {
            let failure = failed(&error);
            let message = format!("the image {image}: {}", failure.message);
            Failure { message, ..failure }
                .hint("`outrigger sandbox templates ls` lists what is here; `outrigger sandbox import NAME FILE` takes an archive, of `docker save` for example. A file of the directory is named by its path in it.")
        });
        pulled.map(ImageRoot::from)
    }

    /// What a file of the repository asks for, if a person trusts it.
    async fn of_file(&self, sandbox: &mut Sandbox, path: &Path, screen: &mut Screen) -> Outcome {
        let file = self.trusted(path, screen).await?;
        if !is_devcontainer(path) {
            let context = self.tree.prefix.clone();
            let plan = BuildPlan { dockerfile: path.to_owned(), context, ..BuildPlan::default() };
            sandbox.stand_on(self.built(&plan, &file.text, screen).await?.template);
            return Ok(());
        }
        let container = DevContainer::read(path, &file.text).map_err(|why| {
            Failure::new(Kind::Usage, format!("{}: {}", path.display(), inert(&why)))
        })?;
        let mut ignored = container.ignored.clone();
        let root = match &container.base {
            ImageSource::Image(image) => self.image(image, screen).await?,
            ImageSource::Build(plan) => {
                let file = self.trusted(&plan.dockerfile, screen).await?;
                self.built(plan, &file.text, screen).await?
            }
        };
        sandbox.stand_on(root.template);
        let env = container.env(&variables(&root.env), &self.tree.top);
        if self.native.is_some() {
            // What a person says in the configuration is said last.
            sandbox.env = env.into_iter().chain(std::mem::take(&mut sandbox.env)).collect();
            sandbox.setup.splice(0..0, container.commands);
        } else {
            ignored.extend((!env.is_empty()).then(|| "its variables".to_owned()));
            ignored.extend((!container.commands.is_empty()).then(|| "its commands".to_owned()));
        }
        if !ignored.is_empty() {
            let all: Vec<_> = ignored.iter().map(|key| inert(key)).collect();
            let text =
                format!("! nothing comes of these in {}: {}", path.display(), all.join(", "));
            screen.note(Tone::Warning, text);
        }
        Ok(())
    }

    /// A file of the repository as a person trusts it.
    async fn trusted(&self, path: &Path, screen: &Screen) -> Outcome<ProjectFile> {
        let (top, name) = (&self.tree.top, inert(&path.display().to_string()));
        let file = read(top, path)?;
        let mut judged = trust::settle(self.paths, top, [file], screen).await?.into_iter();
        let trusted = judged.find(|it| it.standing == Standing::Trusted).map(|it| it.file);
        trusted.ok_or_else(|| {
            let dir = word(&self.tree.dir().display().to_string());
            let text = format!("{name} is not trusted, so nothing is made of it");
            let named =
                word(&path.strip_prefix(&self.tree.prefix).unwrap_or(path).to_string_lossy());
            Failure::new(Kind::WaitsForApproval, text)
                .hint(format!("`outrigger trust --dir {dir} --image {named}` shows it and asks."))
        })
    }

    /// What the engine builds, which with the native backend becomes a template.
    async fn built(&self, plan: &BuildPlan, text: &str, screen: &mut Screen) -> Outcome<ImageRoot> {
        let Self { paths, tree, native, .. } = self;
        let id = build::build(paths, &tree.top, (plan, text), screen).await?;
        let Some(native) = native else {
            return Ok(ImageRoot { template: id, env: Vec::new() });
        };
        let short: String = id.trim_start_matches("sha256:").chars().take(20).collect();
        let name = format!("{BUILT}{short}");
        if let Some(known) = self.known(&name) {
            return Ok(known);
        }
        let storage = |error: std::io::Error| Failure::from_error(Kind::Storage, &error);
        let archive = outrigger_repository::nameless(&paths.scratch()).map_err(storage)?;
        build::save(paths, &id, archive.try_clone().map_err(storage)?, screen).await?;
        let made = import(native, &name, Archive::new(archive), screen).await;
        made.map(ImageRoot::from).map_err(|error| failed(&error))
    }
}

/// What the names of templates begin with that were built.
const BUILT: &str = "built-";

/// Whether a name is that of an image in a registry, with its tag or digest or where it is.
fn is_reference(name: &str) -> bool {
    name.contains(['/', ':', '@'])
}

/// A file of the repository, as it is now.
fn read(top: &Path, path: &Path) -> Outcome<ProjectFile> {
    ProjectFile::image(top, path).ok_or_else(|| {
        let name = inert(&path.display().to_string());
        Failure::new(Kind::NotFound, format!("{name} can't be read, or is reached by a link"))
            .hint("It is named by its path in the directory.")
    })
}

/// The files that a person would have to trust for sandboxes to be made of one of them, by its
/// path in the directory.
pub(crate) fn files(tree: &WorkTree, path: &Path) -> Outcome<Vec<ProjectFile>> {
    let path = tree.prefix.join(path);
    let mut files = vec![read(&tree.top, &path)?];
    if is_devcontainer(&path)
        && let Ok(container) = DevContainer::read(&path, &files[0].text)
        && let ImageSource::Build(plan) = &container.base
    {
        files.push(read(&tree.top, &plan.dockerfile)?);
    }
    Ok(files)
}

/// Variables by their names.
pub(crate) fn variables(env: &[String]) -> BTreeMap<String, String> {
    let pairs = env.iter().filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
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
