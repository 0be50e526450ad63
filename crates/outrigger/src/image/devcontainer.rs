//! `devcontainer.json`, as far as a sandbox can be made of it.
//!
//! Owns what of it is taken: an image or a Dockerfile, variables, and the commands that prepare a
//! container once. All else is named, so that nobody waits for what never happens. No variable of
//! this machine is read. The format: <https://containers.dev/implementors/json_reference/>.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use crate::expand::expanded;
use crate::show::word;

/// Where a container would have the directory.
const WORKSPACE: &str = "/workspace";

/// Keys that are for people and editors.
const OF_EDITORS: [&str; 6] =
    ["$schema", "name", "customizations", "settings", "extensions", "hostRequirements"];

/// What it asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DevContainer {
    pub(crate) base: ImageSource,
    /// Variables of all commands, which may name others.
    env: BTreeMap<String, String>,
    /// Shell lines that prepare the container, in their order.
    pub(crate) commands: Vec<String>,
    /// Keys that nothing comes of.
    pub(crate) ignored: Vec<String>,
}

/// Where the image comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImageSource {
    Image(String),
    Build(BuildPlan),
}

/// An image to be built. Paths begin at the top of the repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BuildPlan {
    pub(crate) dockerfile: PathBuf,
    pub(crate) context: PathBuf,
    pub(crate) args: BTreeMap<String, String>,
    pub(crate) target: Option<String>,
}

/// The file, as far as it is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DevContainerFile {
    image: Option<String>,
    #[serde(default)]
    build: BuildFile,
    /// As it was written before there was `build`.
    docker_file: Option<String>,
    context: Option<String>,
    docker_compose_file: Option<Value>,
    #[serde(default)]
    container_env: BTreeMap<String, String>,
    #[serde(default)]
    remote_env: BTreeMap<String, Option<String>>,
    on_create_command: Option<LifecycleCommand>,
    update_content_command: Option<LifecycleCommand>,
    post_create_command: Option<LifecycleCommand>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
struct BuildFile {
    dockerfile: Option<String>,
    context: Option<String>,
    #[serde(default)]
    args: BTreeMap<String, String>,
    target: Option<String>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

/// A shell line, a program with its arguments, or several of them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum LifecycleCommand {
    Line(String),
    Program(Vec<String>),
    Several(BTreeMap<String, LifecycleCommand>),
}

impl LifecycleCommand {
    fn lines(self) -> Vec<String> {
        match self {
            Self::Line(line) => vec![line],
            Self::Program(words) => {
                vec![words.iter().map(|it| word(it)).collect::<Vec<_>>().join(" ")]
            }
            Self::Several(all) => all.into_values().flat_map(Self::lines).collect(),
        }
    }
}

impl DevContainer {
    /// Reads one. `path` is where it lies in the repository.
    ///
    /// # Errors
    /// Why no sandbox can be made of it.
    pub(crate) fn read(path: &Path, text: &str) -> Result<Self, String> {
        let file: DevContainerFile = jsonc_parser::parse_to_serde_value(text, &strict())
            .map_err(|error| error.to_string())?;
        if file.docker_compose_file.is_some() {
            return Err("it is made by Docker Compose, which is not supported: name an image or a Dockerfile with --image".to_owned());
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let base = match (file.build.dockerfile.or(file.docker_file), file.image) {
            (Some(dockerfile), _) => ImageSource::Build(BuildPlan {
                dockerfile: within(folder, &dockerfile)?,
                context: within(
                    folder,
                    file.build.context.or(file.context).as_deref().unwrap_or("."),
                )?,
                args: file.build.args,
                target: file.build.target,
            }),
            (None, Some(image)) => ImageSource::Image(image),
            (None, None) => return Err("it names neither an `image` nor a Dockerfile".to_owned()),
        };
        let mut env = file.container_env;
        env.extend(
            file.remote_env.into_iter().map(|(name, value)| (name, value.unwrap_or_default())),
        );
        let once = [file.on_create_command, file.update_content_command, file.post_create_command];
        let commands = once.into_iter().flatten().flat_map(LifecycleCommand::lines).collect();
        let of_build = file.build.rest.into_keys().map(|key| format!("build.{key}"));
        let rest = file.rest.into_keys().filter(|key| !OF_EDITORS.contains(&key.as_str()));
        Ok(Self { base, env, commands, ignored: rest.chain(of_build).collect() })
    }

    /// The variables of commands. `image` are those of the image; `top` is the repository's own
    /// directory.
    pub(crate) fn env(
        &self,
        image: &BTreeMap<String, String>,
        top: &Path,
    ) -> BTreeMap<String, String> {
        let value = |name: &str| Ok::<_, Infallible>(variable(name, image, top));
        let expand = |text: &String| expanded(text, value).unwrap_or_else(|never| match never {});
        self.env.iter().map(|(name, value)| (name.clone(), expand(value))).collect()
    }

    /// What it would do, a line for each.
    pub(crate) fn described(&self) -> Vec<String> {
        let base = match &self.base {
            ImageSource::Image(image) => format!("sandboxes begin with the image {image}"),
            ImageSource::Build(plan) => {
                format!("the Docker engine of this machine builds {}", plan.dockerfile.display())
            }
        };
        let commands = self.commands.iter().map(|line| format!("a sandbox runs, once: {line}"));
        std::iter::once(base).chain(commands).collect()
    }
}

/// Whether a file of the repository is a `devcontainer.json`; else it is a Dockerfile.
pub(super) fn is_devcontainer(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("json"))
}

