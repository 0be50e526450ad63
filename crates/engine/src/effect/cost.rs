//! What a model call costs, with those of its attempts that gave no reply.
//!
//! Owns the rules of counting, which design document 015 gives reasons for. A provider is
//! believed within reason, and what it does not say is not zero.

use outrigger_agent::limits::{BYTES_PER_TOKEN, MODEL_MS_MAX};
use outrigger_agent::{Amounts, Limit, Measure, Price, State, Usage};
use outrigger_model::Frame;

use crate::limits;

/// Attempts of one call.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// Bytes that came of the one under way, if the provider began to answer.
    current: Option<u64>,
    /// Bytes that came of each that the provider began to answer and that was lost.
    lost: Vec<u64>,
}

impl Attempts {
    /// Takes in what is seen of them.
    pub(super) fn saw(&mut self, frame: &Frame<'_>) {
        match frame {
            Frame::AttemptStarted { .. } => self.lose(),
            Frame::Answered { .. } => self.grow(0),
            Frame::Text { delta, .. }
            | Frame::Thinking { delta, .. }
            | Frame::ToolArguments { delta, .. } => self.grow(delta.len()),
            Frame::Retrying { .. } => {}
        }
    }

    /// The one under way gives no reply.
    pub(super) fn lose(&mut self) {
        self.lost.extend(self.current.take());
    }

    /// The one under way is stopped: the provider has read the input by now.
    fn stop(&mut self) {
        self.lost.push(self.current.take().unwrap_or(0));
    }

    /// Whether any gave no reply, of which nobody counted what it took.
    pub(super) fn were_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    fn grow(&mut self, bytes: usize) {
        let sum = self.current.unwrap_or(0).saturating_add(bytes as u64);
        self.current = Some(sum);
    }
}

/// By what a call is counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelCost {
    price: Option<Price>,
    context_tokens: u64,
    /// Of the input, as estimated.
    input_tokens: u64,
    /// The session's own.
    budget: Limit,
    pub(super) reserved: Amounts,
}

impl ModelCost {
    pub(super) fn of(state: &State, reserved: Amounts) -> Self {
        let model = state.spec().map(|spec| &spec.model);
        Self {
            price: model.and_then(|model| model.price),
            context_tokens: model.map_or(0, |model| model.context_tokens),
            input_tokens: state.input_tokens_estimate(),
            budget: state.budget(),
            reserved,
        }
    }

    /// Whether the session's budget or an account leaves a call less time than any other
    /// may take.
    pub(super) fn is_short_of_time(&self) -> bool {
        self.reserved.wall_ms < MODEL_MS_MAX
    }

    /// What a provider says of its usage, as far as one call can be.
    pub(super) fn believed(&self, usage: Usage) -> Usage {
        let contexts = self.context_tokens.saturating_mul(limits::CONTEXTS_PER_REPLY_MAX);
        let most = contexts.max(self.reserved.tokens);
        Usage {
            input_tokens: usage.input_tokens.min(most),
            output_tokens: usage.output_tokens.min(most),
            cache_read_tokens: usage.cache_read_tokens.min(most),
            cache_write_tokens: usage.cache_write_tokens.min(most),
            reasoning_tokens: usage.reasoning_tokens.min(most),
            native: usage.native,
        }
    }

    /// Whether the provider said nothing of what a reply took.
    pub(super) fn is_uncounted(usage: &Usage) -> bool {
        usage.input_tokens.saturating_add(usage.output_tokens) == 0
    }

    /// A call that gave a reply. Where the provider counts nothing the worst case stands.
    pub(super) fn replied(&self, usage: &Usage, attempts: &Attempts) -> Amounts {
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        let priced = |nanos: &dyn Fn(Price) -> u64| self.price.map_or(0, nanos);
        let spent = match tokens {
            0 => Amounts {
                tokens: self.reserved.tokens,
                money_nanos: priced(&|_| self.reserved.money_nanos),
                ..Amounts::default()
            },
            _ => Amounts {
                tokens,
                money_nanos: priced(&|price| price.nanos(usage)),
                ..Amounts::default()
            },
        };
        self.with_lost(spent, attempts)
    }

    /// A call that gave none.
    pub(super) fn failed(&self, attempts: &Attempts) -> Amounts {
        self.with_lost(Amounts::default(), attempts)
    }

    /// A call that a person stopped: its input, and what came of it until then.
    pub(super) fn stopped(&self, attempts: &mut Attempts) -> Amounts {
        attempts.stop();
        self.with_lost(Amounts::default(), attempts)
    }

    /// A call that took too long: what the provider counted is not known.
    pub(super) fn given_up(&self, attempts: &Attempts) -> Amounts {
        let spent = self.with_lost(self.reserved, attempts);
        Amounts { steps: self.reserved.steps, ..spent }
    }

