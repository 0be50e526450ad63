//! The rules about hosts, as they stand for one command, and how much it may send there.

use outrigger_agent::{State, Work};
use outrigger_policy::{
    Action, Facts, HostVerdict, Left, OutgoingRequest, RequestRules, RuleSet, Situation,
};
use outrigger_tools::ParsedCall;

use crate::policy_facts::{left, with_facts};

/// What the rules say of connections that a command makes. Equal where they say the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRules {
    requests: RequestRules,
    sent_bytes_max: Option<u64>,
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
        let requests = RequestRules::new(rules, situation);
        Self { requests, sent_bytes_max: left(state, work).egress_bytes }
    }

    /// Of commands that belong to no session, for the person that these rules know by a name.
    #[must_use]
    pub fn of_person(rules: RuleSet, person: &str) -> Self {
        let facts = Facts::new(person, Action::Egress, "");
        let requests = RequestRules::new(rules, Situation::from(&facts));
        Self { requests, sent_bytes_max: None }
    }

    /// What is left of the session's budget of bytes that are sent, if it has one.
    #[must_use]
    pub fn sent_bytes_max(&self) -> Option<u64> {
        self.sent_bytes_max
    }

    /// Judges connections to a port of a host; see [`RequestRules::judge`].
    #[must_use]
    pub fn judge(&self, host: &str, port: u16) -> HostVerdict {
        let outgoing = OutgoingRequest { port: Some(port), ..OutgoingRequest::default() };
        self.requests.judge(host, outgoing)
    }

    /// Judges that a secret is sent to a host; see [`RequestRules::judge_secret`].
    #[must_use]
    pub fn judge_secret(&self, secret: &str, host: &str, port: u16) -> HostVerdict {
        self.requests.judge_secret(secret, host, port)
    }

    /// What is to be asked of each request beside that, if the rules look at what it says.
    #[must_use]
    pub fn of_requests(&self) -> Option<&RequestRules> {
        let looks = self.requests.rules().looks();
        (looks.method || looks.path).then_some(&self.requests)
    }
}
