//! What accounts may spend, and have spent.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Accounts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct AccountList {
    /// The organisation's, and one's own.
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
