//! Numbers as a database holds them: with a sign, and no larger than 63 bits.

use super::fault;
use crate::Error;

/// A number as the database holds it. Whatever could be too large is refused
/// before it comes here, and would find nothing.
pub(crate) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A number that the database held, which was never below zero.
pub(crate) fn unsigned(value: i64) -> Result<u64, Error> {
    u64::try_from(value).map_err(|_| Error::damaged(fault::DATABASE, "it has a number below zero"))
}
