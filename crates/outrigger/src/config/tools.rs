//! `[tools.NAME]`: servers outside whose tools a session has, and what is known of them.
//!
//! What a tool does to the world is said here and nowhere else: what its server says of it
//! is not believed. A stronger file's table of a name takes the place of the weaker one's
//! whole, so that no key reaches an address that it was not meant for.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::range::Whole;
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;

/// A name of a server, which becomes part of names of tools.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("pattern" = "^[a-z0-9]+(_[a-z0-9]+)*$")))]
pub(crate) struct ServerName(pub(crate) String);

impl<'de> Deserialize<'de> for ServerName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let max = limits::SERVER_NAME_CHARS_MAX;
        let fits = (1..=max).contains(&name.len()) && name.bytes().all(plain);
        // Two underscores stand between the parts of a tool's name.
        if !fits || name.contains("__") || name.starts_with('_') || name.ends_with('_') {
            return Err(D::Error::custom(format!(
                "invalid name `{}`, expected 1 to {max} characters of a-z 0-9 and single _ within",
                name.escape_debug().take(60).collect::<String>()
            )));
        }
        Ok(Self(name))
    }
}

/// A server of the Model Context Protocol whose tools sessions have, by its name: 1 to 24 of a-z
/// 0-9 and single _ within; any number of such tables (`docs/how-to/outside-tools.md`).
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerFile {
    /// Where the server is: `https`, or `http` on this very machine. A redirect is not followed.
    #[cfg_attr(test, schemars(example = &"https://mcp.example/mcp"))]
    pub(crate) url: Option<String>,
    /// A program that is the server, spoken to over its standard streams, instead of `url`. It runs
    /// in `sandbox`, and lives from call to call.
    #[cfg_attr(test, schemars(example = ["my-server"]))]
    pub(crate) command: Vec<String>,
    /// The `[[sandbox]]` in which the program runs: one of its own, in which no tool of ours acts.
    #[cfg_attr(test, schemars(example = &"fetch"))]
    pub(crate) sandbox: Option<String>,
    /// The environment variable that holds a bearer token for the server. The token itself never
    /// stands in a file of ours.
    #[cfg_attr(test, schemars(example = &"GITHUB_TOKEN"))]
    pub(crate) token_env: Option<String>,
    /// Further headers of every request, each with the environment variable that holds its value.
    #[cfg_attr(test, schemars(example = BTreeMap::from([("x-api-key", "MCP_API_KEY")])))]
    pub(crate) headers_env: BTreeMap<String, String>,
    /// The tools that sessions may have, as the server names them; if absent, all that it has.
    #[cfg_attr(test, schemars(example = ["get_issue", "create_issue"]))]
    pub(crate) allow: Option<BTreeSet<String>>,
    /// Tools of the server that change nothing. After a crash they are called again, and the default
    /// rules let them be called without asking. What the server says of them is not believed.
    #[cfg_attr(test, schemars(example = ["get_issue"]))]
    pub(crate) read_only: BTreeSet<String>,
    /// Tools that act, and do the same call with the same key once. After a crash they are called
    /// again with that key; any other that was under way is told to the model as unknown.
    #[cfg_attr(test, schemars(example = ["create_issue"]))]
    pub(crate) idempotent: BTreeSet<String>,
    /// Whether calls of this server may run beside each other and beside other tools that may.
    pub(crate) concurrent: bool,
    /// Seconds from the start of a call to giving up.
    #[cfg_attr(test, schemars(extend("default" = limits::OUTSIDE_MS_DEFAULT / 1_000)))]
    pub(crate) timeout_seconds_max: Option<Whole<1, 3_600>>,
    /// Bytes of an answer that the model sees; the middle of a longer one is left out.
    #[cfg_attr(test, schemars(extend("default" = outrigger_tools::limits::OUTSIDE_BYTES_DEFAULT)))]
    pub(crate) result_bytes_max: Option<Whole<1_000, 1_000_000>>,
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// At an address.
    Url(String),
    /// A program, in the sandbox of that name.
    Program { command: Vec<String>, sandbox: String },
}

