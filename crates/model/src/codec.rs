//! What each wire does with a request and with the stream that answers it.

use crate::wire::{CallIds, Decoder};
use crate::{Api, Endpoint, Request, anthropic, chat, gemini, responses};

/// Fields of the body that are written from the request, and which an endpoint's own
/// fields can't replace.
pub(crate) fn own_fields(api: Api) -> &'static [&'static str] {
    match api {
        Api::AnthropicMessages => anthropic::OWN_FIELDS,
        Api::OpenAiResponses => responses::OWN_FIELDS,
        Api::OpenAiChat => chat::OWN_FIELDS,
        Api::Gemini => gemini::OWN_FIELDS,
    }
}

/// The body of a request.
pub(crate) fn body(endpoint: &Endpoint, provider: &str, request: &Request<'_>) -> Vec<u8> {
    match endpoint.api {
        Api::AnthropicMessages => anthropic::body(endpoint, provider, request),
        Api::OpenAiResponses => responses::body(endpoint, provider, request),
        Api::OpenAiChat => chat::body(endpoint, provider, request),
        Api::Gemini => gemini::body(endpoint, provider, request),
    }
}

/// A decoder at the beginning of a stream.
pub(crate) fn decoder(api: Api, ids: CallIds) -> Box<dyn Decoder> {
    match api {
        Api::AnthropicMessages => Box::new(anthropic::Decoder::new(ids)),
        Api::OpenAiResponses => Box::new(responses::Decoder::new(ids)),
        Api::OpenAiChat => Box::new(chat::Decoder::new(ids)),
        Api::Gemini => Box::new(gemini::Decoder::new(ids)),
    }
}
