//! Providers of models, as the data file has them.
//!
//! Owns how one is found by its name, and where it is and where its key lies unless the
//! configuration says otherwise. Must never read the environment or reach a provider.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use outrigger_model::Api;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

/// The data file.
const FILE: &str = include_str!("../../data/providers.toml");

/// The one for whatever other servers speak.
const OTHER_SERVERS: &str = "openai-chat";

/// A provider of models.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Provider {
    /// As people type it, and as sessions record it.
    pub(crate) name: &'static str,
    /// How it is spoken to.
    #[serde(deserialize_with = "wire")]
    pub(crate) wire: Api,
    /// Its own address.
    pub(crate) base_url: &'static str,
    /// Where other programs look for another address of it.
    #[serde(borrow)]
    pub(crate) base_url_env: Option<&'static str>,
    /// Where its key is unless another variable is named; nothing where it wants none.
    #[serde(borrow)]
    pub(crate) key_env: Option<&'static str>,
    /// The model that is asked where nobody names one.
    #[serde(borrow)]
    pub(crate) model: Option<&'static str>,
    /// How names of models begin that are its own.
    #[serde(borrow, default)]
    pub(crate) model_prefixes: Vec<&'static str>,
    /// Where it listens, if it is a server on this machine.
    pub(crate) port: Option<u16>,
    /// What its models hold, where that is less than is usual.
    pub(crate) context_tokens: Option<u64>,
    /// What its models write in one reply, where that is less than is usual.
    pub(crate) output_tokens_max: Option<u64>,
    /// Whether it takes the field of that name.
    #[serde(default)]
    pub(crate) prompt_cache_key: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the file, and its test"))]
    as_of: &'static str,
    provider: Vec<Provider>,
}

fn wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Api, D::Error> {
    let name = String::deserialize(deserializer)?;
    Api::named(&name).ok_or_else(|| D::Error::custom(format!("`{name}` is no wire")))
}

fn file() -> File {
    toml::from_str(FILE).expect("a test reads the file")
}

impl Provider {
    /// All of them, in the order in which one is chosen.
    pub(crate) fn all() -> Vec<Self> {
        file().provider
    }

