//! What models cost: a dated data file, and files of the same form that correct it.
//!
//! Must never make a price up: what is not written down is not known.

use outrigger_agent::Price;
use serde::Deserialize;

use crate::limits;

/// Prices of models, by provider and name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prices {
    entries: Vec<Entry>,
}

/// What one model costs, and who says so.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The provider, as a session records it, for example `anthropic`.
    pub provider: String,
    /// Its name there, without a date.
    pub model: String,
    /// What its tokens cost.
    pub price: Price,
    /// The day on which the source said so, `YYYY-MM-DD`.
    pub as_of: String,
    /// The page that says so.
    pub source: String,
}

/// What is wrong with a file of prices.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is too large.
    #[error("the file of prices is larger than {} bytes", limits::PRICES_BYTES_MAX)]
    TooLarge,
    /// It is not TOML, or has other keys than a price has.
    #[error("the prices cannot be read")]
    Malformed(#[source] toml::de::Error),
    /// A price is no amount of dollars.
    #[error("the price of `{0}` is not between 0 and {max} dollars for a million tokens", max = limits::PRICE_DOLLARS_MAX)]
    Amount(String),
    /// The day of a price is no date.
    #[error("the price of `{0}` is not dated: `as_of = \"YYYY-MM-DD\"`")]
    Date(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    price: Vec<Written>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    provider: String,
    model: String,
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    as_of: String,
    #[serde(default)]
    source: String,
}

impl Prices {
    /// The ones that come with the program.
    #[must_use]
    pub fn built_in() -> Self {
        Self::parse(include_str!("prices.toml")).expect("a test reads the file")
    }

    /// Reads a file of prices. Where it says nothing of the cache, what goes through the
    /// cache costs as much as other input.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > limits::PRICES_BYTES_MAX {
            return Err(Error::TooLarge);
        }
        let file: File = toml::from_str(text).map_err(Error::Malformed)?;
        let entries = file.price.into_iter().map(Written::ready).collect::<Result<_, _>>()?;
        Ok(Self { entries })
    }

    /// These, and of what they do not say the other ones.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self
    }

    /// What a model costs: the first entry of its name, or of its name without the date
    /// behind it.
    #[must_use]
    pub fn of(&self, provider: &str, model: &str) -> Option<&Entry> {
        let ours = || self.entries.iter().filter(|entry| entry.provider == provider);
        let dated = |entry: &&Entry| {
            let rest = model.strip_prefix(&entry.model).and_then(|rest| rest.strip_prefix('-'));
            rest.is_some_and(is_date)
        };
        ours().find(|entry| entry.model == model).or_else(|| ours().find(dated))
    }

    /// All of them.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl Written {
    fn ready(self) -> Result<Entry, Error> {
        let micros =
            |dollars: f64| micros(dollars).ok_or_else(|| Error::Amount(self.model.clone()));
        let input = micros(self.input)?;
        let price = Price {
            input,
            output: micros(self.output)?,
            cache_read: self.cache_read.map_or(Ok(input), micros)?,
            cache_write: self.cache_write.map_or(Ok(input), micros)?,
        };
        if !self.as_of.contains('-') || !is_date(&self.as_of) {
            return Err(Error::Date(self.model));
        }
        let Self { provider, model, as_of, source, .. } = self;
        Ok(Entry { provider, model, price, as_of, source })
    }
}

/// Dollars for a million tokens in micro-dollars. Nothing for what is no price.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
pub(crate) fn micros(dollars: f64) -> Option<u64> {
    let price = (0.0..=limits::PRICE_DOLLARS_MAX).contains(&dollars);
    price.then(|| (dollars * 1_000_000.0).round() as u64)
}

/// `20251001` or `2025-10-01`.
pub(crate) fn is_date(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let hyphens = text.bytes().enumerate().filter(|(_, byte)| *byte == b'-');
    let hyphens: Vec<usize> = hyphens.map(|(at, _)| at).collect();
    let plain = digits + hyphens.len() == text.len() && digits == 8;
    plain && (hyphens.is_empty() || hyphens == [4, 7])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The schema of the data file.
    #[test]
    fn the_built_in_prices_are_whole_dated_and_sourced() {
        let prices = Prices::built_in();
        assert!(!prices.entries().is_empty());
        let mut names = BTreeSet::new();
        for entry in prices.entries() {
            let Entry { provider, model, price, as_of, source } = entry;
            assert!(names.insert((provider, model)), "{model} has two prices");
            let plain = |byte: u8| byte.is_ascii_lowercase() || b"-.".contains(&byte);
            assert!(provider.bytes().all(plain) && !provider.is_empty(), "{provider}");
            assert!(is_date(as_of) && as_of.as_str() >= "2025-01-01", "{model}: {as_of}");
            assert!(source.starts_with("https://"), "{model}: {source}");
            assert!(price.output >= price.input && price.input >= price.cache_read, "{model}");
            assert!(price.cache_write >= price.input && price.cache_read > 0, "{model}");
        }
    }

    #[test]
    fn a_model_is_found_by_its_name_and_by_its_dated_one() {
        let prices = Prices::built_in();
        for (provider, model, found) in [
            ("anthropic", "claude-sonnet-4-5", Some("claude-sonnet-4-5")),
            ("anthropic", "claude-sonnet-4-5-20250929", Some("claude-sonnet-4-5")),
            ("anthropic", "claude-sonnet-4-20250514", Some("claude-sonnet-4")),
            ("anthropic", "claude-sonnet-4-50", None),
            ("openai", "gpt-5-mini-2025-08-07", Some("gpt-5-mini")),
            ("openai", "gpt-5-mini-fast", None),
            ("openai-chat", "gpt-5-mini", None),
        ] {
            let entry = prices.of(provider, model).map(|entry| entry.model.as_str());
            assert_eq!(entry, found, "{provider} {model}");
        }
    }

    #[test]
    fn one_s_own_prices_come_first_and_mistakes_are_told() {
        let entry = |rest: &str| {
            format!("[[price]]\nprovider = \"openai\"\nmodel = \"gpt-5-mini\"\n{rest}\n")
        };
        let own =
            entry("input = 1\noutput = 2.5\nas_of = \"2026-11-21\"").replace("= 1\n", "= 1.0\n");
        let own = Prices::parse(&own).unwrap().or(Prices::built_in());
        let price = own.of("openai", "gpt-5-mini").unwrap().price;
        assert_eq!((price.input, price.output), (1_000_000, 2_500_000));
        assert_eq!((price.cache_read, price.cache_write), (1_000_000, 1_000_000));
        for (wrong, told) in [
            ("input = 1.0\noutput = 2.5", "cannot be read"),
            ("input = -1.0\noutput = 2.5\nas_of = \"2026-11-21\"", "not between"),
            ("input = nan\noutput = 2.5\nas_of = \"2026-11-21\"", "not between"),
            ("input = 1.0\noutput = 2.5\nas_of = \"today\"", "not dated"),
            ("input = 1.0\noutput = 2.5\nas_of = \"2026-11-21\"\nper = 1", "cannot be read"),
        ] {
            let error = Prices::parse(&entry(wrong)).unwrap_err().to_string();
            assert!(error.contains(told), "{wrong}: {error}");
        }
    }
}
