//! `outrigger doctor`: what this machine offers, what is missing, and what fixes it.

use outrigger_sandbox::{Capabilities, Layer};
use serde_json::json;

use crate::cli::Output;
use crate::compose;
use crate::config::Config;
use crate::exit::Outcome;
use crate::paths::Paths;
use crate::show::{self, Screen, Tone};

/// Exits with 13 if no sandbox can be made here, and with 15 if nothing can be kept.
pub(crate) async fn execute(paths: &Paths, output: Output) -> Outcome<u8> {
    let config = Config::load(paths.configs())?;
    let screen = Screen::new(output);
    let capabilities = outrigger_sandbox_native::probe();
    let store = compose::store(paths).await;
    let keys: Vec<&str> = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"]
        .into_iter()
        .filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
        .collect();
    if output.json.is_some() {
        show::line(&json!({
            "type": "doctor",
            "sandbox": match &capabilities {
                Ok(found) => json!({ "ok": true, "capabilities": found }),
                Err(error) => json!({ "ok": false, "error": error.to_string() }),
            },
            "store": { "ok": store.is_ok(), "dir": paths.data().display().to_string() },
            "configs": paths.configs().iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
            "keys": keys,
        }));
    }
    screen.note(Tone::Strong, "Sandbox");
    match &capabilities {
        Ok(found) => sandbox(&screen, found),
        Err(error) => screen.note(Tone::Error, format!("  ✗ {error}")),
    }
    screen.note(Tone::Strong, "Store");
    match &store {
        Ok(_) => screen.note(Tone::Good, format!("  ✓ {}", paths.data().display())),
        Err(failure) => screen.note(Tone::Error, format!("  ✗ {}", failure.message)),
    }
    screen.note(Tone::Strong, "Model");
    match keys.as_slice() {
        [] => screen.note(
            Tone::Warning,
            "  – no key in ANTHROPIC_API_KEY or OPENAI_API_KEY; `outrigger demo` needs none",
        ),
        found => screen.note(Tone::Good, format!("  ✓ a key in {}", found.join(", "))),
    }
    screen.note(Tone::Strong, "Configuration");
    match paths.configs() {
        [] => screen.note(Tone::Detail, "  – none; the defaults hold"),
        files => files
            .iter()
            .for_each(|file| screen.note(Tone::Good, format!("  ✓ {}", file.display()))),
    }
    drop(config);
    capabilities.map_err(|error| compose::no_sandbox(&error))?;
    store?;
    Ok(0)
}

fn sandbox(screen: &Screen, found: &Capabilities) {
    let (backend, isolation) = (&found.backend, found.isolation);
    screen.note(Tone::Good, format!("  ✓ {backend}, isolation {isolation:?}"));
    for Layer { name, active, detail } in &found.layers {
        let (tone, mark) = if *active { (Tone::Good, "✓") } else { (Tone::Warning, "–") };
        screen.note(tone, format!("  {mark} {name}: {detail}"));
    }
}
