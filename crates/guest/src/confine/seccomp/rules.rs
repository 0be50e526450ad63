//! Rules about the arguments of calls.

use seccompiler::{SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompRule};
use std::collections::BTreeMap;

pub(super) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

pub(super) fn when(index: u8, len: Len, op: Op, value: u64) -> SeccompCondition {
    SeccompCondition::new(index, len, op, value).expect("argument numbers are below 6")
}

pub(super) fn rule(conditions: Vec<SeccompCondition>) -> SeccompRule {
    SeccompRule::new(conditions).expect("every rule has a condition")
}
