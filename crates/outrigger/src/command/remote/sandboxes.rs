//! `outrigger sandbox` at a server: a person's sandboxes there.
//!
//! The server names them; what a person calls one is its label, and as good as its name as long as
//! one of theirs alone is called so.

use outrigger_api::{
    CreateSandbox, ForkSandbox, SandboxInfo, SandboxLimits, SetNetwork, SnapshotInfo, SuspendDepth,
    SuspendSandbox, TakeSnapshot, TemplateList,
};
use outrigger_client::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use uuid::Uuid;

use super::connection::{Remote, not_there};
use super::sandbox_names::{
    address, sandbox, sandbox_lines, snapshot, snapshot_lines, snapshot_object,
};
use super::{sandbox_exec, sandbox_shell};
use crate::command::sandbox::context::removed;
use crate::command::sandbox::copy;
use crate::command::sandbox::create::Create;
use crate::command::sandbox::listing::{print_sandboxes, print_snapshots};
use crate::command::sandbox::snapshot::{Snapshots, print_kept};
use crate::command::sandbox::templates::Templates;
use crate::command::sandbox::{Sandbox, Sandboxes};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::show::{self, Screen, Tone};

pub(super) async fn execute(remote: &Remote, asked: Sandboxes) -> Outcome<u8> {
    if asked.like.is_some() {
        return Err(not_there("--like"));
    }
    match asked.verb {
        Sandbox::Create(asked) => create(remote, asked).await,
        Sandbox::Ls { output, .. } => print_sandboxes(&sandbox_lines(remote).await?, 0, output),
        Sandbox::Exec(asked) => sandbox_exec::execute(remote, asked).await,
        Sandbox::Suspend { name, frozen, output } => suspend(remote, &name, frozen, output).await,
        Sandbox::Snapshot { name, snapshot, output } => {
            let at = format!("{}/snapshots", address(&sandbox(remote, &name).await?));
            let said = TakeSnapshot { label: snapshot.unwrap_or_default() };
            let kept: SnapshotInfo = once(remote, &at, &said).await?;
            print_kept(&kept.id, &snapshot_object(&kept), output)
        }
        Sandbox::Snapshots(Snapshots::Ls { output }) => {
            print_snapshots(&snapshot_lines(remote).await?, output)
        }
        Sandbox::Snapshots(Snapshots::Rm { names, output }) => {
            // A name that is wrong takes none of the others with it.
            let mut found = Vec::new();
            for name in &names {
                found.push(snapshot(remote, name).await?);
            }
            for found in found {
                remote.client.delete(&format!("/v1/snapshots/{}", found.id)).await?;
            }
            removed(&names, output)
        }
        Sandbox::Fork { name, new, output } => fork(remote, &name, new, output).await,
        Sandbox::Templates(Templates::Ls { output }) => templates(remote, output).await,
        Sandbox::Rm { names, output } => {
            let mut found = Vec::new();
            for name in &names {
                found.push(address(&sandbox(remote, name).await?));
            }
            for address in found {
                remote.client.delete(&address).await?;
            }
            removed(&names, output)
        }
        Sandbox::Shell { name } => sandbox_shell::open(remote, &name).await,
        Sandbox::Cp { from, to, output } => copy::execute(remote, &from, &to, output).await,
        Sandbox::Import { .. }
        | Sandbox::Pull { .. }
        | Sandbox::Templates(Templates::Rm { .. }) => {
            Err(not_there("to make and remove templates"))
        }
    }
}

/// Asks for something to be made, once even if the connection breaks.
async fn once<T: DeserializeOwned>(
    remote: &Remote,
    path: &str,
    said: &impl Serialize,
) -> Result<T, Error> {
    remote.client.post_once(path, said, &Uuid::new_v4().to_string()).await
}

