//! The rules of CONTRIBUTING.md that clippy can't hold.
//!
//! Owns the list of rules and the one reading of the repository that they
//! share. Each rule is a function from that reading to findings. Must never
//! change a file.

mod imports;
mod layout;
mod machine;
mod manifests;
mod names;
mod objects;
mod project;
mod size;
mod summary;
mod walk;
mod words;

use std::io::Write;

use serde::Serialize;

use crate::crate_map;
use crate::finding::{Finding, Severity};
use crate::tree;
use crate::workspace::Workspace;
use project::Project;
use summary::Summary;

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
    names::participles,
    names::shared,
    names::limits,
    imports::circles,
    objects::spread,
    words::suppressions,
    words::unfinished,
    words::sleeps,
    words::unsafe_code,
    words::leaning_docs,
    manifests::lints,
    manifests::anyhow,
    manifests::pure,
    machine::paths,
    machine::hosts,
    walk::places,
    |project| {
        crate_map::check(project.tree.text(crate_map::PAGE), &project.workspace)
            .into_iter()
            .collect()
    },
];

/// Reads the repository and applies every rule.
pub(crate) fn run(workspace: Workspace) -> Result<Report, tree::Error> {
    let (project, mut findings) = Project::load(workspace)?;
    findings.extend(RULES.iter().flat_map(|rule| rule(&project)));
    findings.sort();
    findings.dedup();
    Ok(Report { summary: Summary::of(&project), findings })
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
