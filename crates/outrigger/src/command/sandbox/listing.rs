//! Lists, for people and for programs.

use serde_json::json;

use super::context::{SandboxContext, failed};
use crate::exit::Outcome;
use crate::flags::Output;
use crate::show::{self, Screen, Tone};

/// All sandboxes.
pub(super) async fn sandboxes(sandboxes: &SandboxContext, output: Output) -> Outcome<u8> {
    let all = sandboxes.listed().await?;
    if output.json.is_some() {
        show::line(&json!({ "type": "sandboxes", "sandboxes": all }))?;
        return Ok(0);
    }
    let width = all.iter().map(|listed| listed.id.as_str().len()).max().unwrap_or(0);
    for listed in &all {
        let (id, state) = (listed.id.as_str(), listed.state.to_string());
        let (made, used) = (show::when(listed.made_at_ms), show::when(listed.used_at_ms));
        show::row(&format!("{id:width$}  {state:<8}  made {made}  used {used}"))?;
    }
    if all.is_empty() {
        Screen::new(output).note(Tone::Detail, "no sandboxes");
    }
    Ok(0)
}

/// All snapshots.
pub(super) async fn snapshots(sandboxes: &SandboxContext, output: Output) -> Outcome<u8> {
    let snapshots = sandboxes.backend.snapshots().map_err(|error| failed(&error))?;
    let all = snapshots.list().await.map_err(|error| failed(&error))?;
    if output.json.is_some() {
        show::line(&json!({ "type": "snapshots", "snapshots": all }))?;
        return Ok(0);
    }
    let width = all.iter().map(|kept| kept.name.as_str().len()).max().unwrap_or(0);
    for kept in &all {
        let (name, of, when) = (kept.name.as_str(), &kept.sandbox, show::when(kept.taken_at_ms));
        show::row(&format!(
            "{name:width$}  {when}  of {of}  {}",
            show::count(u64::from(kept.layers), "layer")
        ))?;
    }
    if all.is_empty() {
        Screen::new(output).note(Tone::Detail, "no snapshots");
    }
    Ok(0)
}
