//! The list of what a program is made of, in CycloneDX 1.5 (cyclonedx.org).
//!
//! Owns the walk over what cargo links. What only builds, or tests, is no part of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};
use serde_json::{Value, json};

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Cargo refused.
    #[error("cannot ask cargo what the program is made of")]
    Metadata(#[from] cargo_metadata::Error),
    /// The file of locked versions can't be read.
    #[error("cannot read Cargo.lock")]
    Lock(#[source] std::io::Error),
    /// Or is none.
    #[error("cannot understand Cargo.lock")]
    Toml(#[from] toml::de::Error),
    /// It is not there.
    #[error("there is no package `{0}`")]
    Absent(String),
}

/// Of a package, as JSON, for one kind of machine.
pub(crate) fn of(root: &Path, name: &str, host: &str) -> Result<String, Error> {
    let options = ["--locked", "--filter-platform", host].map(str::to_owned).to_vec();
    let metadata = MetadataCommand::new().current_dir(root).other_options(options).exec()?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).map_err(Error::Lock)?;
    let lock = toml::from_str(&lock)?;
    let sums = sums(&lock);
    let absent = || Error::Absent(name.to_owned());
    let program = metadata.packages.iter().find(|it| it.name == name).ok_or_else(absent)?;
    let linked = linked(&metadata, &program.id);
    let parts = metadata.packages.iter().filter(|it| linked.contains_key(&it.id));
    let (own, parts): (Vec<_>, Vec<_>) = parts.partition(|it| it.id == program.id);
    let component = |it: &Package| component(it, &sums);
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": own.first().map(|it| component(it)) },
        "components": parts.iter().map(|it| component(it)).collect::<Vec<_>>(),
        "dependencies": linked.iter().map(|(id, on)| json!({
            "ref": reference(&metadata[id]),
            "dependsOn": on.iter().map(|id| reference(&metadata[id])).collect::<BTreeSet<_>>(),
        })).collect::<Vec<_>>(),
    });
    Ok(format!("{document:#}\n"))
}

/// Every package that is linked into one, with those that it is linked with.
fn linked<'a>(
    metadata: &'a Metadata,
    from: &'a PackageId,
) -> BTreeMap<&'a PackageId, Vec<&'a PackageId>> {
    let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let nodes: BTreeMap<_, _> = nodes.map(|node| (&node.id, node)).collect();
    let (mut found, mut next) = (BTreeMap::new(), vec![from]);
    while let Some(id) = next.pop() {
        let normal = |kind: &cargo_metadata::DepKindInfo| kind.kind == DependencyKind::Normal;
        let on = nodes.get(id).into_iter().flat_map(|node| &node.deps);
        let on = on.filter(|dep| dep.dep_kinds.iter().any(normal)).map(|dep| &dep.pkg);
        // A macro runs in the compiler.
        let on: Vec<_> = on
            .filter(|id| !metadata[*id].targets.iter().any(cargo_metadata::Target::is_proc_macro))
            .collect();
        next.extend(on.iter().filter(|id| !found.contains_key(**id)));
        found.insert(id, on);
    }
    found
}

/// What the registry says a package's archive is, by name and version.
fn sums(lock: &toml::Table) -> BTreeMap<(&str, &str), &str> {
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    packages
        .filter_map(|it| {
            let name = it.get("name")?.as_str()?;
            let version = it.get("version")?.as_str()?;
            Some(((name, version), it.get("checksum")?.as_str()?))
        })
        .collect()
}

fn component(package: &Package, sums: &BTreeMap<(&str, &str), &str>) -> Value {
    let (name, version) = (package.name.as_str(), package.version.to_string());
    let is_program = package.targets.iter().any(cargo_metadata::Target::is_bin);
    let mut component = json!({
        "type": if is_program && package.source.is_none() { "application" } else { "library" },
        "bom-ref": reference(package),
        "name": name,
        "version": version,
        "purl": reference(package),
    });
    if let Some(license) = &package.license {
        // Old manifests write `MIT/Apache-2.0`, which is no expression of SPDX.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    if let Some(sum) = sums.get(&(name, version.as_str())) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

/// A package URL: github.com/package-url.
fn reference(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package of ours, what it links, and nothing that tests or builds it.
    #[test]
    fn what_is_linked_is_listed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the root");
        let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let text = of(root, "outrigger-beneath", &host).expect("cargo answers");
        let list: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(list["metadata"]["component"]["purl"], "pkg:cargo/outrigger-beneath@0.1.0");
        let components = list["components"].as_array().expect("components");
        let find = |name: &str| components.iter().find(|it| it["name"] == name);
        let rustix = find("rustix").expect("it is linked");
        assert_eq!(rustix["hashes"][0]["content"].as_str().map(str::len), Some(64), "{rustix}");
        assert!(rustix["licenses"][0]["expression"].as_str().is_some(), "{rustix}");
        assert!(find("tempfile").is_none(), "only tests use it");
    }
}
