//! The page of `outrigger serve` in a real browser, against the real server with a scripted model.
//!
//! Owns what that needs of a machine, and where it happens: in `target/browser`, with packages as
//! they are locked. What is looked at is in `browser/`. Must never put anything into the tree.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::child::{Child, code};
use crate::limits::BROWSER_SECONDS_MAX;
use crate::suite::{self, Error, at, text};
use crate::workspace::Workspace;

/// Programs, each with the package that has it.
const NEEDS: [(&str, &str); 3] = [("node", "nodejs"), ("npm", "npm"), ("chromium", "chromium")];
/// Where the suite is in this repository.
const SUITE: &str = "crates/xtask/browser";
const MANIFEST: &str = "package.json";
const LOCK: &str = "package-lock.json";
/// What was installed last, in full: beside it lie the packages that it names.
const INSTALLED: &str = "node_modules/.installed";

/// What is asked for.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Browser {
    /// This program instead of `target/debug/outrigger`.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Where pictures of every page go, instead of `target/browser/shots`.
    #[arg(long, value_name = "DIR")]
    shots: Option<PathBuf>,
    /// Only the check of this name: the word in front of its lines.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

/// Looks. The exit code: 0 all is well, 1 something is not, 124 it took too long.
pub(crate) fn run(
    asked: &Browser,
    workspace: &Workspace,
    out: &mut dyn Write,
) -> Result<u8, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let missing = missing(&path);
    if !missing.is_empty() {
        return Err(Error::Missing(missing));
    }
    let program = suite::program(asked.program.as_deref(), workspace)?;
    let home = workspace.target.join("browser");
    let laid = laid_out(&workspace.root.join(SUITE), &home)?;
    install(&home, out)?;
    let shots = asked.shots.clone().unwrap_or_else(|| home.join("shots"));
    let shots = std::path::absolute(&shots).map_err(at(&shots))?;
    let chromium = found(&path, "chromium").unwrap_or_default();
    let given = [("program", program), ("chromium", chromium), ("dir", home), ("shots", shots)];
    let given = given.into_iter().map(|(name, value)| (name, text(&value)));
    let given = given.chain(asked.only.iter().map(|name| ("only", name.clone())));
    let looking = suite::begin(BROWSER_SECONDS_MAX, "node", &laid.join("main.mjs"), given);
    Ok(code(looking.run()?))
}

/// What of the needs is on none of these directories.
fn missing(path: &OsStr) -> Vec<(&'static str, &'static str)> {
    NEEDS.into_iter().filter(|(program, _)| found(path, program).is_none()).collect()
}

fn found(path: &OsStr, program: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// Copies the suite: node looks for packages beside and above a file, and they are not to lie in
/// the tree. What is no longer in the suite is gone from the copy too.
fn laid_out(from: &Path, home: &Path) -> Result<PathBuf, Error> {
    let suite = home.join("suite");
    if suite.exists() {
        fs::remove_dir_all(&suite).map_err(at(&suite))?;
    }
    copy(from, &suite)?;
    for name in [MANIFEST, LOCK] {
        let to = home.join(name);
        fs::copy(from.join(name), &to).map_err(at(&to))?;
    }
    Ok(suite)
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir_all(to).map_err(at(to))?;
    for entry in fs::read_dir(from).map_err(at(from))? {
        let entry = entry.map_err(at(from))?;
        let (file, copied) = (entry.path(), to.join(entry.file_name()));
        if file.is_dir() {
            copy(&file, &copied)?;
        } else {
            fs::copy(&file, &copied).map_err(at(&file))?;
        }
    }
    Ok(())
}

/// Installs what is locked, if it is not there already.
fn install(home: &Path, out: &mut dyn Write) -> Result<(), Error> {
    let words = ["npm", "--prefix", &text(home), "ci", "--ignore-scripts", "--no-audit"];
    let npm = Child::new(words.into_iter().chain(["--no-fund"]));
    suite::install(&home.join(LOCK), &home.join(INSTALLED), &[npm], out)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn everything_that_is_missing_is_said_at_once_with_one_command() {
        let missing = missing(OsStr::new("/nowhere"));
        expect!["missing: node, npm, chromium; on Debian and Ubuntu, as root: apt-get install --yes --no-install-recommends nodejs npm chromium"]
            .assert_eq(&Error::Missing(missing).to_string());
    }

    #[test]
    fn packages_are_locked_without_where_they_came_from() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser");
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&read(MANIFEST)).unwrap();
        let lock: serde_json::Value = serde_json::from_str(&read(LOCK)).unwrap();
        assert_eq!(lock["packages"][""]["dependencies"], manifest["dependencies"]);
        assert!(!read(LOCK).contains("\"resolved\""));
    }
}
