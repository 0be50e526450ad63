//! Amounts as people read them.

use outrigger_agent::{Amounts, Limit, Measure};

/// Columns of a bar.
const COLUMNS: u64 = 24;

/// `tokens  [####==......]  1200 and 300 reserved of 5000`. Nothing where there is nothing to say.
pub(crate) fn bar(
    measure: Measure,
    spent: Amounts,
    reserved: Amounts,
    limit: Limit,
    soft: Limit,
) -> Option<String> {
    let (spent, reserved, limit) = (spent.of(measure), reserved.of(measure), limit.of(measure));
    let soft = soft.of(measure);
    if spent == 0 && reserved == 0 && limit.is_none() && soft.is_none() {
        return None;
    }
    let drawn = match limit {
        None => " ".repeat(usize::try_from(COLUMNS).unwrap_or_default() + 2),
        Some(limit) => draw(spent, reserved, limit),
    };
    let mut line = format!("  {:<26}{drawn}  {}", measure.words(), amount(measure, spent));
    if reserved > 0 {
        line.push_str(&format!(" and {} reserved", amount(measure, reserved)));
    }
    if let Some(limit) = limit {
        line.push_str(&format!(" of {}", amount(measure, limit)));
    }
    if let Some(soft) = soft {
        line.push_str(&format!(", asks from {}", amount(measure, soft)));
    }
    Some(line)
}

/// `1200 of 5000 tokens, 3.0 s of 60.0 s working time`: of all that is limited.
pub(crate) fn used(spent: Amounts, limit: Limit) -> String {
    let of = |measure: Measure| {
        let (spent, limit) = (amount(measure, spent.of(measure)), limit.of(measure)?);
        Some(format!("{spent} of {} {}", amount(measure, limit), measure.words()))
    };
    Measure::ALL.into_iter().filter_map(of).collect::<Vec<_>>().join(", ")
}

fn draw(spent: u64, reserved: u64, limit: u64) -> String {
    let columns = |used: u64| {
        let part = u128::from(used) * u128::from(COLUMNS) / u128::from(limit.max(1));
        u64::try_from(part).unwrap_or(COLUMNS).min(COLUMNS)
    };
    let (full, some) = (columns(spent), columns(spent.saturating_add(reserved)));
    let mark = |at: u64| match at {
        at if at < full => '#',
        at if at < some => '=',
        _ => '.',
    };
    format!("[{}]", (0..COLUMNS).map(mark).collect::<String>())
}

/// `1 file`, `2 files`.
pub(crate) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// One amount, with its unit.
pub(crate) fn amount(measure: Measure, amount: u64) -> String {
    match measure {
        Measure::Steps | Measure::Tokens => amount.to_string(),
        Measure::Money => money(amount),
        Measure::Wall | Measure::Cpu => format!("{:.1} s", seconds(amount)),
        Measure::Egress if amount < 10_240 => format!("{amount} bytes"),
        Measure::Egress => format!("{:.1} KiB", kib(amount)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "people read one digit of it")]
fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

/// Nano-dollars in dollars, with as many digits as it takes.
pub(crate) fn money(nanos: u64) -> String {
    let (dollars, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let digits = format!("{rest:09}");
    let digits = digits.trim_end_matches('0');
    format!("${dollars}.{digits:0<2}")
}

/// Money as it is shown beside other things: in cents, and below one with four digits.
pub(crate) fn cost(nanos: u64) -> String {
    let (unit, digits) =
        if nanos >= 9_995_000 || nanos == 0 { (10_000_000, 2) } else { (100_000, 4) };
    let units = nanos.saturating_add(unit / 2) / unit;
    let of_dollar = 1_000_000_000 / unit;
    format!("${}.{:0digits$}", units / of_dollar, units % of_dollar)
}

/// A number with three digits or a little more: `34.6k`.
pub(crate) fn compact(number: u64) -> String {
    let tenths = |unit: u64, letter: char| {
        let tenths = number.saturating_add(unit / 20) / (unit / 10);
        format!("{}.{}{letter}", tenths / 10, tenths % 10)
    };
    match number {
        0..10_000 => number.to_string(),
        10_000..999_950 => tenths(1_000, 'k'),
        _ => tenths(1_000_000, 'M'),
    }
}

/// A size as people read it.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut unit = None;
    let (mut whole, mut rest) = (bytes, 0);
    for name in UNITS {
        if whole < 1_024 {
            break;
        }
        (whole, rest, unit) = (whole / 1_024, whole % 1_024, Some(name));
    }
    match unit {
        None => count(bytes, "byte"),
        Some(unit) => format!("{whole}.{} {unit}", rest * 10 / 1_024),
    }
}

/// A duration: `0.4 s`, `42 s`, `1 min 20 s`, `2 h 5 min`.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    match seconds {
        0..10 => format!("{:.1} s", self::seconds(ms)),
        10..60 => format!("{seconds} s"),
        60..3_600 => format!("{minutes} min {} s", seconds % 60),
        _ => format!("{hours} h {} min", minutes % 60),
    }
}

