//! Images that the Docker engine of this machine builds of a repository's Dockerfile.
//!
//! Owns that the Dockerfile is built that a person looked at: it is given to the engine as it
//! was read, while the rest of the context is as it lies there. The steps of a build have a
//! network, and run as the engine lets them. None of our keys is in the program's environment.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::devcontainer::BuildPlan;
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::paths::Paths;
use crate::show::{OutputTail, Screen, Tone, inert};

const HINT: &str = "An image is built by `docker`, where there is a Docker engine; `outrigger sandbox pull` and `import` need none.";

/// The end of what a build prints, from both of its outputs.
type BuildOutput = Arc<Mutex<OutputTail>>;

/// Has an image built, and gives its id: `sha256:…`. `top` is the repository's directory,
/// `dockerfile` what stands in the file.
pub(super) async fn build(
    (paths, config): (&Paths, &Config),
    top: &Path,
    (plan, dockerfile): (&BuildPlan, &str),
    screen: &mut Screen,
) -> Outcome<String> {
    let context = std::fs::canonicalize(top.join(&plan.context));
    let context = context.ok().filter(|context| context.starts_with(top)).ok_or_else(|| {
        let text = format!("{} is no folder of the repository", plan.context.display());
        Failure::new(Kind::Usage, format!("the context of the build: {text}"))
    })?;
    let storage = |error: std::io::Error| Failure::from_error(Kind::Storage, &error);
    std::fs::create_dir_all(paths.scratch()).map_err(storage)?;
    let scratch = tempfile::tempdir_in(paths.scratch()).map_err(storage)?;
    let id = scratch.path().join("id");
    let mut command = docker(config);
    command.args(["build", "--file", "-", "--iidfile"]).arg(&id);
    if let Some(target) = &plan.target {
        command.arg(format!("--target={target}"));
    }
    for (name, value) in &plan.args {
        command.arg(format!("--build-arg={name}={value}"));
    }
    command.arg(context).stdin(Stdio::piped());
    let what = format!("building {}", inert(&plan.dockerfile.display().to_string()));
    run(command, Some(dockerfile), &what, screen).await?;
    Ok(std::fs::read_to_string(&id).map_err(storage)?.trim().to_owned())
}

/// Writes an image of the engine's into a file, as `docker save` has it.
pub(super) async fn save(config: &Config, id: &str, file: File, screen: &mut Screen) -> Outcome {
    let mut command = docker(config);
    command.args(["save", id]).stdin(Stdio::null()).stdout(file);
    run(command, None, "taking the image from the engine", screen).await
}

fn docker(config: &Config) -> Command {
    let mut command = Command::new("docker");
    for variable in &config.notify.keys {
        command.env_remove(variable);
    }
    if let Some(socket) = &config.docker.socket {
        command.env("DOCKER_HOST", format!("unix://{}", socket.display()));
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Runs it to its end, and shows the end of what it printed where it fails.
async fn run(
    mut command: Command,
    input: Option<&str>,
    what: &str,
    screen: &mut Screen,
) -> Outcome {
    let failed = |why: String| Failure::new(Kind::SandboxUnavailable, format!("{what}: {why}"));
    let mut child =
        command.spawn().map_err(|error| failed(format!("docker: {error}")).hint(HINT))?;
    let output = BuildOutput::default();
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let work = async {
        let give = async {
            if let (Some(mut stdin), Some(input)) = (stdin, input) {
                // One that does not read it says why.
                drop(stdin.write_all(input.as_bytes()).await);
            }
        };
        let (status, ..) =
            tokio::join!(child.wait(), give, read(stdout, &output), read(stderr, &output));
        status
    };
    let most = Duration::from_millis(limits::IMAGE_BUILD_MS_MAX);
    let words = || match last_line(&output) {
        Some(line) => format!("{what} · {line}"),
        None => what.to_owned(),
    };
    let ended = screen.watching(words, tokio::time::timeout(most, work)).await;
    let why = match ended {
        Ok(Ok(status)) if status.success() => return Ok(()),
        Ok(Ok(status)) => status.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it took more than {} min", limits::IMAGE_BUILD_MS_MAX / 60_000),
    };
    let tail = output.lock().unwrap_or_else(PoisonError::into_inner);
    for line in tail.last(limits::SETUP_TAIL_LINES) {
        screen.note(Tone::Plain, format!("  │ {line}"));
    }
    Err(failed(why).hint(HINT))
}

async fn read(from: Option<impl AsyncRead + Unpin>, output: &BuildOutput) {
    let Some(mut from) = from else { return };
    let mut piece = vec![0; 4_096];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        output.lock().unwrap_or_else(PoisonError::into_inner).push(&piece[..length]);
    }
}

fn last_line(output: &BuildOutput) -> Option<String> {
    let tail = output.lock().unwrap_or_else(PoisonError::into_inner);
    tail.last(1).next().filter(|line| !line.trim().is_empty())
}
