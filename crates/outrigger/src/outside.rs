//! Tools of servers outside: the way to each, and which of their tools a session has.
//!
//! Owns that no text of a server reaches a model before a person has seen it or it was the
//! first: what it says of a tool is pinned, and a change is held back. Keys are in the gate,
//! which puts them into requests to their own server alone.

mod keys;
mod pins;

use outrigger_agent::{Concurrency, ToolSpec};
use outrigger_engine::{OutsideServer, workspace};
use outrigger_mcp::{Header, Http, ServerUrl, Stdio};
use outrigger_sandbox::{DiskOrigin, Sandbox, SandboxId};
use outrigger_tools::outside::{
    DeclaredEffect, Fault, Offer, Outside, OutsideCall, ToolAnswer, ToolListing,
};
use std::sync::Arc;
use uuid::Uuid;

use crate::compose::{Backends, Servers};
use crate::config::{Config, Server, Way};
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::project_servers::ServerContent;
use crate::show::{self, Tone, word};
use crate::{header_keys, limits};

use pins::Heard;

pub(crate) use keys::keyed;
pub(crate) use pins::{Pin, Pins, Text, change, read};

/// The ways to all servers that are configured. One whose key is missing, or to which there is no
/// gate, is a server that can't be asked; the session goes on without it.
pub(crate) async fn servers(paths: &Paths, config: &Config) -> Outcome<Servers> {
    let mut servers = Servers::new();
    for server in config.tools.values() {
        let port: Arc<dyn Outside> = match &server.way {
            Way::Program { command, .. } => Arc::new(Stdio::new(command.clone())),
            Way::Url(url) => {
                let url = ServerUrl::new(url).map_err(|error| named(server, &error))?;
                match http(paths, server, &url).await? {
                    Ok(http) => Arc::new(http),
                    Err(detail) => Arc::new(MisconfiguredServer { detail }),
                }
            }
        };
        let (timeout_ms, result_bytes_max) = (server.timeout_ms, server.result_bytes_max);
        servers.insert(server.name.clone(), OutsideServer { port, timeout_ms, result_bytes_max });
    }
    Ok(servers)
}

/// A server by the gate, which has its keys; the inner error is why there is none.
async fn http(paths: &Paths, server: &Server, url: &ServerUrl) -> Outcome<Result<Http, String>> {
    let keys: Vec<_> = keys::headers(server).collect();
    let (http, texts) = match header_keys::client(paths, url.server(), &keys).await {
        Ok(client) => client,
        Err(detail) => return Ok(Err(detail)),
    };
    let header = |(name, text): &(String, String)| Header::new(name, text);
    let headers: Result<_, _> = texts.iter().map(header).collect();
    let headers = headers.map_err(|error| named(server, &error))?;
    Ok(Ok(Http::new(url, headers, http)))
}

fn named(server: &Server, error: &outrigger_mcp::Error) -> Failure {
    let text = format!("[tools.{}]: {error}", server.name);
    Failure::new(Kind::Usage, text)
        .hint("docs/how-to/outside-tools.md shows how a server is configured.")
}

/// A server that can't be asked as it is configured.
#[derive(Debug)]
struct MisconfiguredServer {
    detail: String,
}

#[async_trait::async_trait]
impl Outside for MisconfiguredServer {
    async fn list(&self, _: Option<&Arc<dyn Sandbox>>) -> Result<ToolListing, Fault> {
        Err(Fault::NotAsked { detail: self.detail.clone() })
    }

    async fn call(&self, _: &OutsideCall<'_>) -> Result<ToolAnswer, Fault> {
        Err(Fault::NotAsked { detail: self.detail.clone() })
    }
}

/// What a server said when it was asked just now.
#[derive(Debug)]
pub(crate) struct ServerReport<'a> {
    pub(crate) server: &'a Server,
    /// What is pinned of its tools, with what it said now; why it could not be asked.
    pub(crate) pins: Result<Pins, String>,
    /// What people are told of it beside that.
    pub(crate) notes: Vec<String>,
}

/// Asks every server what tools it has, all at once, and takes note of what is new.
pub(crate) async fn survey<'a>(
    paths: &Paths,
    config: &'a Config,
    servers: &Servers,
    backends: &Backends,
    content: Option<ServerContent<'_>>,
) -> Outcome<Vec<ServerReport<'a>>> {
    let asking = config.tools.values().filter_map(|server| {
        let port = Arc::clone(&servers.get(&server.name)?.port);
        Some(async move { (server, listed(server, &*port, config, backends, content).await) })
    });
    let mut surveys = Vec::new();
    for (server, listed) in futures_util::future::join_all(asking).await {
        let mut notes = Vec::new();
        let pins = match listed {
            Ok(listed) => {
                let (pins, heard) = pins::take(paths, server, &listed.tools)?;
                notes.extend(new_there(server, &pins, heard));
                notes.extend(left_out(server, listed.left_out));
                Ok(pins)
            }
            Err(Fault::NotAsked { detail } | Fault::MayHaveHappened { detail }) => Err(detail),
            Err(Fault::Changed { .. }) => Err("it was not asked".to_owned()),
        };
        surveys.push(ServerReport { server, pins, notes });
    }
    Ok(surveys)
}

