//! What commands of a sandbox reached outside, and what was refused to them.
//!
//! Owns that it stands in the journal, whoever looked at the network meanwhile.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

use crate::{Seq, labels_of};

/// Grants whose hosts hand out what is published and reviewed elsewhere, so that what comes
/// from them labels nothing, as what comes with a project does not.
const VOUCHED: [&str; 3] = ["packages", "mirrors", "git"];

/// What a sandbox reached since the last such event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressReport {
    /// The effect whose end it was noted at; other commands may have run meanwhile.
    pub effect: Seq,
    /// The sandbox, by its name in the session.
    pub sandbox: String,
    /// One for each host, port and verdict.
    pub flows: Vec<EgressFlow>,
    /// How many refusals more there were than are told apart.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// What passed, or did not, between a sandbox and a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressFlow {
    /// The host, as the program named it.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What allowed it, for example `packages` or the name of a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// Why it was refused, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Requests, or attempts at a connection.
    pub requests: u64,
    /// Bytes that left.
    pub sent_bytes: u64,
    /// Bytes that came.
    pub received_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl EgressReport {
    /// Bytes that left the sandbox.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.flows.iter().fold(0, |sum, flow| sum.saturating_add(flow.sent_bytes))
    }

    /// All of it in reports of at most so many flows, at least one.
    #[must_use]
    pub fn parts(self, flows_max: usize) -> Vec<Self> {
        let Self { effect, sandbox, flows, mut more } = self;
        let part = |flows: &[EgressFlow]| Self {
            effect,
            sandbox: sandbox.clone(),
            flows: flows.to_vec(),
            more: std::mem::take(&mut more),
        };
        flows.chunks(flows_max.max(1)).map(part).collect()
    }

    /// The labels of a session that was told what came.
    pub(crate) fn labels(&self) -> BTreeSet<String> {
        let told = self.flows.iter().filter(|flow| flow.received_bytes > 0 && !flow.is_vouched());
        told.filter(|flow| flow.refusal.is_none())
            .flat_map(|flow| labels_of(&format!("net:{}", flow.host)))
            .collect()
    }
}

impl EgressFlow {
    fn is_vouched(&self) -> bool {
        self.grant.as_deref().is_some_and(|grant| VOUCHED.contains(&grant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_was_reached_stands_in_parts_and_labels() {
        let flow = |number: u16| EgressFlow {
            host: format!("h{number}.example"),
            port: 443,
            grant: Some("*.example".to_owned()),
            refusal: None,
            requests: 1,
            sent_bytes: 2,
            received_bytes: 3,
        };
        let flows: Vec<_> = (0..150).map(flow).collect();
        let report = EgressReport { effect: Seq(1), sandbox: "work".to_owned(), flows, more: 7 };
        assert_eq!(report.sent_bytes(), 300);
        let parts = report.parts(64);
        let told: Vec<_> = parts.iter().map(|part| (part.flows.len(), part.more)).collect();
        assert_eq!(told, [(64, 7), (64, 0), (22, 0)]);
        let labels: BTreeSet<_> = parts.iter().flat_map(EgressReport::labels).collect();
        assert!(labels.contains("from:net:h149.example") && labels.len() == 151, "{labels:?}");
    }
}
