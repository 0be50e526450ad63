//! A test of rules as data: a situation, and what is expected of it.

use serde::{Deserialize, Serialize};

use crate::{Approved, RuleSet, Ruling, Situation, Verdict};

/// A file of tests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cases {
    /// The tests, in their order.
    #[serde(default)]
    pub case: Vec<Case>,
}

/// One test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows.
    pub name: String,
    /// The situation.
    pub when: Situation,
    /// Who approved, under the rules of now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved_by: Vec<String>,
    /// They did so once it had escalated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub escalated: bool,
    /// What the rules are to say then.
    pub expect: Ruling,
    /// Exactly which rules are to decide, if that matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<String>>,
}

/// What a test came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseOutcome {
    /// What the rules say; permit where the approvals suffice.
    pub ruling: Ruling,
    /// The verdict before any approval.
    pub verdict: Verdict,
    /// Whether both are as expected.
    pub passed: bool,
}

impl Case {
    /// Tries it.
    #[must_use]
    pub fn run(&self, rules: &RuleSet) -> CaseOutcome {
        let facts = self.when.facts();
        let approved = self.approved_by.iter().map(|by| {
            let (by, rule_set) = (by.clone(), rules.hash());
            Approved { by, rule_set, escalated: self.escalated }
        });
        let approved: Vec<_> = approved.collect();
        let verdict = rules.judge(&facts);
        let ruling = match rules.grant(&facts, &approved, ()) {
            Ok(granted) => {
                let () = granted.into_effect();
                Ruling::Permit
            }
            Err(refused) => refused.verdict.ruling(),
        };
        let named = self.rules.as_ref().is_none_or(|expected| expected == verdict.rules());
        CaseOutcome { ruling, passed: named && ruling == self.expect, verdict }
    }
}
