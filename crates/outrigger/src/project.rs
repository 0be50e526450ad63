//! What a directory needs of this machine to be worked on: its tools, and what it depends on.
//!
//! Owns the template of a session's first sandbox, over the host's tools or an image. Must never
//! show more of the machine than `repository::toolchain` found and the configuration names.

mod environment;

use outrigger_repository::toolchain::{GO_CACHE, GoCache, Toolchains, toolchains};
use outrigger_repository::{DependencyFolders, Error, OBJECTS, SandboxRepository};
use outrigger_sandbox_native::{HostPaths, ImageDigest, Native, ProjectTemplate, Template};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::compose::{self, Backends, HOST_TOOLS};
use crate::config::{BackendName, Config, Sandbox};
use crate::exit::{Failure, Kind, Outcome};
use crate::image::variables;
use crate::paths::Paths;
use crate::project_content::{AGENT, ProjectContent, WORKSPACE};
use crate::repository;
use crate::session::now_ms;
use crate::setup::Preparation;
use crate::shell;
use crate::show::amounts::size;
use crate::show::{self, Screen, Tone};

/// Whether the first sandbox is of the native backend, so that there is a template to be made.
pub(crate) fn is_native(config: &Config) -> bool {
    config.sandboxes.first().is_some_and(|sandbox| sandbox.backend == BackendName::Native)
}

/// Whether it stands over this machine's tools.
pub(crate) fn is_over_host_tools(config: &Config) -> bool {
    is_native(config)
        && config.sandboxes.first().is_some_and(|it| it.template() == Some(HOST_TOOLS))
}

/// The template of a session's first sandbox, and which folders came along with it.
#[derive(Debug, Default)]
pub(crate) struct ProjectSandbox {
    pub(crate) template: Option<String>,
    pub(crate) dependencies: Vec<String>,
}

