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
    /// How many more there were.
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
