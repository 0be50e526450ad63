//! What accounts may spend, and have spent.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Accounts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct AccountList {
    /// The organisation's and one's own; all of them for who administers the organisation.
    pub data: Vec<AccountInfo>,
}

/// An account, to which sessions charge what they take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountInfo {
    /// `org`, or `user:NAME`.
    pub account: String,
    /// How long its limits hold before it is counted anew; for ever if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<AccountPeriod>,
    /// What is measured.
    pub measures: Vec<MeasureInfo>,
    /// Nothing further starts for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<AccountStopInfo>,
}

/// A part of the calendar, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccountPeriod {
    /// From midnight to midnight.
    Day,
    /// From the first to the first.
    Month,
}

/// One measure of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MeasureInfo {
    /// Which: `steps`, `tokens`, `money_nanos`, `wall_ms`, `cpu_ms` or `egress_bytes`.
    pub measure: String,
    /// What was taken in this period.
    pub spent: u64,
    /// What is set aside for what runs.
    pub reserved: u64,
    /// What can't be passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// From where on a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft: Option<u64>,
}

/// Who stopped an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountStopInfo {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at_ms: u64,
}

/// Says what an account may spend, and whether anything starts for it. What is not said stays as
/// it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SetAccount {
    /// What was set before is taken away first.
    pub clear: bool,
    /// How long its limits hold before it is counted anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<AccountPeriod>,
    /// What can't be passed.
    pub limit: AccountLimits,
    /// From where on a person is asked.
    pub soft: AccountLimits,
    /// Nothing further starts for it, and what runs is interrupted; or things may start again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<bool>,
    /// Why it is stopped, for whoever is stopped by it.
    #[schema(max_length = 1_000)]
    pub reason: String,
}

/// The most of each thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AccountLimits {
    /// Model calls and tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub steps: Option<u64>,
    /// Tokens, input and output together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub tokens: Option<u64>,
    /// What models cost: thousand millions are a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub money_nanos: Option<u64>,
    /// Milliseconds that model calls and tool calls take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub wall_ms: Option<u64>,
    /// Milliseconds of processor time that commands take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub cpu_ms: Option<u64>,
    /// Bytes that leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub egress_bytes: Option<u64>,
}

/// An account as it stands behind a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangedAccount {
    /// The account.
    pub account: AccountInfo,
    /// The sessions that were interrupted, because it was stopped.
    pub interrupted: Vec<String>,
}
