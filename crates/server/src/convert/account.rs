//! An account, with what holds for it.

use outrigger_agent::{Limit, Measure};
use outrigger_api::{AccountInfo, AccountLimits, AccountPeriod, AccountStopInfo, MeasureInfo};
use outrigger_store::{Account, Period, Terms};

pub(crate) fn account(account: &Account, terms: &Terms, now_ms: u64) -> AccountInfo {
    let spent = account.spent_now(terms.period, now_ms);
    let told = |it| MeasureInfo {
        measure: measure(it).to_owned(),
        spent: spent.of(it),
        reserved: account.reserved.of(it),
        limit: terms.limit.of(it),
        soft: terms.soft.of(it),
    };
    AccountInfo {
        account: account.account.to_string(),
        period: terms.period.map(|period| match period {
            Period::Day => AccountPeriod::Day,
            Period::Month => AccountPeriod::Month,
        }),
        measures: Measure::ALL.into_iter().map(told).collect(),
        stopped: terms.stopped.as_ref().map(|stopped| AccountStopInfo {
            by: stopped.by.clone(),
            reason: stopped.reason.clone(),
            at_ms: stopped.at_ms,
        }),
    }
}

/// How programs call it.
pub(crate) fn measure(measure: Measure) -> &'static str {
    match measure {
        Measure::Steps => "steps",
        Measure::Tokens => "tokens",
        Measure::Money => "money_nanos",
        Measure::Wall => "wall_ms",
        Measure::Cpu => "cpu_ms",
        Measure::Egress => "egress_bytes",
    }
}

/// What may be spent, as accounts have it.
pub(crate) fn limit(said: AccountLimits) -> Limit {
    let AccountLimits { steps, tokens, money_nanos, wall_ms, cpu_ms, egress_bytes } = said;
    Limit { steps, tokens, money_nanos, wall_ms, cpu_ms, egress_bytes }
}

pub(crate) fn period(said: AccountPeriod) -> Period {
    match said {
        AccountPeriod::Day => Period::Day,
        AccountPeriod::Month => Period::Month,
    }
}
