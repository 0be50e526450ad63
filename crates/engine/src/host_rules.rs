//! The rules about hosts, as they stand for one command, and how much it may send there.
//!
//! Owns what a verdict means for a host that a person named, or is asked about: their word is an
//! approval, which counts where the rules take one from them, and never against what they forbid.

use outrigger_agent::{State, Work};
use outrigger_policy::{
    Action, Approved, Facts, Left, OutgoingRequest, RuleSet, Situation, Verdict,
};
use outrigger_tools::ParsedCall;

use crate::policy_facts::{left, with_facts};

/// What the rules say of connections that a command makes. Equal where they say the same.
#[derive(Debug, Clone)]
pub struct HostRules {
    rules: RuleSet,
    situation: Situation,
    sent_bytes_max: Option<u64>,
}

/// What they say of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostVerdict {
    /// It may be reached, whoever names it.
    Permit,
    /// It may if the person says so.
    Ask,
    /// It may not, whatever the person says; why.
    Forbid(String),
}

impl PartialEq for HostRules {
    fn eq(&self, other: &Self) -> bool {
        self.rules.hash() == other.rules.hash()
            && self.situation == other.situation
            && self.sent_bytes_max == other.sent_bytes_max
    }
}

impl HostRules {
    /// Of a command that performs `work`. What no rule looks at is left out.
    pub(crate) fn new(
        rules: RuleSet,
        state: &State,
        work: &Work,
        parsed: Option<&ParsedCall>,
        at_ms: u64,
    ) -> Self {
        let looks = rules.looks();
        let at_ms = if looks.time { at_ms } else { 0 };
        let situation = with_facts(state, work, parsed, at_ms, looks, |facts| {
            let looked = if looks.left { facts.left } else { Left::default() };
            let facts = Facts { action: Action::Egress, resource: "", left: looked, ..*facts };
            Situation::from(&facts)
        });
        Self { rules, situation, sent_bytes_max: left(state, work).egress_bytes }
    }

    /// Of commands that belong to no session, for the person that these rules know by a name.
    #[must_use]
    pub fn of_person(rules: RuleSet, person: &str) -> Self {
        let facts = Facts::new(person, Action::Egress, "");
        Self { situation: Situation::from(&facts), rules, sent_bytes_max: None }
    }

    /// What is left of the session's budget of bytes that are sent, if it has one.
    #[must_use]
    pub fn sent_bytes_max(&self) -> Option<u64> {
        self.sent_bytes_max
    }

    /// Judges connections to a port of a host, which is a name or the literal of an address. What
    /// is for names beneath a domain (`*.example.com`) is judged as the domain.
    #[must_use]
    pub fn judge(&self, host: &str, port: u16) -> HostVerdict {
        let host = host.strip_prefix("*.").unwrap_or(host);
        let outgoing = OutgoingRequest { port: Some(port), ..OutgoingRequest::default() };
        let facts = Facts { resource: host, outgoing, ..self.situation.facts() };
        let approvers = match self.rules.judge(&facts) {
            Verdict::Permit { .. } => return HostVerdict::Permit,
            verdict @ Verdict::Forbid { .. } => {
                return HostVerdict::Forbid(verdict.refusal().unwrap_or_default());
            }
            Verdict::Ask { approvers, .. } => approvers,
        };
        let (by, rule_set) = (facts.principal.to_owned(), self.rules.hash());
        let approved = [Approved { by, rule_set, escalated: false }];
        match self.rules.grant(&facts, &approved, ()) {
            Ok(_) => HostVerdict::Ask,
            Err(_) => HostVerdict::Forbid(format!("Only {} may allow it.", approvers.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_policy::{Directory, RulePart, Source};

    fn judged(more: &str, labels: &[&str], host: &str) -> HostVerdict {
        let own =
            Source { name: "own.cedar".to_owned(), text: more.to_owned(), part: RulePart::Rules };
        let rules = RuleSet::new(&[RuleSet::default_source(), own], Directory::default()).unwrap();
        let mut situation = Situation::new(Action::Egress, "");
        situation.labels = labels.iter().map(|&label| label.to_owned()).collect();
        HostRules { rules, situation, sent_bytes_max: None }.judge(host, 443)
    }

    #[test]
    fn a_word_of_the_person_answers_what_asks_and_never_what_forbids() {
        let forbids = "@id(\"no\") @reason(\"Not there.\")
            forbid (principal, action == Action::\"egress\", resource in Host::\"evil.test\");";
        let no = HostVerdict::Forbid("It is forbidden by: no. Not there.".to_owned());
        assert_eq!(judged(forbids, &[], "evil.test"), no);
        assert_eq!(judged(forbids, &[], "a.b.evil.test"), no);
        assert_eq!(judged(forbids, &[], "*.evil.test"), no);
        for host in ["good.test", "localhost", "10.0.0.1", "::1", "under_score.test"] {
            assert_eq!(judged(forbids, &[], host), HostVerdict::Ask, "{host}");
        }
        let asks = "@id(\"ops\") @approvable(\"person:ops\")
            forbid (principal, action == Action::\"egress\", resource)
            when { context.labels.contains(\"untrusted\") };";
        assert_eq!(judged(asks, &[], "a.test"), HostVerdict::Ask);
        let only = HostVerdict::Forbid("Only person:ops may allow it.".to_owned());
        assert_eq!(judged(asks, &["untrusted"], "a.test"), only);
    }
}
