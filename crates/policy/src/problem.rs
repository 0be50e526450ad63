//! What is wrong with a set of rules, and where.

use std::fmt;

/// Whether rules with a problem can be in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// They can't.
    Error,
    /// They can, but it will hardly be what was meant.
    Warning,
}

/// Something that is wrong, told so that it can be put right.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Whether it keeps the rules from being in force.
    pub severity: Severity,
    /// The name of the file.
    pub source: String,
    /// The line, from 1; 0 if it is the whole file.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// What to do; may be empty.
    pub help: String,
}

impl Problem {
    pub(crate) fn error(source: &str, line: usize, message: impl Into<String>) -> Self {
        let (severity, source) = (Severity::Error, source.to_owned());
        Self { severity, source, line, message: message.into(), help: String::new() }
    }

    pub(crate) fn warning(source: &str, line: usize, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(source, line, message) }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: help.into(), ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if self.line > 0 {
            write!(f, ", line {}", self.line)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Rules that can't be in force.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct Problems(pub Vec<Problem>);
