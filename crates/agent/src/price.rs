//! What a model call costs. The price stands in the session's journal, so that the fold
//! needs no catalogue.

use serde::{Deserialize, Serialize};

use crate::Usage;

/// What a model's tokens cost, in micro-dollars for a million of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Price {
    /// Input that the provider's cache has no part in.
    pub input: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// Input that was read from the provider's cache.
    pub cache_read: u64,
    /// Input that was written to it.
    pub cache_write: u64,
}

impl Price {
    /// The most that a call of so many tokens can cost, in nano-dollars.
    #[must_use]
    pub fn worst_nanos(&self, input_tokens: u64, output_tokens: u64) -> u64 {
        nanos(&[(input_tokens, self.dearest_input()), (output_tokens, self.output)])
    }

    /// The most output that a call with so many tokens of input can have within so many
    /// nano-dollars.
    #[must_use]
    pub fn output_tokens_within(&self, nanos: u64, input_tokens: u64) -> u64 {
        let input = u128::from(input_tokens) * u128::from(self.dearest_input());
        let room = (u128::from(nanos) * 1_000).checked_sub(input);
        match (room, u128::from(self.output)) {
            (None, _) => 0,
            (Some(_), 0) => u64::MAX,
            (Some(room), output) => u64::try_from(room / output).unwrap_or(u64::MAX),
        }
    }

    fn dearest_input(&self) -> u64 {
        self.input.max(self.cache_read).max(self.cache_write)
    }

    /// What a call cost, in nano-dollars, rounded up.
    #[must_use]
    pub fn nanos(&self, usage: &Usage) -> u64 {
        let plain = usage
            .input_tokens
            .saturating_sub(usage.cache_read_tokens)
            .saturating_sub(usage.cache_write_tokens);
        nanos(&[
            (plain, self.input),
            (usage.cache_read_tokens, self.cache_read),
            (usage.cache_write_tokens, self.cache_write),
            (usage.output_tokens, self.output),
        ])
    }
}

/// A micro-dollar for a million tokens is a thousandth of a nano-dollar for each.
fn nanos(parts: &[(u64, u64)]) -> u64 {
    let thousandths = parts.iter().fold(0_u128, |sum, (tokens, price)| {
        sum.saturating_add(u128::from(*tokens) * u128::from(*price))
    });
    u64::try_from(thousandths.div_ceil(1_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price =
        Price { input: 3_000_000, output: 15_000_000, cache_read: 300_000, cache_write: 3_750_000 };

    #[test]
    fn a_million_tokens_cost_what_the_catalogue_says() {
        let usage = Usage { input_tokens: 1_000_000, ..Usage::default() };
        assert_eq!(PRICE.nanos(&usage), 3_000_000_000);
        let usage = Usage { cache_read_tokens: 600_000, cache_write_tokens: 400_000, ..usage };
        assert_eq!(PRICE.nanos(&usage), 180_000_000 + 1_500_000_000);
        let usage = Usage { output_tokens: 1, ..Usage::default() };
        assert_eq!(PRICE.nanos(&usage), 15_000);
        assert_eq!(Price { output: 1, ..Price::default() }.nanos(&usage), 1, "rounded up");
    }

    #[test]
    fn nothing_costs_more_than_the_worst_case() {
        for (read, write) in [(0, 0), (10, 0), (0, 10), (5, 5), (99, 99)] {
            let usage = Usage {
                input_tokens: 10,
                output_tokens: 7,
                cache_read_tokens: read.min(10),
                cache_write_tokens: write.min(10 - read.min(10)),
                ..Usage::default()
            };
            assert!(PRICE.nanos(&usage) <= PRICE.worst_nanos(10, 7), "{usage:?}");
        }
        assert_eq!(PRICE.worst_nanos(u64::MAX, u64::MAX), u64::MAX);
    }

    #[test]
    fn the_output_that_fits_is_all_that_fits() {
        for nanos in [0, 1, 37_500, 37_514, 37_515, 1_000_000, 999_999_999] {
            let output = PRICE.output_tokens_within(nanos, 10);
            let fits = |output: u64| PRICE.worst_nanos(10, output) <= nanos;
            assert!(fits(output) || output == 0, "{nanos}: {output}");
            assert!(!fits(output + 1), "{nanos}: {output}");
        }
        assert_eq!(PRICE.output_tokens_within(15_000, 0), 1);
        assert_eq!(Price { output: 0, ..PRICE }.output_tokens_within(1_000_000, 1), u64::MAX);
    }
}
