//! The simulation against the product without one of its safeguards.
//!
//! Owns the lines that are taken away, each in a copy of the sources. Fails if one
//! is not there any more, or if the simulation does not miss it. Must never touch the
//! sources themselves.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::child::{self, Child};
use crate::limits::MUTANT_SEEDS_MAX;
use crate::workspace::Workspace;

/// Why the mutants could not be tried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file could not be copied or changed.
    #[error("cannot copy {path}")]
    Copy {
        /// Which.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// `git` does not say what belongs to the sources.
    #[error("`git ls-files` says nothing")]
    Sources,
    /// What is to be taken away is not there, or there more than once.
    #[error("{safeguard}: its line is {count} times in {path}; name the one that it is now")]
    Moved {
        /// What is to be taken away.
        safeguard: &'static str,
        /// Where it was.
        path: &'static str,
        /// How often it was found.
        count: usize,
    },
    /// A program could not be run.
    #[error(transparent)]
    Child(#[from] child::Error),
    /// Our own output is gone.
    #[error("cannot write the progress")]
    Write(#[from] std::io::Error),
}

/// A safeguard, and what stands where it stood.
#[derive(Debug)]
struct Mutant {
    safeguard: &'static str,
    path: &'static str,
    from: &'static str,
    to: &'static str,
}

const MUTANTS: [Mutant; 4] = [
    Mutant {
        safeguard: "fencing",
        path: "crates/store/src/memory.rs",
        from: "if found != after {",
        to: "if found < after {",
    },
    Mutant {
        safeguard: "intent before action",
        path: "crates/engine/src/driver/step.rs",
        from: "run.refusals.singly = false;\n                if flush::flush(engine, run).await? == FlushOutcome::Durable {",
        to: "run.refusals.singly = false;\n                if !ids.is_empty() {",
    },
    Mutant {
        safeguard: "reservation",
        path: "crates/agent/src/state.rs",
        from: "self.spent.plus(self.reserved()).plus(amounts).fits(self.budget)",
        to: "amounts.minus(amounts).plus(self.spent).fits(self.budget)",
    },
    Mutant {
        safeguard: "re-decision",
        path: "crates/engine/src/driver/step.rs",
        from: "rules.grant(facts, &effect.approved, effect.work.clone())",
        to: "rules.grant(facts, &effect.approved, effect.work.clone()).or_else(|_| {
                let all = \"@id(\\\"all\\\") permit (principal, action, resource);\";
                let all = outrigger_policy::RuleSet::from_cedar(all).expect(\"it is sound\");
                all.grant(facts, &[], effect.work.clone())
            })",
    },
];

impl Mutant {
    fn applied(&self, text: &str) -> Result<String, Error> {
        let (safeguard, path) = (self.safeguard, self.path);
        match text.matches(self.from).count() {
            1 => Ok(text.replace(self.from, self.to)),
            count => Err(Error::Moved { safeguard, path, count }),
        }
    }
}

/// Tries each. The exit code: 0 if every one was missed, else 1.
pub(crate) fn run(workspace: &Workspace, out: &mut dyn Write) -> Result<u8, Error> {
    let copy = workspace.target.join("mutants");
    let target = copy.join("target");
    let mut unnoticed = Vec::new();
    for mutant in &MUTANTS {
        let Mutant { safeguard, path, .. } = mutant;
        copy_sources(&workspace.root, &copy)?;
        let place = copy.join(path);
        let text = std::fs::read_to_string(&place).map_err(|source| failed(path, source))?;
        std::fs::write(&place, mutant.applied(&text)?).map_err(|source| failed(path, source))?;
        writeln!(out, "== without {safeguard} ({path})")?;
        out.flush()?;
        let built = cargo("build", &copy, &target, &[]).run()?;
        if !built.success() {
            return Ok(child::code(built));
        }
        let seeds = MUTANT_SEEDS_MAX.to_string();
        let ran = cargo("run", &copy, &target, &["--", "--seeds", &seeds]).run()?;
        if ran.code() != Some(1) {
            unnoticed.push(*safeguard);
        }
    }
    copy_sources(&workspace.root, &copy)?;
    let what = if unnoticed.is_empty() { "none".to_owned() } else { unnoticed.join(", ") };
    writeln!(out, "mutants: {}, not noticed: {what}", MUTANTS.len())?;
    Ok(u8::from(!unnoticed.is_empty()))
}

fn failed(path: &str, source: std::io::Error) -> Error {
    Error::Copy { path: path.to_owned(), source }
}

/// Never in the directory of the real one: cargo takes a copy's crates for those that
/// they were copied from.
fn cargo(verb: &str, copy: &Path, target: &Path, rest: &[&str]) -> Child {
    let (manifest, target) = (text(&copy.join("Cargo.toml")), text(target));
    let words = ["cargo", verb, "--release", "--quiet", "--package", "outrigger-sim"];
    let places = ["--bin", "sim", "--manifest-path", &manifest, "--target-dir", &target];
    Child::new(words.into_iter().chain(places).chain(rest.iter().copied()))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Copies what differs, so that what is the same is not built again.
fn copy_sources(root: &Path, copy: &Path) -> Result<(), Error> {
    let listed = Command::new("git").arg("-C").arg(root).args(["ls-files", "-z"]).output();
    let listed = listed.map_err(|_| Error::Sources)?.stdout;
    let listed = String::from_utf8_lossy(&listed);
    let names: Vec<&str> = listed.split('\0').filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return Err(Error::Sources);
    }
    for name in names {
        let (from, to): (PathBuf, PathBuf) = (root.join(name), copy.join(name));
        // Removed from the tree, and not yet from git's list.
        let Ok(contents) = std::fs::read(&from) else { continue };
        if std::fs::read(&to).is_ok_and(|there| there == contents) {
            continue;
        }
        let parent = to.parent().unwrap_or(copy);
        std::fs::create_dir_all(parent).map_err(|source| failed(name, source))?;
        std::fs::write(&to, contents).map_err(|source| failed(name, source))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_safeguard_stands_once_where_it_is_taken_away() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for mutant in &MUTANTS {
            let text = std::fs::read_to_string(root.join(mutant.path)).unwrap();
            let mutated = mutant.applied(&text).unwrap();
            assert_ne!(mutated, text, "{}", mutant.safeguard);
        }
    }

    #[test]
    fn a_safeguard_that_moved_is_named() {
        let said = MUTANTS[0].applied("nothing of it").unwrap_err().to_string();
        assert!(said.contains("fencing") && said.contains("memory.rs"), "{said}");
    }
}
