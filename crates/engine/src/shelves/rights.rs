//! What the rules say of an entry, however it is reached.
//!
//! Owns that a program in a sandbox is asked about as a tool is, by the path that it
//! reached. What the rules said is kept for a moment: a search looks at thousands of paths.

use outrigger_policy::{Action, Facts, RuleSet, Verdict};
use std::collections::{BTreeSet, HashMap};

use crate::limits;

/// Who acts in a session, as the rules see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) principal: String,
    pub(crate) agent: String,
    pub(crate) above: Vec<String>,
    pub(crate) labels: BTreeSet<String>,
}

/// What the rules say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Right {
    /// It may be done.
    Permitted,
    /// A person has to be asked.
    Asked,
    /// It may not, with what the rules say of it.
    Forbidden(String),
}

/// What is done to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Read,
    Write,
}

/// Verdicts on paths.
#[derive(Debug, Default)]
pub(super) struct Rights {
    who: Who,
    sandbox: String,
    reading: HashMap<String, Right>,
    writing: HashMap<String, Right>,
    /// When they were asked, in milliseconds since 1970.
    since_ms: u64,
}

impl Rights {
    pub(super) fn new(sandbox: String) -> Self {
        Self { sandbox, ..Self::default() }
    }

    pub(super) fn who(&self) -> &Who {
        &self.who
    }

    /// From now on somebody else acts, or more is known of them.
    pub(super) fn set(&mut self, who: Who) {
        if self.who != who {
            self.who = who;
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.reading.clear();
        self.writing.clear();
    }

    /// What the rules say now.
    pub(super) fn of(&mut self, act: Act, path: &str, rules: &RuleSet, at_ms: u64) -> Right {
        // Rules may look at the time, and what was asked may fill up.
        let old = rules.looks().time && at_ms.abs_diff(self.since_ms) > limits::RIGHTS_MS_MAX;
        if old || self.reading.len() + self.writing.len() >= limits::RIGHTS_MAX {
            self.forget();
            self.since_ms = at_ms;
        }
        let (known, action) = match act {
            Act::Read => (&mut self.reading, Action::ReadFiles),
            Act::Write => (&mut self.writing, Action::WriteFiles),
        };
        if let Some(known) = known.get(path) {
            return known.clone();
        }
        let Who { principal, agent, above, labels } = &self.who;
        let all = Facts::new(principal, action, path);
        let sandbox = Some(self.sandbox.as_str());
        let right = match rules.judge(&Facts { agent, above, labels, at_ms, sandbox, ..all }) {
            Verdict::Permit { .. } => Right::Permitted,
            Verdict::Ask { .. } => Right::Asked,
            Verdict::Forbid { rules, reasons } => {
                let said = if reasons.is_empty() { rules } else { reasons };
                Right::Forbidden(said.join(" "))
            }
        };
        known.insert(path.to_owned(), right.clone());
        right
    }
}
