//! `[budget]`: what sessions, users and the organisation may spend, and what models cost.
//!
//! What a weaker file, the administrator's, says of users and the organisation, a stronger
//! one can't change: it can say something of what is not limited yet.

use outrigger_agent::{Limit, Price};
use outrigger_model::Prices;
use outrigger_store::{Period, Terms};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::path::{Path, PathBuf};

use super::range::Whole;
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;

/// Nano-dollars of a dollar.
pub(crate) const NANOS: f64 = 1e9;

/// What may be spent (`docs/how-to/budgets.md`). From an amount that begins with `soft_` on a
/// person is asked; with a `per` counting begins anew each `"day"` or `"month"`, in UTC.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BudgetFile {
    /// What one session may spend, without a `per`. `tokens` comes before `limits.tokens_max`,
    /// which holds if it is absent. Instead: `--max-tokens`, `--max-dollars`.
    #[cfg_attr(test, schemars(extend("examples" =
        [{"dollars": 2, "soft_dollars": 1.5, "cpu_seconds": 3600}])))]
    pub(crate) session: LevelFile,
    /// What all sessions of a user may spend, for whom nothing was set; if absent, no limit holds.
    /// A stronger file can't change a weaker one's. Instead: `outrigger budget set user:NAME`.
    #[cfg_attr(test, schemars(extend("examples" =
        [{"dollars": 100, "soft_dollars": 80, "per": "month"}])))]
    pub(crate) user: LevelFile,
    /// What all sessions may spend, as for a user. Instead: `outrigger budget set org`.
    #[cfg_attr(test, schemars(extend("examples" =
        [{"dollars": 1000, "tokens": 1_000_000_000, "per": "month"}])))]
    pub(crate) organisation: LevelFile,
    /// A file that says what models cost. It comes before the built-in prices, which are list
    /// prices of some providers; a model at an address of your own has only prices from here.
    #[cfg_attr(test, schemars(example = &"prices.toml"))]
    pub(crate) prices: Option<PathBuf>,
}

pub(super) type Count = Whole<1, 1_000_000_000_000_000>;

/// What may be spent on one level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LevelFile {
    /// The most model calls and tool calls.
    steps: Option<Count>,
    /// The most tokens, input and output together.
    tokens: Option<Count>,
    /// The most money, in US dollars.
    dollars: Option<Dollars>,
    /// The most seconds that effects may take, those beside each other counted each.
    seconds: Option<Count>,
    /// The most seconds of processors that commands may take.
    cpu_seconds: Option<Count>,
    /// The most bytes that may be sent to tools outside.
    egress_bytes: Option<Count>,
    /// Model calls and tool calls from which on a person is asked.
    soft_steps: Option<Count>,
    /// Tokens from which on a person is asked.
    soft_tokens: Option<Count>,
    /// US dollars from which on a person is asked.
    soft_dollars: Option<Dollars>,
    /// Seconds of effects from which on a person is asked.
    soft_seconds: Option<Count>,
    /// Seconds of processors from which on a person is asked.
    soft_cpu_seconds: Option<Count>,
    /// Bytes that leave from which on a person is asked.
    soft_egress_bytes: Option<Count>,
    /// After what time an account's counting begins anew, in UTC. A session has none.
    #[cfg_attr(test, schemars(with = "String", extend("enum" = [Period::Day, Period::Month])))]
    per: Option<Period>,
}

/// An amount of money, exact to the nano-dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(try_from = "f64"))]
#[cfg_attr(test, schemars(extend("minimum" = 0, "maximum" = limits::DOLLARS_MAX)))]
pub(crate) struct Dollars(u64);

impl Dollars {
    pub(crate) fn nanos(self) -> u64 {
        self.0
    }

    /// Reads dollars as a number. Nothing for what nobody can spend.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
    pub(crate) fn of(dollars: f64) -> Option<Self> {
        let plain = (0.0..=limits::DOLLARS_MAX).contains(&dollars);
        plain.then(|| Self((dollars * NANOS).round() as u64))
    }

    /// Reads an amount as it is typed, with or without a `$` before it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parsed = text.strip_prefix('$').unwrap_or(text).parse().ok().and_then(Self::of);
        parsed.ok_or_else(|| format!("dollars are a number from 0 to {}", limits::DOLLARS_MAX))
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = toml::Value::deserialize(deserializer)?;
        #[expect(clippy::cast_precision_loss, reason = "checked against a limit far below")]
        let dollars = match number {
            toml::Value::Integer(whole) => whole as f64,
            toml::Value::Float(dollars) => dollars,
            _ => f64::NAN,
        };
        let wrong = || {
            D::Error::custom(format!(
                "an amount of dollars is a number from 0 to {}",
                limits::DOLLARS_MAX
            ))
        };
        Self::of(dollars).ok_or_else(wrong)
    }
}

impl LevelFile {
    fn limit(&self) -> Limit {
        let Self { steps, tokens, seconds, cpu_seconds, egress_bytes, .. } = *self;
        limit([steps, tokens, seconds, cpu_seconds, egress_bytes].map(plain), self.dollars)
    }

    fn soft(&self) -> Limit {
        let (steps, tokens, seconds) = (self.soft_steps, self.soft_tokens, self.soft_seconds);
        let (cpu_seconds, egress_bytes) = (self.soft_cpu_seconds, self.soft_egress_bytes);
        limit([steps, tokens, seconds, cpu_seconds, egress_bytes].map(plain), self.soft_dollars)
    }
}

pub(super) fn plain(count: Option<Count>) -> Option<u64> {
    count.map(Whole::get)
}

