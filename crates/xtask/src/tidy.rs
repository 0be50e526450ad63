//! The rules of CONTRIBUTING.md that clippy can't hold.
//!
//! Owns the list of rules and the one reading of the repository that they
//! share. Each rule is a function from that reading to findings. Must never
//! change a file.

mod layout;
mod machine;
mod manifests;
mod names;
mod size;
mod summary;
mod words;

use std::io::Write;

use serde::Serialize;

use crate::crate_map;
use crate::finding::{Finding, Severity};
use crate::source::Sources;
use crate::tree::{self, Tree};
use crate::workspace::Workspace;
use summary::Summary;

/// What every rule looks at.
#[derive(Debug, Default)]
struct Project {
    workspace: Workspace,
    tree: Tree,
    sources: Sources,
}

/// All findings and the numbers that we watch.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Errors and warnings, by path and line.
    findings: Vec<Finding>,
    summary: Summary,
}

const RULES: &[fn(&Project) -> Vec<Finding>] = &[
    size::files,
    size::traits,
    size::architecture,
    layout::module_docs,
    layout::orphans,
    layout::one_test_binary,
    layout::licence,
    names::banned,
    names::repeated,
    names::metaphors,
    names::limits,
    words::suppressions,
    words::unfinished,
    words::sleeps,
    words::unsafe_code,
    manifests::lints,
    manifests::anyhow,
    manifests::pure,
    machine::paths,
    machine::hosts,
    |project| {
        crate_map::check(project.tree.text(crate_map::PAGE), &project.workspace)
            .into_iter()
            .collect()
    },
];

/// Reads the repository and applies every rule.
pub(crate) fn run(workspace: Workspace) -> Result<Report, tree::Error> {
    let tree = Tree::load(&workspace.root)?;
    let (sources, mut findings) = Sources::parse(&tree, &workspace);
    let project = Project { workspace, tree, sources };
    findings.extend(RULES.iter().flat_map(|rule| rule(&project)));
    findings.sort();
    findings.dedup();
    Ok(Report { summary: Summary::of(&project.sources), findings })
}

impl Report {
    /// Whether no finding is an error.
    pub(crate) fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity != Severity::Error)
    }

    /// Findings one per line, then the summary.
    pub(crate) fn print(&self, out: &mut impl Write) -> std::io::Result<()> {
        for finding in &self.findings {
            writeln!(out, "{finding}")?;
        }
        let errors = self.findings.iter().filter(|f| f.severity == Severity::Error).count();
        let warnings = self.findings.len() - errors;
        writeln!(out, "{}", self.summary)?;
        writeln!(out, "tidy: {errors} errors, {warnings} warnings")
    }
}

/// A project made of text, for the tests of the rules. Crates are named by the
/// folders under `crates/`.
#[cfg(test)]
fn project<const N: usize>(files: [(&str, &str); N]) -> Project {
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
    let tree = Tree::from(files);
    let (sources, findings) = Sources::parse(&tree, &workspace);
    assert_eq!(findings, [], "a fixture does not parse");
    Project { workspace, tree, sources }
}

/// Applies one rule to one fixture.
#[cfg(test)]
fn check<const N: usize>(
    rule: fn(&Project) -> Vec<Finding>,
    files: [(&str, &str); N],
    expected: &expect_test::Expect,
) {
    expected.assert_eq(&crate::finding::listed(&rule(&project(files))));
}
