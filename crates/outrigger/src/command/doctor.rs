//! `outrigger doctor`: what this machine offers, what is missing, and what fixes it.

use clap::Args;
use outrigger_repository::WorkTree;
use outrigger_repository::toolchain::{Toolchains, toolchains};
use outrigger_sandbox::{Backend, Capabilities, Layer};
use serde_json::json;
use std::path::PathBuf;

use super::gc;
use crate::config::{BackendName, Config};
use crate::exit::Outcome;
use crate::flags::{Limits, Model, Output};
use crate::paths::Paths;
use crate::sandbox::no_sandbox;
use crate::show::amounts::size;
use crate::show::{self, Screen, Tone, inert};
use crate::{compose, models, network, project, shell, workspace};

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) model: Model,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Exits with 13 if no sandbox can be made here, and with 15 if nothing can be kept.
/// That no model is chosen is told, but is no error: the demo needs none.
pub(crate) async fn execute(paths: &Paths, doctor: Doctor) -> Outcome<u8> {
    let config = Config::load(paths.configs(), &doctor.model, Limits::default())?;
    let screen = Screen::on_stdout(doctor.output);
    let capabilities = outrigger_sandbox_native::probe(&paths.sandboxes());
    let docker = compose::docker(paths, &config).await;
    let store = compose::store(paths).await;
    let space = match &store {
        Ok(store) => Some(space(paths, &config, store).await?),
        Err(_) => None,
    };
    let tools = ToolReport::make(&config);
    let mirrors = network::mirrors();
    let model = match models::choose(paths, &config.model).await {
        Ok(choice) => models::open(paths, &choice).await,
        Err(failure) => Err(failure),
    };
    if screen.is_json() {
        show::line(&json!({
            "type": "doctor",
            "sandbox": match &capabilities {
                Ok(found) => json!({ "ok": true, "capabilities": found }),
                Err(error) => json!({ "ok": false, "error": error.to_string() }),
            },
            "docker": match &docker {
                Ok(found) => json!({ "ok": true, "capabilities": found.capabilities() }),
                Err(failure) => json!({ "ok": false, "error": failure.message }),
            },
            "store": { "ok": store.is_ok(), "dir": paths.data().display().to_string() },
            "space": space.as_ref().map(object),
            "tools": tools.object(),
            "network": network_object(&config, &mirrors),
            "model": match &model {
                Ok(opened) => json!({ "ok": true, "spec": opened.spec }),
                Err(failure) => json!({ "ok": false, "error": failure.message }),
            },
            "configs": paths.configs().iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        }))?;
    }
    screen.note(Tone::Strong, "Sandbox");
    match &capabilities {
        Ok(found) => sandbox(&screen, found, (&config, BackendName::Native)),
        Err(error) => screen.note(Tone::Error, format!("  ✗ {error}")),
    }
    screen.note(Tone::Strong, "Docker");
    match &docker {
        Ok(found) => sandbox(&screen, found.capabilities(), (&config, BackendName::Docker)),
        // Nobody needs it who did not ask for it.
        Err(failure) => screen.note(Tone::Detail, format!("  – {}", inert(&failure.message))),
    }
    screen.note(Tone::Strong, "Store");
    match &store {
        Ok(_) => screen.note(Tone::Good, format!("  ✓ {}", paths.data().display())),
        Err(failure) => screen.note(Tone::Error, format!("  ✗ {}", failure.message)),
    }
    if let Some(found) = &space {
        found.tell(&screen);
    }
    tools.tell(&screen);
    tell_network(&screen, &config, &mirrors);
    tell_model(&screen, &model);
    screen.note(Tone::Strong, "Configuration");
    match paths.configs() {
        [] => screen.note(Tone::Detail, "  – no file; the defaults hold"),
        files => {
            files.iter().for_each(|file| screen.note(Tone::Good, format!("  ✓ {}", file.display())))
        }
    }
    capabilities.map_err(|error| no_sandbox(&error))?;
    store?;
    Ok(0)
}

/// The tools that a session in this directory would be shown.
struct ToolReport(Option<Toolchains>);

impl ToolReport {
    fn make(config: &Config) -> Self {
        let wanted = config.sandboxes.first().is_some_and(|sandbox| sandbox.toolchains);
        let here =
            std::env::current_dir().ok().filter(|_| wanted && project::is_over_host_tools(config));
        let tree =
            |here: PathBuf| workspace::tree(&here).unwrap_or_else(|_| WorkTree::alone(&here));
        Self(here.map(|here| toolchains(&tree(here), &shell::of_person())))
    }

