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
}

impl Api {
    /// Every wire.
    pub const ALL: [Self; 3] = [Self::AnthropicMessages, Self::OpenAiResponses, Self::OpenAiChat];

    /// Its name, in the configuration and in every reply's origin.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenAiResponses => "openai-responses",
            Self::OpenAiChat => "openai-chat",
        }
    }

    /// The wire of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.as_str() == name)
    }

    /// Path of its endpoint behind the version of the API.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "messages",
            Self::OpenAiResponses => "responses",
            Self::OpenAiChat => "chat/completions",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
