//! Amounts of what a session spends: reserved before an effect, settled after it, and
//! what may be spent of each.

use serde::{Deserialize, Serialize};

/// A thing that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Model calls and tool calls.
    Steps,
    /// Tokens, input and output together.
    Tokens,
    /// What models cost, in nano-dollars.
    Money,
    /// The time that effects take, in milliseconds.
    Wall,
    /// Processor time of commands, in milliseconds.
    Cpu,
    /// What leaves to tools outside, in bytes.
    Egress,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Steps, Self::Tokens, Self::Money, Self::Wall, Self::Cpu, Self::Egress];

    /// What it is, in a word or two for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Tokens => "tokens",
            Self::Money => "money",
            Self::Wall => "working time",
            Self::Cpu => "CPU time of commands",
            Self::Egress => "sent outside",
        }
    }
}

/// An amount of each thing that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Amounts {
    /// Model calls and tool calls.
    pub steps: u64,
    /// Tokens, input and output together.
    pub tokens: u64,
    /// What models cost, in nano-dollars: thousand millions of them are a US dollar.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub money_nanos: u64,
    /// The time that effects take, in milliseconds; those beside each other count each.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wall_ms: u64,
    /// Processor time of commands, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cpu_ms: u64,
    /// What leaves, in bytes: arguments of calls that are sent to tools outside over HTTP, and
    /// what commands send whose sandbox may reach something.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub egress_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Amounts {
    /// A step, and nothing else.
    pub const STEP: Self =
        Self { steps: 1, tokens: 0, money_nanos: 0, wall_ms: 0, cpu_ms: 0, egress_bytes: 0 };

    /// The sum; stops at the largest number.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// The difference; stops at zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    /// Of what was reserved for an attempt, what is charged where nobody counted: all of it,
    /// but of time no more than went by, and of processor time its share.
    #[must_use]
    pub fn within(self, passed_ms: u64) -> Self {
        let wall_ms = self.wall_ms.min(passed_ms);
        let share = u128::from(self.cpu_ms) * u128::from(wall_ms) / u128::from(self.wall_ms.max(1));
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        let cpu_ms = if self.wall_ms == 0 { self.cpu_ms } else { share };
        Self { wall_ms, cpu_ms, ..self }
    }

    fn with(self, other: Self, each: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            steps: each(self.steps, other.steps),
            tokens: each(self.tokens, other.tokens),
            money_nanos: each(self.money_nanos, other.money_nanos),
            wall_ms: each(self.wall_ms, other.wall_ms),
            cpu_ms: each(self.cpu_ms, other.cpu_ms),
            egress_bytes: each(self.egress_bytes, other.egress_bytes),
        }
    }

    /// How much of one thing.
    #[must_use]
    pub fn of(self, measure: Measure) -> u64 {
        match measure {
            Measure::Steps => self.steps,
            Measure::Tokens => self.tokens,
            Measure::Money => self.money_nanos,
            Measure::Wall => self.wall_ms,
            Measure::Cpu => self.cpu_ms,
            Measure::Egress => self.egress_bytes,
        }
    }

    /// The first measure that is above its limit.
    #[must_use]
    pub fn over(self, limit: Limit) -> Option<Measure> {
        Measure::ALL
            .into_iter()
            .find(|measure| limit.of(*measure).is_some_and(|limit| self.of(*measure) > limit))
    }

    /// Whether no measure of it is above its limit.
    #[must_use]
    pub fn fits(self, limit: Limit) -> bool {
        self.over(limit).is_none()
    }
}

/// The most of each thing that may be spent. What is `None` is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limit {
    /// Model calls and tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Tokens, input and output together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// What models cost, in nano-dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money_nanos: Option<u64>,
    /// The time that effects take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    /// Processor time of commands, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// What leaves to tools outside, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress_bytes: Option<u64>,
}

impl Limit {
    /// No limit at all.
    pub const NONE: Self = Self {
        steps: None,
        tokens: None,
        money_nanos: None,
        wall_ms: None,
        cpu_ms: None,
        egress_bytes: None,
    };

    /// The most of one thing. A number that nobody can spend, as older journals have
    /// it, is no limit.
    #[must_use]
    pub fn of(self, measure: Measure) -> Option<u64> {
        let limit = match measure {
            Measure::Steps => self.steps,
            Measure::Tokens => self.tokens,
            Measure::Money => self.money_nanos,
            Measure::Wall => self.wall_ms,
            Measure::Cpu => self.cpu_ms,
            Measure::Egress => self.egress_bytes,
        };
        limit.filter(|limit| *limit != u64::MAX)
    }

