//! Node by nvm and volta.

use std::path::{Path, PathBuf};

use super::search::{Search, is_version};
use super::version_file::VersionFile;

/// Whether an entry of the PATH is that of a manager of Node's versions: the one that the
/// project asks for takes its place.
pub(super) fn entry(search: &mut Search<'_>, bin: &Path) -> bool {
    of_nvm(search, bin) || of_volta(search, bin)
}

fn of_nvm(search: &mut Search<'_>, bin: &Path) -> bool {
    let versions = search.shell.dir("NVM_DIR", ".nvm").join("versions/node");
    let Ok(versions) = std::fs::canonicalize(versions) else { return false };
    if !bin.starts_with(&versions) {
        return false;
    }
    let asked = search.nearest(&[".nvmrc", ".node-version"]);
    let wanted = asked.as_ref().and_then(|file| file.lines().next().map(str::to_owned));
    let found = wanted.as_deref().and_then(|wanted| newest(&versions, wanted));
    if let (Some(wanted), None) = (&wanted, &found) {
        search.note(format!("Node {wanted} is not installed by nvm; the shell's own is used"));
    }
    let chosen_by = asked.filter(|_| found.is_some()).map(|file| file.path);
    let current = || bin.parent().and_then(|root| root.file_name()?.to_str()).map(str::to_owned);
    if let Some(name) = found.or_else(current) {
        let root = versions.join(&name);
        search.version(&format!("Node {name} (nvm)"), (&root, &root.join("bin")), chosen_by);
    }
    true
}

/// The newest version that begins like that: `20` is `v20.11.0`.
fn newest(versions: &Path, wanted: &str) -> Option<String> {
    let wanted = wanted.trim_start_matches('v');
    let entries = std::fs::read_dir(versions).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let within = |name: &String| {
        let plain = name.trim_start_matches('v');
        plain == wanted
            || plain.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('.'))
            // A name such as `lts/iron`, which only nvm can resolve, is the newest one.
            || matches!(wanted, "node" | "lts/*" | "stable" | "latest")
    };
    names.filter(within).max_by_key(|name| {
        let parts = name.trim_start_matches('v').split('.');
        parts.map(|part| part.parse().unwrap_or(0)).collect::<Vec<u64>>()
    })
}

fn of_volta(search: &mut Search<'_>, bin: &Path) -> bool {
    let home = search.shell.dir("VOLTA_HOME", ".volta");
    let Ok(home) = std::fs::canonicalize(home) else { return false };
    if bin != home.join("bin") {
        return false;
    }
    let json = |file: VersionFile| {
        let value = serde_json::from_str::<serde_json::Value>(&file.text).ok()?;
        Some((file.path, value))
    };
    let of_project = search.nearest(&["package.json"]).and_then(json).and_then(|(path, value)| {
        Some((value.pointer("/volta/node")?.as_str()?.to_owned(), Some(path)))
    });
    let platform = || {
        let (_, value) =
            VersionFile::read(&home.join("tools/user"), "platform.json").and_then(json)?;
        Some((value.pointer("/node/runtime")?.as_str()?.to_owned(), None::<PathBuf>))
    };
    if let Some((version, chosen_by)) =
        of_project.or_else(platform).filter(|(it, _)| is_version(it))
    {
        let root = home.join("tools/image/node").join(&version);
        search.version(&format!("Node {version} (volta)"), (&root, &root.join("bin")), chosen_by);
    }
    let packages = home.join("tools/image/packages");
    search.show(&packages);
    true
}
