//! `outrigger sandbox create | fork`: a sandbox is made.

use clap::{Args, value_parser};
use outrigger_engine::SandboxOwner;
use outrigger_sandbox::{CreateOutcome, CreateSpec, DiskOrigin, Sandbox, SandboxId};
use serde_json::json;

use super::context::{SandboxContext, fresh, sandbox_id, snapshot_id};
use super::network;
use crate::config::Least;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::{Net, Output};
use crate::sandbox::failed;
use crate::show::{self, Screen, Tone};

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// What it is called; otherwise a name is made up.
    pub(crate) name: Option<String>,
    /// The root filesystem.
    #[arg(long, value_name = "NAME", conflicts_with = "from")]
    pub(crate) template: Option<String>,
    /// Begin with the disk of a snapshot.
    #[arg(long, value_name = "SNAPSHOT")]
    pub(crate) from: Option<String>,
    /// Memory of all processes together.
    #[arg(long, value_name = "MIB", value_parser = value_parser!(u64).range(16..=16_777_216), help_heading = "Limits")]
    pub(crate) memory_mib: Option<u64>,
    /// Processes and threads at once.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(8..=4_194_304), help_heading = "Limits")]
    pub(crate) pids: Option<u32>,
    /// Processor time, in thousandths of a core.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(10..=1_024_000), help_heading = "Limits")]
    pub(crate) cpu_millis: Option<u32>,
    /// What its disk may hold.
    #[arg(long, value_name = "MIB", value_parser = value_parser!(u64).range(1..=1_073_741_824), help_heading = "Limits")]
    pub(crate) disk_mib: Option<u64>,
    /// The least isolation that is accepted.
    #[arg(long, value_enum, value_name = "CLASS", help_heading = "Limits")]
    pub(crate) isolation_min: Option<Least>,
    /// Suspend it when it was not used for so long.
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=315_360_000), help_heading = "Lifetime")]
    pub(crate) idle_seconds: Option<u64>,
    /// Destroy it so long after it was made, whatever runs in it.
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=315_360_000), help_heading = "Lifetime")]
    pub(crate) age_seconds: Option<u64>,
    #[command(flatten)]
    pub(crate) net: Net,
    #[command(flatten)]
    pub(crate) output: Output,
}

pub(super) async fn create(sandboxes: &SandboxContext, asked: Create) -> Outcome<u8> {
    let id = sandbox_id(&asked.name.clone().unwrap_or_else(|| fresh("sandbox")))?;
    not_a_sessions(sandboxes, &id).await?;
    let spec = spec(sandboxes, &asked)?;
    if let Some(words) = network::asked_for(sandboxes, &id, &asked.net).await? {
        network::set(sandboxes, &id, &words).await?;
    }
    let mut screen = Screen::new(asked.output);
    let making = sandboxes.backend.create(&id, &spec);
    let sandbox = screen.during("making the sandbox", making).await;
    made(sandboxes, &*sandbox.map_err(|error| failed(&error))?, asked.output)
}

pub(super) async fn fork(
    sandboxes: &SandboxContext,
    name: &str,
    new: Option<String>,
    output: Output,
) -> Outcome<u8> {
    let new = sandbox_id(&new.unwrap_or_else(|| fresh("sandbox")))?;
    not_a_sessions(sandboxes, &new).await?;
    if sandboxes.is_there(&new).await? {
        let text = format!("there is a sandbox `{new}` already");
        return Err(Failure::new(Kind::Conflict, text).hint("Give another name."));
    }
    let mut screen = Screen::new(output);
    let (from, kept) = (sandbox_id(name)?, snapshot_id(fresh("snapshot"))?);
    network::set(sandboxes, &new, &network::reachable(sandboxes, &from)?).await?;
    let forking = sandboxes.fork(&from, &kept, &new, sandboxes.spec.clone());
    let made = screen.during("forking the sandbox", forking).await;
    let made = made.map_err(|error| failed(&error))?;
    self::made(sandboxes, &*made, output)
}

/// What a session's sandbox would be called is deleted when no session names it.
async fn not_a_sessions(sandboxes: &SandboxContext, id: &SandboxId) -> Outcome {
    if SandboxOwner::of(id).is_none() || sandboxes.is_there(id).await? {
        return Ok(());
    }
    let text = format!("`{id}` is a name for the sandbox of a session");
    Err(Failure::new(Kind::Usage, text).hint("Give a name without a dot."))
}

fn made(sandboxes: &SandboxContext, sandbox: &dyn Sandbox, output: Output) -> Outcome<u8> {
    let id = sandbox.id();
    if output.json.is_some() {
        let capabilities = sandboxes.backend.capabilities();
        show::line(&json!({
            "type": "sandbox",
            "sandbox": id.as_str(),
            "generation": sandbox.generation().as_str(),
            "began": sandbox.outcome(),
            "backend": capabilities.backend,
            "isolation": capabilities.isolation,
        }))?;
        return Ok(0);
    }
    let screen = Screen::new(output);
    match sandbox.outcome() {
        CreateOutcome::Made => {}
        CreateOutcome::Attached => {
            screen.note(Tone::Detail, "it was there already, and stays as it was made")
        }
        CreateOutcome::Resumed => screen.note(Tone::Detail, "it was suspended, and is resumed"),
        CreateOutcome::Restarted => {
            let text = "it had died: files are as they were left, processes are gone";
            screen.note(Tone::Warning, text);
        }
    }
    show::out(id.as_str())?;
    Ok(0)
}

/// What the configuration says, and the command line above it.
fn spec(sandboxes: &SandboxContext, asked: &Create) -> Outcome<CreateSpec> {
    let mut spec = sandboxes.spec.clone();
    if let Some(snapshot) = &asked.from {
        spec.origin = DiskOrigin::Snapshot(snapshot_id(snapshot.clone())?);
    }
    if let Some(template) = &asked.template {
        spec.origin = DiskOrigin::Template(template.clone());
    }
    let mib = |mib: Option<u64>, own: u64| mib.map_or(own, |mib| mib << 20);
    spec.memory_bytes_max = mib(asked.memory_mib, spec.memory_bytes_max);
    spec.disk_bytes_max = mib(asked.disk_mib, spec.disk_bytes_max);
    spec.pids_max = asked.pids.unwrap_or(spec.pids_max);
    spec.cpu_millis_max = asked.cpu_millis.unwrap_or(spec.cpu_millis_max);
    if let Some(least) = asked.isolation_min {
        spec.isolation_min = least.into();
    }
    let ms = |seconds: u64| seconds * 1_000;
    spec.lifetime.idle_ms_max = asked.idle_seconds.map(ms).or(spec.lifetime.idle_ms_max);
    spec.lifetime.age_ms_max = asked.age_seconds.map(ms).or(spec.lifetime.age_ms_max);
    Ok(spec)
}
