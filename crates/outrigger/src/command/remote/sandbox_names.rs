//! Sandboxes and snapshots of a server: found by what a person calls them, and as they are listed.

use outrigger_api::{SandboxInfo, SandboxList, ServerInfo, SnapshotInfo, SnapshotList};
use serde_json::{Value, json};

use super::connection::Remote;
use crate::command::sandbox::listing::{SandboxLine, SnapshotLine};
use crate::exit::{Failure, Kind, Outcome};

/// Where a sandbox is asked about.
pub(super) fn address(info: &SandboxInfo) -> String {
    format!("/v1/sandboxes/{}", info.id)
}

/// The sandbox of that name, or theirs that is called so: what others call theirs is no name here.
pub(super) async fn sandbox(remote: &Remote, name: &str) -> Outcome<SandboxInfo> {
    let SandboxList { data } = remote.client.get("/v1/sandboxes").await?;
    let of_name = data.iter().find(|it| it.id == name);
    let called = data.iter().filter(|it| it.label == name && it.may_drive).collect();
    one("sandbox", name, of_name, called).cloned()
}

/// The snapshot of that name, or theirs that is called so.
pub(super) async fn snapshot(remote: &Remote, name: &str) -> Outcome<SnapshotInfo> {
    let ServerInfo { person, .. } = remote.client.get("/v1/server").await?;
    let SnapshotList { data } = remote.client.get("/v1/snapshots").await?;
    let of_name = data.iter().find(|it| it.id == name);
    let called = data.iter().filter(|it| it.label == name && it.person == person).collect();
    one("snapshot", name, of_name, called).cloned()
}

fn one<'a, T>(
    what: &str,
    name: &str,
    of_name: Option<&'a T>,
    called: Vec<&'a T>,
) -> Outcome<&'a T> {
    let (kind, text) = match (of_name, called.as_slice()) {
        (Some(found), _) => return Ok(found),
        (None, [found]) => return Ok(*found),
        (None, []) => (Kind::NotFound, format!("there is no {what} `{name}`")),
        (None, several) => (Kind::Usage, format!("{} of yours are called `{name}`", several.len())),
    };
    let ls = if what == "sandbox" { "ls" } else { "snapshots ls" };
    Err(Failure::new(kind, text)
        .hint(format!("`outrigger sandbox {ls}` lists them, by the names that the server gave.")))
}

/// The sandboxes that a person sees, as they are listed.
pub(super) async fn sandbox_lines(remote: &Remote) -> Outcome<Vec<SandboxLine>> {
    let SandboxList { data } = remote.client.get("/v1/sandboxes").await?;
    Ok(data.into_iter().map(sandbox_line).collect())
}

fn sandbox_line(info: SandboxInfo) -> SandboxLine {
    let state = serde_json::to_value(info.state).unwrap_or_default();
    let origin = match &info.snapshot {
        Some(snapshot) => json!({ "snapshot": snapshot }),
        None => json!({ "template": info.template }),
    };
    SandboxLine {
        object: json!({
            "id": info.id, "state": state, "origin": origin, "made_at_ms": info.created_ms,
            "used_at_ms": info.used_ms, "label": info.label, "person": info.person,
        }),
        state: state.as_str().unwrap_or_default().to_owned(),
        made_at_ms: info.created_ms,
        used_at_ms: info.used_ms,
        about: about(info.label, (!info.may_drive).then_some(info.person)),
        id: info.id,
    }
}

/// What it is called, and whose it is where it is somebody else's.
fn about(label: String, person: Option<String>) -> String {
    let of = person.map(|person| format!("of {person}"));
    let words: Vec<String> = of.into_iter().chain([label]).filter(|it| !it.is_empty()).collect();
    words.join("  ")
}

/// The snapshots that a person sees, as they are listed.
pub(super) async fn snapshot_lines(remote: &Remote) -> Outcome<Vec<SnapshotLine>> {
    let SnapshotList { data } = remote.client.get("/v1/snapshots").await?;
    let line = |info: SnapshotInfo| SnapshotLine {
        object: snapshot_object(&info),
        name: info.id,
        sandbox: info.sandbox,
        taken_at_ms: info.taken_ms,
        about: info.label,
    };
    Ok(data.into_iter().map(line).collect())
}

pub(super) fn snapshot_object(info: &SnapshotInfo) -> Value {
    json!({
        "name": info.id, "sandbox": info.sandbox, "taken_at_ms": info.taken_ms,
        "label": info.label, "person": info.person,
    })
}