    fn object(&self) -> serde_json::Value {
        let Some(tools) = &self.0 else { return serde_json::Value::Null };
        let found = tools.found.iter().map(|tool| {
            json!({
                "name": tool.name,
                "chosen_by": tool.chosen_by.as_ref().map(|path| path.display().to_string()),
            })
        });
        let texts = |paths: &[PathBuf]| {
            paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        json!({
            "found": found.collect::<Vec<_>>(), "shown": texts(&tools.shown),
            "path": texts(&tools.path), "env": tools.env, "notes": tools.notes,
        })
    }

    fn tell(&self, screen: &Screen) {
        let Some(tools) = &self.0 else { return };
        screen.note(Tone::Strong, "Tools, as a session in this directory is shown them");
        for tool in &tools.found {
            let by = tool.chosen_by.as_ref();
            let by = by.map_or_else(String::new, |path| format!(", as {} says", path.display()));
            screen.note(Tone::Good, format!("  ✓ {}{by}", tool.name));
        }
        for note in &tools.notes {
            screen.note(Tone::Warning, format!("  – {note}"));
        }
        for path in &tools.shown {
            screen.note(Tone::Detail, format!("  read-only: {}", path.display()));
        }
    }
}

/// What is kept here.
struct SpaceReport {
    held: Vec<(&'static str, u64)>,
    sessions: u64,
    memory_bytes: u64,
    freed_bytes: u64,
}

async fn space(paths: &Paths, config: &Config, store: &compose::Store) -> Outcome<SpaceReport> {
    let plan = gc::Plan::make(paths, config, store).await?;
    let (freed_bytes, found) = (plan.bytes(), plan.space);
    let held = gc::held(paths, found)?;
    let (sessions, memory_bytes) = (found.sessions, found.memory_bytes);
    Ok(SpaceReport { held, sessions, memory_bytes, freed_bytes })
}

fn object(kept: &SpaceReport) -> serde_json::Value {
    let held: serde_json::Map<_, _> =
        kept.held.iter().map(|(kind, bytes)| (kind.replace(' ', "_"), json!(bytes))).collect();
    json!({
        "bytes": held, "sessions": kept.sessions, "memory_bytes": kept.memory_bytes,
        "freed_bytes": kept.freed_bytes,
    })
}

impl SpaceReport {
    fn tell(&self, screen: &Screen) {
        screen.note(Tone::Strong, "Space");
        for (kind, bytes) in self.held.iter().filter(|(_, bytes)| *bytes > 0) {
            let more = match *kind {
                "database" => format!(
                    ", with {} and {} of memory",
                    show::count(self.sessions, "session"),
                    size(self.memory_bytes)
                ),
                _ => String::new(),
            };
            screen.note(Tone::Plain, format!("  {kind}: {}{more}", size(*bytes)));
        }
        let freed = size(self.freed_bytes);
        screen.note(Tone::Detail, format!("  `outrigger gc` would free {freed}, and disks that nobody wants; `--dry-run` says what"));
    }
}

fn network_object(config: &Config, mirrors: &network::Mirrors) -> serde_json::Value {
    let reach = config.sandboxes.first().map(|first| first.network.to_string());
    let found = mirrors.found.iter().map(|(whose, url)| json!({ "of": whose, "url": url }));
    let found: Vec<_> = found.collect();
    json!({ "sandbox": reach, "mirrors": found, "withheld": mirrors.withheld })
}

/// What sandboxes may reach by themselves, and what `packages` means here.
fn tell_network(screen: &Screen, config: &Config, mirrors: &network::Mirrors) {
    screen.note(Tone::Strong, "Network");
    let reach = config.sandboxes.first().map_or_else(String::new, |it| it.network.to_string());
    let text = format!("  ✓ commands may reach: {}; --net says otherwise", inert(&reach));
    screen.note(Tone::Good, text);
    let date = outrigger_gate::ready::DATE;
    screen.note(Tone::Detail, format!("  `packages` is a list of registries of {date}"));
    for (whose, url) in &mirrors.found {
        let text = format!("  `packages` also means {}, as {whose} is set up", inert(url));
        screen.note(Tone::Detail, text);
    }
    for whose in &mirrors.withheld {
        let text = format!(
            "  – an address of {whose} has a password in it, and is not given to sandboxes"
        );
        screen.note(Tone::Warning, text);
    }
}

fn tell_model(screen: &Screen, model: &Outcome<models::OpenedModel>) {
    screen.note(Tone::Strong, "Model");
    match model {
        Ok(opened) => {
            let (spec, elsewhere) = (&opened.spec, opened.spec.address.as_deref());
            let at = elsewhere.map_or_else(String::new, |address| format!(" at {address}"));
            let text =
                format!("  ✓ {}, {}{at}; it was not asked", inert(&spec.name), spec.provider);
            screen.note(Tone::Good, text);
        }
        Err(failure) => {
            screen.note(Tone::Warning, format!("  – {}", failure.message));
            let hints = failure.hints.iter();
            hints.for_each(|hint| screen.note(Tone::Detail, format!("    {hint}")));
        }
    }
}

fn sandbox(screen: &Screen, found: &Capabilities, (config, name): (&Config, BackendName)) {
    let (backend, isolation) = (&found.backend, found.isolation);
    screen.note(Tone::Good, format!("  ✓ {backend}, isolation {isolation}"));
    for Layer { name, active, detail } in &found.layers {
        let (tone, mark) = if *active { (Tone::Good, "✓") } else { (Tone::Warning, "–") };
        screen.note(tone, format!("  {mark} {name}: {detail}"));
    }
    let configured = config.sandboxes.iter().filter(|sandbox| sandbox.backend == name);
    for failure in configured.filter_map(|sandbox| compose::isolates(sandbox, found).err()) {
        screen.note(Tone::Error, format!("  ✗ {}", inert(&failure.message)));
    }
}