    /// Whether nothing is limited.
    #[must_use]
    pub fn is_none(&self) -> bool {
        Measure::ALL.into_iter().all(|measure| self.of(measure).is_none())
    }

    /// Whether it lets more of something be spent than the other one.
    #[must_use]
    pub fn raises(self, other: Self) -> bool {
        let raised = |measure: Measure| match (self.of(measure), other.of(measure)) {
            (Some(now), Some(before)) => now > before,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        Measure::ALL.into_iter().any(raised)
    }

    /// Why nobody would ever be asked from `soft` on, if that lies above this limit.
    #[must_use]
    pub fn hides(self, soft: Self) -> Option<String> {
        let is_above = |it: Measure| Some(soft.of(it)? > self.of(it)?);
        let hidden = Measure::ALL.into_iter().find(|it| is_above(*it) == Some(true))?;
        let what = hidden.words();
        Some(format!("the soft limit of {what} is above the limit: nobody would be asked"))
    }

    /// This limit, and of what it says nothing the other one.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::each(|measure| self.of(measure).or(other.of(measure)))
    }

    /// What both let be spent.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::each(|measure| match (self.of(measure), other.of(measure)) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        })
    }

    /// This limit for what counts from so much on.
    #[must_use]
    pub fn plus(self, from: Amounts) -> Self {
        Self::each(|measure| self.of(measure).map(|limit| limit.saturating_add(from.of(measure))))
    }

    /// What is left of it after that was spent.
    #[must_use]
    pub fn left(self, used: Amounts) -> Self {
        Self::each(|measure| self.of(measure).map(|limit| limit.saturating_sub(used.of(measure))))
    }

    fn each(of: impl Fn(Measure) -> Option<u64>) -> Self {
        Self {
            steps: of(Measure::Steps),
            tokens: of(Measure::Tokens),
            money_nanos: of(Measure::Money),
            wall_ms: of(Measure::Wall),
            cpu_ms: of(Measure::Cpu),
            egress_bytes: of(Measure::Egress),
        }
    }
}

/// Everything is limited to exactly that: the budget of what was reserved.
impl From<Amounts> for Limit {
    fn from(amounts: Amounts) -> Self {
        Self::each(|measure| Some(amounts.of(measure)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_older_journals_say_is_read_as_it_was_meant() {
        let limit: Limit =
            serde_json::from_str(r#"{"steps":18446744073709551615,"tokens":7}"#).unwrap();
        assert_eq!(limit.of(Measure::Steps), None);
        assert_eq!((limit.of(Measure::Tokens), limit.of(Measure::Money)), (Some(7), None));
        let amounts: Amounts = serde_json::from_str(r#"{"steps":1,"tokens":2}"#).unwrap();
        assert_eq!((amounts.money_nanos, amounts.cpu_ms), (0, 0));
        assert_eq!(serde_json::to_string(&amounts).unwrap(), r#"{"steps":1,"tokens":2}"#);
    }

    #[test]
    fn more_of_anything_is_raised() {
        let limit = |tokens, steps| Limit { tokens, steps, ..Limit::NONE };
        for (before, now, raised) in [
            (limit(Some(5), None), limit(Some(6), None), true),
            (limit(Some(5), None), limit(Some(5), None), false),
            (limit(Some(5), None), limit(Some(4), None), false),
            (limit(Some(5), None), limit(None, Some(1)), true),
            (limit(None, None), limit(Some(5), None), false),
            (limit(Some(5), Some(5)), limit(Some(4), Some(6)), true),
        ] {
            assert_eq!(now.raises(before), raised, "{before:?} to {now:?}");
        }
    }

    #[test]
    fn a_limit_is_reached_and_not_passed() {
        let limit = Limit { money_nanos: Some(10), ..Limit::NONE };
        let money = |money_nanos| Amounts { money_nanos, steps: u64::MAX, ..Amounts::default() };
        assert!(money(10).fits(limit));
        assert_eq!(money(11).over(limit), Some(Measure::Money));
        assert_eq!(limit.left(money(4)).money_nanos, Some(6));
        assert_eq!(limit.left(money(11)).money_nanos, Some(0));
        assert_eq!(limit.plus(money(4)), Limit { money_nanos: Some(14), ..Limit::NONE });
    }

    #[test]
    fn two_limits_let_be_spent_what_the_narrower_one_does() {
        let limit = |tokens, steps| Limit { tokens, steps, ..Limit::NONE };
        let both = limit(Some(5), None).and(limit(Some(7), Some(3)));
        assert_eq!(both, limit(Some(5), Some(3)));
        assert_eq!(both.and(limit(Some(4), None)), limit(Some(4), Some(3)));
        assert_eq!(both.and(Limit::NONE), both);
    }
}
