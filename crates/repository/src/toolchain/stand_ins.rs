//! asdf and mise: stand-ins for any tool, each with its versions in a directory.

use std::path::{Path, PathBuf};

use super::search::{Search, is_version};
use super::version_file::VersionFile;

/// Whether an entry of the PATH is that of their stand-ins: the versions take its place.
pub(super) fn entry(search: &mut Search<'_>, bin: &Path) -> bool {
    let Some(data) =
        bin.parent().filter(|data| bin.ends_with("shims") && data.join("installs").is_dir())
    else {
        return false;
    };
    let chosen = chosen(search);
    let tools = std::fs::read_dir(data.join("installs")).into_iter().flatten().flatten();
    let mut tools: Vec<String> =
        tools.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    tools.sort();
    for tool in tools {
        let versions = data.join("installs").join(&tool);
        let asked = chosen.iter().find(|(name, _, _)| *name == tool);
        let Some((_, version, path)) = asked else { continue };
        let root = versions.join(version);
        if root.is_dir() {
            search.version(
                &format!("{tool} {version}"),
                (&root, &root.join("bin")),
                Some(path.clone()),
            );
        } else {
            search.note(format!("{tool} {version} is not installed"));
        }
    }
    true
}

/// Tools and versions, as the nearest files say; those of a nearer one first.
fn chosen(search: &Search<'_>) -> Vec<(String, String, PathBuf)> {
    let mut chosen = Vec::new();
    let near = search.nearest(&[".tool-versions", "mise.toml", ".mise.toml"]);
    let of_home = [".tool-versions", ".config/mise/config.toml"];
    let of_home = of_home.iter().filter_map(|name| VersionFile::read(&search.shell.home, name));
    for file in near.into_iter().chain(of_home) {
        let path = file.path.clone();
        let pairs = if path.extension().is_some_and(|it| it == "toml") {
            of_toml(&file)
        } else {
            of_lines(&file)
        };
        let fine =
            pairs.into_iter().filter(|(tool, version)| is_version(tool) && is_version(version));
        chosen.extend(fine.map(|(tool, version)| (tool, version, path.clone())));
    }
    chosen
}

fn of_lines(file: &VersionFile) -> Vec<(String, String)> {
    let pair = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    };
    file.lines().filter_map(pair).collect()
}

fn of_toml(file: &VersionFile) -> Vec<(String, String)> {
    let Ok(table) = toml::from_str::<toml::Table>(&file.text) else { return Vec::new() };
    let Some(tools) = table.get("tools").and_then(|tools| tools.as_table()) else {
        return Vec::new();
    };
    let version = |value: &toml::Value| match value {
        toml::Value::Table(table) => table.get("version")?.as_str().map(str::to_owned),
        toml::Value::Array(all) => all.first()?.as_str().map(str::to_owned),
        other => other.as_str().map(str::to_owned),
    };
    tools.iter().filter_map(|(tool, value)| Some((tool.clone(), version(value)?))).collect()
}
