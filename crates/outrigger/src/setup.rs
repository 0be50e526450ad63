//! Commands that prepare a project once, so that its sessions begin with what they made.
//!
//! Owns when they are run again, and what of their work is kept: the files that they made in the
//! workspace and in the home directory. Those of the directory itself are as every session is
//! filled with them.

use futures_util::{StreamExt, TryStreamExt, stream};
use outrigger_engine::workspace::{self, FilledSandbox, MadeFile};
use outrigger_engine::{Egress, HostRules, RuleSource, keeping};
use outrigger_repository::{FileLayer, lock_digest};
use outrigger_sandbox::{
    Backend, Command, DiskOrigin, End, ExecId, Execute, Output, OutputSink, Sandbox, SandboxId,
    Streams,
};
use outrigger_sandbox_native::{ImageDigest, Native, ProjectTemplate};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

use crate::config::{BackendName, Config, Sandbox as SandboxConfig};
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::project_content::{AGENT, ProjectContent};
use crate::rules::ConfiguredRules;
use crate::session::{WHO, now_ms};
use crate::show::amounts::size;
use crate::show::{self, OutputTail, Screen, Tone, inert};
use crate::{limits, repository};

const FAILED_HINT: &str = "No session was begun. If it needs the network, give it some: `--net packages`, or sandbox.network.";

/// What commands made, as it is noted.
#[derive(Debug, Serialize, Deserialize)]
struct SetupNote {
    layer: String,
    folders: BTreeSet<String>,
}

/// A layer of what commands made.
pub(crate) struct SetupLayer {
    pub(crate) layer: ImageDigest,
    /// Folders and files of the workspace in it, which are no content.
    pub(crate) folders: BTreeSet<String>,
}

/// What it takes to run them.
pub(crate) struct Preparation<'a> {
    pub(crate) paths: &'a Paths,
    pub(crate) config: &'a Config,
    pub(crate) native: &'a Native,
    pub(crate) content: ProjectContent<'a>,
    pub(crate) egress: &'a dyn Egress,
    /// Layers that are others after each commit and each build, such as the history's.
    pub(crate) often: &'a [ImageDigest],
}

