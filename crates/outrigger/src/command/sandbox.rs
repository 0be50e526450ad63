//! `outrigger sandbox`: sandboxes without an agent.
//!
//! Owns what each verb does, over the port: the same for every backend. What comes
//! out of a sandbox is hostile, and made harmless before a terminal sees it.

mod copy;
mod exec;
mod listing;
mod shell;
mod templates;

use outrigger_engine::Owner;
use outrigger_sandbox::{
    Backend, CreateOutcome, CreateSpec, DiskOrigin, Error, ListedSandbox, Sandbox, SandboxId,
    Snapshot, SnapshotId, Suspend,
};
use outrigger_sandbox_native::{Registry, Transport};
use serde_json::json;
use std::sync::Arc;

use crate::cli::{self, Output};
use crate::compose;
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::show::{self, Screen, Tone};

/// What every verb works on.
struct SandboxCommand {
    backend: Arc<dyn Backend>,
    /// What the configuration says of sandboxes.
    spec: CreateSpec,
}

/// Does what the command line says.
pub(crate) async fn execute(paths: &Paths, asked: cli::Sandboxes) -> Outcome<u8> {
    let config = Config::of_files(paths.configs())?;
    paths.prepare()?;
    // Images become templates of the native backend, whatever the first sandbox is.
    match asked.verb {
        cli::Sandbox::Import { template, file, output } => {
            templates::import(paths, &config, &template, &file, output).await
        }
        cli::Sandbox::Pull { template, image, http, host, output } => {
            let transport = if http { Transport::Http } else { Transport::Https };
            let source = Registry { reference: image, transport, hosts: host };
            templates::pull(paths, &config, &template, &source, output).await
        }
        cli::Sandbox::Templates(cli::Templates::Ls { output }) => {
            templates::ls(paths, &config, output).await
        }
        cli::Sandbox::Templates(cli::Templates::Rm { names, output }) => {
            templates::remove(paths, &config, &names, output).await
        }
        verb => use_sandboxes(paths, config, asked.like.as_deref(), verb).await,
    }
}

async fn use_sandboxes(
    paths: &Paths,
    config: Config,
    like: Option<&str>,
    verb: cli::Sandbox,
) -> Outcome<u8> {
    let sandboxes = sandboxes(paths, config, like).await?;
    match verb {
        cli::Sandbox::Create(create) => sandboxes.create(create).await,
        cli::Sandbox::Ls { output } => listing::sandboxes(&sandboxes, output).await,
        cli::Sandbox::Exec(asked) => exec::execute(&sandboxes, asked).await,
        cli::Sandbox::Shell { name } => shell::open(&sandboxes, &name).await,
        cli::Sandbox::Cp { from, to, output } => {
            copy::execute(&sandboxes, &from, &to, output).await
        }
        cli::Sandbox::Suspend { name, frozen, output } => {
            sandboxes
                .suspend(&name, if frozen { Suspend::Frozen } else { Suspend::Cold }, output)
                .await
        }
        cli::Sandbox::Snapshot { name, snapshot, output } => {
            sandboxes.snapshot(&name, snapshot, output).await
        }
        cli::Sandbox::Snapshots(cli::Snapshots::Ls { output }) => {
            listing::snapshots(&sandboxes, output).await
        }
        cli::Sandbox::Snapshots(cli::Snapshots::Rm { names, output }) => {
            sandboxes.forget(&names, output).await
        }
        cli::Sandbox::Fork { name, new, output } => sandboxes.fork(&name, new, output).await,
        cli::Sandbox::Rm { names, output } => sandboxes.remove(&names, output).await,
        cli::Sandbox::Import { .. } | cli::Sandbox::Pull { .. } | cli::Sandbox::Templates(_) => {
            unreachable!("templates are no sandboxes, and were taken care of before")
        }
    }
}