    /// The provider of a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|provider| provider.name == name)
    }

    /// What is meant by an address of which nobody says what is there: most servers speak it.
    pub(crate) fn of_other_servers() -> Self {
        Self::named(OTHER_SERVERS).expect("a test looks for it")
    }

    /// The one whose models have such names.
    pub(crate) fn of_model(name: &str) -> Option<Self> {
        let known =
            |provider: &Self| provider.model_prefixes.iter().any(|prefix| name.starts_with(prefix));
        Self::all().into_iter().find(known)
    }

    /// Takes a name from the command line.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        let names = Self::all().into_iter().map(|provider| provider.name);
        PossibleValuesParser::new(names)
            .try_map(|name| Self::named(&name).ok_or("there is no such provider"))
    }

    /// Takes a name from a configuration.
    pub(super) fn read<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Self>, D::Error> {
        let name = String::deserialize(deserializer)?;
        let all = Self::all();
        let names: Vec<_> = all.iter().map(|provider| provider.name).collect();
        let unknown = format!("there is no provider `{name}`; they are {}", names.join(", "));
        let found = all.into_iter().find(|provider| provider.name == name);
        found.map(Some).ok_or_else(|| D::Error::custom(unknown))
    }

    /// Whether it is a server on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.port.is_some()
    }

    /// An address of it, as a variable of other programs says it: perhaps a host and a port
    /// alone, and perhaps all addresses of this machine. Nothing for its own address.
    pub(crate) fn address(&self, said: &str) -> Option<String> {
        let said = said.trim().trim_end_matches('/');
        let plain = if said.contains("://") { said.to_owned() } else { format!("http://{said}") };
        let (scheme, rest) = plain.split_once("://")?;
        let (host, path) =
            rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
        let host = host.replace("0.0.0.0", "127.0.0.1");
        let bare = !host.rsplit(']').next()?.contains(':');
        let port = self.port.filter(|_| bare).map_or_else(String::new, |port| format!(":{port}"));
        let path = path.or(self.port.map(|_| "v1"));
        let path = path.map_or_else(String::new, |path| format!("/{path}"));
        let url = format!("{scheme}://{host}{port}{path}");
        (!host.is_empty() && url != self.base_url).then_some(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The schema of the data file.
    #[test]
    fn the_file_of_providers_is_whole_and_dated() {
        let File { as_of, provider: all } = file();
        let digits = as_of.split('-').map(str::len).collect::<Vec<_>>();
        assert!(digits == [4, 2, 2] && as_of >= "2026-11-25", "{as_of}");
        let mut names = BTreeSet::new();
        let mut prefixes = BTreeSet::new();
        for provider in &all {
            let name = provider.name;
            assert!(names.insert(name), "{name} is there twice");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b"-.".contains(&b)), "{name}");
            match provider.port {
                Some(port) => {
                    assert_eq!(provider.base_url, format!("http://127.0.0.1:{port}/v1"));
                    assert!(provider.key_env.is_none() && provider.model.is_none(), "{name}");
                }
                None => {
                    assert!(provider.base_url.starts_with("https://"), "{name}");
                    assert!(provider.key_env.is_some() && provider.model.is_some(), "{name}");
                }
            }
            assert!(!provider.base_url.ends_with('/'), "{name}");
            for variable in [provider.key_env, provider.base_url_env].into_iter().flatten() {
                assert!(variable.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'), "{name}");
            }
            for prefix in &provider.model_prefixes {
                assert!(prefixes.insert(*prefix), "{prefix} is two providers'");
            }
            let context = provider.context_tokens.unwrap_or(u64::MAX);
            assert!(provider.output_tokens_max.is_none_or(|output| output <= context / 2));
        }
        assert_eq!(Provider::of_other_servers().wire, Api::OpenAiChat);
        let prices = outrigger_model::Prices::built_in();
        for entry in prices.entries() {
            assert!(names.contains(entry.provider.as_str()), "{}", entry.provider);
        }
        // Whoever limits money need not look one up; what a router passes on has no list price.
        for provider in all.iter().filter(|it| !["openai-chat", "openrouter"].contains(&it.name)) {
            let priced = |model: &str| prices.of(provider.name, model).is_some();
            assert!(provider.model.is_none_or(priced), "{} has no price", provider.name);
        }
    }

    #[test]
    fn an_address_is_taken_as_other_programs_write_it() {
        let ollama = Provider::named("ollama").unwrap();
        for (said, address) in [
            ("127.0.0.1:11434", None),
            ("0.0.0.0", None),
            ("http://127.0.0.1:11434/", None),
            ("gpu.example:9", Some("http://gpu.example:9/v1")),
            ("https://gpu.example", Some("https://gpu.example:11434/v1")),
            ("http://[::1]", Some("http://[::1]:11434/v1")),
            ("", None),
        ] {
            assert_eq!(ollama.address(said).as_deref(), address, "{said}");
        }
        let openai = Provider::named("openai").unwrap();
        for (said, address) in [
            ("https://api.openai.com/v1/", None),
            ("http://localhost:8000/v1", Some("http://localhost:8000/v1")),
            ("http://localhost:8000", Some("http://localhost:8000")),
        ] {
            assert_eq!(openai.address(said).as_deref(), address, "{said}");
        }
    }

    #[test]
    fn a_model_s_name_says_whose_it_is() {
        for (name, provider) in [
            ("claude-x", Some("anthropic")),
            ("gpt-5", Some("openai")),
            ("o3", Some("openai")),
            ("opus", None),
            ("gemini-3", Some("gemini")),
            ("qwen3", None),
        ] {
            assert_eq!(Provider::of_model(name).map(|it| it.name), provider, "{name}");
        }
    }
}
