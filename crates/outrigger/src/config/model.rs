//! Which model is asked: what the layers of the configuration say of it, put together.

use serde::Deserialize;
use std::path::PathBuf;

use super::provider::Provider;
use super::range::Whole;
use crate::flags::{Model, NewModel};

/// The variable that holds keys as the gate has sealed them: JSON, by the names of the variables
/// that held them.
pub(crate) const SEALED_KEYS: &str = "OUTRIGGER_SEALED_KEYS";

/// Tokens, as they are configured.
pub(crate) type Tokens = Whole<1, 1_000_000_000>;

/// Which model is asked, and where.
#[derive(Debug, Default, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ModelFile {
    /// Whose model it is; `openai-chat` is for whatever speaks OpenAI Chat Completions at
    /// `base_url`. If absent, told by the name, or by the key that is set: see above. Instead:
    /// `--provider`, `OUTRIGGER_PROVIDER`.
    #[cfg_attr(test, schemars(with = "String", extend("enum" = names(), "examples" = ["openai-chat"])))]
    #[serde(deserialize_with = "Provider::read")]
    pub(crate) provider: Option<Provider>,
    /// The model, as its provider names it; if absent, the provider's usual one. Instead:
    /// `--model`, `OUTRIGGER_MODEL`.
    #[cfg_attr(test, schemars(example = &"qwen3-coder"))]
    pub(crate) name: Option<String>,
    /// Where the provider is; if absent, where `OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL` or
    /// `OLLAMA_HOST` says, else at the provider's own address. The key is sent there, if
    /// there is one; an address of your own needs none unless `api_key_env` names its variable. The
    /// address is dropped where a stronger file or flag names another `provider`. Instead:
    /// `--base-url`, `OUTRIGGER_BASE_URL`.
    #[cfg_attr(test, schemars(example = &"http://127.0.0.1:8000/v1"))]
    pub(crate) base_url: Option<String>,
    /// The environment variable that holds the key; if absent, the provider's usual one, such as
    /// `ANTHROPIC_API_KEY`. The key itself never stands in a file of ours.
    #[cfg_attr(test, schemars(example = &"MY_SERVER_KEY"))]
    pub(crate) api_key_env: Option<String>,
    /// Hosts to which the key is sent over plain http, where whoever stands between reads it. To
    /// this machine it always is; to any other host only over https.
    #[cfg_attr(test, schemars(example = ["10.0.0.7"], extend("default" = [])))]
    pub(crate) http_hosts: Option<Vec<String>>,
    /// Tokens that the model's context holds; the conversation is summarised before it is full.
    #[cfg_attr(test, schemars(extend("default" = crate::limits::CONTEXT_TOKENS_DEFAULT)))]
    pub(crate) context_tokens: Option<Tokens>,
    /// Tokens of output that one call may ask for.
    #[cfg_attr(test, schemars(extend("default" = crate::limits::OUTPUT_TOKENS_DEFAULT)))]
    pub(crate) output_tokens_max: Option<Tokens>,
    /// Attempts of one model call, the first one included. The wait between them doubles from half
    /// a second to eight; a provider's Retry-After is honoured. One above two minutes ends the call,
    /// as the last attempt does: if the provider takes no more requests, the turn then waits and
    /// asks again, within `turn_seconds_max`.
    #[cfg_attr(test, schemars(extend("default" = outrigger_model::limits::ATTEMPTS_MAX)))]
    pub(crate) attempts_max: Option<Whole<1, 6>>,
    /// A file of turns to play instead of asking a model, whatever the other keys say. Instead:
    /// `--script`.
    #[cfg_attr(test, schemars(example = &"turns.toml"))]
    pub(crate) script: Option<PathBuf>,
}

/// Which model is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelChoice {
    /// None was chosen.
    Unset,
    /// A file of turns.
    Script(PathBuf),
    /// A script that is built in.
    Bundled(&'static str),
    /// A provider's model.
    Provider(Box<ProviderModel>),
}

impl ModelChoice {
    /// What a person is told of a model that nobody named.
    pub(crate) fn reason(&self) -> Option<String> {
        let Self::Provider(model) = self else { return None };
        let because = model.because.as_ref()?;
        let (name, provider) = (&model.name, model.provider.name);
        Some(format!("model {name} of {provider}, because {because}; --model names another"))
    }
}

/// A provider's model, and how it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderModel {
    pub(crate) provider: Provider,
    pub(crate) name: String,
    /// Nothing for the provider's own address.
    pub(crate) base_url: Option<String>,
    pub(crate) api_key_env: Option<String>,
    pub(crate) http_hosts: Vec<String>,
    pub(crate) context_tokens: Option<u64>,
    pub(crate) output_tokens_max: Option<u64>,
    pub(crate) attempts_max: Option<u32>,
    /// Why it is this one, where nobody named it.
    pub(crate) because: Option<String>,
}