/// The backend and the limits of a sandbox of the configuration.
async fn sandboxes(
    paths: &Paths,
    mut config: Config,
    like: Option<&str>,
) -> Outcome<SandboxCommand> {
    let wanted = |name: &str| like.is_none_or(|like| like == name);
    config.sandboxes.retain(|sandbox| wanted(&sandbox.name));
    config.sandboxes.truncate(1);
    let Some(sandbox) = config.sandboxes.first() else {
        let text = format!("the configuration has no sandbox `{}`", like.unwrap_or_default());
        return Err(Failure::new(Kind::Usage, text)
            .hint("docs/configuration.md says how sandboxes are configured."));
    };
    let (name, spec) = (sandbox.backend, sandbox.spec.clone());
    let backend = compose::backends(paths, &config, None).await?.remove(&name);
    let backend = backend.expect("the backend of every sandbox of a configuration is opened");
    Ok(SandboxCommand { backend, spec })
}

/// What an error of a sandbox means for the one who typed.
fn failed(error: &Error) -> Failure {
    let kind = match error {
        Error::Invalid(_) | Error::CannotStart { .. } | Error::Unsupported { .. } => Kind::Usage,
        Error::Absent { .. } => Kind::NotFound,
        Error::File(file) => return copy::file_failed(file),
        Error::Busy { .. } | Error::Altered { .. } | Error::Forgotten { .. } => Kind::Conflict,
        Error::Unavailable { .. } => return compose::no_sandbox(error),
        Error::Lost { .. } | Error::Backend(_) => Kind::SandboxUnavailable,
    };
    let failure = Failure::from_error(kind, error);
    match error {
        Error::Busy { .. } => failure.hint("Wait for the command, or end it."),
        Error::Altered { .. } => failure.hint(
            "Nothing was started over it. `outrigger sandbox rm` deletes it; `create --from` makes one of a snapshot.",
        ),
        _ => failure,
    }
}

/// A made-up name, which nobody else made up.
fn fresh(prefix: &str) -> String {
    let name = uuid::Uuid::new_v4().simple().to_string();
    format!("{prefix}-{}", &name[..12])
}

fn sandbox_id(name: &str) -> Outcome<SandboxId> {
    SandboxId::new(name).map_err(|error| Failure::from_error(Kind::Usage, &error))
}

fn snapshot_id(name: String) -> Outcome<SnapshotId> {
    SnapshotId::new(name).map_err(|error| Failure::from_error(Kind::Usage, &error))
}

impl SandboxCommand {
    async fn listed(&self) -> Outcome<Vec<ListedSandbox>> {
        self.backend.list().await.map_err(|error| failed(&error))
    }

    /// The sandbox of that name, resumed or restarted if need be. Makes none.
    async fn existing(&self, name: &str) -> Outcome<Arc<dyn Sandbox>> {
        let id = sandbox_id(name)?;
        if !self.listed().await?.iter().any(|listed| listed.id == id) {
            return Err(Failure::new(Kind::NotFound, format!("there is no sandbox `{name}`"))
                .hint("`outrigger sandbox ls` lists the sandboxes."));
        }
        self.backend.create(&id, &self.spec).await.map_err(|error| failed(&error))
    }

    async fn create(&self, asked: cli::Create) -> Outcome<u8> {
        let id = sandbox_id(&asked.name.clone().unwrap_or_else(|| fresh("sandbox")))?;
        self.not_a_sessions(&id).await?;
        let spec = self.spec(&asked)?;
        let mut screen = Screen::new(asked.output);
        let making = self.backend.create(&id, &spec);
        let sandbox = screen.during("making the sandbox", making).await;
        self.made(&*sandbox.map_err(|error| failed(&error))?, asked.output)
    }

    /// What a session's sandbox would be called is deleted when no session names it.
    async fn not_a_sessions(&self, id: &SandboxId) -> Outcome {
        if Owner::of(id).is_none() || self.listed().await?.iter().any(|listed| listed.id == *id) {
            return Ok(());
        }
        let text = format!("`{id}` is a name for the sandbox of a session");
        Err(Failure::new(Kind::Usage, text).hint("Give a name without a dot."))
    }

