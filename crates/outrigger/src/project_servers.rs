//! Servers of tools that a repository brings along in `.mcp.json`.
//!
//! Owns that none of them is used unless a person trusts the file as it is, and that none takes
//! the place of one that is configured.

use outrigger_agent::{Spec, Workspace};
use outrigger_store::Blobs;
use std::path::Path;

use crate::config::{Config, NamedServers, mcp_json};
use crate::exit::Outcome;
use crate::limits;
use crate::paths::Paths;
use crate::project_file::ProjectFile;
use crate::show::{Screen, Tone, inert};
use crate::trust::{self, Standing};

/// With what the sandbox of such a server begins.
#[derive(Clone, Copy)]
pub(crate) struct ServerContent<'a> {
    pub(crate) blobs: &'a dyn Blobs,
    pub(crate) workspace: &'a Workspace,
    pub(crate) template: Option<&'a str>,
}

/// The configuration with the servers of a directory, if they are trusted.
pub(crate) fn added(
    paths: &Paths,
    config: &Config,
    dir: &Path,
    screen: &Screen,
) -> Outcome<Config> {
    let mut config = config.clone();
    let judged = trust::judge(paths, dir, ProjectFile::servers(dir))?;
    for file in judged.iter().filter(|judged| judged.standing == Standing::Trusted) {
        match mcp_json::read(dir, &file.file.text) {
            Ok(named) => add(&mut config, named, screen),
            Err(why) => {
                let text = format!("! {} is left out: {}", mcp_json::FILE, inert(&why));
                screen.note(Tone::Warning, text);
            }
        }
    }
    Ok(config)
}

/// The configuration with the servers of the directory that a session began with.
pub(crate) fn of_session(
    paths: &Paths,
    config: &Config,
    spec: &Spec,
    screen: &Screen,
) -> Outcome<Config> {
    match &spec.workspace {
        Some(workspace) => added(paths, config, Path::new(&workspace.source), screen),
        None => Ok(config.clone()),
    }
}

fn add(config: &mut Config, named: NamedServers, screen: &Screen) {
    for (given, server) in named {
        let left_out = |why: &str| {
            let (file, name) = (mcp_json::FILE, inert(&given));
            let text = format!("! `{name}` of {file} is left out: {}", inert(why));
            screen.note(Tone::Warning, text);
        };
        let server = match server {
            Ok(server) => server,
            Err(why) => {
                left_out(&why);
                continue;
            }
        };
        if config.tools.contains_key(&server.name) {
            left_out(&format!("the configuration has [tools.{}]", server.name));
            continue;
        }
        if config.tools.len() >= limits::SERVERS_MAX {
            left_out(&format!("{} servers are the most", limits::SERVERS_MAX));
            continue;
        }
        if let (Some(name), Some(first)) = (server.sandbox(), config.sandboxes.first()) {
            let many = config.sandboxes.len() >= limits::SANDBOXES_MAX;
            if many || config.sandboxes.iter().any(|known| known.name == name) {
                left_out(&format!(
                    "it needs a sandbox `{name}` of its own, and a session has at most {}, each with another name",
                    limits::SANDBOXES_MAX
                ));
                continue;
            }
            let sandbox = first.for_server(name.to_owned());
            config.sandboxes.push(sandbox);
        }
        config.tools.insert(server.name.clone(), server);
    }
}

/// Whether a sandbox is that of such a server.
pub(crate) fn is_theirs(config: &Config, sandbox: &str) -> bool {
    let mut servers = config.tools.values().filter(|server| server.of_directory.is_some());
    servers.any(|server| server.sandbox() == Some(sandbox))
}