#[cfg(test)]
fn names() -> Vec<&'static str> {
    Provider::all().into_iter().map(|provider| provider.name).collect()
}

impl ModelFile {
    /// What the command line says of another model.
    pub(crate) fn instead(asked: &NewModel) -> Self {
        let NewModel { model, provider, base_url } = asked.clone();
        Self { provider, name: model, base_url, ..Self::default() }
    }

    /// What the command line or the environment say.
    pub(crate) fn flags(flags: &Model) -> Self {
        Self {
            provider: flags.provider.clone(),
            name: flags.model.clone(),
            base_url: flags.base_url.clone(),
            script: flags.script.clone(),
            ..Self::default()
        }
    }

    /// Lays a stronger layer over this one, key by key. What belongs to another
    /// provider or another model goes: a key must not reach an address that was
    /// meant for somebody else's.
    pub(crate) fn overlay(&mut self, above: Self) {
        if let (Some(own), Some(other)) = (&self.provider, &above.provider)
            && own != other
        {
            if own.base_url != other.base_url {
                self.name = None;
            }
            self.base_url = None;
            self.api_key_env = None;
        }
        if above.name.is_some() && self.name.is_some() && above.name != self.name {
            self.context_tokens = None;
            self.output_tokens_max = None;
        }
        if above.name.is_some() {
            self.script = None;
        }
        self.provider = above.provider.or_else(|| self.provider.take());
        self.name = above.name.or_else(|| self.name.take());
        self.base_url = above.base_url.or_else(|| self.base_url.take());
        self.api_key_env = above.api_key_env.or_else(|| self.api_key_env.take());
        self.http_hosts = above.http_hosts.or_else(|| self.http_hosts.take());
        self.context_tokens = above.context_tokens.or(self.context_tokens);
        self.output_tokens_max = above.output_tokens_max.or(self.output_tokens_max);
        self.attempts_max = above.attempts_max.or(self.attempts_max);
        self.script = above.script.or_else(|| self.script.take());
    }

    /// What is known of a provider's model, once it is known whose and which it is.
    pub(crate) fn model_of(&self, provider: Provider, name: String) -> ProviderModel {
        ProviderModel {
            context_tokens: self.context_tokens.map(Whole::get).or(provider.context_tokens),
            output_tokens_max: self
                .output_tokens_max
                .map(Whole::get)
                .or(provider.output_tokens_max),
            provider,
            name,
            base_url: self.base_url.clone(),
            api_key_env: self.api_key_env.clone(),
            http_hosts: self.http_hosts.clone().unwrap_or_default(),
            attempts_max: self.attempts(),
            because: None,
        }
    }

    /// Attempts of a call, if they are limited further than they are anyway.
    pub(crate) fn attempts(&self) -> Option<u32> {
        self.attempts_max.map(|most| u32::try_from(most.get()).expect("its range is small"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stronger_layer_wins_key_by_key() {
        let local = "provider = 'openai-chat'\nname = 'a'\nbase_url = 'http://localhost'\ncontext_tokens = 9";
        for (layers, expected) in [
            (&[local][..], "openai-chat a http://localhost 9"),
            (&[local, "name = 'gpt-oss'"], "openai-chat gpt-oss http://localhost -"),
            (&[local, "context_tokens = 8"], "openai-chat a http://localhost 8"),
            // The address was the other provider's.
            (&[local, "provider = 'openai'\nname = 'b'"], "openai b - -"),
            (
                &["base_url = 'http://localhost'", "name = 'claude-x'"],
                "- claude-x http://localhost -",
            ),
            (&["script = 's'", "name = 'o3'"], "- o3 - -"),
            (&[local, "script = 's'"], "openai-chat a http://localhost 9 from s"),
            (&["provider = 'openai'"], "openai - - -"),
        ] {
            let mut whole = ModelFile::default();
            for layer in layers {
                whole.overlay(toml::from_str(layer).unwrap());
            }
            let provider = whole.provider.as_ref().map_or("-", |provider| provider.name);
            let name = whole.name.as_deref().unwrap_or("-");
            let base_url = whole.base_url.as_deref().unwrap_or("-");
            let context = whole.context_tokens.map_or("-".to_owned(), |it| it.get().to_string());
            let script =
                whole.script.map_or_else(String::new, |it| format!(" from {}", it.display()));
            assert_eq!(format!("{provider} {name} {base_url} {context}{script}"), expected);
        }
    }
}