/// What may be spent as people say it: steps, tokens, seconds, seconds of processors and
/// bytes that leave, and dollars.
pub(crate) fn limit(amounts: [Option<u64>; 5], dollars: Option<Dollars>) -> Limit {
    let [steps, tokens, seconds, cpu_seconds, egress_bytes] = amounts;
    let ms = |seconds: u64| seconds.saturating_mul(1_000);
    Limit {
        steps,
        tokens,
        money_nanos: dollars.map(Dollars::nanos),
        wall_ms: seconds.map(ms),
        cpu_ms: cpu_seconds.map(ms),
        egress_bytes,
    }
}

/// What may be spent, as all files together say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Budget {
    /// A session's limits.
    pub(crate) limit: Limit,
    /// From where on a person is asked in a session.
    pub(crate) soft: Limit,
    /// What holds for each user, unless something was set.
    pub(crate) user: Terms,
    /// What holds for the organisation, unless something was set.
    pub(crate) organisation: Terms,
    /// Files of prices, the strongest first.
    prices: Vec<PathBuf>,
}

impl Budget {
    /// Adds what a stronger file says. Its paths begin where it stands.
    pub(super) fn absorb(&mut self, file: BudgetFile, path: &Path) -> Outcome {
        let BudgetFile { session, user, organisation, prices } = file;
        if session.per.is_some() {
            let text = format!("{}: `budget.session` has no `per`", path.display());
            return Err(Failure::new(Kind::Usage, text).hint(
                "A session's budget is for all of it; users and the organisation have one.",
            ));
        }
        for level in [&session, &user, &organisation] {
            if let Some(why) = level.limit().hides(level.soft()) {
                return Err(Failure::new(Kind::Usage, format!("{}: {why}", path.display())));
            }
        }
        self.limit = session.limit().or(self.limit);
        self.soft = session.soft().or(self.soft);
        for (name, own, new) in
            [("user", &mut self.user, user), ("organisation", &mut self.organisation, organisation)]
        {
            if new == LevelFile::default() {
                continue;
            }
            if *own != Terms::default() {
                let text = format!(
                    "{}: `budget.{name}` is set in an earlier configuration file, and can't be set again",
                    path.display()
                );
                return Err(Failure::new(Kind::Usage, text)
                    .hint("Leave it out here, or use `outrigger budget set`."));
            }
            let (limit, soft) = (new.limit(), new.soft());
            *own = Terms { limit, soft, period: new.per, stopped: None };
        }
        let dir = path.parent().unwrap_or(Path::new("."));
        prices.into_iter().for_each(|file| self.prices.insert(0, dir.join(file)));
        Ok(())
    }

    /// What a model costs. An address of one's own has no list prices.
    pub(crate) fn price(
        &self,
        provider: &str,
        model: &str,
        elsewhere: bool,
    ) -> Outcome<Option<Price>> {
        Ok(self.prices_of(provider, elsewhere)?(model))
    }

    /// What each model of a provider costs, by its name.
    pub(crate) fn prices_of(
        &self,
        provider: &str,
        elsewhere: bool,
    ) -> Outcome<impl Fn(&str) -> Option<Price>> {
        let mut prices = Prices::default();
        for path in &self.prices {
            let text = std::fs::read_to_string(path).map_err(|error| {
                let text = format!("the prices {} can't be read: {error}", path.display());
                Failure::new(Kind::Usage, text)
            })?;
            let own = Prices::parse(&text).map_err(|error| {
                let mut failure = Failure::from_error(Kind::Usage, &error);
                failure.message = format!("{}: {}", path.display(), failure.message);
                failure.hint("docs/how-to/budgets.md shows what a file of prices looks like.")
            })?;
            prices = prices.or(own);
        }
        if !elsewhere {
            prices = prices.or(Prices::built_in());
        }
        let provider = provider.to_owned();
        Ok(move |model: &str| prices.of(&provider, model).map(|entry| entry.price))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layered(files: &[&str]) -> Result<Budget, String> {
        let mut budget = Budget::default();
        for (number, text) in files.iter().enumerate() {
            let path = PathBuf::from(format!("/etc/{number}/config.toml"));
            let file = toml::from_str(text).map_err(|error| error.to_string())?;
            budget.absorb(file, &path).map_err(|failure| failure.message)?;
        }
        Ok(budget)
    }

    #[test]
    fn a_stronger_file_changes_sessions_and_not_what_holds_above_them() {
        let weak =
            "session = { dollars = 1, soft_dollars = 0.5 }\nuser = { tokens = 9, per = \"day\" }";
        let budget = layered(&[weak, "session = { dollars = 0.000000002 }\nprices = 'p'"]).unwrap();
        assert_eq!(
            (budget.limit.money_nanos, budget.soft.money_nanos),
            (Some(2), Some(500_000_000))
        );
        assert_eq!((budget.user.limit.tokens, budget.user.period), (Some(9), Some(Period::Day)));
        assert_eq!(budget.prices, [PathBuf::from("/etc/1/p")]);
        assert!(layered(&[weak, "user = { tokens = 10 }"]).unwrap_err().contains("earlier"));
        assert!(layered(&[weak, "organisation = { tokens = 10 }"]).is_ok());
    }

    #[test]
    fn mistyped_keys_and_amounts_are_refused() {
        for wrong in [
            "session = { dollar = 1 }",
            "session = { per = \"day\" }",
            "user = { dollar = 1 }",
            "user = { per = \"week\" }",
            "session = { dollars = -1 }",
            "session = { dollars = \"1\" }",
            "session = { tokens = 0 }",
            "session = { dollars = 1, soft_dollars = 2 }",
        ] {
            assert!(layered(&[wrong]).is_err(), "{wrong}");
        }
    }
}
