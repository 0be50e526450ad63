//! Rust by rustup.

use std::path::{Path, PathBuf};

use super::search::{Search, is_version};
use super::version_file::VersionFile;

/// Directories of cargo's home that sandboxes may see. Beside them are credentials.
const OF_CARGO: [&str; 3] = ["bin", "registry", "git"];

/// Whether an entry of the PATH is that of rustup's stand-ins: the toolchain takes its place.
pub(super) fn entry(search: &mut Search<'_>, bin: &Path) -> bool {
    if !bin.join("rustup").is_file() || !bin.join("rustc").exists() {
        return false;
    }
    let home = search.shell.dir("RUSTUP_HOME", ".rustup");
    // Where whoever runs this has another home than who installed it.
    let beside = bin.ancestors().nth(2).map(|dir| dir.join(".rustup"));
    let home = if home.is_dir() { home } else { beside.unwrap_or(home) };
    let installed = Installed::read(&home);
    let (wanted, chosen_by) = wanted(search, &home);
    let found = wanted.as_deref().and_then(|wanted| installed.find(wanted));
    let chosen_by = chosen_by.filter(|_| found.is_some());
    let found = found.or_else(|| {
        let other = installed.default(&home)?;
        if let Some(wanted) = &wanted {
            search.note(format!("Rust {wanted} is not installed; {other} is used"));
        }
        Some(other)
    });
    if let Some(name) = found {
        let root = home.join("toolchains").join(&name);
        let words = format!("Rust {} (rustup)", name.split("-x86_64").next().unwrap_or(&name));
        search.version(&words, (&root, &root.join("bin")), chosen_by);
        search.set("RUSTUP_TOOLCHAIN", name);
        cargo(search, bin);
    }
    true
}

/// What cargo installed and downloaded.
fn cargo(search: &mut Search<'_>, bin: &Path) {
    let home = search.shell.dir("CARGO_HOME", ".cargo");
    let home = if home.is_dir() { home } else { bin.parent().map_or(home, Path::to_owned) };
    for part in OF_CARGO {
        search.show(&home.join(part));
    }
    let config = ["config.toml", "config"].map(|name| VersionFile::read(&home, name));
    let secret =
        |text: &str| ["token", "credential", "password"].iter().any(|it| text.contains(it));
    for file in config.into_iter().flatten() {
        if secret(&file.text.to_lowercase()) {
            let path = file.path.display();
            search.note(format!("{path} may hold a secret and is not shown to the sandbox"));
        } else {
            search.show(&file.path);
        }
    }
    search.tools.path.push(bin.to_owned());
    search.set("CARGO_HOME", home.display().to_string());
    search.set("CARGO_NET_OFFLINE", "true");
}

/// The toolchain that a project, or the shell, asks for.
fn wanted(search: &Search<'_>, home: &Path) -> (Option<String>, Option<PathBuf>) {
    if let Some(name) = search.shell.vars.get("RUSTUP_TOOLCHAIN") {
        return (Some(name.clone()), None);
    }
    let Some(file) = search.nearest(&["rust-toolchain.toml", "rust-toolchain"]) else {
        return (overridden(search, home), None);
    };
    let channel = match toml::from_str::<toml::Table>(&file.text) {
        Ok(table) => table
            .get("toolchain")
            .and_then(|toolchain| toolchain.get("channel")?.as_str())
            .map(str::to_owned),
        Err(_) => file.lines().next().map(str::to_owned),
    };
    (channel.filter(|name| is_version(name)), Some(file.path))
}

/// What `rustup override set` said of the directory or one above it.
fn overridden(search: &Search<'_>, home: &Path) -> Option<String> {
    let settings = VersionFile::read(home, "settings.toml")?;
    let settings = toml::from_str::<toml::Table>(&settings.text).ok()?;
    let overrides = settings.get("overrides")?.as_table()?;
    search.dir.ancestors().find_map(|dir| Some(overrides.get(dir.to_str()?)?.as_str()?.to_owned()))
}

/// The toolchains that are there.
struct Installed(Vec<String>);

impl Installed {
    fn read(home: &Path) -> Self {
        let entries = std::fs::read_dir(home.join("toolchains"));
        let names = entries.into_iter().flatten().flatten();
        let mut names: Vec<String> =
            names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        Self(names)
    }

    /// The one of that name, or for this machine.
    fn find(&self, wanted: &str) -> Option<String> {
        let begins = format!("{wanted}-");
        let for_host = |name: &&String| {
            name.strip_prefix(&begins).is_some_and(|rest| rest.starts_with(std::env::consts::ARCH))
        };
        self.0.iter().find(|name| *name == wanted).or_else(|| self.0.iter().find(for_host)).cloned()
    }

    fn default(&self, home: &Path) -> Option<String> {
        let settings = VersionFile::read(home, "settings.toml");
        let table = settings.and_then(|file| toml::from_str::<toml::Table>(&file.text).ok());
        let named =
            table.and_then(|table| Some(table.get("default_toolchain")?.as_str()?.to_owned()));
        named.and_then(|name| self.find(&name)).or_else(|| self.0.last().cloned())
    }
}