    fn made(&self, sandbox: &dyn Sandbox, output: Output) -> Outcome<u8> {
        let id = sandbox.id();
        if output.json.is_some() {
            let capabilities = self.backend.capabilities();
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
            CreateOutcome::Attached => screen.note(Tone::Detail, "it was there already"),
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
    fn spec(&self, asked: &cli::Create) -> Outcome<CreateSpec> {
        let mut spec = self.spec.clone();
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

    async fn suspend(&self, name: &str, how: Suspend, output: Output) -> Outcome<u8> {
        let id = sandbox_id(name)?;
        self.backend.suspend(&id, how).await.map_err(|error| failed(&error))?;
        if output.json.is_some() {
            show::line(&json!({ "type": "suspended", "sandbox": name, "state": how }))?;
        }
        Ok(0)
    }

    async fn take(&self, name: &str, snapshot: Option<String>) -> Outcome<Snapshot> {
        let id = sandbox_id(name)?;
        let snapshot = snapshot_id(snapshot.unwrap_or_else(|| fresh("snapshot")))?;
        let snapshots = self.backend.snapshots().map_err(|error| failed(&error))?;
        snapshots.take(&id, &snapshot).await.map_err(|error| failed(&error))
    }

    async fn snapshot(&self, name: &str, new: Option<String>, output: Output) -> Outcome<u8> {
        let mut screen = Screen::new(output);
        let kept = screen.during("keeping the disk", self.take(name, new)).await?;
        if output.json.is_some() {
            show::line(&json!({ "type": "snapshot", "snapshot": kept }))?;
        } else {
            show::out(kept.name.as_str())?;
        }
        Ok(0)
    }

    async fn forget(&self, names: &[String], output: Output) -> Outcome<u8> {
        let snapshots = self.backend.snapshots().map_err(|error| failed(&error))?;
        for name in names {
            let id = snapshot_id(name.clone())?;
            snapshots.remove(&id).await.map_err(|error| failed(&error))?;
        }
        removed(names, output)
    }

    async fn fork(&self, name: &str, new: Option<String>, output: Output) -> Outcome<u8> {
        let new = sandbox_id(&new.unwrap_or_else(|| fresh("sandbox")))?;
        self.not_a_sessions(&new).await?;
        if self.listed().await?.iter().any(|listed| listed.id == new) {
            let text = format!("there is a sandbox `{new}` already");
            return Err(Failure::new(Kind::Conflict, text).hint("Give another name."));
        }
        let mut screen = Screen::new(output);
        let forking = async {
            let kept = self.take(name, None).await?;
            let origin = DiskOrigin::Snapshot(kept.name.clone());
            let spec = CreateSpec { origin, ..self.spec.clone() };
            let made = self.backend.create(&new, &spec).await.map_err(|error| failed(&error));
            // The new one stands on it by now; its name is needed no longer.
            let snapshots = self.backend.snapshots().map_err(|error| failed(&error))?;
            snapshots.remove(&kept.name).await.map_err(|error| failed(&error))?;
            made
        };
        let made = screen.during("forking the sandbox", forking).await?;
        self.made(&*made, output)
    }

    async fn remove(&self, names: &[String], output: Output) -> Outcome<u8> {
        let mut screen = Screen::new(output);
        for name in names {
            let id = sandbox_id(name)?;
            let what = format!("deleting {name}");
            let gone = screen.during(&what, self.backend.destroy(&id)).await;
            gone.map_err(|error| failed(&error))?;
        }
        removed(names, output)
    }
}

fn removed(names: &[String], output: Output) -> Outcome<u8> {
    if output.json.is_some() {
        show::line(&json!({ "type": "removed", "names": names }))?;
    }
    Ok(0)
}
