//! What a check found, and where.
//!
//! Owns the one shape in which findings are printed and exported. Must never
//! decide what a finding is: that is each rule's own business.

use std::fmt;

use serde::Serialize;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Fails the check.
    Error,
    /// Is printed and fails nothing.
    Warning,
}

/// One place where a rule does not hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Finding {
    /// Relative to the root of the repository.
    pub(crate) path: String,
    /// From 1.
    pub(crate) line: usize,
    /// The rule's stable name.
    pub(crate) rule: &'static str,
    /// How much it matters.
    pub(crate) severity: Severity,
    /// What is wrong and what to do instead.
    pub(crate) message: String,
}

impl Finding {
    /// A finding that fails the check.
    pub(crate) fn error(
        path: impl Into<String>,
        line: usize,
        rule: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            path: path.into(),
            line: line.max(1),
            rule,
            severity: Severity::Error,
            message: message.into(),
        }
    }

    /// A finding that fails nothing.
    pub(crate) fn warning(
        path: impl Into<String>,
        line: usize,
        rule: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(path, line, rule, message) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
        };
        write!(f, "{}:{}: {}: {mark}{}", self.path, self.line, self.rule, self.message)
    }
}

/// Findings one per line, as the tests compare them.
#[cfg(test)]
pub(crate) fn listed(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("{finding}\n")).collect()
}