/// Makes the template. `folders` are what the directory depends on, by their paths in it.
pub(crate) async fn prepare(
    paths: &Paths,
    config: &Config,
    backends: &Backends,
    (content, folders): (ProjectContent<'_>, Vec<Vec<PathBuf>>),
    screen: &mut Screen,
) -> Outcome<ProjectSandbox> {
    let ProjectContent { store, tree, .. } = content;
    let dir = tree.top.as_path();
    let first = config.sandboxes.first().filter(|_| is_native(config));
    let (Some(native), Some(sandbox)) = (&backends.native, first) else {
        return Ok(ProjectSandbox::default());
    };
    let image = base(native, sandbox).await?;
    let shows_tools = sandbox.toolchains && image.is_none();
    let mut tools =
        if shows_tools { toolchains(tree, &shell::of_person()) } else { Toolchains::default() };
    // The spawner is told of paths as text.
    tools.shown.retain(|path| path.to_str().is_some());
    let layers = layers(paths, config, native, (dir, folders), screen).await?;
    tell(&tools, &layers, screen);
    let env = match &image {
        Some(image) => environment::over_image(sandbox, &variables(&image.env)),
        None => environment::over_host_tools(sandbox, &tools, tree, &named(&layers)),
    }?;
    let workspace = dir.to_str().map(PathBuf::from);
    let mut host = HostPaths { read_only: tools.shown, elsewhere: Vec::new(), workspace };
    let digests = layers.iter().map(|layer| layer.digest).collect();
    let all = layers.iter().flat_map(|layer| &layer.folders.paths);
    let mut dependencies: Vec<String> =
        all.filter_map(|path| path.to_str().map(str::to_owned)).collect();
    let mut often = Vec::new();
    if let Some(cache) = tools.go_cache
        && let Some(digest) = go_cache(paths, native, &cache, screen).await?
    {
        host.elsewhere.push((cache, PathBuf::from(GO_CACHE)));
        often.push(digest);
    }
    if let Some((objects, digest)) = history(paths, native, dir, screen).await? {
        host.elsewhere.push((objects, PathBuf::from(OBJECTS)));
        often.push(digest);
        dependencies.push(".git".to_owned());
    }
    let source = dir.display().to_string();
    let mut project = ProjectTemplate { image, layers: digests, env, host, source };
    let egress = compose::egress(paths, store, backends.networks.clone())?;
    let preparation =
        Preparation { paths, config, native, content, egress: &egress, often: &often };
    if let Some(made) = preparation.prepare(&project, &dependencies, screen).await? {
        project.layers.push(made.layer);
        dependencies.extend(made.folders);
    }
    project.layers.extend(often);
    let template = native.save_project(project).await;
    let template =
        template.map_err(|error| Failure::from_error(Kind::SandboxUnavailable, &error))?;
    Ok(ProjectSandbox { template: Some(template), dependencies })
}

/// The image that it stands on, if it does not stand over the host's tools.
async fn base(native: &Native, sandbox: &Sandbox) -> Outcome<Option<Template>> {
    let Some(name) = sandbox.template().filter(|name| *name != HOST_TOOLS) else {
        return Ok(None);
    };
    let failed = |error| Failure::from_error(Kind::SandboxUnavailable, &error);
    let mut known = native.templates().await.map_err(failed)?.into_iter();
    let found = known.find(|template| template.name == name);
    let gone = || Failure::new(Kind::NotFound, format!("the template `{name}` is gone"));
    found.ok_or_else(gone).map(Some)
}

/// The folders that came along by themselves, by their names.
fn named(layers: &[DependencyLayer]) -> Vec<&str> {
    layers.iter().map(|layer| layer.name.as_str()).collect()
}

/// The repository that the sandbox gets: where its objects are, and the layer of the rest.
async fn history(
    paths: &Paths,
    native: &Native,
    dir: &Path,
    screen: &Screen,
) -> Outcome<Option<(PathBuf, ImageDigest)>> {
    let whole = dir.to_owned();
    let read = blocking(dir, move || SandboxRepository::read(&whole)).await?;
    let repository = match read {
        None => return Ok(None),
        Some(Err(why)) => {
            screen.note(Tone::Warning, format!("! the sandbox has no git history: {why}"));
            return Ok(None);
        }
        Some(Ok(repository)) => repository,
    };
    for note in &repository.notes {
        screen.note(Tone::Detail, note.clone());
    }
    let storage = |error: std::io::Error| Failure::from_error(Kind::Storage, &error);
    let archive = repository.archive(Path::new(WORKSPACE), AGENT).map_err(storage)?;
    let digest = ImageDigest::of(&archive);
    let failed = |error| Failure::from_error(Kind::SandboxUnavailable, &error);
    if !native.missing_layers(&[digest]).await.map_err(failed)?.is_empty() {
        let mut file = outrigger_repository::nameless(&paths.scratch()).map_err(storage)?;
        file.write_all(&archive).map_err(storage)?;
        native.add_layer(file).await.map_err(failed)?;
    }
    Ok(Some((repository.objects, digest)))
}

/// Folders that came along together.
struct DependencyLayer {
    name: String,
    folders: DependencyFolders,
    digest: ImageDigest,
}

async fn layers(
    paths: &Paths,
    config: &Config,
    native: &Native,
    (dir, folders): (&Path, Vec<Vec<PathBuf>>),
    screen: &mut Screen,
) -> Outcome<Vec<DependencyLayer>> {
    let mut layers = Vec::new();
    for mut together in folders {
        // What is passed over is named as text.
        together.retain(|path| path.to_str().is_some());
        let name = match together.as_slice() {
            [] => continue,
            [path] => path.display().to_string(),
            several => format!("{} __pycache__ folders", several.len()),
        };
        let whole = dir.to_owned();
        let measuring = move || DependencyFolders::measure(&whole, &together);
        let folders = blocking(dir, measuring).await?;
        if folders.bytes > config.dependency_bytes_max {
            let (has, most) = (size(folders.bytes), size(config.dependency_bytes_max));
            screen.note(Tone::Warning, format!("! {name} is left out: it has {has}, and workspace.dependency_mib_max allows {most}"));
            continue;
        }
        let what = format!("bringing {name} along, {}", size(folders.bytes));
        let (whole, parts, scratch) = (dir.to_owned(), folders.clone(), paths.scratch());
        let packing = move || parts.archive(&whole, Path::new(WORKSPACE), AGENT, &scratch);
        let making = layer(paths, native, (dir, &folders.version), packing);
        let digest = screen.during(&what, making).await?;
        layers.push(DependencyLayer { name, folders, digest });
    }
    Ok(layers)
}

/// The layer of what Go compiled on this machine. Without it Go compiles its own library in
/// every session.
async fn go_cache(
    paths: &Paths,
    native: &Native,
    dir: &Path,
    screen: &mut Screen,
) -> Outcome<Option<ImageDigest>> {
    let whole = dir.to_owned();
    let cache = match tokio::task::spawn_blocking(move || GoCache::look(&whole)).await {
        Ok(Ok(cache)) => cache,
        Ok(Err(error)) => {
            let text = format!("! what Go compiled does not come along: {error}");
            screen.note(Tone::Warning, text);
            return Ok(None);
        }
        Err(panic) => return Err(Failure::from_error(Kind::AgentFailed, &panic)),
    };
    let (version, scratch) = (cache.version.clone(), paths.scratch());
    let now_s = i64::try_from(now_ms() / 1_000).unwrap_or(i64::MAX);
    let packing = move || cache.archive(AGENT, &scratch, now_s).map_err(Error::Archive);
    let making = layer(paths, native, (dir, &version), packing);
    screen.during("bringing Go's build cache along", making).await.map(Some)
}

/// The layer of something in a directory: the one that was made of this version of it before,
/// if it is still there.
async fn layer(
    paths: &Paths,
    native: &Native,
    (dir, version): (&Path, &str),
    packing: impl FnOnce() -> Result<File, Error> + Send + 'static,
) -> Outcome<ImageDigest> {
    let failed = |error| Failure::from_error(Kind::SandboxUnavailable, &error);
    let kept = paths.dependencies().join(version);
    let known =
        std::fs::read_to_string(&kept).ok().and_then(|text| ImageDigest::parse(text.trim()));
    if let Some(known) = known
        && native.missing_layers(&[known]).await.map_err(failed)?.is_empty()
    {
        return Ok(known);
    }
    let archive = blocking(dir, packing).await?;
    let digest = native.add_layer(archive).await.map_err(failed)?;
    // Without the note it is packed again the next time.
    let _ = paths.note(&kept, digest.to_string().as_bytes());
    Ok(digest)
}

async fn blocking<T: Send + 'static>(
    dir: &Path,
    work: impl FnOnce() -> Result<T, outrigger_repository::Error> + Send + 'static,
) -> Outcome<T> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|panic| Failure::from_error(Kind::AgentFailed, &panic))?;
    done.map_err(|error| repository::failed(dir, &error))
}

/// One line for what came along, and one for each thing that is not as asked for.
fn tell(tools: &Toolchains, layers: &[DependencyLayer], screen: &Screen) {
    for note in &tools.notes {
        screen.note(Tone::Warning, format!("! {note}"));
    }
    let folders = layers.iter().map(|layer| {
        let (files, bytes) = (show::count(layer.folders.files, "file"), layer.folders.bytes);
        format!("{} ({files}, {})", layer.name, size(bytes))
    });
    let tools = tools.found.iter().map(|tool| tool.name.clone());
    let all: Vec<String> = folders.chain(tools).collect();
    if !all.is_empty() {
        screen.note(Tone::Detail, format!("with {}", all.join(", ")));
    }
}
