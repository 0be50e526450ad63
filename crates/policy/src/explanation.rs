//! Why a verdict is as it is.

use crate::Verdict;

/// A verdict with what led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The verdict.
    pub verdict: Verdict,
    /// Everybody who had to be permitted: agents, the person, the organisation.
    pub subjects: Vec<Subject>,
    /// Why the situation could not be put to the rules; it is forbidden then.
    pub malformed: Option<String>,
}

/// What the rules say of one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Who.
    pub who: String,
    /// The rules that permit it; if there are none, it is forbidden.
    pub permitting: Vec<String>,
    /// The rules that forbid it or ask.
    pub denying: Vec<String>,
}

impl Explanation {
    /// Why, in words.
    #[must_use]
    pub fn why(&self) -> String {
        if let Some(malformed) = &self.malformed {
            return format!("it can't be put to the rules: {malformed}");
        }
        let rules = self.verdict.rules().join(", ");
        match &self.verdict {
            Verdict::Permit { .. } => format!("{rules} permits it, and nothing forbids it"),
            Verdict::Ask { .. } => format!("{rules} asks, and it is permitted otherwise"),
            Verdict::Forbid { rules: none, .. } if none.is_empty() => {
                let lacking = self.subjects.iter().filter(|it| it.permitting.is_empty());
                let who: Vec<_> = lacking.map(|subject| subject.who.as_str()).collect();
                format!("no rule permits it to {}", who.join(", "))
            }
            Verdict::Forbid { .. } => format!("{rules} forbids it, and nobody can approve"),
        }
    }
}