fn new_there(server: &Server, pins: &Pins, heard: Heard) -> Option<String> {
    let (name, address) = (&server.name, server.address());
    let tools = show::count(pins.tools.len() as u64, "tool");
    let text = format!(
        "`{name}` is heard for the first time at {address}: what it says of {tools} is trusted from now on; see outrigger tools show {name} TOOL"
    );
    (heard == Heard::FirstTime).then_some(text)
}

fn left_out(server: &Server, number: usize) -> Option<String> {
    let (name, tools) = (&server.name, show::count(number as u64, "tool"));
    let text = format!(
        "`{name}` has {tools} whose name is not 1 to 128 characters of A-Z a-z 0-9 _ - . and that is left out"
    );
    (number > 0).then_some(text)
}

/// A program is begun in a sandbox like its own, which is gone again afterwards.
async fn listed(
    server: &Server,
    port: &dyn Outside,
    config: &Config,
    backends: &Backends,
    content: Option<ServerContent<'_>>,
) -> Result<ToolListing, Fault> {
    let Some(name) = server.sandbox() else { return port.list(None).await };
    let detail = |detail: String| Fault::NotAsked { detail };
    let sandbox = config.sandboxes.iter().find(|sandbox| sandbox.name == name);
    let found = sandbox.and_then(|it| Some((it, backends.get(it.backend)?)));
    let (sandbox, backend) = found.ok_or_else(|| detail(format!("no sandbox is `{name}`")))?;
    // A name that was never used: what another program said must not be heard again.
    let id = SandboxId::new(format!("tools-{}-{}", server.name, Uuid::new_v4().simple()));
    let id = id.map_err(|error| detail(error.to_string()))?;
    let mut spec = sandbox.spec.clone();
    let age_ms_max = spec.lifetime.age_ms_max.unwrap_or(u64::MAX);
    spec.lifetime.age_ms_max = Some(age_ms_max.min(limits::LIST_SANDBOX_MS_MAX));
    // What a repository names may be a program of the repository.
    let content = content.filter(|_| server.of_directory.is_some());
    if let Some(template) = content.and_then(|content| content.template) {
        spec.origin = DiskOrigin::Template(template.to_owned());
    }
    let listed = match backend.create(&id, &spec).await {
        Ok(made) => match filled(content, &id, &*made).await {
            Ok(()) => port.list(Some(&made)).await,
            Err(why) => Err(detail(why)),
        },
        Err(error) => Err(detail(error.to_string())),
    };
    // One that stays is found by nobody: its own age ends it.
    match backend.destroy(&id).await {
        Ok(()) => listed,
        Err(error) => listed.and(Err(detail(error.to_string()))),
    }
}

async fn filled(
    content: Option<ServerContent<'_>>,
    id: &SandboxId,
    sandbox: &dyn Sandbox,
) -> Result<(), String> {
    let Some(content) = content else { return Ok(()) };
    let imported = workspace::import(content.blobs, content.workspace, id.as_str(), sandbox).await;
    imported.map(drop).map_err(|error| error.to_string())
}

/// The tools that a session has of servers outside, and what a person is told of others.
pub(crate) fn offered(surveys: &[ServerReport<'_>]) -> (Vec<ToolSpec>, Vec<(Tone, String)>) {
    let (mut specs, mut notes) = (Vec::<ToolSpec>::new(), Vec::new());
    let mut note = |text: String| notes.push((Tone::Warning, format!("! {text}")));
    for ServerReport { server, pins, notes } in surveys {
        let name = &server.name;
        notes.iter().for_each(|text| note(text.clone()));
        let pins = match pins {
            Ok(pins) => pins,
            Err(detail) => {
                note(format!("no tools of `{name}`: {detail}"));
                continue;
            }
        };
        for tool in server.allow.iter().flatten().filter(|tool| !pins.has(tool)) {
            note(format!("`{name}` has no tool `{tool}`, which its `allow` names"));
        }
        for (tool, pin) in pins.allowed(server) {
            match offer(server, tool, pin) {
                Ok(spec) if specs.iter().any(|known| known.name == spec.name) => {
                    note(format!(
                        "`{name}` has two tools that a model would call `{}`; `{tool}` is left out",
                        spec.name
                    ));
                }
                Ok(spec) => {
                    if pin.changed(tool).is_some() {
                        note(format!(
                            "`{name}` describes `{tool}` otherwise than when it was trusted, so each call asks: outrigger tools show {name} {}",
                            word(tool)
                        ));
                    }
                    specs.push(spec);
                }
                Err(why) => note(format!("`{name}`: `{tool}` is left out: {why}")),
            }
        }
    }
    (specs, notes)
}

fn offer(server: &Server, tool: &str, pin: &Pin) -> Result<ToolSpec, String> {
    let Some(trusted) = &pin.trusted else {
        let name = &server.name;
        let tool = word(tool);
        return Err(format!("it is new there; outrigger tools show {name} {tool}, then trust it"));
    };
    let declared = if server.read_only.contains(tool) {
        DeclaredEffect::ReadOnly
    } else if server.idempotent.contains(tool) {
        DeclaredEffect::Idempotent
    } else {
        DeclaredEffect::Acts
    };
    let concurrency = if server.concurrent { Concurrency::Shared } else { Concurrency::Exclusive };
    let described = trusted.described(tool);
    let changed = pin.changed(tool);
    let offer = Offer {
        server: &server.name,
        described: &described,
        changed: changed.as_ref(),
        declared,
        concurrency,
        sandbox: server.sandbox(),
        timeout_ms: server.timeout_ms,
    };
    offer.spec().map_err(|why| why.to_string())
}
