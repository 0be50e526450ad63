//! How a model's provider is spoken to.

use clap::ValueEnum;
use serde::Deserialize;

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Provider {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    Openai,
    /// OpenAI Chat Completions, spoken by most other servers.
    OpenaiChat,
}

impl Provider {
    /// Where keys are looked for unless another variable is named.
    pub(crate) const KEY_VARIABLES: [&str; 2] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"];

    /// Where the key is unless another variable is named.
    pub(crate) fn key_variable(self) -> &'static str {
        let [anthropic, openai] = Self::KEY_VARIABLES;
        match self {
            Self::Anthropic => anthropic,
            Self::Openai | Self::OpenaiChat => openai,
        }
    }

    /// Its name in the configuration and in sessions.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
            Self::OpenaiChat => "openai-chat",
        }
    }

    /// The provider of a name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Anthropic, Self::Openai, Self::OpenaiChat].into_iter().find(|it| it.as_str() == name)
    }
}
