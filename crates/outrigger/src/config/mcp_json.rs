//! Servers of tools as a repository's `.mcp.json` names them, in the form that other agents read.
//!
//! Owns what of it is taken: a program, in a sandbox of its own that has a copy of the work, or
//! an address. No variable of this machine is put into it, so that no secret goes where a
//! repository says. Whoever calls has asked a person whether the file is trusted.

use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::tools::{Server, Way};
use crate::expand::expanded;
use crate::limits;

/// Where such servers stand.
pub(crate) const FILE: &str = ".mcp.json";

/// The file, as far as it is read.
#[derive(Debug, Default, Deserialize)]
struct McpFile {
    #[serde(default, rename = "mcpServers")]
    servers: BTreeMap<String, Value>,
}

/// One server, as far as it is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct McpServer {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    url: Option<String>,
    headers: BTreeMap<String, Value>,
}

/// What a file names: each server, or why it can't be used.
pub(crate) type NamedServers = Vec<(String, Result<Server, String>)>;

/// Reads the file of a directory.
///
/// # Errors
/// Why it is none.
pub(crate) fn read(dir: &Path, text: &str) -> Result<NamedServers, String> {
    let file: McpFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let servers = file.servers.into_iter();
    Ok(servers.map(|(name, given)| (name.clone(), server(dir, &name, given))).collect())
}

/// What the file would do, a line for each server.
pub(crate) fn described(text: &str) -> Vec<String> {
    match read(Path::new("/"), text) {
        Err(why) => vec![format!("it can't be read: {why}")],
        Ok(all) => {
            let line = |(name, server): (String, Result<Server, String>)| match server {
                Err(why) => format!("{name} is left out: {why}"),
                Ok(server) => match server.way {
                    Way::Url(url) => format!("{name} asks {url}"),
                    Way::Program { command, .. } => {
                        format!("{name} runs, in a sandbox of its own: {}", command.join(" "))
                    }
                },
            };
            all.into_iter().map(line).collect()
        }
    }
}

/// The sandbox of a server's program.
pub(crate) fn sandbox_of(server: &str) -> String {
    format!("mcp_{server}")
}

fn server(dir: &Path, given_name: &str, given: Value) -> Result<Server, String> {
    let name = name_of(given_name)?;
    let given: McpServer = serde_json::from_value(given).map_err(|error| error.to_string())?;
    let way = match (given.kind.as_deref(), given.command, given.url) {
        (None | Some("stdio"), Some(program), None) => {
            let mut command = Vec::new();
            if !given.env.is_empty() {
                command.push("env".to_owned());
                for (variable, value) in &given.env {
                    command.push(format!("{variable}={}", filled(given_name, value)?));
                }
            }
            command.push(filled(given_name, &program)?);
            for word in &given.args {
                command.push(filled(given_name, word)?);
            }
            Way::Program { command, sandbox: sandbox_of(&name) }
        }
        (None | Some("http" | "streamable-http"), None, Some(url)) => {
            if !given.headers.is_empty() {
                return Err(format!(
                    "it has headers, which may hold keys; give it in the configuration, as [tools.{name}] with `token_env` or `headers_env`"
                ));
            }
            let url = filled(given_name, &url)?;
            outrigger_mcp::ServerUrl::new(&url).map_err(|error| error.to_string())?;
            Way::Url(url)
        }
        (Some("sse"), ..) => {
            return Err("the transport `sse` is not supported: it was taken out of the protocol; use its `http` address".to_owned());
        }
        (Some(other), ..) if !matches!(other, "stdio" | "http" | "streamable-http") => {
            return Err(format!("the transport `{other}` is not known"));
        }
        _ => return Err("it needs either a `command` or a `url`".to_owned()),
    };
    Ok(Server {
        name,
        way,
        of_directory: Some(dir.to_owned()),
        token_env: None,
        headers_env: BTreeMap::new(),
        allow: None,
        read_only: BTreeSet::new(),
        idempotent: BTreeSet::new(),
        concurrent: false,
        timeout_ms: limits::OUTSIDE_MS_DEFAULT,
        result_bytes_max: outrigger_tools::limits::OUTSIDE_BYTES_DEFAULT,
    })
}

/// The name by which tools are called: in small letters, with `_` for what else parts words.
fn name_of(given: &str) -> Result<String, String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = given.chars().map(plain).collect();
    let fits = (1..=limits::MCP_NAME_CHARS_MAX).contains(&name.len());
    if !fits || name.contains("__") || name.starts_with('_') || name.ends_with('_') {
        let most = limits::MCP_NAME_CHARS_MAX;
        return Err(format!(
            "its name is not 1 to {most} letters and digits with single marks between them"
        ));
    }
    Ok(name)
}

/// Text in which a variable stands has its default, where it names one.
fn filled(server: &str, text: &str) -> Result<String, String> {
    expanded(text, |variable| match variable.split_once(":-") {
        Some((_, default)) => Ok(Some(default.to_owned())),
        None => Err(format!(
            "it wants the variable {variable}, and no variable of this machine is given to what a repository names; configure it yourself, as [tools.NAME] in place of `{server}`"
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn what_is_taken_and_what_is_left_out_is_said() {
        let text = r#"{ "mcpServers": {
            "Docs": { "type": "http", "url": "https://docs.example/mcp" },
            "build-tools": { "command": "node", "args": ["server.js", "${MODE:-fast}"], "env": { "LEVEL": "2" } },
            "far": { "type": "http", "url": "http://docs.example/mcp" },
            "keyed": { "type": "http", "url": "https://x.example", "headers": { "Authorization": "Bearer ${TOKEN}" } },
            "nothing": {},
            "old": { "type": "sse", "url": "https://x.example/sse" },
            "odd": { "type": "ws", "url": "wss://x.example" },
            "two__marks": { "command": "x" },
            "wants": { "command": "x", "env": { "KEY": "${API_KEY}" } },
            "wrong": { "command": ["x"] }
        }, "more": 1 }"#;
        expect![[r#"
            Docs asks https://docs.example/mcp
            build-tools runs, in a sandbox of its own: env LEVEL=2 node server.js fast
            far is left out: the address is not encrypted: only this machine is spoken to so
            keyed is left out: it has headers, which may hold keys; give it in the configuration, as [tools.keyed] with `token_env` or `headers_env`
            nothing is left out: it needs either a `command` or a `url`
            odd is left out: the transport `ws` is not known
            old is left out: the transport `sse` is not supported: it was taken out of the protocol; use its `http` address
            two__marks is left out: its name is not 1 to 20 letters and digits with single marks between them
            wants is left out: it wants the variable API_KEY, and no variable of this machine is given to what a repository names; configure it yourself, as [tools.NAME] in place of `wants`
            wrong is left out: invalid type: sequence, expected a string"#]]
        .assert_eq(&described(text).join("\n"));
        assert_eq!(described("{").len(), 1);
        assert_eq!(described("{}"), [""; 0]);
    }
}