async fn create(remote: &Remote, asked: Create) -> Outcome<u8> {
    if asked.isolation_min.is_some() {
        return Err(not_there("--isolation-min"));
    }
    let label = asked.name.clone().unwrap_or_default();
    let network = asked.net.words()?;
    if let Some(there) = called(remote, &label).await? {
        if let Some(words) = network {
            let network = words.over(&there.network);
            let at = format!("{}/network", address(&there));
            remote.client.set(&at, &SetNetwork { network }).await?;
        }
        return made(&there, "attached", asked.output);
    }
    let snapshot = match &asked.from {
        Some(from) => Some(snapshot(remote, from).await?.id),
        None => None,
    };
    let limited = limited(&asked);
    let network = network.map(|words| words.all().to_vec());
    let said = CreateSandbox { template: asked.template, snapshot, label, network, ..limited };
    let mut screen = Screen::new(asked.output);
    let making = once(remote, "/v1/sandboxes", &said);
    let info = screen.during("making the sandbox", making).await?;
    made(&info, "made", asked.output)
}

/// What it may take, and how long it lives.
fn limited(asked: &Create) -> CreateSandbox {
    let limits = SandboxLimits {
        memory_mib: asked.memory_mib,
        cpu_millis: asked.cpu_millis,
        pids: asked.pids,
        disk_mib: asked.disk_mib,
    };
    let (idle_seconds, age_seconds) = (asked.idle_seconds, asked.age_seconds);
    CreateSandbox { limits, idle_seconds, age_seconds, ..CreateSandbox::default() }
}

/// The sandbox that is called so already.
async fn called(remote: &Remote, label: &str) -> Outcome<Option<SandboxInfo>> {
    if label.is_empty() {
        return Ok(None);
    }
    match sandbox(remote, label).await {
        Ok(found) => Ok(Some(found)),
        Err(failure) if failure.kind == Kind::NotFound => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn fork(remote: &Remote, name: &str, new: Option<String>, output: Output) -> Outcome<u8> {
    let at = format!("{}/forks", address(&sandbox(remote, name).await?));
    let label = new.unwrap_or_default();
    if called(remote, &label).await?.is_some() {
        let text = format!("there is a sandbox `{label}` already");
        return Err(Failure::new(Kind::Conflict, text).hint("Give another name."));
    }
    let said = ForkSandbox { label, ..ForkSandbox::default() };
    let mut screen = Screen::new(output);
    let info = screen.during("forking the sandbox", once(remote, &at, &said)).await?;
    made(&info, "made", output)
}

fn made(info: &SandboxInfo, began: &str, output: Output) -> Outcome<u8> {
    if output.json.is_some() {
        show::line(&json!({
            "type": "sandbox", "sandbox": info.id, "label": info.label, "began": began,
        }))?;
        return Ok(0);
    }
    if began == "attached" {
        Screen::new(output).note(Tone::Detail, "it was there already");
    }
    show::out(&info.id)?;
    Ok(0)
}

async fn suspend(remote: &Remote, name: &str, frozen: bool, output: Output) -> Outcome<u8> {
    let at = format!("{}/suspend", address(&sandbox(remote, name).await?));
    let how = if frozen { SuspendDepth::Frozen } else { SuspendDepth::Cold };
    remote.client.command(&at, &SuspendSandbox { how }).await?;
    if output.json.is_some() {
        show::line(&json!({ "type": "suspended", "sandbox": name, "state": how }))?;
    }
    Ok(0)
}

async fn templates(remote: &Remote, output: Output) -> Outcome<u8> {
    let TemplateList { data, .. } = remote.client.get("/v1/templates").await?;
    if output.json.is_some() {
        show::line(&json!({ "type": "templates", "templates": data }))?;
        return Ok(0);
    }
    let width = data.iter().map(|template| template.name.len()).max().unwrap_or(0);
    for template in &data {
        show::row(&format!("{:width$}  {}", template.name, show::inert(&template.source)))?;
    }
    Ok(0)
}
