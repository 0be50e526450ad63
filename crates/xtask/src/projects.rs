//! Real projects of others: their own tests, on the host and in the default sandbox in turn.
//!
//! Owns the order of it: what is fetched and prepared, what is run how often, what is told.
//! Nothing of a project is changed, and nothing is configured but a model that asks for
//! the test command. Must never judge by anything but exit codes and counts of tests, and time
//! only over all projects together.

mod clone;
mod list;
mod measured;
mod person;
mod program;
mod report;
mod write_error;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::child::{self, Child};
use crate::limits::{PROJECT_COMMAND_SECONDS_MAX, PROJECT_ROUNDS};
use crate::workspace::Workspace;
use clone::Clones;
use list::Project;
use measured::Measurement;
use program::Program;
use report::{Report, Round, Row};

/// Why no project was tried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// There is no such project, or no list.
    #[error(transparent)]
    List(#[from] list::Error),
    /// The program's files could not be made.
    #[error(transparent)]
    Program(#[from] program::Error),
    /// A program could not be run.
    #[error(transparent)]
    Child(#[from] child::Error),
    /// The program could not be built.
    #[error("`{0}` fails")]
    Build(String),
    /// There is no place for clones.
    #[error("neither XDG_CACHE_HOME nor HOME is set, and clones are kept below one of them")]
    Home,
    /// A directory is not there.
    #[error("cannot find {path}")]
    Directory {
        /// Which.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Our own output is gone.
    #[error("cannot write the output")]
    Write(#[from] std::io::Error),
    /// The report is no JSON.
    #[error("cannot write the report as JSON")]
    Json(#[from] serde_json::Error),
}

/// What is asked for.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Projects {
    /// One JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// Only the project of this name.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Use clones that are there, as `DIR/owner+name`, and clone none. Not beneath `/tmp`,
    /// which a sandbox has of its own.
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// How often the tests are run on the host and in a sandbox in turn.
    #[arg(long, value_name = "N", default_value_t = PROJECT_ROUNDS, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Use this program instead of building one.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Tries them. The exit code: 0 all pass in time, 1 something does not.
pub(crate) fn run(
    asked: &Projects,
    workspace: &Workspace,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    let projects = list::load(asked.only.as_deref())?;
    let binary = match &asked.program {
        Some(program) => found(program)?,
        None => built(workspace)?,
    };
    let (place, clones) = match &asked.from {
        Some(dir) => (found(dir)?, Clones::There(found(dir)?)),
        None => (cache()?, Clones::Made(cache()?)),
    };
    let program = Program::new(binary, &place)?;
    let mut rows = Vec::new();
    for project in &projects {
        rows.push(tried(project, &clones, &program, asked.rounds)?);
    }
    let report = Report::of(rows);
    if asked.json {
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)?;
    } else {
        write!(out, "{report}")?;
    }
    Ok(u8::from(!report.is_good()))
}

/// All rounds of one project. What goes on is told on stderr, since stdout may be JSON.
fn tried(project: &Project, clones: &Clones, program: &Program, times: u32) -> Result<Row, Error> {
    let Project { name, language, .. } = project;
    let mut err = std::io::stderr();
    writeln!(err, "== {name}")?;
    let dir = match clones.ready(project) {
        Ok(dir) => dir,
        Err(error) => return Ok(Row::untried(name, language, error.to_string())),
    };
    let line = measured::line(project);
    let mut rounds = Vec::new();
    for number in 1..=times {
        let printed = on_host(&dir, &line)?;
        let Some(host) = Measurement::read(&printed) else {
            writeln!(err, "{printed}")?;
            return Ok(Row::untried(name, language, "the host's run has no end".to_owned()));
        };
        let inside = program.run(&dir, &line)?;
        let sandbox = inside.measured;
        let run_ms = u64::try_from(inside.whole.as_millis()).unwrap_or(u64::MAX);
        let shown = |it: Option<Measurement>| match it {
            Some(Measurement { code, ms, cpu_ms, passed }) => {
                format!("{passed} pass, exit {code}, {ms} ms, {cpu_ms} ms of CPU")
            }
            None => "no end".to_owned(),
        };
        writeln!(
            err,
            "{number}: host {}; sandbox {}; run {run_ms} ms",
            shown(Some(host)),
            shown(sandbox)
        )?;
        rounds.push(Round { host, sandbox, run_ms });
        // Once is enough to know that, and to read why.
        if host.code != 0 {
            writeln!(err, "{printed}")?;
            break;
        }
        if !sandbox.is_some_and(|it| it.code == 0 && it.passed == host.passed) {
            writeln!(err, "{}", inside.printed)?;
            break;
        }
    }
    Ok(Row::of(name, language, &rounds))
}

fn on_host(dir: &Path, line: &str) -> Result<String, Error> {
    let most = Duration::from_secs(PROJECT_COMMAND_SECONDS_MAX);
    Ok(person::line(dir, most, line).output()?)
}

/// The program, built as it is published.
fn built(workspace: &Workspace) -> Result<PathBuf, Error> {
    let build = Child::new(["cargo", "build", "--release", "--quiet", "--package", "outrigger"]);
    match build.run_on_stderr()?.success() {
        true => found(&workspace.target.join("release/outrigger")),
        false => Err(Error::Build(build.typed())),
    }
}

fn found(path: &Path) -> Result<PathBuf, Error> {
    let directory = |source| Error::Directory { path: path.display().to_string(), source };
    std::fs::canonicalize(path).map_err(directory)
}

/// Clones stand outside of this repository: cargo and others look for a workspace above.
fn cache() -> Result<PathBuf, Error> {
    let dir = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let cache = dir("XDG_CACHE_HOME").or_else(|| Some(dir("HOME")?.join(".cache")));
    let place = cache.ok_or(Error::Home)?.join("outrigger-projects");
    std::fs::create_dir_all(&place)?;
    Ok(place)
}
