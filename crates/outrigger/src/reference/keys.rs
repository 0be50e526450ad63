//! Every key of a configuration file, as people read of it.

mod agents;
mod asking;
mod others;
mod sandboxes;
mod space;

/// A table of the file.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// Its header in a file.
    pub(super) header: &'static str,
    pub(super) about: &'static str,
    pub(super) keys: &'static [Key],
}

/// A key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// Its type, with the range.
    pub(super) kind: &'static str,
    /// What holds where it is absent: a value in backquotes, or words.
    pub(super) default: fn() -> String,
    pub(super) about: &'static str,
    /// What says the same: a flag, a variable.
    pub(super) instead: &'static str,
    /// A value for the example file; the default where this is empty.
    pub(super) example: &'static str,
}

impl Key {
    /// A value for an example.
    pub(super) fn example(&self) -> String {
        if self.example.is_empty() {
            return (self.default)().trim_matches('`').to_owned();
        }
        self.example.to_owned()
    }
}

/// A value in backquotes.
fn value(value: impl std::fmt::Display) -> String {
    format!("`{value}`")
}

fn nothing() -> String {
    "–".to_owned()
}

pub(super) const TABLES: &[Table] = &[
    asking::MODEL,
    asking::LIMITS,
    sandboxes::SANDBOX,
    sandboxes::DOCKER,
    others::NOTIFY,
    sandboxes::WORKSPACE,
    asking::POLICY,
    asking::BUDGET,
    space::MEMORY,
    others::SKILLS,
    space::RETENTION,
    others::TOOLS,
    agents::AGENTS,
];