/// A server as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) way: Way,
    /// The directory whose `.mcp.json` names it; nothing for one of the configuration.
    pub(crate) of_directory: Option<PathBuf>,
    pub(crate) token_env: Option<String>,
    pub(crate) headers_env: BTreeMap<String, String>,
    /// `None`: all that it has.
    pub(crate) allow: Option<BTreeSet<String>>,
    pub(crate) read_only: BTreeSet<String>,
    pub(crate) idempotent: BTreeSet<String>,
    pub(crate) concurrent: bool,
    pub(crate) timeout_ms: u64,
    pub(crate) result_bytes_max: usize,
}

impl Server {
    /// Where it is, as people and pins know it.
    pub(crate) fn address(&self) -> String {
        let address = match &self.way {
            Way::Url(url) => url.clone(),
            Way::Program { command, .. } => format!("program: {}", command.join(" ")),
        };
        // The same words mean another program in another directory.
        match &self.of_directory {
            Some(dir) => format!("{address} (of {})", dir.display()),
            None => address,
        }
    }

    /// The sandbox in which it runs.
    pub(crate) fn sandbox(&self) -> Option<&str> {
        match &self.way {
            Way::Url(_) => None,
            Way::Program { sandbox, .. } => Some(sandbox),
        }
    }

    fn of(ServerName(name): ServerName, file: ServerFile) -> Outcome<Self> {
        let way = match (file.url, file.command, file.sandbox) {
            (Some(url), command, None) if command.is_empty() => Way::Url(url),
            (None, command, Some(sandbox)) if !command.is_empty() => {
                Way::Program { command, sandbox }
            }
            (Some(_), ..) => return Err(wrong(&name, "has a `url`, and no program beside it")),
            (None, command, None) if !command.is_empty() => {
                return Err(wrong(&name, "has a `command`, and names no `sandbox` to run it in"));
            }
            (None, ..) => return Err(wrong(&name, "has neither a `url` nor a `command`")),
        };
        let program = matches!(way, Way::Program { .. });
        if program && (file.token_env.is_some() || !file.headers_env.is_empty()) {
            return Err(wrong(&name, "would take a key into a sandbox"));
        }
        if let Some(both) = file.read_only.intersection(&file.idempotent).next() {
            return Err(wrong(
                &name,
                &format!("says of `{both}` that it only reads and that it acts"),
            ));
        }
        if let Some(allow) = &file.allow
            && let Some(other) =
                file.read_only.union(&file.idempotent).find(|tool| !allow.contains(*tool))
        {
            return Err(wrong(&name, &format!("speaks of `{other}`, which `allow` leaves out")));
        }
        let timeout_ms = file.timeout_seconds_max.map(|it| it.get() * 1_000);
        let result = file.result_bytes_max.map(|it| it.get() as usize);
        Ok(Self {
            name,
            way,
            of_directory: None,
            token_env: file.token_env,
            headers_env: file.headers_env,
            allow: file.allow,
            read_only: file.read_only,
            idempotent: file.idempotent,
            concurrent: file.concurrent,
            timeout_ms: timeout_ms.unwrap_or(limits::OUTSIDE_MS_DEFAULT),
            result_bytes_max: result.unwrap_or(outrigger_tools::limits::OUTSIDE_BYTES_DEFAULT),
        })
    }
}

/// Puts a stronger file's servers among the weaker ones'.
pub(crate) fn absorb(
    all: &mut BTreeMap<String, Server>,
    files: BTreeMap<ServerName, ServerFile>,
) -> Outcome {
    for (name, file) in files {
        let server = Server::of(name, file)?;
        all.insert(server.name.clone(), server);
    }
    let max = limits::SERVERS_MAX;
    if all.len() > max {
        let text = format!("{} servers of tools are configured, {max} are the most", all.len());
        return Err(Failure::new(Kind::Usage, text));
    }
    Ok(())
}

