//! What the rules say of an entry, however it is reached.
//!
//! Owns that there is one judgement: each path that a tool or a program comes to is put to
//! the rules with the very facts that its effect was judged by. What the rules said is kept
//! for a moment: a search looks at thousands of paths.

use outrigger_policy::{Action, Approved, Facts, Left, RuleSet, Situation, Verdict};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use crate::limits;

/// What the rules say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Right {
    /// It may be done.
    Permitted,
    /// A person has to be asked, and was not.
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

/// Judges the paths that one effect comes to.
#[derive(Debug)]
pub(crate) struct Judgement {
    rules: RuleSet,
    /// The effect's. What it is about, its labels and the time are those of each question.
    situation: Situation,
    approved: Vec<Approved>,
    known: Mutex<VerdictCache>,
}

/// Verdicts on paths.
#[derive(Debug, Default)]
struct VerdictCache {
    reading: HashMap<String, Right>,
    writing: HashMap<String, Right>,
    /// When they were asked, in milliseconds since 1970.
    since_ms: u64,
    /// With how many labels: they only become more.
    labels: usize,
}

impl Judgement {
    /// `approved`: who approved the effect.
    pub(crate) fn new(rules: RuleSet, situation: Situation, approved: Vec<Approved>) -> Self {
        let (action, resource) = (Action::ReadFiles, String::new());
        let left = if rules.looks().left { situation.left } else { Left::default() };
        let (labels, at_ms) = (BTreeSet::new(), 0);
        let situation = Situation { action, resource, labels, at_ms, left, ..situation };
        Self { rules, situation, approved, known: Mutex::default() }
    }

    /// Judges where it is not known by what tool paths are come to.
    pub(super) fn without_tool(mut self) -> Self {
        (self.situation.tool, self.situation.shell) = (None, None);
        self
    }

    /// Whether both say the same of every path.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.rules.hash() == other.rules.hash()
            && self.situation == other.situation
            && self.approved == other.approved
    }

    /// The agent that acts.
    pub(super) fn agent(&self) -> &str {
        &self.situation.agent
    }

    /// What the rules say now, in a session with these labels.
    pub(super) fn of(&self, act: Act, path: &str, labels: &BTreeSet<String>, at_ms: u64) -> Right {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Rules may look at the time, and what was asked may fill up.
        let looks = self.rules.looks();
        let old = looks.time && at_ms.abs_diff(known.since_ms) > limits::RIGHTS_MS_MAX;
        let full = known.reading.len() + known.writing.len() >= limits::RIGHTS_MAX;
        if old || full || known.labels != labels.len() {
            *known = VerdictCache { since_ms: at_ms, labels: labels.len(), ..Default::default() };
        }
        let (known, action) = match act {
            Act::Read => (&mut known.reading, Action::ReadFiles),
            Act::Write => (&mut known.writing, Action::WriteFiles),
        };
        if let Some(known) = known.get(path) {
            return known.clone();
        }
        let facts = Facts { action, resource: path, labels, at_ms, ..self.situation.facts() };
        let right = match self.rules.grant(&facts, &self.approved, ()) {
            Ok(_) => Right::Permitted,
            Err(refused) => match refused.verdict {
                Verdict::Permit { .. } => Right::Permitted,
                Verdict::Ask { .. } => Right::Asked,
                Verdict::Forbid { rules, reasons } => {
                    let said = if reasons.is_empty() { rules } else { reasons };
                    Right::Forbidden(said.join(" "))
                }
            },
        };
        known.insert(path.to_owned(), right.clone());
        right
    }
}
