//! Which tools of a person's machine a project is worked on with.
//!
//! Owns the way from a person's PATH to directories that a sandbox can be shown and a PATH
//! for it: a manager's stand-ins (pyenv, rustup, asdf, mise, volta) are replaced by the
//! version that they would run, as the project's own files say. Runs nothing, and believes a
//! project's file no more than a version's name: what is shown lies where the manager keeps
//! what it installed.

mod go;
mod java;
mod node;
mod python;
mod rust;
mod search;
mod stand_ins;
mod version_file;

use std::path::{Component, Path, PathBuf};

use self::search::{Search, is_seen};
use crate::WorkTree;

pub use self::go::{GO_CACHE, GoCache};
pub use self::search::{Shell, Toolchain, Toolchains};

/// Where every sandbox over the host's tools has programs already.
const SYSTEM: [&str; 7] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/games"];
/// Variables that tell compilers and build tools how to work. A secret is in none of them.
const PASSED: [&str; 22] = [
    "AR",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "CMAKE_PREFIX_PATH",
    "MAKEFLAGS",
    "RUSTFLAGS",
    "CARGO_INCREMENTAL",
    "GOFLAGS",
    "GOOS",
    "GOARCH",
    "CGO_ENABLED",
    "NODE_ENV",
    "PYTHONDONTWRITEBYTECODE",
    "LC_ALL",
    "TZ",
];

/// Finds the tools of a project, as the person's shell would run them where the person works.
#[must_use]
pub fn toolchains(tree: &WorkTree, shell: &Shell) -> Toolchains {
    let mut search = Search::new(tree, shell);
    let path = shell.vars.get("PATH").map_or("", String::as_str);
    for entry in path.split(':') {
        self::entry(&mut search, Path::new(entry));
    }
    python::of_environments(&mut search);
    java::of_home(&mut search);
    go::find(&mut search);
    let system = SYSTEM.iter().map(PathBuf::from);
    let mut tools = search.tools;
    tools.path.extend(system.filter(|dir| dir.is_dir()));
    let mut seen = Vec::new();
    tools.path.retain(|dir| {
        let new = !seen.contains(dir);
        seen.push(dir.clone());
        new
    });
    for name in PASSED {
        if let Some(value) = shell.vars.get(name) {
            tools.env.entry(name.to_owned()).or_insert_with(|| value.clone());
        }
    }
    tools.shown = outermost(std::mem::take(&mut tools.shown));
    tools
}

/// Those that are in no other one.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths.dedup();
    let all = paths.clone();
    paths.retain(|path| !all.iter().any(|other| other != path && path.starts_with(other)));
    paths
}

/// One entry of the PATH.
fn entry(search: &mut Search<'_>, entry: &Path) {
    // One that is not absolute means another place in each directory.
    let plain = entry.components().all(|part| !matches!(part, Component::ParentDir));
    if !entry.is_absolute() || !plain {
        return;
    }
    let Ok(real) = std::fs::canonicalize(entry) else { return };
    if !search.seen.insert(real.clone()) {
        return;
    }
    if is_seen(&real) || real.starts_with(&search.tree.top) {
        search.tools.path.push(entry.to_owned());
        return;
    }
    let done = rust::entry(search, &real)
        || python::entry(search, &real)
        || node::entry(search, &real)
        || stand_ins::entry(search, &real);
    // Stand-ins of a manager that is not known here run nothing without it.
    if !done && !real.ends_with("shims") {
        search.plain(&real);
    }
}

#[cfg(test)]
mod tests;