/// What a file would do as the image of sandboxes, a line for each.
pub(crate) fn described(name: &str, text: &str) -> Vec<String> {
    let path = Path::new(name);
    if !is_devcontainer(path) {
        return vec![format!("the Docker engine of this machine builds {name}")];
    }
    match DevContainer::read(path, text) {
        Ok(container) => container.described(),
        Err(why) => vec![format!("it can't be read: {why}")],
    }
}

/// Comments and commas at an end, as the format has them, and nothing looser.
fn strict() -> jsonc_parser::ParseOptions {
    jsonc_parser::ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// A path beside the file, from the top of the repository; none that leaves it.
fn within(folder: &Path, path: &str) -> Result<PathBuf, String> {
    let mut whole = PathBuf::new();
    for part in folder.join(path).components() {
        let is_inside = match part {
            Component::Normal(name) => {
                whole.push(name);
                true
            }
            Component::CurDir => true,
            Component::ParentDir => whole.pop(),
            Component::RootDir | Component::Prefix(_) => false,
        };
        if !is_inside {
            return Err(format!("`{path}` is not in the repository"));
        }
    }
    Ok(whole)
}

/// What stands for a variable of the format. Those of this machine have the value that the file
/// gives for the case that there is none.
fn variable(name: &str, image: &BTreeMap<String, String>, top: &Path) -> Option<String> {
    let mut parts = name.splitn(3, ':');
    let (kind, variable) = (parts.next()?, parts.next());
    let mut or_default = |value: Option<&String>| {
        value.cloned().unwrap_or_else(|| parts.next().unwrap_or_default().to_owned())
    };
    let base = || top.file_name().map(|name| name.to_string_lossy().into_owned());
    match (kind, variable) {
        ("localEnv" | "env", Some(_)) => Some(or_default(None)),
        ("containerEnv", Some(variable)) => Some(or_default(image.get(variable))),
        ("containerWorkspaceFolder", None) => Some(WORKSPACE.to_owned()),
        ("localWorkspaceFolder", None) => Some(top.display().to_string()),
        ("localWorkspaceFolderBasename" | "containerWorkspaceFolderBasename", None) => base(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: &str = ".devcontainer/devcontainer.json";

    fn read(text: &str) -> Result<DevContainer, String> {
        DevContainer::read(Path::new(FOLDER), text)
    }

    #[test]
    fn an_image_variables_and_commands_are_taken_and_the_rest_is_named() {
        let text = r#"{
            // As people write them.
            "name": "of an editor", "image": "python:3.12",
            "features": { "ghcr.io/devcontainers/features/node:1": {} },
            "forwardPorts": [3000],
            "containerEnv": { "MODE": "test", "WHERE": "${containerWorkspaceFolder}/src" },
            "remoteEnv": {
                "PATH": "${containerEnv:PATH}:/opt/bin", "KEY": "${localEnv:SECRET}",
                "OR": "${localEnv:SECRET:none}", "GONE": null, "ODD": "${what:ever} ${open",
            },
            "onCreateCommand": "make deps",
            "postCreateCommand": { "a": ["npm", "run", "with space"], "b": "echo $HOME" },
        }"#;
        let container = read(text).unwrap();
        assert_eq!(container.base, ImageSource::Image("python:3.12".to_owned()));
        assert_eq!(container.commands, ["make deps", "npm run 'with space'", "echo $HOME"]);
        assert_eq!(container.ignored, ["features", "forwardPorts"]);
        let image = BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]);
        let env = container.env(&image, Path::new("/srv/shop"));
        let pairs: Vec<_> = env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            pairs,
            [
                "GONE=",
                "KEY=",
                "MODE=test",
                "ODD=${what:ever} ${open",
                "OR=none",
                "PATH=/bin:/opt/bin",
                "WHERE=/workspace/src",
            ]
        );
    }

    #[test]
    fn a_dockerfile_is_found_beside_it() {
        let plan = |text: &str| match read(text).unwrap().base {
            ImageSource::Build(plan) => plan,
            ImageSource::Image(image) => panic!("{image}"),
        };
        let text = r#"{ "build": { "dockerfile": "Dockerfile", "context": "..", "target": "dev",
            "args": { "V": "1" }, "cacheFrom": "x" } }"#;
        let found = plan(text);
        assert_eq!(found.dockerfile, Path::new(".devcontainer/Dockerfile"));
        assert_eq!((found.context, found.target.as_deref()), (PathBuf::new(), Some("dev")));
        assert_eq!(found.args["V"], "1");
        assert_eq!(read(text).unwrap().ignored, ["build.cacheFrom"]);
        let old = plan(r#"{ "dockerFile": "../Dockerfile", "context": "../app" }"#);
        assert_eq!(old.dockerfile, Path::new("Dockerfile"));
        assert_eq!(old.context, Path::new("app"));
    }

    #[test]
    fn what_can_be_no_sandbox_says_why() {
        for (text, why) in [
            (r#"{ "dockerComposeFile": "compose.yml", "service": "app" }"#, "Docker Compose"),
            (r#"{ "name": "x" }"#, "neither an `image` nor a Dockerfile"),
            (r#"{ "build": { "dockerfile": "../../Dockerfile" } }"#, "is not in the repository"),
            (r#"{ "build": { "dockerfile": "/etc/passwd" } }"#, "is not in the repository"),
            ("{ image: 'loose' }", "line 1"),
        ] {
            let told = read(text).unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
        }
    }
}
