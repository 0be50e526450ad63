//! When something begins by itself: an expression of cron(5) and the time zone that it is in.
//!
//! Owns how a time is found from the one before it, over changes to summer time and back: what
//! would fall into the hour that is left out begins right after it, and what would fall into the
//! hour that comes twice begins once.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

/// When an agent begins by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(with = "ScheduleFile"))]
pub(crate) struct Schedule {
    /// As it was written.
    expression: String,
    cron: Box<Cron>,
    zone: TimeZone,
}

/// When an agent begins by itself.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct ScheduleFile {
    /// Minute, hour, day of the month, month and day of the week, as crontab(5) has them.
    #[cfg_attr(test, schemars(example = &"30 7 * * MON-FRI"))]
    cron: String,
    /// Where the clock hangs, by a name of the tz database.
    #[serde(default)]
    #[cfg_attr(test, schemars(example = &"Europe/Zurich", extend("default" = "UTC")))]
    time_zone: Option<String>,
}

impl<'de> Deserialize<'de> for Schedule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ScheduleFile { cron: expression, time_zone } = ScheduleFile::deserialize(deserializer)?;
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed);
        let cron = parser.build().parse(&expression).map_err(|error| {
            D::Error::custom(format!(
                "cron: {error}; it is minute, hour, day of the month, month and day of the week, for example `30 7 * * MON-FRI`"
            ))
        })?;
        let zone = match time_zone {
            None => TimeZone::UTC,
            Some(name) => TimeZone::get(&name).map_err(|_| {
                D::Error::custom(format!(
                    "time_zone: there is no `{}`; a name is for example Europe/Zurich",
                    name.escape_debug().take(60).collect::<String>()
                ))
            })?,
        };
        let schedule = Self { expression, cron: Box::new(cron), zone };
        if schedule.next_ms(0).is_none() {
            let text = format!("cron: `{}` names a day that never comes", schedule.expression);
            return Err(D::Error::custom(text));
        }
        Ok(schedule)
    }
}

impl Schedule {
    /// As it was written: the expression, and the time zone if one was named.
    pub(crate) fn words(&self) -> (String, Option<String>) {
        let zone = self.zone.iana_name().filter(|_| self.zone != TimeZone::UTC);
        (self.expression.clone(), zone.map(str::to_owned))
    }

    /// The first time after another one, in milliseconds since 1970. Nothing where there is none.
    pub(crate) fn next_ms(&self, after_ms: u64) -> Option<u64> {
        let after = Timestamp::from_millisecond(i64::try_from(after_ms).ok()?).ok()?;
        let next = self.cron.find_next_occurrence(&after.to_zoned(self.zone.clone()), false);
        u64::try_from(next.ok()?.timestamp().as_millisecond()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn read(text: &str) -> Result<Schedule, String> {
        toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())
    }

    /// What comes after a time, one after the other, in UTC.
    fn times(text: &str, after: &str, count: usize) -> String {
        let schedule = read(text).unwrap();
        let after: Timestamp = after.parse().unwrap();
        let after = u64::try_from(after.as_millisecond()).unwrap();
        let all = std::iter::successors(schedule.next_ms(after), |at| schedule.next_ms(*at));
        let told = all
            .take(count)
            .map(|at| Timestamp::from_millisecond(i64::try_from(at).unwrap()).unwrap().to_string());
        told.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn times_are_those_of_the_place() {
        let zurich = "time_zone = \"Europe/Zurich\"\n";
        let weekdays = format!("{zurich}cron = \"30 7 * * MON-FRI\"");
        // From winter to summer, over a week-end.
        expect!["2027-03-26T06:30:00Z 2027-03-29T05:30:00Z"].assert_eq(&times(
            &weekdays,
            "2027-03-26T00:00:00Z",
            2,
        ));
        let in_the_gap = format!("{zurich}cron = \"30 2 * * *\"");
        expect!["2027-03-27T01:30:00Z 2027-03-28T01:00:00Z 2027-03-29T00:30:00Z"]
            .assert_eq(&times(&in_the_gap, "2027-03-27T00:00:00Z", 3));
        expect!["2027-10-30T00:30:00Z 2027-10-31T00:30:00Z 2027-11-01T01:30:00Z"]
            .assert_eq(&times(&in_the_gap, "2027-10-30T00:00:00Z", 3));
        expect!["2028-02-29T12:00:00Z"].assert_eq(&times(
            "cron = \"0 12 29 2 *\"",
            "2027-01-01T00:00:00Z",
            1,
        ));
    }

    #[test]
    fn what_is_no_schedule() {
        for wrong in ["* * * *", "* * * * * *", "60 * * * *", "x * * * *", ""] {
            let why = read(&format!("cron = \"{wrong}\"")).unwrap_err();
            assert!(why.starts_with("cron: ") && why.contains("for example"), "{why}");
        }
        let why = read("cron = \"* * * * *\"\ntime_zone = \"CET2\"").unwrap_err();
        assert!(why.contains("there is no `CET2`"), "{why}");
        let why = read("cron = \"0 0 30 2 *\"").unwrap_err();
        assert_eq!(why, "cron: `0 0 30 2 *` names a day that never comes");
    }
}
