//! The contract of `outrigger serve` against the real server with a scripted model: requests that
//! Schemathesis makes up from `docs/openapi.json`, and every operation without a right to it.
//!
//! Owns what that needs of a machine, and where it happens: in `target/schemathesis`, with packages
//! of the versions that are named. What is asked is in `schemathesis/`. Must never put anything
//! into the tree.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::child::{Child, code};
use crate::limits::{SCHEMATHESIS_SECONDS_MAX, SCHEMATHESIS_SEEDS_MAX};
use crate::suite::{self, Error, at, text};
use crate::workspace::Workspace;

/// Where the suite is in this repository.
const SUITE: &str = "crates/xtask/schemathesis";
/// The packages of it, in the suite: all of them, each with its version.
const PACKAGES: &str = "requirements.txt";
/// What was installed last, in full: beside it lie the packages that it names.
const INSTALLED: &str = ".installed";

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
        return Err(Error::Missing(vec![("python3 with venv", "python3-venv")]));
    }
    let program = suite::program(asked.program.as_deref(), workspace)?;
    let (own, home) = (workspace.root.join(SUITE), workspace.target.join("schemathesis"));
    fs::create_dir_all(&home).map_err(at(&home))?;
    let venv = home.join("venv");
    install(&own.join(PACKAGES), &venv, out)?;
    let given = [
        ("program", text(&program)),
        ("dir", text(&home)),
        ("seeds", asked.seeds.to_string()),
        ("first", asked.first.to_string()),
        ("cases", asked.cases.to_string()),
    ];
    let python = text(&venv.join("bin/python"));
    let asking = suite::begin(SCHEMATHESIS_SECONDS_MAX, &python, &own.join("main.py"), given);
    // It would put what it compiled beside what it was compiled from.
    Ok(code(asking.with("PYTHONDONTWRITEBYTECODE", "1").run()?))
}

/// Installs what is named, if it is not there already.
fn install(packages: &Path, venv: &Path, out: &mut dyn Write) -> Result<(), Error> {
    let pip = [&text(&venv.join("bin/pip")), "install", "--quiet", "--disable-pip-version-check"];
    let pip = pip.map(str::to_owned).into_iter();
    let children = [
        Child::new(["python3", "-m", "venv", "--clear", &text(venv)]),
        Child::new(pip.chain(["--requirement".to_owned(), text(packages)])),
    ];
    suite::install(packages, &venv.join(INSTALLED), &children, out)
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
