//! The workspace as cargo sees it, cut down to what the checks ask.
//!
//! Owns the one call of `cargo metadata`. Must never build anything.

use std::path::PathBuf;

use cargo_metadata::{DependencyKind, MetadataCommand, Package, TargetKind};

/// Why the workspace can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Cargo refused: a manifest is broken, or this is no workspace.
    #[error("cannot read the workspace (does `cargo metadata --no-deps` work here?)")]
    Metadata(#[source] cargo_metadata::Error),
}

/// The members of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    /// Where it lies on this machine.
    pub(crate) root: PathBuf,
    /// Where cargo puts what it builds.
    pub(crate) target: PathBuf,
    /// Its packages, by name.
    pub(crate) members: Vec<Member>,
}

/// One package of the workspace.
#[derive(Debug, Default, Clone)]
pub(crate) struct Member {
    /// The package's name, for example `outrigger-store`.
    pub(crate) name: String,
    /// Its folder, relative to the root, for example `crates/store`.
    pub(crate) dir: String,
    /// Its `description`.
    pub(crate) description: String,
    /// Everything that it depends on.
    pub(crate) dependencies: Vec<Dependency>,
    /// The files that cargo starts to compile from.
    pub(crate) targets: Vec<Target>,
}

/// One line of a `[dependencies]` table.
#[derive(Debug, Clone)]
pub(crate) struct Dependency {
    /// The package depended on.
    pub(crate) name: String,
    /// Whether only tests, examples and benches see it.
    pub(crate) dev: bool,
}

/// One library, program or test of a package.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// Its root file, relative to the root of the workspace.
    pub(crate) path: String,
    /// Whether it is an integration test.
    pub(crate) test: bool,
}

impl Member {
    /// The name without the project's: `store` for `outrigger-store`.
    pub(crate) fn short(&self) -> &str {
        self.name.strip_prefix("outrigger-").unwrap_or(&self.name)
    }

    /// The path of its manifest, relative to the root.
    pub(crate) fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.dir)
    }
}

impl Workspace {
    /// Asks cargo for the workspace around the current directory.
    pub(crate) fn load() -> Result<Self, Error> {
        let metadata = MetadataCommand::new().no_deps().exec().map_err(Error::Metadata)?;
        let root = metadata.workspace_root.clone().into_std_path_buf();
        let mut members: Vec<Member> = metadata
            .workspace_packages()
            .into_iter()
            .map(|package| member(package, metadata.workspace_root.as_str()))
            .collect();
        members.sort_by(|a, b| a.name.cmp(&b.name));
        let target = metadata.target_directory.clone().into_std_path_buf();
        Ok(Self { root, target, members })
    }

    /// The member of that name.
    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

fn member(package: &Package, root: &str) -> Member {
    let relative =
        |path: &str| path.strip_prefix(root).unwrap_or(path).trim_start_matches('/').to_owned();
    let manifest = relative(package.manifest_path.as_str());
    Member {
        name: package.name.to_string(),
        dir: manifest.trim_end_matches("Cargo.toml").trim_end_matches('/').to_owned(),
        description: package.description.clone().unwrap_or_default(),
        dependencies: package
            .dependencies
            .iter()
            .map(|dependency| Dependency {
                name: dependency.name.clone(),
                dev: dependency.kind == DependencyKind::Development,
            })
            .collect(),
        targets: package
            .targets
            .iter()
            .map(|target| Target {
                path: relative(target.src_path.as_str()),
                test: target.kind.contains(&TargetKind::Test),
            })
            .collect(),
    }
}

/// A member for fixtures: name, then its normal dependencies.
#[cfg(test)]
pub(crate) fn fixture(name: &str, dependencies: &[&str]) -> Member {
    let short = name.strip_prefix("outrigger-").unwrap_or(name);
    Member {
        name: name.to_owned(),
        dir: format!("crates/{short}"),
        description: format!("What {short} is"),
        dependencies: dependencies
            .iter()
            .map(|name| Dependency { name: (*name).to_owned(), dev: false })
            .collect(),
        targets: vec![Target { path: format!("crates/{short}/src/lib.rs"), test: false }],
    }
}
