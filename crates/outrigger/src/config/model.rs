//! Which model is asked: what the layers of the configuration say of it, put together.

use serde::Deserialize;
use std::path::PathBuf;

use super::provider::Provider;
use super::range::Whole;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Model;

/// Tokens, as they are configured.
pub(crate) type Tokens = Whole<1, 1_000_000_000>;

/// Which model is asked, and where.
#[derive(Debug, Default, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ModelFile {
    /// How the provider is spoken to: Anthropic Messages, OpenAI Responses, or OpenAI Chat
    /// Completions, which most other servers speak. If absent, told by the name, for `claude…`,
    /// `gpt…` and `o1` and its like. Instead: `--provider`, `OUTRIGGER_PROVIDER`.
    #[cfg_attr(test, schemars(example = &"openai-chat"))]
    pub(crate) provider: Option<Provider>,
    /// The model, as its provider names it. Instead: `--model`, `OUTRIGGER_MODEL`.
    #[cfg_attr(test, schemars(example = &"qwen3-coder"))]
    pub(crate) name: Option<String>,
    /// Where the provider is; if absent, at the provider's own address. The key is sent there, if
    /// there is one; an address of your own needs none unless `api_key_env` names its variable. The
    /// address is dropped where a stronger file or flag names another `provider`. Instead:
    /// `--base-url`, `OUTRIGGER_BASE_URL`.
    #[cfg_attr(test, schemars(example = &"http://127.0.0.1:8000/v1"))]
    pub(crate) base_url: Option<String>,
    /// The environment variable that holds the key; if absent, `ANTHROPIC_API_KEY` or
    /// `OPENAI_API_KEY`, by the provider. The key itself never stands in a file of ours.
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
    /// a second to eight; a provider's Retry-After is honoured, and one above two minutes ends the
    /// call, to be resumed later.
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
    Provider {
        provider: Provider,
        name: String,
        base_url: Option<String>,
        api_key_env: Option<String>,
        http_hosts: Vec<String>,
        context_tokens: Option<u64>,
        output_tokens_max: Option<u64>,
        attempts_max: Option<u32>,
    },
}

impl ModelFile {
    /// What the command line or the environment say.
    pub(crate) fn flags(flags: &Model) -> Self {
        Self {
            provider: flags.provider,
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
        if above.provider.is_some_and(|provider| self.provider.is_some_and(|own| own != provider)) {
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
        self.provider = above.provider.or(self.provider);
        self.name = above.name.or_else(|| self.name.take());
        self.base_url = above.base_url.or_else(|| self.base_url.take());
        self.api_key_env = above.api_key_env.or_else(|| self.api_key_env.take());
        self.http_hosts = above.http_hosts.or_else(|| self.http_hosts.take());
        self.context_tokens = above.context_tokens.or(self.context_tokens);
        self.output_tokens_max = above.output_tokens_max.or(self.output_tokens_max);
        self.attempts_max = above.attempts_max.or(self.attempts_max);
        self.script = above.script.or_else(|| self.script.take());
    }

    /// The choice that all layers together make.
    pub(crate) fn choice(self) -> Outcome<ModelChoice> {
        if let Some(script) = self.script {
            return Ok(ModelChoice::Script(script));
        }
        let attempts_max = self.attempts();
        let Some(name) = self.name else { return Ok(ModelChoice::Unset) };
        let provider = match self.provider {
            Some(provider) => provider,
            None => guess(&name)?,
        };
        Ok(ModelChoice::Provider {
            provider,
            name,
            base_url: self.base_url,
            api_key_env: self.api_key_env,
            http_hosts: self.http_hosts.unwrap_or_default(),
            context_tokens: self.context_tokens.map(Whole::get),
            output_tokens_max: self.output_tokens_max.map(Whole::get),
            attempts_max,
        })
    }

    /// Attempts of a call, if they are limited further than they are anyway.
    pub(crate) fn attempts(&self) -> Option<u32> {
        self.attempts_max.map(|most| u32::try_from(most.get()).expect("its range is small"))
    }
}

/// The provider, where the model's name says it.
fn guess(name: &str) -> Outcome<Provider> {
    let digit_follows = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    if name.starts_with("claude") {
        return Ok(Provider::Anthropic);
    }
    if name.starts_with("gpt") || name.strip_prefix('o').is_some_and(digit_follows) {
        return Ok(Provider::Openai);
    }
    Err(Failure::new(Kind::Usage, format!("the provider of the model `{name}` is not known"))
        .hint("Say it with --provider anthropic, openai or openai-chat, and --base-url."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layered(layers: &[&str]) -> ModelChoice {
        let mut whole = ModelFile::default();
        for layer in layers {
            whole.overlay(toml::from_str(layer).unwrap());
        }
        whole.choice().unwrap()
    }

    #[test]
    fn a_stronger_layer_wins_key_by_key() {
        let local = "provider = 'openai-chat'\nname = 'a'\nbase_url = 'http://localhost'\ncontext_tokens = 9";
        let provider =
            |provider, name: &str, base_url: Option<&str>, context_tokens| ModelChoice::Provider {
                provider,
                name: name.to_owned(),
                base_url: base_url.map(str::to_owned),
                api_key_env: None,
                http_hosts: Vec::new(),
                context_tokens,
                output_tokens_max: None,
                attempts_max: None,
            };
        let here = Some("http://localhost");
        for (layers, expected) in [
            (&[local][..], provider(Provider::OpenaiChat, "a", here, Some(9))),
            (&[local, "name = 'gpt-oss'"], provider(Provider::OpenaiChat, "gpt-oss", here, None)),
            (&[local, "context_tokens = 8"], provider(Provider::OpenaiChat, "a", here, Some(8))),
            // The address was the other provider's.
            (
                &[local, "provider = 'openai'\nname = 'b'"],
                provider(Provider::Openai, "b", None, None),
            ),
            (
                &["base_url = 'http://localhost'", "name = 'claude-x'"],
                provider(Provider::Anthropic, "claude-x", here, None),
            ),
            (&["script = 's'", "name = 'o3'"], provider(Provider::Openai, "o3", None, None)),
            (&[local, "script = 's'"], ModelChoice::Script("s".into())),
            (&["provider = 'openai'"], ModelChoice::Unset),
        ] {
            assert_eq!(layered(layers), expected, "{layers:?}");
        }
    }
}
