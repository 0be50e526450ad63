//! The repository as the rules see it.
//!
//! Owns the one reading of it that they share. Must never know a rule.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::imports::Imports;
use crate::source::Sources;
use crate::tree::{self, Tree};
use crate::workspace::Workspace;

/// What every rule looks at.
#[derive(Debug, Default)]
pub(super) struct Project {
    pub(super) workspace: Workspace,
    pub(super) tree: Tree,
    pub(super) sources: Sources,
    /// By the short name of the crate.
    pub(super) imports: BTreeMap<String, Imports>,
}

impl Project {
    /// Reads the repository. What does not parse is a finding.
    pub(super) fn load(workspace: Workspace) -> Result<(Self, Vec<Finding>), tree::Error> {
        let tree = Tree::load(&workspace.root)?;
        Ok(Self::of(workspace, tree))
    }

    fn of(workspace: Workspace, tree: Tree) -> (Self, Vec<Finding>) {
        let (sources, findings) = Sources::parse(&tree, &workspace);
        let imports = Imports::of(&sources);
        (Self { workspace, tree, sources, imports }, findings)
    }
}

/// A project made of text, for the tests of the rules. Crates are named by the
/// folders under `crates/`.
#[cfg(test)]
pub(super) fn project<const N: usize>(files: [(&str, &str); N]) -> Project {
    use crate::workspace::{Target, fixture};

    let mut members: Vec<crate::workspace::Member> = Vec::new();
    for (path, _) in &files {
        let Some((name, _)) = path.strip_prefix("crates/").and_then(|p| p.split_once('/')) else {
            continue;
        };
        let package = match name {
            "outrigger" | "xtask" => name.to_owned(),
            name => format!("outrigger-{name}"),
        };
        if !members.iter().any(|member| member.name == package) {
            members.push(fixture(&package, &[]));
        }
        let member = members.iter_mut().find(|member| member.name == package);
        let member = member.expect("it was just added");
        if path.ends_with("/main.rs")
            || (path.contains("/tests/") && path.matches('/').count() == 3)
        {
            let test = path.contains("/tests/");
            member.targets.push(Target { path: (*path).to_owned(), test });
        }
    }
    let workspace = Workspace { members, ..Workspace::default() };
    let (project, findings) = Project::of(workspace, Tree::from(files));
    assert_eq!(findings, [], "a fixture does not parse");
    project
}

/// Applies one rule to one fixture.
#[cfg(test)]
pub(super) fn check<const N: usize>(
    rule: fn(&Project) -> Vec<Finding>,
    files: [(&str, &str); N],
    expected: &expect_test::Expect,
) {
    expected.assert_eq(&crate::finding::listed(&rule(&project(files))));
}