impl Preparation<'_> {
    /// Runs the commands over a template, unless what they made is still there. `skip` are
    /// folders that come along with the template.
    pub(crate) async fn prepare(
        &self,
        project: &ProjectTemplate,
        skip: &[String],
        screen: &mut Screen,
    ) -> Outcome<Option<SetupLayer>> {
        let first = self.config.sandboxes.first().filter(|sandbox| !sandbox.setup.is_empty());
        let Some(sandbox) = first else { return Ok(None) };
        let note = self.paths.dependencies().join(self.name(sandbox, project)?);
        if let Some(layer) = self.known(&note).await? {
            tell(&layer, screen);
            return Ok(Some(layer));
        }
        let mut project = project.clone();
        project.layers.extend(self.often);
        let template = self.native.save_project(project).await.map_err(|error| failed(&error))?;
        let id = SandboxId::new(format!("setup-{}", Uuid::new_v4().simple()));
        let id = id.map_err(|error| storage(&error))?;
        let mut spec = sandbox.spec.clone();
        spec.origin = DiskOrigin::Template(template);
        // One that stays when this ends is ended by its age.
        spec.lifetime.age_ms_max = Some(limits::SETUP_SANDBOX_MS_MAX);
        let made = match self.native.create(&id, &spec).await {
            Ok(created) => self.run(&*created, sandbox, skip, screen).await,
            Err(error) => Err(failed(&error)),
        };
        self.egress.close(&id).await;
        let destroyed = self.native.destroy(&id).await;
        let (archive, folders) = made?;
        destroyed.map_err(|error| failed(&error))?;
        let adding = self.native.add_layer(archive);
        let layer = screen.during("keeping what sandbox.setup made", adding).await;
        let layer = layer.map_err(|error| failed(&error))?;
        let text = SetupNote { layer: layer.to_string(), folders: folders.clone() };
        let text = serde_json::to_vec(&text).map_err(|error| storage(&error))?;
        // Without the note it is made again the next time.
        let _ = self.paths.note(&note, &text);
        let layer = SetupLayer { layer, folders };
        tell(&layer, screen);
        Ok(Some(layer))
    }

    /// Another one for other commands, dependencies or tools, and for another directory.
    fn name(&self, sandbox: &SandboxConfig, project: &ProjectTemplate) -> Outcome<String> {
        let tree = self.content.tree;
        let locked = lock_digest(tree).map_err(|error| repository::failed(&tree.top, &error))?;
        let prefix = tree.prefix.display().to_string();
        let parts = [project.name(), project.source.clone(), prefix, locked];
        let parts = parts.iter().chain(&sandbox.setup);
        let text: String = parts.map(|part| format!("{} {part}\n", part.len())).collect();
        Ok(format!("setup.{:.32}", ImageDigest::of(text.as_bytes()).hex()))
    }

    /// What was made before, if its layer is there.
    async fn known(&self, note: &Path) -> Outcome<Option<SetupLayer>> {
        let Ok(text) = std::fs::read(note) else { return Ok(None) };
        let Ok(SetupNote { layer, folders }) = serde_json::from_slice(&text) else {
            return Ok(None);
        };
        let Some(layer) = ImageDigest::parse(&layer) else { return Ok(None) };
        let missing = self.native.missing_layers(&[layer]).await;
        let missing = missing.map_err(|error| failed(&error))?;
        Ok(missing.is_empty().then_some(SetupLayer { layer, folders }))
    }

    /// Runs them in a sandbox of their own. Gives what they made, and where.
    async fn run(
        &self,
        sandbox: &dyn Sandbox,
        config: &SandboxConfig,
        skip: &[String],
        screen: &mut Screen,
    ) -> Outcome<(File, BTreeSet<String>)> {
        let ProjectContent { store, tree, workspace } = self.content;
        let blobs = &*store.blobs;
        let filling = workspace::import(blobs, workspace, sandbox.id().as_str(), sandbox);
        let filled = screen.during("filling a sandbox for sandbox.setup", filling).await;
        filled.map_err(|error| unfilled(&error))?;
        // Before what is there is looked at: its files are none that the commands made.
        let words = config.network.settle(&tree.top)?;
        let rules = ConfiguredRules::read(self.paths)?.current();
        let rules = rules.map_err(|error| Failure::from_error(Kind::Usage, &error))?;
        let (rules, backend) = (HostRules::of_person(rules, WHO), BackendName::Native.as_str());
        let opened = self.egress.open(sandbox, backend, &words, &rules).await;
        let env = opened.map_err(|error| Failure::from_error(Kind::SandboxUnavailable, &error))?;
        let archive = blobs.open(&workspace.archive).await?;
        let before = FilledSandbox::look(sandbox, archive).await;
        let before = before.map_err(|error| unfilled(&error))?;
        let prefix = tree.prefix.to_str().filter(|prefix| !prefix.is_empty());
        for (index, line) in config.setup.iter().enumerate() {
            let what = format!("sandbox.setup: {}", inert(line));
            let running = run(sandbox, (index, line), prefix, &env);
            let running = keeping(self.egress, (sandbox.id(), backend), running);
            let failed = screen.during(&what, running).await?;
            for flow in self.egress.flows(sandbox.id()).await.flows {
                let refusal = flow.refusal.iter();
                refusal.for_each(|why| screen.note(Tone::Warning, format!("! {}", inert(why))));
            }
            if let Some(failed) = failed {
                for line in &failed.printed {
                    screen.note(Tone::Plain, format!("  │ {line}"));
                }
                let text = format!("sandbox.setup: `{}` failed: {}", inert(line), failed.how);
                return Err(Failure::new(Kind::Usage, text).hint(FAILED_HINT));
            }
        }
        let made = before.made(sandbox, skip).await.map_err(|error| unfilled(&error))?;
        let folders = before.folders(&made);
        let (bytes, most) =
            (made.iter().map(|file| file.bytes).sum(), self.config.dependency_bytes_max);
        if bytes > most || folders.len() > limits::SETUP_PATHS_MAX {
            let (bytes, most, paths) = (size(bytes), size(most), limits::SETUP_PATHS_MAX);
            let text = format!(
                "sandbox.setup made {bytes} in {}, and {most} in {paths} are allowed",
                show::count(folders.len() as u64, "place")
            );
            return Err(Failure::new(Kind::Usage, text)
                .hint("workspace.dependency_mib_max allows more; folders of their own are one place each."));
        }
        let packing = pack(sandbox, &made, self.paths);
        Ok((screen.during("taking out what sandbox.setup made", packing).await?, folders))
    }
}

