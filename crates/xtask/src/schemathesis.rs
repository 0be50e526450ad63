//! The contract of `outrigger serve` against the real server with a scripted model: requests that
//! Schemathesis makes up from `docs/openapi.json`, and every operation without a right to it.
//!
//! Owns what that needs of a machine, and where it happens: in `target/schemathesis`, with packages
//! of the versions that are named. What is asked is in `schemathesis/`. Must never put anything
//! into the tree.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::child::{self, Child, code};
use crate::limits::{SCHEMATHESIS_SECONDS_MAX, SCHEMATHESIS_SEEDS_MAX};
use crate::workspace::Workspace;

/// Where the suite is in this repository.
const SUITE: &str = "crates/xtask/schemathesis";
/// The packages of it, in the suite: all of them, each with its version.
const PACKAGES: &str = "requirements.txt";
/// What was installed last, in full: beside it lie the packages that it names.
const INSTALLED: &str = ".installed";

/// Why nothing was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Python is not there, or can't make an environment of its own.
    #[error(
        "missing: python3 with venv; on Debian and Ubuntu, as root: apt-get install --yes --no-install-recommends python3-venv"
    )]
    Python,
    /// There is no program to ask.
    #[error("there is no {}: `cargo build` makes it, or name another one with --program", .0.display())]
    Program(PathBuf),
    /// Packages could not be installed.
    #[error("`{0}` fails")]
    Install(String),
    /// A program could not be run.
    #[error(transparent)]
    Child(#[from] child::Error),
    /// A file or directory of it could not be made.
    #[error("cannot read or write {}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Our own output is gone.
    #[error("cannot write the progress")]
    Write(#[from] std::io::Error),
}

/// What is asked for.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Schemathesis {
    /// With so many seeds, one after another, each in a world of its own.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=SCHEMATHESIS_SEEDS_MAX))]
    seeds: u32,
    /// The first of them.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    first: u32,
    /// So many requests for each operation and seed are made up, beside those at every bound.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    cases: u32,
    /// This program instead of `target/debug/outrigger`.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Asks. The exit code: 0 all is well, 1 something is not, 124 it took too long.
pub(crate) fn run(
    asked: &Schemathesis,
    workspace: &Workspace,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    if !Child::new(["python3", "-c", "import ensurepip, venv"]).succeeds() {
        return Err(Error::Python);
    }
    let program = asked.program.clone();
    let program = program.unwrap_or_else(|| workspace.target.join("debug/outrigger"));
    let program = fs::canonicalize(&program).map_err(|_| Error::Program(program))?;
    let (suite, home) = (workspace.root.join(SUITE), workspace.target.join("schemathesis"));
    fs::create_dir_all(&home).map_err(at(&home))?;
    let venv = home.join("venv");
    install(&suite.join(PACKAGES), &venv, out)?;
    let (seconds, python) = (SCHEMATHESIS_SECONDS_MAX.to_string(), text(&venv.join("bin/python")));
    // In the foreground it hears the Ctrl-C that is meant for it.
    let words = ["timeout", "--foreground", "--kill-after=30", &seconds, &python];
    let words = words.into_iter().map(str::to_owned).chain([text(&suite.join("main.py"))]);
    let given = [
        ("program", text(&program)),
        ("dir", text(&home)),
        ("seeds", asked.seeds.to_string()),
        ("first", asked.first.to_string()),
        ("cases", asked.cases.to_string()),
    ];
    let given = given.into_iter().map(|(name, value)| format!("--{name}={value}"));
    // It would put what it compiled beside what it was compiled from.
    let child = Child::new(words.chain(given)).with("PYTHONDONTWRITEBYTECODE", "1");
    Ok(code(child.run()?))
}

/// Installs what is named, if it is not there already.
fn install(packages: &Path, venv: &Path, out: &mut dyn Write) -> Result<(), Error> {
    let named = fs::read(packages).map_err(at(packages))?;
    let installed = venv.join(INSTALLED);
    if fs::read(&installed).is_ok_and(|there| there == named) {
        return Ok(());
    }
    let pip = [&text(&venv.join("bin/pip")), "install", "--quiet", "--disable-pip-version-check"];
    let pip = pip.map(str::to_owned).into_iter();
    for child in [
        Child::new(["python3", "-m", "venv", "--clear", &text(venv)]),
        Child::new(pip.chain(["--requirement".to_owned(), text(packages)])),
    ] {
        writeln!(out, "== {}", child.typed())?;
        out.flush()?;
        if !child.run()?.success() {
            return Err(Error::Install(child.typed()));
        }
    }
    fs::write(&installed, named).map_err(at(&installed))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_has_its_version() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemathesis");
        let packages = fs::read_to_string(root.join(PACKAGES)).unwrap();
        let pinned = |line: &str| line.split_once("==").is_some_and(|(_, it)| !it.is_empty());
        let loose: Vec<_> = packages.lines().filter(|line| !pinned(line)).collect();
        assert!(loose.is_empty(), "{loose:?}");
        assert!(packages.lines().any(|line| line.starts_with("schemathesis==")));
    }
}