/// Every program has a sandbox of its own, in which no tool of ours acts.
pub(crate) fn check(all: &BTreeMap<String, Server>, sandboxes: &[super::Sandbox]) -> Outcome {
    let mut taken = BTreeMap::new();
    for (name, sandbox) in all.values().filter_map(|it| Some((&it.name, it.sandbox()?))) {
        match sandboxes.iter().position(|known| known.name == sandbox) {
            None => {
                return Err(wrong(
                    name,
                    &format!("names a sandbox `{sandbox}` that no [[sandbox]] is"),
                ));
            }
            Some(0) => {
                let what = format!(
                    "names the sandbox `{sandbox}`, which is the one of the session's own tools"
                );
                return Err(wrong(name, &what));
            }
            Some(index) if sandboxes[index].record(false).workspace => {
                let what = format!(
                    "names the sandbox `{sandbox}`, into which the directory is copied; a server's has no `workspace = true`"
                );
                return Err(wrong(name, &what));
            }
            Some(_) => {}
        }
        if let Some(other) = taken.insert(sandbox, name) {
            let what = format!("names the sandbox `{sandbox}`, which is that of [tools.{other}]");
            return Err(wrong(name, &what));
        }
    }
    Ok(())
}

fn wrong(name: &str, what: &str) -> Failure {
    Failure::new(Kind::Usage, format!("[tools.{name}] {what}"))
        .hint("docs/how-to/outside-tools.md shows how a server is configured.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn read(text: &str) -> Result<BTreeMap<String, Server>, String> {
        let files = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let mut all = BTreeMap::new();
        absorb(&mut all, files).map_err(|failure| failure.message)?;
        Ok(all)
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut said = String::new();
        for text in [
            "[git__hub]\nurl = 'x'",
            "[\"Git Hub\"]\nurl = 'x'",
            "[a]",
            "[a]\nurl = 'x'\ncommand = ['y']\nsandbox = 'z'",
            "[a]\ncommand = ['y']",
            "[a]\ncommand = ['y']\nsandbox = 'z'\ntoken_env = 'KEY'",
            "[a]\nurl = 'x'\nread_only = ['t']\nidempotent = ['t']",
            "[a]\nurl = 'x'\nallow = ['u']\nread_only = ['t']",
            "[a]\nurl = 'x'\ntimeout_seconds_max = 0",
            "[a]\nurl = 'x'\ntoken = 'secret'",
        ] {
            let error = read(text).unwrap_err();
            said += &format!("{}\n", error.lines().next().unwrap_or_default());
        }
        expect![[r#"
            invalid name `git__hub`, expected 1 to 24 characters of a-z 0-9 and single _ within
            invalid name `Git Hub`, expected 1 to 24 characters of a-z 0-9 and single _ within
            [tools.a] has neither a `url` nor a `command`
            [tools.a] has a `url`, and no program beside it
            [tools.a] has a `command`, and names no `sandbox` to run it in
            [tools.a] would take a key into a sandbox
            [tools.a] says of `t` that it only reads and that it acts
            [tools.a] speaks of `t`, which `allow` leaves out
            invalid value: integer `0`, expected a whole number from 1 to 3600
            unknown field `token`, expected one of `url`, `command`, `sandbox`, `token_env`, `headers_env`, `allow`, `read_only`, `idempotent`, `concurrent`, `timeout_seconds_max`, `result_bytes_max`
        "#]].assert_eq(&said);
    }

    #[test]
    fn a_stronger_table_takes_the_place_of_a_weaker_one_whole() {
        let mut all = read("[a]\nurl = 'https://one'\ntoken_env = 'KEY'").unwrap();
        absorb(&mut all, toml::from_str("[a]\nurl = 'https://two'").unwrap()).unwrap();
        assert_eq!((all["a"].address().as_str(), &all["a"].token_env), ("https://two", &None));
    }
}
