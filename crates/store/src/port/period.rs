//! After what time the counting of an account begins anew.

use serde::{Deserialize, Serialize};

use crate::limits::DAY_MS;

/// A calendar day or month, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// From midnight to midnight.
    Day,
    /// From the first of a month to the first of the next.
    Month,
}

impl Period {
    /// When the period began that a time is in, both in milliseconds since 1970.
    #[must_use]
    pub fn begins_ms(self, at_ms: u64) -> u64 {
        let day = at_ms / DAY_MS;
        let first = match self {
            Self::Day => day,
            Self::Month => day - (day_of_month(day) - 1),
        };
        first * DAY_MS
    }
}

/// The day of the month, from 1, of a day that is counted from 1970-01-01.
/// <https://howardhinnant.github.io/date_algorithms.html#civil_from_days>
fn day_of_month(day: u64) -> u64 {
    let day = day + 719_468;
    let of_era = day % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    of_year - (153 * month + 2) / 5 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_begin_at_their_first_day() {
        for (day, of_month) in [
            (0, 1),
            (30, 31),
            (31, 1),
            (58, 28),
            (59, 1),
            // 2000-02-29 and the day after, 2026-11-22.
            (11_016, 29),
            (11_017, 1),
            (20_779, 22),
        ] {
            assert_eq!(day_of_month(day), of_month, "{day}");
            let at_ms = day * DAY_MS + 5;
            assert_eq!(Period::Month.begins_ms(at_ms), (day + 1 - of_month) * DAY_MS);
            assert_eq!(Period::Day.begins_ms(at_ms), day * DAY_MS);
        }
    }
}