    /// Each attempt that was lost read the input and wrote what came of it. Of what the
    /// session's budget limits, no more than was reserved.
    fn with_lost(&self, spent: Amounts, attempts: &Attempts) -> Amounts {
        let lost = attempts.lost.iter().fold(Amounts::default(), |sum, bytes| {
            let output_tokens = bytes.div_ceil(BYTES_PER_TOKEN);
            let nanos = |price: Price| price.worst_nanos(self.input_tokens, output_tokens);
            sum.plus(Amounts {
                tokens: self.input_tokens.saturating_add(output_tokens),
                money_nanos: self.price.map_or(0, nanos),
                ..Amounts::default()
            })
        });
        let room = self.reserved.minus(spent);
        let bounded = |measure: Measure| match self.budget.of(measure) {
            Some(_) => lost.of(measure).min(room.of(measure)),
            None => lost.of(measure),
        };
        let (tokens, money_nanos) = (bounded(Measure::Tokens), bounded(Measure::Money));
        spent.plus(Amounts { tokens, money_nanos, ..Amounts::STEP })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price { input: 1_000, output: 2_000, cache_read: 0, cache_write: 0 };

    fn cost(budget: Limit) -> ModelCost {
        let reserved =
            Amounts { steps: 1, tokens: 150, money_nanos: 200, wall_ms: 9, ..Amounts::default() };
        let price = Some(PRICE);
        ModelCost { price, context_tokens: 1_000, input_tokens: 100, budget, reserved }
    }

    /// Two that broke off, one after thirty bytes, one that was refused, and one that is
    /// under way.
    fn attempts() -> Attempts {
        let mut attempts = Attempts::default();
        for (attempt, bytes) in [(1, Some(30)), (2, None), (3, Some(0)), (4, Some(60))] {
            attempts.saw(&Frame::AttemptStarted { attempt });
            if let Some(bytes) = bytes {
                attempts.saw(&Frame::Answered { attempt });
                attempts.saw(&Frame::Text { attempt, delta: &"x".repeat(bytes) });
            }
            attempts.saw(&Frame::Retrying { attempt, wait_ms: 1, reason: "" });
        }
        attempts
    }

    fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
        Usage { input_tokens, output_tokens, ..Usage::default() }
    }

    #[test]
    fn attempts_that_were_lost_are_paid_for() {
        let spent = cost(Limit::NONE).replied(&usage(90, 20), &attempts());
        assert_eq!((spent.steps, spent.tokens), (1, 110 + 110 + 100));
        assert_eq!(spent.money_nanos, (90 + 2 * 20) + (100 + 2 * 10) + 100);
        let mut all = attempts();
        all.lose();
        let spent = cost(Limit::NONE).failed(&all);
        assert_eq!((spent.steps, spent.tokens), (1, 110 + 100 + 120));
        assert_eq!(cost(Limit::NONE).failed(&Attempts::default()).tokens, 0, "nobody answered");
        let spent = cost(Limit::NONE).given_up(&attempts());
        assert_eq!((spent.steps, spent.tokens, spent.wall_ms), (1, 150 + 110 + 100, 9));
        let spent = cost(Limit::NONE).stopped(&mut attempts());
        assert_eq!((spent.steps, spent.tokens), (1, 110 + 100 + 120));
        let spent = cost(Limit::NONE).stopped(&mut Attempts::default());
        assert_eq!((spent.tokens, spent.money_nanos), (100, 100), "its input was sent");
        // Not beyond what was reserved, of what is limited.
        let limited = Limit { tokens: Some(1_000), ..Limit::NONE };
        let spent = cost(limited).replied(&usage(90, 20), &attempts());
        assert_eq!((spent.tokens, spent.money_nanos), (150, 350));
        assert_eq!(cost(limited).given_up(&attempts()).tokens, 150);
    }

    #[test]
    fn what_is_not_counted_is_the_worst_case() {
        let none = Attempts::default();
        let spent = cost(Limit::NONE).replied(&usage(0, 0), &none);
        assert_eq!((spent.tokens, spent.money_nanos), (150, 200));
        let unpriced = ModelCost { price: None, ..cost(Limit::NONE) };
        let spent = unpriced.replied(&usage(0, 0), &none);
        assert_eq!((spent.tokens, spent.money_nanos), (150, 0));
    }

    #[test]
    fn a_provider_is_believed_within_reason() {
        let believed = cost(Limit::NONE).believed(usage(u64::MAX, 7));
        assert_eq!((believed.input_tokens, believed.output_tokens), (2_000, 7));
        let spent = cost(Limit::NONE).replied(&believed, &Attempts::default());
        assert_eq!(spent.tokens, 2_007);
    }
}
