//! `outrigger tools`: what servers outside say of their tools, and what of it is trusted.

use clap::Subcommand;
use outrigger_agent::Digest;
use serde_json::{Value, json};

use crate::compose;
use crate::config::{Config, mcp_json};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::outside::{self, Pin, Pins, ServerReport, Text};
use crate::paths::Paths;
use crate::show::{self, Screen, Tone, inert, word};
use crate::{limits, project_servers, workspace};

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// Ask every server that is configured what tools it has, and list them with how they
    /// stand: trusted, changed, new or gone. Those of this directory's `.mcp.json`, if it is
    /// trusted, are listed as the last session heard them.
    Ls {
        #[command(flatten)]
        output: Output,
    },
    /// Show what a server says of a tool, and what it says otherwise than when it was trusted.
    Show {
        /// The server, as the configuration names it.
        server: String,
        /// The tool, as the server names it; all that wait to be trusted, if none is named.
        tool: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Trust what a server says of a tool now: sessions that are opened from then on have it so.
    Trust {
        /// The server, as the configuration names it.
        server: String,
        /// The tool, as the server names it.
        tool: String,
        /// What `outrigger tools show` said that was looked at: if the server said something
        /// else since, nothing is trusted.
        #[arg(long, value_name = "SEEN")]
        seen: String,
        #[command(flatten)]
        output: Output,
    },
}

impl Tools {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Ls { output } | Self::Show { output, .. } | Self::Trust { output, .. } => *output,
        }
    }
}

pub(crate) async fn execute(paths: &Paths, asked: Tools) -> Outcome<u8> {
    match asked {
        Tools::Ls { output } => ls(paths, output).await,
        Tools::Show { server, tool, output } => show(paths, &server, tool.as_deref(), output),
        Tools::Trust { server, tool, seen, output } => trust(paths, &server, &tool, &seen, output),
    }
}

async fn ls(paths: &Paths, output: Output) -> Outcome<u8> {
    let config = Config::of_files(paths.configs())?;
    let servers = outside::servers(paths, &config).await?;
    let programs = config.tools.values().any(|server| server.sandbox().is_some());
    let backends = if programs {
        compose::backends(paths, &config, None).await?
    } else {
        compose::Backends::default()
    };
    let mut screen = Screen::new(output);
    let asking = outside::survey(paths, &config, &servers, &backends, None);
    let mut surveys = screen.during("asking servers for their tools", asking).await?;
    let here = here(paths, &config, &screen)?;
    for server in here.tools.values().filter(|it| it.of_directory.is_some()) {
        let (pins, notes) = (Ok(outside::read(paths, &server.name)?), Vec::new());
        surveys.push(ServerReport { server, pins, notes });
    }
    if output.json.is_some() {
        let all: Vec<_> = surveys
            .iter()
            .map(|survey| {
                let name = &survey.server.name;
                let tools = survey.pins.as_ref().map(objects).unwrap_or_default();
                let error = survey.pins.as_ref().err();
                json!({ "server": name, "address": survey.server.address(), "error": error, "notes": survey.notes, "tools": tools })
            })
            .collect();
        show::line(&json!({ "type": "tools", "servers": all }))?;
        return Ok(0);
    }
    for survey in &surveys {
        survey.notes.iter().for_each(|text| screen.note(Tone::Warning, format!("! {text}")));
        let name = &survey.server.name;
        match &survey.pins {
            Err(detail) => show::row(&format!("{name}  not reached: {}", inert(detail)))?,
            Ok(pins) if pins.tools.is_empty() && survey.server.of_directory.is_some() => {
                let file = mcp_json::FILE;
                show::row(&format!("{name}  of {file}: asked when a session begins"))?;
            }
            Ok(pins) => {
                for (tool, pin) in &pins.tools {
                    show::row(&format!("{name}  {:<8}  {}", pin.status(), inert(tool)))?;
                }
            }
        }
    }
    if surveys.is_empty() {
        screen.note(Tone::Detail, "no servers are configured: see docs/how-to/outside-tools.md");
    }
    Ok(0)
}

/// The configuration with the servers of this directory, which are asked in sessions alone: they
/// are mostly programs of the directory's own.
fn here(paths: &Paths, config: &Config, screen: &Screen) -> Outcome<Config> {
    let dir = std::env::current_dir().ok();
    match dir.and_then(|dir| workspace::tree(&dir).ok()) {
        Some(tree) => project_servers::added(paths, config, &tree.top, screen),
        None => Ok(config.clone()),
    }
}