pub(crate) fn seconds(ms: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a duration for people")]
    let seconds = ms as f64 / 1_000.0;
    seconds
}

/// A time, as the person's clock shows it.
pub(crate) fn when(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let local = at.map(|at| at.to_zoned(jiff::tz::TimeZone::system()));
    local.map_or_else(|| at_ms.to_string(), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_written_with_the_digits_that_it_has() {
        for (nanos, text) in [
            (0, "$0.00"),
            (1, "$0.000000001"),
            (1_500_000_000, "$1.50"),
            (12_345_000_000, "$12.345"),
        ] {
            assert_eq!(money(nanos), text);
        }
    }

    #[test]
    fn what_stands_beside_other_things_is_short() {
        for (nanos, text) in [
            (0, "$0.00"),
            (49_999, "$0.0000"),
            (123_456, "$0.0001"),
            (9_994_999, "$0.0100"),
            (9_995_000, "$0.01"),
            (123_456_789, "$0.12"),
            (12_999_000_000, "$13.00"),
        ] {
            assert_eq!(cost(nanos), text);
        }
        for (number, text) in
            [(9_999, "9999"), (34_567, "34.6k"), (999_949, "999.9k"), (1_250_000, "1.3M")]
        {
            assert_eq!(compact(number), text);
        }
        for (ms, text) in [
            (40, "0.0 s"),
            (9_949, "9.9 s"),
            (59_999, "59 s"),
            (80_400, "1 min 20 s"),
            (7_530_000, "2 h 5 min"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }

    #[test]
    fn sizes() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1_023, "1023 bytes"),
            (1_536, "1.5 KiB"),
            (1 << 20, "1.0 MiB"),
            (5 << 40, "5.0 TiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn bars() {
        let amounts = |tokens| Amounts { tokens, ..Amounts::default() };
        let limit = Limit { tokens: Some(100), ..Limit::NONE };
        let line = bar(Measure::Tokens, amounts(50), amounts(25), limit, Limit::NONE).unwrap();
        assert_eq!(
            line.trim(),
            "tokens                    [############======......]  50 and 25 reserved of 100"
        );
        let over = bar(Measure::Tokens, amounts(500), amounts(0), limit, Limit::NONE).unwrap();
        assert!(over.contains("[########################]  500 of 100"));
        assert_eq!(bar(Measure::Money, amounts(5), amounts(0), limit, Limit::NONE), None);
        let limit = Limit { wall_ms: Some(1_500), egress_bytes: Some(2_048), ..limit };
        assert_eq!(
            used(amounts(50), limit),
            "50 of 100 tokens, 0.0 s of 1.5 s working time, 0 bytes of 2048 bytes sent outside"
        );
    }
}
