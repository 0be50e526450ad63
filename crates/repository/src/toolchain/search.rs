//! The search for the tools of one project, and what it found.
//!
//! Owns what may be shown of the machine: tools, and never a home or what a sandbox has of
//! its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::version_file::VersionFile;
use crate::WorkTree;

/// What of a person's shell counts: their home and the variables.
#[derive(Debug, Clone, Default)]
pub struct Shell {
    /// Their home directory.
    pub home: PathBuf,
    /// The variables, those that are text.
    pub vars: BTreeMap<String, String>,
}

impl Shell {
    /// A directory that a variable names, else one beneath the home.
    pub(crate) fn dir(&self, variable: &str, beneath_home: &str) -> PathBuf {
        match self.vars.get(variable) {
            Some(path) if Path::new(path).is_absolute() => PathBuf::from(path),
            _ => self.home.join(beneath_home),
        }
    }
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// What it is, for a person: `Python 3.12.4 (pyenv)`.
    pub name: String,
    /// The file of the project that says so.
    pub chosen_by: Option<PathBuf>,
}

/// The tools of a project: what is shown of the host for them, and how they are found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Toolchains {
    /// What was found.
    pub found: Vec<Toolchain>,
    /// Directories and files of the host, none within another.
    pub shown: Vec<PathBuf>,
    /// Where programs are looked for, in order.
    pub path: Vec<PathBuf>,
    /// Further variables.
    pub env: BTreeMap<String, String>,
    /// Where Go keeps what it compiled.
    pub go_cache: Option<PathBuf>,
    /// What a person should know: a version that is not installed, and what is used instead.
    pub notes: Vec<String>,
}

/// What of the host every such sandbox sees.
const SEEN: [&str; 5] = ["/usr", "/bin", "/sbin", "/lib", "/lib64"];
/// What a sandbox has at the top for itself.
const OWN: [&str; 8] = ["/dev", "/proc", "/sys", "/run", "/tmp", "/var", "/etc", "/workspace"];
/// The search for the tools of one project.
pub(crate) struct Search<'a> {
    /// Where the person works.
    pub(crate) dir: PathBuf,
    pub(crate) tree: &'a WorkTree,
    pub(crate) shell: &'a Shell,
    pub(crate) tools: Toolchains,
    /// Entries of the PATH that were looked at.
    pub(crate) seen: BTreeSet<PathBuf>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(tree: &'a WorkTree, shell: &'a Shell) -> Self {
        Self { dir: tree.dir(), tree, shell, tools: Toolchains::default(), seen: BTreeSet::new() }
    }

    /// A directory of programs that nobody manages: with what stands beside it, if it is the
    /// `bin` of something that was installed into a directory of its own.
    pub(crate) fn plain(&mut self, bin: &Path) {
        let whole = bin.parent().filter(|parent| {
            bin.file_name().is_some_and(|name| name == "bin")
                && ["lib", "libexec", "share", "include", "pkg"]
                    .iter()
                    .any(|part| parent.join(part).is_dir())
                && *parent != self.shell.home.join(".local")
        });
        if self.show(whole.unwrap_or(bin)) {
            self.tools.path.push(bin.to_owned());
        }
        if bin == self.shell.home.join(".local/bin") {
            // What pipx and uv install is a link to there.
            for part in [".local/share/uv/tools", ".local/share/pipx/venvs", ".local/pipx/venvs"] {
                self.show(&self.shell.home.join(part));
            }
        }
    }

    /// Shows a directory or a file, unless it is more than tools. Whether it is seen.
    pub(crate) fn show(&mut self, path: &Path) -> bool {
        if is_seen(path) {
            return true;
        }
        let home = &self.shell.home;
        let too_much = home.starts_with(path) || self.dir.starts_with(path);
        let taken = OWN.iter().any(|own| path.starts_with(own));
        if too_much || taken || !path.exists() {
            return false;
        }
        self.tools.shown.push(path.to_owned());
        true
    }

    /// A version of a tool that is installed in a directory of its own.
    pub(crate) fn version(
        &mut self,
        name: &str,
        (root, bin): (&Path, &Path),
        chosen_by: Option<PathBuf>,
    ) {
        let (Ok(real), Ok(inside)) = (std::fs::canonicalize(root), bin.strip_prefix(root)) else {
            return;
        };
        if self.show(&real) {
            self.tools.path.push(real.join(inside));
            self.tools.found.push(Toolchain { name: name.to_owned(), chosen_by });
        }
    }

    /// A variable of the sandbox.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.tools.env.insert(name.to_owned(), value.into());
    }

    pub(crate) fn note(&mut self, text: String) {
        self.tools.notes.push(text);
    }

    /// The nearest file of one of these names, in the directory or above it.
    pub(crate) fn nearest(&self, names: &[&str]) -> Option<VersionFile> {
        VersionFile::nearest(&self.dir, &self.shell.home, names)
    }
}

/// Whether every sandbox over the host's tools sees it.
pub(crate) fn is_seen(path: &Path) -> bool {
    SEEN.iter().any(|seen| path.starts_with(seen))
}

/// Whether a file's word can be the name of a version: of a plain directory, that is.
pub(crate) fn is_version(name: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '@');
    !name.is_empty() && name.len() <= 100 && !name.starts_with('.') && name.chars().all(fine)
}
