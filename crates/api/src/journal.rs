//! The journal of a session as it is kept: for auditors, and for programs of the same make.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// Some records of a journal, in order. What is in them is not a part of this contract: it is
/// that of the format, which a newer server may have another of.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct JournalPage {
    /// The format of the records.
    pub format: u32,
    /// The records, byte for byte.
    #[schema(value_type = Vec<Object>)]
    pub data: Vec<Box<RawValue>>,
    /// Whether there were more when this was answered: ask again with `after` of the last one.
    pub more: bool,
}