fn objects(pins: &Pins) -> Vec<Value> {
    pins.tools.iter().map(|(tool, pin)| object(tool, pin)).collect()
}

fn object(tool: &str, pin: &Pin) -> Value {
    let text = |text: &Option<Text>| {
        text.as_ref().map(|text| {
            let described = text.described(tool);
            let digest = described.digest();
            let inert = described.inert();
            json!({
                "description": inert.description,
                "schema": serde_json::from_str::<Value>(inert.schema.as_str()).ok(),
                "sha256": digest.as_str(),
            })
        })
    };
    json!({
        "tool": tool,
        "status": pin.status(),
        "trusted": text(&pin.trusted),
        "said": text(&pin.said),
        "seen": pin.waiting().map(|text| name(&text.described(tool).digest())),
    })
}

/// By which a person says that this is what they looked at.
fn name(digest: &Digest) -> String {
    digest.as_str().chars().take(limits::SEEN_CHARS).collect()
}

fn show(paths: &Paths, server: &str, tool: Option<&str>, output: Output) -> Outcome<u8> {
    let pins = outside::read(paths, server)?;
    if pins.tools.is_empty() && !Config::of_files(paths.configs())?.tools.contains_key(server) {
        let text = format!("no server `{server}` is configured, and nothing is known of one");
        return Err(Failure::new(Kind::NotFound, text)
            .hint("`outrigger tools ls` asks every server, and lists what each has."));
    }
    let shown: Vec<(&String, &Pin)> = match tool {
        Some(tool) => vec![known(&pins, server, tool)?],
        None => pins.tools.iter().filter(|(_, pin)| pin.waiting().is_some()).collect(),
    };
    if output.json.is_some() {
        let tools: Vec<_> = shown.iter().map(|(tool, pin)| object(tool, pin)).collect();
        show::line(&json!({ "type": "tools", "server": server, "tools": tools }))?;
        return Ok(0);
    }
    let screen = Screen::new(output);
    for (tool, pin) in &shown {
        show::row(&format!("{server}  {:<8}  {}", pin.status(), inert(tool)))?;
        let before = pin.trusted.as_ref().map(|text| text.lines(tool));
        match (pin.waiting(), &before) {
            (None, before) => show::out(before.as_deref().unwrap_or_default().trim_end())?,
            (Some(now), before) => {
                let (now_lines, path) = (now.lines(tool), format!("{server}/{}", inert(tool)));
                let before = before.as_ref().map(|text| text.as_bytes());
                let diff = outrigger_repository::one_file(&path, before, now_lines.as_bytes());
                screen.whole_diff(&String::from_utf8_lossy(&diff));
                let seen = name(&now.described(tool).digest());
                let answer = format!("outrigger tools trust {server} {} --seen {seen}", word(tool));
                screen.note(Tone::Detail, format!("trust it: {answer}"));
            }
        }
    }
    if shown.is_empty() {
        screen.note(Tone::Detail, "nothing waits to be trusted");
    }
    Ok(0)
}

fn known<'a>(pins: &'a Pins, server: &str, tool: &str) -> Outcome<(&'a String, &'a Pin)> {
    pins.tools.get_key_value(tool).ok_or_else(|| {
        let text = format!("nothing is known of a tool `{tool}` of a server `{server}`");
        Failure::new(Kind::NotFound, text)
            .hint("`outrigger tools ls` asks every server, and lists what each has.")
    })
}

fn trust(paths: &Paths, server: &str, tool: &str, seen: &str, output: Output) -> Outcome<u8> {
    outside::change(paths, server, |pins| {
        let (_, pin) = known(pins, server, tool)?;
        let waiting = pin.waiting().map(|text| name(&text.described(tool).digest()));
        if waiting.as_deref() != Some(seen) {
            let said =
                "what the server says of it is not what was looked at, or is trusted already";
            return Err(Failure::new(Kind::Conflict, said).hint(format!(
                "`outrigger tools show {server} {}` shows it as it is.",
                word(tool)
            )));
        }
        if let Some(pin) = pins.tools.get_mut(tool) {
            pin.trust();
        }
        Ok(())
    })?;
    Screen::new(output).note(Tone::Good, format!("● trusted: {server} {tool}"));
    if output.json.is_some() {
        show::line(&json!({ "type": "trusted", "server": server, "tool": tool }))?;
    }
    Ok(0)
}
