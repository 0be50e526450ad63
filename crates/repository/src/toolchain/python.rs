//! Python by pyenv, and what a virtual environment was made with.

use std::path::{Path, PathBuf};

use super::search::{Search, is_version};
use super::version_file::VersionFile;

/// Whether an entry of the PATH is pyenv's: the versions take the place of its stand-ins.
pub(super) fn entry(search: &mut Search<'_>, bin: &Path) -> bool {
    let is_root = |dir: &&Path| dir.join("versions").is_dir() && dir.join("shims").is_dir();
    let Some(root) = bin.ancestors().skip(1).find(is_root) else { return false };
    if bin.starts_with(root.join("versions")) {
        return false;
    }
    if bin == root.join("shims") {
        of_pyenv(search, root);
    }
    true
}

fn of_pyenv(search: &mut Search<'_>, root: &Path) {
    let of_shell = search.shell.vars.get("PYENV_VERSION");
    let (wanted, chosen_by): (Vec<String>, _) = match of_shell {
        Some(names) => (names.split(':').map(str::to_owned).collect(), None),
        None => {
            let own = search.nearest(&[".python-version"]);
            let chosen_by = own.as_ref().map(|file| file.path.clone());
            let file = own.or_else(|| VersionFile::read(root, "version"));
            let names = file.iter().flat_map(VersionFile::lines).flat_map(str::split_whitespace);
            (names.map(str::to_owned).collect(), chosen_by)
        }
    };
    let installed = installed(root);
    let mut any = false;
    for name in wanted.iter().filter(|name| is_version(name) && *name != "system") {
        match newest(&installed, name) {
            Some(version) => {
                any = true;
                one(search, root, version, chosen_by.clone());
            }
            None => search.note(format!("Python {name} is not installed by pyenv")),
        }
    }
    // Where none of what a project asks for is there, one that is beats none.
    let asks_system = wanted.is_empty() || wanted.iter().any(|name| name == "system");
    if !any
        && !asks_system
        && let Some(version) = VersionFile::read(root, "version")
            .and_then(|file| file.lines().next().map(str::to_owned))
            .and_then(|name| newest(&installed, &name).cloned())
            .or_else(|| installed.last().cloned())
    {
        search.note(format!("Python {version} is used instead"));
        one(search, root, &version, None);
    }
}

fn one(search: &mut Search<'_>, root: &Path, version: &str, chosen_by: Option<PathBuf>) {
    let home = root.join("versions").join(version);
    search.version(&format!("Python {version} (pyenv)"), (&home, &home.join("bin")), chosen_by);
}

fn installed(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root.join("versions")).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_by_key(|name| numbers(name));
    names
}

fn numbers(name: &str) -> Vec<u64> {
    name.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

/// The version of that name, or the newest that it begins: `3.12` is `3.12.4`.
fn newest<'a>(installed: &'a [String], wanted: &str) -> Option<&'a String> {
    let within = |name: &&String| {
        *name == wanted || name.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('.'))
    };
    installed
        .iter()
        .rev()
        .find(|name| *name == wanted)
        .or_else(|| installed.iter().rev().find(within))
}

/// What the virtual environments of the project were made with.
pub(super) fn of_environments(search: &mut Search<'_>) {
    let tree = search.tree;
    for folder in tree.folders() {
        for name in [".venv", "venv", "env"] {
            of_environment(search, &folder.join(name));
        }
    }
    if search.tools.path.iter().any(|dir| dir.join("uv").is_file()) {
        search.set("UV_OFFLINE", "1");
        search.set("UV_PYTHON_DOWNLOADS", "never");
    }
}

fn of_environment(search: &mut Search<'_>, folder: &Path) {
    let file = VersionFile::read(&search.tree.top.join(folder), "pyvenv.cfg");
    let home = file.as_ref().and_then(|file| {
        file.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == "home").then(|| PathBuf::from(value.trim()))
        })
    });
    // It may be written by anybody: only what a manager of Python installed is shown.
    let Some(home) = home.and_then(|home| std::fs::canonicalize(home).ok()) else { return };
    let Some(root) = home.parent().filter(|_| home.ends_with("bin")) else { return };
    let managed = roots(search).iter().any(|managed| {
        root != managed
            && root.starts_with(managed)
            && root.components().count() == managed.components().count() + 1
    });
    if managed {
        search.show(root);
    } else if !super::search::is_seen(&home) {
        let (folder, home) = (folder.display(), home.display());
        search.note(format!("{folder} was made with the Python in {home}, which is not shown to the sandbox: name it in sandbox.read_only"));
    }
}

/// Where managers keep one directory for each Python that they installed.
fn roots(search: &Search<'_>) -> Vec<PathBuf> {
    let shell = search.shell;
    let mut roots = vec![
        shell.dir("PYENV_ROOT", ".pyenv").join("versions"),
        shell.dir("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python"),
        shell.dir("ASDF_DATA_DIR", ".asdf").join("installs/python"),
        shell.dir("MISE_DATA_DIR", ".local/share/mise").join("installs/python"),
        PathBuf::from("/opt"),
    ];
    roots.extend(roots.clone().iter().filter_map(|root| std::fs::canonicalize(root).ok()));
    for name in ["miniconda3", "miniforge3", "mambaforge", "anaconda3"] {
        roots.push(shell.home.join(name).join("envs"));
    }
    roots
}
