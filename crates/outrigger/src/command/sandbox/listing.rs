//! Lists, for people and for programs.

use outrigger_engine::SandboxOwner;
use outrigger_sandbox::SandboxId;
use serde_json::json;

use super::context::SandboxContext;
use crate::exit::Outcome;
use crate::flags::Output;
use crate::sandbox::failed;
use crate::show::{self, Screen, Tone};

/// Which sandboxes are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Those that a person made.
    Own,
    /// Those of sessions as well.
    All,
}

/// Whose a sandbox is, if it is a session's.
fn owner(id: &SandboxId) -> Option<String> {
    Some(match SandboxOwner::of(id)? {
        SandboxOwner::Session { session, .. } => format!("session {session}"),
        SandboxOwner::Assistant { assistant, .. } => format!("assistant {assistant}"),
    })
}

/// The sandboxes.
pub(super) async fn sandboxes(
    sandboxes: &SandboxContext,
    which: Which,
    output: Output,
) -> Outcome<u8> {
    let mut all = sandboxes.listed().await?;
    let found = all.len();
    all.retain(|listed| which == Which::All || owner(&listed.id).is_none());
    let hidden = (found - all.len()) as u64;
    if output.json.is_some() {
        show::line(&json!({ "type": "sandboxes", "sandboxes": all }))?;
        return Ok(0);
    }
    let width = all.iter().map(|listed| listed.id.as_str().len()).max().unwrap_or(0);
    for listed in &all {
        let (id, state) = (listed.id.as_str(), listed.state.to_string());
        let (made, used) = (show::when(listed.made_at_ms), show::when(listed.used_at_ms));
        let owner = owner(&listed.id).map_or_else(String::new, |owner| format!("  of {owner}"));
        show::row(&format!("{id:width$}  {state:<8}  made {made}  used {used}{owner}"))?;
    }
    let screen = Screen::new(output);
    if hidden > 0 {
        let plural = if hidden == 1 { "" } else { "es" };
        let text = format!("{hidden} more sandbox{plural} of sessions: --all lists them");
        screen.note(Tone::Detail, text);
    } else if all.is_empty() {
        screen.note(Tone::Detail, "no sandboxes");
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
