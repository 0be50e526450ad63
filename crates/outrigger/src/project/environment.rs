//! The variables of the commands of a sandbox.

use outrigger_repository::WorkTree;
use outrigger_repository::toolchain::Toolchains;
use std::collections::BTreeMap;
use std::path::Path;

use crate::config::Sandbox;
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::project_content::WORKSPACE;

/// Where programs are looked for that nobody says more of.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// `NAME=value`, as a person's shell has them who works on the project. `folders` came along.
pub(super) fn over_host_tools(
    sandbox: &Sandbox,
    tools: &Toolchains,
    tree: &WorkTree,
    folders: &[&str],
) -> Outcome<Vec<String>> {
    let mut env = tools.env.clone();
    let mut path: Vec<String> = sandbox.path.iter().map(|dir| dir.display().to_string()).collect();
    // The nearest to where the person works.
    let environment = tree.folders().find_map(|folder| {
        let names = [".venv", "venv", "env"].map(|name| folder.join(name));
        folders.iter().find(|name| names.iter().any(|it| it == Path::new(name)))
    });
    if let Some(name) = environment {
        let root = format!("/{WORKSPACE}/{name}");
        path.push(format!("{root}/bin"));
        env.insert("VIRTUAL_ENV".to_owned(), root);
    }
    path.extend(tools.path.iter().map(|dir| dir.display().to_string()));
    if !path.is_empty() {
        if !sandbox.toolchains {
            path.push(SYSTEM_PATH.to_owned());
        }
        env.insert("PATH".to_owned(), path.join(":"));
    }
    pairs(sandbox, env)
}

/// `NAME=value`, as the image has them.
pub(super) fn over_image(
    sandbox: &Sandbox,
    image: &BTreeMap<String, String>,
) -> Outcome<Vec<String>> {
    let mut env = image.clone();
    if !sandbox.path.is_empty() {
        let own = sandbox.path.iter().map(|dir| dir.display().to_string());
        let rest = image.get("PATH").map_or(SYSTEM_PATH, String::as_str).to_owned();
        env.insert("PATH".to_owned(), own.chain([rest]).collect::<Vec<_>>().join(":"));
    }
    pairs(sandbox, env)
}

/// What the configuration says is said last.
fn pairs(sandbox: &Sandbox, mut env: BTreeMap<String, String>) -> Outcome<Vec<String>> {
    env.extend(sandbox.env.clone());
    let pairs: Vec<String> = env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let bytes: usize = pairs.iter().map(String::len).sum();
    if bytes > limits::TEMPLATE_ENV_BYTES_MAX {
        let most = limits::TEMPLATE_ENV_BYTES_MAX;
        let text =
            format!("the variables of the sandbox take {bytes} bytes, and {most} are allowed");
        return Err(Failure::new(Kind::Usage, text).hint("Shorten sandbox.env or sandbox.path."));
    }
    if let Some(pair) = pairs.iter().find(|pair| pair.contains('\0')) {
        let name = pair.split('=').next().unwrap_or_default();
        return Err(Failure::new(Kind::Usage, format!("the variable {name} has a NUL byte in it")));
    }
    Ok(pairs)
}
