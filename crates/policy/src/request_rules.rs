//! The rules about requests to hosts, in one situation.
//!
//! Owns what a verdict means for a host that a person named, or is asked about: their word is an
//! approval, which counts where the rules take one from them, and never against what they forbid.
//! As data they go to whoever sees the requests.

use serde::{Deserialize, Serialize};

use crate::{Action, Approved, Facts, OutgoingRequest, RuleSet, Situation, Verdict};

/// What the rules say of requests that a command makes. Equal where they say the same.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestRules {
    rules: RuleSet,
    situation: Situation,
}

/// What they say of one host, or one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostVerdict {
    /// It may be reached, whoever names it.
    Permit,
    /// It may if the person says so.
    Ask,
    /// It may not, whatever the person says; why.
    Forbid(String),
}

impl PartialEq for RequestRules {
    fn eq(&self, other: &Self) -> bool {
        self.rules.hash() == other.rules.hash() && self.situation == other.situation
    }
}

impl Eq for RequestRules {}

impl RequestRules {
    /// Of whoever does something in a situation. Its action is [`crate::Action::Egress`].
    #[must_use]
    pub fn new(rules: RuleSet, situation: Situation) -> Self {
        Self { rules, situation }
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// Judges what is asked of a host, which is a name or the literal of an address. What is for
    /// names beneath a domain (`*.example.com`) is judged as the domain.
    #[must_use]
    pub fn judge(&self, host: &str, outgoing: OutgoingRequest<'_>) -> HostVerdict {
        let host = host.strip_prefix("*.").unwrap_or(host);
        self.verdict(&Facts { resource: host, outgoing, ..self.situation.facts() })
    }

    /// Judges that a secret, which a person named, is sent to a host.
    #[must_use]
    pub fn judge_secret(&self, secret: &str, host: &str, port: u16) -> HostVerdict {
        let host = Some(host.strip_prefix("*.").unwrap_or(host));
        let outgoing = OutgoingRequest { host, port: Some(port), ..OutgoingRequest::default() };
        let (action, resource) = (Action::UseSecret, secret);
        self.verdict(&Facts { action, resource, outgoing, ..self.situation.facts() })
    }

    fn verdict(&self, facts: &Facts<'_>) -> HostVerdict {
        let (rules, approvers) = match self.rules.judge(facts) {
            Verdict::Permit { .. } => return HostVerdict::Permit,
            verdict @ Verdict::Forbid { .. } => {
                return HostVerdict::Forbid(verdict.refusal().unwrap_or_default());
            }
            Verdict::Ask { rules, approvers, .. } => (rules, approvers),
        };
        let (by, rule_set) = (facts.principal.to_owned(), self.rules.hash());
        let approved = [Approved { by, rule_set, escalated: false }];
        match self.rules.grant(facts, &approved, ()) {
            Ok(_) => HostVerdict::Ask,
            Err(_) => {
                let who = match approvers.is_empty() {
                    true => "somebody else".to_owned(),
                    false => approvers.join(", "),
                };
                // Nobody else is asked about a request while it waits.
                let rules = rules.join(", ");
                HostVerdict::Forbid(format!("Only {who} may allow it, by the rules {rules}."))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Directory, RulePart, Source};

    fn rules(more: &str, labels: &[&str]) -> RequestRules {
        let own =
            Source { name: "own.cedar".to_owned(), text: more.to_owned(), part: RulePart::Rules };
        let rules = RuleSet::new(&[RuleSet::default_source(), own], Directory::default()).unwrap();
        let mut situation = Situation::new(Action::Egress, "");
        situation.labels = labels.iter().map(|&label| label.to_owned()).collect();
        RequestRules::new(rules, situation)
    }

    fn judged(more: &str, labels: &[&str], host: &str) -> HostVerdict {
        let outgoing = OutgoingRequest { port: Some(443), ..OutgoingRequest::default() };
        rules(more, labels).judge(host, outgoing)
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
        let only = HostVerdict::Forbid(
            "Only person:ops may allow it, by the rules egress-asks, ops.".to_owned(),
        );
        assert_eq!(judged(asks, &["untrusted"], "a.test"), only);
    }

    #[test]
    fn a_secret_that_a_person_named_is_sent_where_no_rule_forbids_it() {
        let more = "@id(\"no-root-key\")
            forbid (principal, action == Action::\"use_secret\", resource == Secret::\"root-key\");
            @id(\"not-there\")
            forbid (principal, action == Action::\"use_secret\", resource)
            when { context has host && context.host in Host::\"evil.test\" };";
        let judged =
            |labels: &[&str], secret, host| rules(more, labels).judge_secret(secret, host, 443);
        let forbidden = |by: &str| HostVerdict::Forbid(format!("It is forbidden by: {by}"));
        assert_eq!(judged(&[], "github", "a.test"), HostVerdict::Ask);
        assert_eq!(judged(&[], "root-key", "a.test"), forbidden("no-root-key."));
        assert_eq!(judged(&[], "github", "*.evil.test"), forbidden("not-there."));
        assert_eq!(judged(&["untrusted"], "github", "a.test"), HostVerdict::Ask);
    }

    #[test]
    fn as_data_they_say_the_same_of_each_request() {
        let more = "@id(\"keep\")
            forbid (principal, action == Action::\"egress\", resource)
            when { context has method && context.method == \"DELETE\"
                   && context has path && context.path like \"/repos/*\" };";
        let rules = rules(more, &["untrusted"]);
        let looks = rules.rules().looks();
        assert!(looks.method && looks.path);
        let reason = "@id(\"a\") @reason(\"No path or method.\")
            forbid (principal, action == Action::\"egress\", resource == Host::\"b.test\");";
        let others = self::rules(reason, &[]).rules().looks();
        assert!(!others.method && !others.path);
        let text = serde_json::to_string(&rules).unwrap();
        let read: RequestRules = serde_json::from_str(&text).unwrap();
        assert_eq!(read, rules);
        let judged = |method, path| {
            let (method, path) = (Some(method), Some(path));
            read.judge("a.test", OutgoingRequest { port: Some(443), method, path, host: None })
        };
        assert_eq!(judged("GET", "/repos/a"), HostVerdict::Ask);
        assert_eq!(judged("DELETE", "/gists/a"), HostVerdict::Ask);
        let no = HostVerdict::Forbid("It is forbidden by: keep.".to_owned());
        assert_eq!(judged("delete", "/repos/a"), no);
        assert!(serde_json::from_str::<RequestRules>(&text.replace("forbid", "forbade")).is_err());
    }
}
