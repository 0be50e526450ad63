//! Lists, for people and for programs.

use outrigger_engine::SandboxOwner;
use outrigger_sandbox::SandboxId;
use serde_json::{Value, json};

use super::context::SandboxContext;
use crate::exit::Outcome;
use crate::flags::Output;
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
    let hidden = found - all.len();
    let lines = all.into_iter().map(|listed| SandboxLine {
        object: json!(listed),
        about: owner(&listed.id).map_or_else(String::new, |owner| format!("of {owner}")),
        state: listed.state.to_string(),
        made_at_ms: listed.made_at_ms,
        used_at_ms: listed.used_at_ms,
        id: listed.id.as_str().to_owned(),
    });
    print_sandboxes(&lines.collect::<Vec<_>>(), hidden as u64, output)
}

/// A sandbox, as it is listed.
pub(crate) struct SandboxLine {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) made_at_ms: u64,
    pub(crate) used_at_ms: u64,
    /// Whose it is, or what it is for.
    pub(crate) about: String,
    /// What programs are told of it.
    pub(crate) object: Value,
}

/// Lists sandboxes. So many of sessions are left out.
pub(crate) fn print_sandboxes(all: &[SandboxLine], hidden: u64, output: Output) -> Outcome<u8> {
    if output.json.is_some() {
        let all: Vec<_> = all.iter().map(|line| &line.object).collect();
        show::line(&json!({ "type": "sandboxes", "sandboxes": all }))?;
        return Ok(0);
    }
    let width = all.iter().map(|line| line.id.len()).max().unwrap_or(0);
    for SandboxLine { id, state, made_at_ms, used_at_ms, about, .. } in all {
        let (made, used) = (show::when(*made_at_ms), show::when(*used_at_ms));
        let row = format!("{id:width$}  {state:<8}  made {made}  used {used}  {about}");
        show::row(&show::inert(row.trim_end()))?;
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
    let lines = sandboxes.snapshots().await?.into_iter().map(|kept| SnapshotLine {
        object: json!(kept),
        about: show::count(u64::from(kept.layers), "layer"),
        taken_at_ms: kept.taken_at_ms,
        sandbox: kept.sandbox.as_str().to_owned(),
        name: kept.name.as_str().to_owned(),
    });
    print_snapshots(&lines.collect::<Vec<_>>(), output)
}

/// A snapshot, as it is listed.
pub(crate) struct SnapshotLine {
    pub(crate) name: String,
    pub(crate) sandbox: String,
    pub(crate) taken_at_ms: u64,
    /// How much it stands on, or what it is for.
    pub(crate) about: String,
    /// What programs are told of it.
    pub(crate) object: Value,
}

/// Lists snapshots.
pub(crate) fn print_snapshots(all: &[SnapshotLine], output: Output) -> Outcome<u8> {
    if output.json.is_some() {
        let all: Vec<_> = all.iter().map(|line| &line.object).collect();
        show::line(&json!({ "type": "snapshots", "snapshots": all }))?;
        return Ok(0);
    }
    let width = all.iter().map(|line| line.name.len()).max().unwrap_or(0);
    for SnapshotLine { name, sandbox, taken_at_ms, about, .. } in all {
        let row = format!("{name:width$}  {}  of {sandbox}  {about}", show::when(*taken_at_ms));
        show::row(&show::inert(row.trim_end()))?;
    }
    if all.is_empty() {
        Screen::new(output).note(Tone::Detail, "no snapshots");
    }
    Ok(0)
}
