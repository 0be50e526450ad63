//! Images that the Docker engine of this machine builds of a repository's Dockerfile.
//!
//! Owns that the Dockerfile is built that a person looked at: it is given to the engine as it
//! was read, while the rest of the context is as it lies there. The steps of a build have a
//! network, and run as the engine lets them. None of our keys is in the program's environment.

use std::fs::File;
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};

use super::devcontainer::BuildPlan;
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::paths::Paths;
use crate::show::{OutputTail, Screen, Tone, inert};
use crate::supervisor::{DockerBuild, ProgramStreams, StartRequest};

const HINT: &str = "An image is built by `docker`, where there is a Docker engine; `outrigger sandbox pull` and `import` need none.";

/// The end of what a build prints, from both of its outputs.
type BuildOutput = Arc<Mutex<OutputTail>>;

/// Has an image built, and gives its id: `sha256:…`. `top` is the repository's directory,
/// `dockerfile` what stands in the file.
pub(super) async fn build(
    paths: &Paths,
    top: &Path,
    (plan, dockerfile): (&BuildPlan, &str),
    screen: &mut Screen,
) -> Outcome<String> {
    let context = std::fs::canonicalize(top.join(&plan.context));
    let context = context.ok().filter(|context| context.starts_with(top)).ok_or_else(|| {
        let text = format!("{} is no folder of the repository", plan.context.display());
        Failure::new(Kind::Usage, format!("the context of the build: {text}"))
    })?;
    let request = StartRequest::Build(DockerBuild {
        context,
        target: plan.target.clone(),
        args: plan.args.clone(),
    });
    let what = format!("building {}", inert(&plan.dockerfile.display().to_string()));
    let output = || std::io::pipe().map(|(from, to)| (Some(from), to.into()));
    Ok(run(paths, request, (Some(dockerfile), output), &what, screen).await?.trim().to_owned())
}

/// Writes an image of the engine's into a file, as `docker save` has it.
pub(super) async fn save(paths: &Paths, id: &str, file: File, screen: &mut Screen) -> Outcome {
    let request = StartRequest::Save { image: id.to_owned() };
    let output = || Ok((None, file.into()));
    run(paths, request, (None, output), "taking the image from the engine", screen).await.map(drop)
}

/// The program that builds, from a Dockerfile on its standard input, and writes the image's id
/// into a file.
pub(crate) fn docker_build(config: &Config, build: &DockerBuild, id: &Path) -> Command {
    let mut command = docker(config);
    command.args(["build", "--file", "-", "--iidfile"]).arg(id);
    if let Some(target) = &build.target {
        command.arg(format!("--target={target}"));
    }
    for (name, value) in &build.args {
        command.arg(format!("--build-arg={name}={value}"));
    }
    command.arg("--").arg(&build.context);
    command
}

/// The program that writes an image to its standard output.
pub(crate) fn docker_save(config: &Config, image: &str) -> Command {
    let mut command = docker(config);
    command.args(["save", "--", image]);
    command
}

fn docker(config: &Config) -> Command {
    let mut command = Command::new("docker");
    if let Some(socket) = &config.docker.socket {
        command.env("DOCKER_HOST", format!("unix://{}", socket.display()));
    }
    command
}

/// Runs it to its end, and shows the end of what it printed where it fails. Gives what it wrote
/// of itself. `output`: where its standard output goes, and the other end of it to be read.
async fn run(
    paths: &Paths,
    request: StartRequest,
    (input, output): (Option<&str>, impl FnOnce() -> io::Result<(Option<PipeReader>, OwnedFd)>),
    what: &str,
    screen: &mut Screen,
) -> Outcome<String> {
    let failed = |why: String| Failure::new(Kind::SandboxUnavailable, format!("{what}: {why}"));
    let start = async {
        let (stdin, to) = std::io::pipe()?;
        let ((from, stdout), (errors, stderr)) = (output()?, std::io::pipe()?);
        let streams = ProgramStreams { stdin: stdin.into(), stdout, stderr: stderr.into() };
        let program = paths.starter()?.start_program(request, streams).await?;
        let read = |from: PipeReader| Receiver::from_owned_fd(from.into());
        Ok((program, Sender::from_owned_fd(to.into())?, from.map(read).transpose()?, read(errors)?))
    };
    let started: io::Result<_> = start.await;
    let (mut program, mut stdin, stdout, stderr) =
        started.map_err(|error| failed(format!("docker: {error}")).hint(HINT))?;
    let output = BuildOutput::default();
    let work = async {
        let give = async {
            if let Some(input) = input {
                // One that does not read it says why.
                drop(stdin.write_all(input.as_bytes()).await);
            }
            drop(stdin);
        };
        let (end, ..) =
            tokio::join!(program.wait(), give, read(stdout, &output), read(Some(stderr), &output));
        end
    };
    let most = Duration::from_millis(limits::IMAGE_BUILD_MS_MAX);
    let words = || match last_line(&output) {
        Some(line) => format!("{what} · {line}"),
        None => what.to_owned(),
    };
    let ended = screen.watching(words, tokio::time::timeout(most, work)).await;
    let why = match ended {
        Ok(Ok(end)) if end.success => return Ok(end.written),
        Ok(Ok(end)) => end.status,
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
