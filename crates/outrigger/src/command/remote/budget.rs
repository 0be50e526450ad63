//! `outrigger budget` at a server.

use outrigger_agent::{Amounts, Limit};
use outrigger_api::{
    AccountInfo, AccountLimits, AccountList, AccountPeriod, ChangedAccount, MeasureInfo, SetAccount,
};
use outrigger_store::{AccountStop, Period, Terms};
use serde_json::json;

use super::connection::{Remote, not_there};
use crate::command::budget::{AccountLine, Budget, newest, print_budget, tell_changed};
use crate::exit::Outcome;
use crate::show::{self, Screen, Tone};

pub(super) async fn execute(remote: &Remote, asked: Budget) -> Outcome<u8> {
    let output = asked.output();
    match asked {
        Budget::Show { recount: true, .. } => Err(not_there("--recount")),
        Budget::Show { .. } => {
            let accounts: AccountList = remote.client.get("/v1/budgets").await?;
            let accounts: Vec<_> = accounts.data.into_iter().map(line).collect();
            print_budget(&accounts, &newest(&remote.journal).await?, &[], output)
        }
        Budget::Set(asked) => {
            let Terms { limit, soft, period, stopped: _ } = asked.terms()?;
            let said = SetAccount {
                clear: asked.clear,
                period: period.map(|period| match period {
                    Period::Day => AccountPeriod::Day,
                    Period::Month => AccountPeriod::Month,
                }),
                limit: limits(limit),
                soft: limits(soft),
                ..SetAccount::default()
            };
            let ChangedAccount { account, .. } = set(remote, asked.account.as_str(), &said).await?;
            tell_changed(&line(account), asked.told(), output)
        }
        Budget::Stop { account, reason, .. } => {
            let said = SetAccount { stopped: Some(true), reason, ..SetAccount::default() };
            let ChangedAccount { interrupted, .. } = set(remote, account.as_str(), &said).await?;
            let count = show::count(interrupted.len() as u64, "session");
            let text = format!("● {account} is stopped; {count} interrupted");
            Screen::new(output).note(Tone::Good, text);
            if output.json.is_some() {
                let account = account.as_str();
                show::line(
                    &json!({ "type": "stopped", "account": account, "sessions": interrupted, "left": [] }),
                )?;
            }
            Ok(0)
        }
        Budget::Allow { account, .. } => {
            let said = SetAccount { stopped: Some(false), ..SetAccount::default() };
            let ChangedAccount { account, .. } = set(remote, account.as_str(), &said).await?;
            tell_changed(&line(account), "may start things again", output)
        }
    }
}

async fn set(remote: &Remote, account: &str, said: &SetAccount) -> Outcome<ChangedAccount> {
    Ok(remote.client.put(&format!("/v1/budgets/{account}"), said).await?)
}

fn limits(limit: Limit) -> AccountLimits {
    let Limit { steps, tokens, money_nanos, wall_ms, cpu_ms, egress_bytes } = limit;
    AccountLimits { steps, tokens, money_nanos, wall_ms, cpu_ms, egress_bytes }
}

fn line(info: AccountInfo) -> AccountLine {
    let most = |which: fn(&MeasureInfo) -> Option<u64>| {
        let of = |name| info.measures.iter().find(|it| it.measure == name).and_then(which);
        Limit {
            steps: of("steps"),
            tokens: of("tokens"),
            money_nanos: of("money_nanos"),
            wall_ms: of("wall_ms"),
            cpu_ms: of("cpu_ms"),
            egress_bytes: of("egress_bytes"),
        }
    };
    let used = |which: fn(&MeasureInfo) -> Option<u64>| {
        let of = most(which);
        Amounts {
            steps: of.steps.unwrap_or_default(),
            tokens: of.tokens.unwrap_or_default(),
            money_nanos: of.money_nanos.unwrap_or_default(),
            wall_ms: of.wall_ms.unwrap_or_default(),
            cpu_ms: of.cpu_ms.unwrap_or_default(),
            egress_bytes: of.egress_bytes.unwrap_or_default(),
        }
    };
    AccountLine {
        terms: Terms {
            limit: most(|it| it.limit),
            soft: most(|it| it.soft),
            period: info.period.map(|period| match period {
                AccountPeriod::Day => Period::Day,
                AccountPeriod::Month => Period::Month,
            }),
            stopped: info.stopped.clone().map(|it| AccountStop {
                by: it.by,
                reason: it.reason,
                at_ms: it.at_ms,
            }),
        },
        spent: used(|it| Some(it.spent)),
        spent_ever: None,
        reserved: used(|it| Some(it.reserved)),
        account: info.account,
    }
}
