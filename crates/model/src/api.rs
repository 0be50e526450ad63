//! The ways to speak to models, by their names.

use std::fmt;

/// A way to speak to models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Anthropic Messages, <https://docs.anthropic.com/en/api/messages>.
    AnthropicMessages,
    /// OpenAI Responses, <https://platform.openai.com/docs/api-reference/responses>.
    OpenAiResponses,
    /// OpenAI Chat Completions, <https://platform.openai.com/docs/api-reference/chat>,
    /// as many other servers speak it too.
    OpenAiChat,
    /// Google Gemini, <https://ai.google.dev/api/generate-content>.
    Gemini,
}

impl Api {
    /// Every wire.
    pub const ALL: [Self; 4] =
        [Self::AnthropicMessages, Self::OpenAiResponses, Self::OpenAiChat, Self::Gemini];

    /// Its name, in the configuration and in every reply's origin.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenAiResponses => "openai-responses",
            Self::OpenAiChat => "openai-chat",
            Self::Gemini => "gemini",
        }
    }

    /// The wire of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.as_str() == name)
    }

    /// Path of a model's endpoint behind the version of the API.
    pub(crate) fn path(self, model: &str) -> String {
        match self {
            Self::AnthropicMessages => "messages".to_owned(),
            Self::OpenAiResponses => "responses".to_owned(),
            Self::OpenAiChat => "chat/completions".to_owned(),
            // Tuned models have a collection of their own.
            Self::Gemini if model.contains('/') => format!("{model}:streamGenerateContent"),
            Self::Gemini => format!("models/{model}:streamGenerateContent"),
        }
    }

    /// The version of the API, which a base URL may leave out.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::AnthropicMessages | Self::OpenAiResponses | Self::OpenAiChat => "v1",
            Self::Gemini => "v1beta",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