fn tell(made: &SetupLayer, screen: &Screen) {
    let names: Vec<String> = made.folders.iter().map(|path| inert(path)).collect();
    let what = if names.is_empty() { "nothing in it".to_owned() } else { names.join(", ") };
    screen.note(Tone::Detail, format!("with what sandbox.setup made: {what}"));
}

/// A command that failed.
struct FailedCommand {
    how: String,
    /// The end of what it printed.
    printed: Vec<String>,
}

async fn run(
    sandbox: &dyn Sandbox,
    (index, line): (usize, &str),
    prefix: Option<&str>,
    env: &BTreeMap<String, String>,
) -> Outcome<Option<FailedCommand>> {
    let id = ExecId::new(format!("setup.{index}")).map_err(|error| storage(&error))?;
    let mut request = Execute::new(id, Command::Shell(line.to_owned()));
    request.cwd = prefix.map(str::to_owned);
    request.env.clone_from(env);
    request.deadline_ms = limits::SETUP_COMMAND_MS_MAX;
    request.streams = Streams::Merged;
    let output = SetupOutput::default();
    let done = sandbox.execute(request, &output).await.map_err(|error| failed(&error))?;
    let how = match done.end {
        End::Exited(0) => return Ok(None),
        End::Exited(code) => format!("exit code {code}"),
        end => show::killed(end, limits::SETUP_COMMAND_MS_MAX / 1_000).unwrap_or_default(),
    };
    let tail = output.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    let printed = tail.last(limits::SETUP_TAIL_LINES).collect();
    Ok(Some(FailedCommand { how, printed }))
}

/// The files as an archive that becomes a layer.
async fn pack(sandbox: &dyn Sandbox, made: &[MadeFile], paths: &Paths) -> Outcome<File> {
    let owned = ["workspace", "home/agent"].map(Path::new);
    let now_s = i64::try_from(now_ms() / 1_000).unwrap_or(i64::MAX);
    let layer = FileLayer::new(&paths.scratch(), AGENT, &owned, now_s);
    let layer = layer.map_err(|error| storage(&error))?;
    let reading = stream::iter(made).map(|file| async move {
        let read = file.read(sandbox).await.map_err(|error| unfilled(&error))?;
        Ok::<_, Failure>((file, read))
    });
    let layer = reading.buffered(limits::SETUP_READS_MAX).try_fold(layer, add);
    layer.await?.finish().map_err(|error| storage(&error))
}

async fn add(
    mut layer: FileLayer,
    (file, read): (&MadeFile, outrigger_repository::File),
) -> Outcome<FileLayer> {
    let path = Path::new(file.path.trim_start_matches('/'));
    layer.add(path, &read).map_err(|error| storage(&error))?;
    Ok(layer)
}

/// The end of what a command prints.
#[derive(Default)]
struct SetupOutput(Mutex<OutputTail>);

impl OutputSink for SetupOutput {
    fn output(&self, output: Output<'_>) {
        let (Output::Stdout(piece) | Output::Stderr(piece)) = output;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(piece);
    }
}

fn failed(error: &outrigger_sandbox::Error) -> Failure {
    Failure::from_error(Kind::SandboxUnavailable, error)
}

fn unfilled(error: &workspace::Error) -> Failure {
    Failure::new(Kind::SandboxUnavailable, workspace::explain(error))
}

fn storage(error: &(impl std::error::Error + 'static)) -> Failure {
    Failure::from_error(Kind::Storage, error)
}
