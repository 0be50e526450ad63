//! Rules of manifests: shared lints, typed errors, pure crates that stay pure.

use serde::Deserialize;

use super::project::Project;
use crate::finding::Finding;

/// Crates that may hold an untyped error, being the edge.
const ANYHOW_CRATES: &[&str] = &["outrigger", "xtask"];

/// Crates without I/O, and all that they may link.
const PURE_CRATES: &[&str] = &["policy", "agent"];
const PURE_DEPENDENCIES: &[&str] =
    &["serde", "serde_json", "sha2", "thiserror", "cedar-policy", "miette", "outrigger-policy"];

/// The part of a manifest that cargo's metadata leaves out.
#[derive(Debug, Default, Deserialize)]
struct Manifest {
    #[serde(default)]
    lints: Lints,
}

#[derive(Debug, Default, Deserialize)]
struct Lints {
    #[serde(default)]
    workspace: bool,
    #[serde(default)]
    rust: toml::Table,
    #[serde(default)]
    clippy: toml::Table,
}

/// Every crate takes the workspace's lints. Cargo lets a crate take all of them
/// or none, so a crate that must lift one does it in its code, with a reason.
pub(super) fn lints(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &project.workspace.members {
        let path = member.manifest();
        let Some(text) = project.tree.text(&path) else { continue };
        let problem = match toml::from_str::<Manifest>(text) {
            Err(error) => Some(format!("cannot be read: {}", error.message())),
            Ok(Manifest { lints }) if !lints.rust.is_empty() || !lints.clippy.is_empty() => Some(
                "has lints of its own: `#![expect(lint, reason = \"...\")]` in the code".to_owned(),
            ),
            Ok(Manifest { lints }) if !lints.workspace => {
                Some("lacks `[lints] workspace = true`".to_owned())
            }
            Ok(_) => None,
        };
        findings.extend(problem.map(|problem| Finding::error(path, 1, "lints", problem)));
    }
    findings
}

/// Errors are typed below the binary.
pub(super) fn anyhow(project: &Project) -> Vec<Finding> {
    let untyped = |name: &str| matches!(name, "anyhow" | "eyre" | "color-eyre");
    project
        .workspace
        .members
        .iter()
        .filter(|member| !ANYHOW_CRATES.contains(&member.short()))
        .filter(|member| member.dependencies.iter().any(|dependency| untyped(&dependency.name)))
        .map(|member| {
            let message = "errors are typed below the binary: one `Error` per module";
            Finding::error(member.manifest(), 1, "anyhow", message)
        })
        .collect()
}

/// A pure crate links only what can't do I/O.
pub(super) fn pure(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &project.workspace.members {
        if !PURE_CRATES.contains(&member.short()) {
            continue;
        }
        for dependency in member.dependencies.iter().filter(|dependency| !dependency.dev) {
            if !PURE_DEPENDENCIES.contains(&dependency.name.as_str()) {
                let message = format!(
                    "`{}` -> `{}`: a pure crate depends on {} only",
                    member.name,
                    dependency.name,
                    PURE_DEPENDENCIES.join(", ")
                );
                findings.push(Finding::error(member.manifest(), 1, "pure", message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::project::check;
    use super::*;
    use crate::finding::listed;
    use crate::workspace::{Dependency, Workspace, fixture};

    #[test]
    fn every_crate_takes_the_shared_lints() {
        check(
            lints,
            [
                ("crates/store/Cargo.toml", "[lints]\nworkspace = true\n"),
                ("crates/model/Cargo.toml", "[package]\nname = \"x\"\n"),
                ("crates/guest/Cargo.toml", "[lints.rust]\nunsafe_code = \"allow\"\n"),
                ("crates/tools/Cargo.toml", "[lints\n"),
            ],
            &expect![[r#"
                crates/model/Cargo.toml:1: lints: lacks `[lints] workspace = true`
                crates/guest/Cargo.toml:1: lints: has lints of its own: `#![expect(lint, reason = "...")]` in the code
                crates/tools/Cargo.toml:1: lints: cannot be read: unclosed table, expected `]`
            "#]],
        );
    }

    fn of(members: Vec<crate::workspace::Member>) -> Project {
        Project { workspace: Workspace { members, ..Workspace::default() }, ..Project::default() }
    }

    #[test]
    fn untyped_errors_stay_at_the_edge() {
        let project = of(vec![
            fixture("outrigger", &["anyhow"]),
            fixture("xtask", &["anyhow"]),
            fixture("outrigger-store", &["anyhow"]),
        ]);
        expect![[r"
            crates/store/Cargo.toml:1: anyhow: errors are typed below the binary: one `Error` per module
        "]]
        .assert_eq(&listed(&anyhow(&project)));
    }

    #[test]
    fn pure_crates_link_nothing_that_does_io() {
        let mut agent = fixture("outrigger-agent", &["serde", "outrigger-policy", "tokio"]);
        agent.dependencies.push(Dependency { name: "proptest".to_owned(), dev: true });
        let project = of(vec![agent, fixture("outrigger-store", &["tokio"])]);
        expect![[r"
            crates/agent/Cargo.toml:1: pure: `outrigger-agent` -> `tokio`: a pure crate depends on serde, serde_json, sha2, thiserror, cedar-policy, miette, outrigger-policy only
        "]]
        .assert_eq(&listed(&pure(&project)));
    }
}
