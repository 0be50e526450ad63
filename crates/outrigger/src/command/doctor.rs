//! `outrigger doctor`: what this machine offers, what is missing, and what fixes it.

use outrigger_sandbox::{Backend, Capabilities, Layer};
use serde_json::json;

use crate::config::Config;
use crate::exit::Outcome;
use crate::paths::Paths;
use crate::show::{self, Screen, Tone, inert};
use crate::{cli, compose, models};

/// Exits with 13 if no sandbox can be made here, and with 15 if nothing can be kept.
/// That no model is chosen is told, but is no error: the demo needs none.
pub(crate) async fn execute(paths: &Paths, doctor: cli::Doctor) -> Outcome<u8> {
    let config = Config::load(paths.configs(), &doctor.model, cli::Limits::default())?;
    let screen = Screen::on_stdout(doctor.output);
    let capabilities = outrigger_sandbox_native::probe(&paths.sandboxes(), compose::least(&config));
    let docker = compose::docker(paths, &config, None).await;
    let store = compose::store(paths).await;
    let model = config.model.choice().and_then(|choice| models::open(&choice));
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
            "model": match &model {
                Ok(opened) => json!({ "ok": true, "spec": opened.spec }),
                Err(failure) => json!({ "ok": false, "error": failure.message }),
            },
            "configs": paths.configs().iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        }))?;
    }
    screen.note(Tone::Strong, "Sandbox");
    match &capabilities {
        Ok(found) => sandbox(&screen, found),
        Err(error) => screen.note(Tone::Error, format!("  ✗ {error}")),
    }
    screen.note(Tone::Strong, "Docker");
    match &docker {
        Ok(found) => sandbox(&screen, found.capabilities()),
        // Nobody needs it who did not ask for it.
        Err(failure) => screen.note(Tone::Detail, format!("  – {}", inert(&failure.message))),
    }
    screen.note(Tone::Strong, "Store");
    match &store {
        Ok(_) => screen.note(Tone::Good, format!("  ✓ {}", paths.data().display())),
        Err(failure) => screen.note(Tone::Error, format!("  ✗ {}", failure.message)),
    }
    screen.note(Tone::Strong, "Model");
    match &model {
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
    screen.note(Tone::Strong, "Configuration");
    match paths.configs() {
        [] => screen.note(Tone::Detail, "  – no file; the defaults hold"),
        files => {
            files.iter().for_each(|file| screen.note(Tone::Good, format!("  ✓ {}", file.display())))
        }
    }
    capabilities.map_err(|error| compose::no_sandbox(&error))?;
    store?;
    Ok(0)
}

fn sandbox(screen: &Screen, found: &Capabilities) {
    let (backend, isolation) = (&found.backend, found.isolation);
    screen.note(Tone::Good, format!("  ✓ {backend}, isolation {isolation}"));
    for Layer { name, active, detail } in &found.layers {
        let (tone, mark) = if *active { (Tone::Good, "✓") } else { (Tone::Warning, "–") };
        screen.note(tone, format!("  {mark} {name}: {detail}"));
    }
}
