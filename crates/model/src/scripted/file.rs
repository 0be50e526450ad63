//! Reads a script. Must never accept a key that it does not know, because a
//! mistyped condition would match everything.

use outrigger_agent::Price;
use regex::Regex;
use serde::Deserialize;

use crate::limits::{SCRIPT_BYTES_MAX, SCRIPT_DELAY_MS_MAX, SCRIPT_TURNS_MAX};
use crate::prices::micros;

/// What a script's tokens cost, in dollars for a million of them.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenPrice {
    input: f64,
    output: f64,
}

impl WrittenPrice {
    pub(super) fn ready(self) -> Result<Price, Error> {
        let micros = |dollars| micros(dollars).ok_or(Error::Price);
        let (input, output) = (micros(self.input)?, micros(self.output)?);
        Ok(Price { input, output, cache_read: input, cache_write: input })
    }
}

/// What is wrong with a script.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is too large.
    #[error("the script is larger than {SCRIPT_BYTES_MAX} bytes")]
    TooLarge,
    /// It is not TOML, or has keys or values that a script has not.
    #[error("the script cannot be read")]
    Malformed(#[source] toml::de::Error),
    /// It has no turn, or too many.
    #[error("the script has {0} turns; it needs 1 to {SCRIPT_TURNS_MAX}")]
    Turns(usize),
    /// Its tokens cost nothing that can be paid.
    #[error("`price` is not between 0 and {} dollars", crate::limits::PRICE_DOLLARS_MAX)]
    Price,
    /// A turn says nothing and calls nothing.
    #[error("turn {turn} has neither text nor calls")]
    Empty {
        /// Which, from 1.
        turn: usize,
    },
    /// A turn's pattern is no regular expression.
    #[error("turn {turn}: `result_matches` is no regular expression")]
    Pattern {
        /// Which, from 1.
        turn: usize,
        /// Why not.
        #[source]
        source: regex::Error,
    },
    /// A turn waits too long.
    #[error("turn {turn}: `delay_ms` is above {SCRIPT_DELAY_MS_MAX}")]
    Delay {
        /// Which, from 1.
        turn: usize,
    },
    /// A turn's arguments have no form in JSON.
    #[error("turn {turn}: the arguments of a call cannot be written as JSON")]
    Arguments {
        /// Which, from 1.
        turn: usize,
        /// Why not.
        #[source]
        source: serde_json::Error,
    },
}

/// A script as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default = "name")]
    pub(super) name: String,
    #[serde(default = "context_tokens")]
    pub(super) context_tokens: u64,
    #[serde(default = "output_tokens_max")]
    pub(super) output_tokens_max: u64,
    #[serde(default = "summary")]
    pub(super) summary: String,
    #[serde(default)]
    pub(super) price: Option<WrittenPrice>,
    #[serde(default)]
    turn: Vec<Written>,
}

fn name() -> String {
    "script".to_owned()
}

fn context_tokens() -> u64 {
    200_000
}

fn output_tokens_max() -> u64 {
    8_192
}

fn summary() -> String {
    "The conversation so far went as the script wanted.".to_owned()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    when: Option<WrittenWhen>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    calls: Vec<WrittenCall>,
    #[serde(default)]
    delay_ms: u64,
    #[serde(default)]
    usage: Option<Tokens>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenWhen {
    turn: Option<usize>,
    result_contains: Option<String>,
    result_matches: Option<String>,
    message_contains: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCall {
    name: String,
    arguments: serde_json::Value,
}

/// Tokens that a turn claims to have cost.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tokens {
    #[serde(default)]
    pub(super) input_tokens: u64,
    #[serde(default)]
    pub(super) output_tokens: u64,
}

/// A turn that is ready to be played.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) when: When,
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    /// Names and raw arguments.
    pub(super) calls: Vec<(String, String)>,
    pub(super) delay_ms: u64,
    pub(super) tokens: Option<Tokens>,
}

/// When a turn fits: if everything that is given holds.
#[derive(Debug)]
pub(super) struct When {
    pub(super) turn: Option<usize>,
    pub(super) result_contains: Option<String>,
    pub(super) result_matches: Option<Regex>,
    pub(super) message_contains: Option<String>,
}

/// Reads a script.
pub(super) fn read(text: &str) -> Result<(File, Vec<Turn>), Error> {
    if text.len() > SCRIPT_BYTES_MAX {
        return Err(Error::TooLarge);
    }
    let mut file: File = toml::from_str(text).map_err(Error::Malformed)?;
    let written = std::mem::take(&mut file.turn);
    if written.is_empty() || written.len() > SCRIPT_TURNS_MAX {
        return Err(Error::Turns(written.len()));
    }
    let turns = written.into_iter().enumerate();
    let turns: Result<_, Error> = turns.map(|(at, turn)| turn.ready(at + 1)).collect();
    Ok((file, turns?))
}

impl Written {
    fn ready(self, turn: usize) -> Result<Turn, Error> {
        if self.text.is_none() && self.calls.is_empty() {
            return Err(Error::Empty { turn });
        }
        if self.delay_ms > SCRIPT_DELAY_MS_MAX {
            return Err(Error::Delay { turn });
        }
        let when = self.when.unwrap_or(WrittenWhen { turn: Some(turn), ..WrittenWhen::default() });
        let pattern = when.result_matches.as_deref().map(Regex::new).transpose();
        let calls: Result<_, Error> = self.calls.into_iter().map(|call| call.ready(turn)).collect();
        Ok(Turn {
            when: When {
                turn: when.turn,
                result_contains: when.result_contains,
                result_matches: pattern.map_err(|source| Error::Pattern { turn, source })?,
                message_contains: when.message_contains,
            },
            text: self.text,
            thinking: self.thinking,
            calls: calls?,
            delay_ms: self.delay_ms,
            tokens: self.usage,
        })
    }
}

impl WrittenCall {
    fn ready(self, turn: usize) -> Result<(String, String), Error> {
        let arguments = match self.arguments {
            serde_json::Value::String(raw) => raw,
            value => {
                serde_json::to_string(&value).map_err(|source| Error::Arguments { turn, source })?
            }
        };
        Ok((self.name, arguments))
    }
}
