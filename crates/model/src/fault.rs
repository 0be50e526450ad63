//! What an attempt came to when it gave no reply, and whether another one helps.
//!
//! Owns how statuses, codes and messages of all providers are read. Must never
//! wait or retry itself.

use outrigger_agent::ModelFault;
use outrigger_agent::limits::JSON_DEPTH_MAX;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::time::Duration;

use crate::limits::ERROR_MESSAGE_BYTES_MAX;
use crate::retry_policy::Retry;
use crate::{Endpoint, Error, ProviderFailure, json, sse};

/// The status of a provider that has too many requests of everybody; not in RFC 9110.
/// Source: <https://docs.anthropic.com/en/api/errors>
const OVERLOADED: u16 = 529;

/// What providers call too many requests, of one account or of all.
const OVER_THE_LIMIT: [&str; 4] =
    ["rate_limit_error", "rate_limit_exceeded", "too_many_requests", "overloaded_error"];

/// The type of an answer that is JSON.
pub(crate) const JSON: &str = "application/json";

/// Why an attempt gave no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: ModelFault,
    /// The provider refused the content, before any reply: an answer of sorts.
    pub(crate) is_refusal: bool,
    pub(crate) status: Option<u16>,
    pub(crate) message: String,
    pub(crate) retry: Retry,
}

impl Fault {
    /// A stream that is not what it should be: retried.
    pub(crate) fn garbled(message: impl Into<String>) -> Self {
        Self::new(ModelFault::Garbled, Retry::Backoff, message.into())
    }

    /// An answer that nests deeper than readers of JSON go. It would be the same again.
    pub(crate) fn too_deep() -> Self {
        let message = format!("the answer nests more than {JSON_DEPTH_MAX} deep");
        Self::new(ModelFault::Garbled, Retry::Never, message)
    }

    /// What an answer with status 200 says that says itself that it is no stream: an error,
    /// half of something, or what is no model, which it would be again.
    pub(crate) fn of_no_stream(kind: &str, body: &str) -> Self {
        if ProviderError::read(body).is_error {
            return Self::of_event(body);
        }
        let message = format!("the answer is {kind} and no stream: {body}");
        let broken = kind == JSON && serde_json::from_str::<IgnoredAny>(body).is_err();
        let retry = if broken { Retry::Backoff } else { Retry::Never };
        Self::new(ModelFault::Garbled, retry, message)
    }

    /// A provider that cannot be reached or does not answer: retried.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ModelFault::Unavailable, Retry::Backoff, message.into())
    }

    /// A request that the gate does not pass on, nor would the next time.
    pub(crate) fn denied(message: impl Into<String>) -> Self {
        Self::new(ModelFault::Invalid, Retry::Never, message.into())
    }

    /// A conversation that does not fit: never retried as it is.
    pub(crate) fn context_too_long(message: impl Into<String>) -> Self {
        Self::new(ModelFault::ContextTooLong, Retry::Never, message.into())
    }

    fn new(kind: ModelFault, retry: Retry, message: String) -> Self {
        Self { kind, is_refusal: false, status: None, message, retry }
    }

    /// What an answer with an error status says.
    pub(crate) fn of_answer(status: u16, retry_after: Option<Duration>, body: &str) -> Self {
        let said = ProviderError::read(body);
        let retried = matches!(status, 408 | 409 | 425 | 429) || status >= 500;
        let kind = match status {
            401 | 403 => ModelFault::Auth,
            // Gemini's way to say it.
            400 if said.refuses_the_key() => ModelFault::Auth,
            // The last means "for now" (RFC 9110, 15.6.4), as a server says that is too busy
            // or still loads its model.
            429 | OVERLOADED | 503 => ModelFault::RateLimited,
            _ if retried => ModelFault::Unavailable,
            413 => ModelFault::ContextTooLong,
            _ if said.context_too_long() => ModelFault::ContextTooLong,
            _ => ModelFault::Invalid,
        };
        let retry = match retry_after {
            _ if !retried || said.is(&["insufficient_quota"]) => Retry::Never,
            Some(wait) => Retry::After(wait),
            None => Retry::Backoff,
        };
        let is_refusal = kind == ModelFault::Invalid && said.refuses();
        Self { kind, is_refusal, status: Some(status), message: said.message_or(body), retry }
    }

    /// What an error inside a stream says.
    pub(crate) fn of_event(error: &str) -> Self {
        let said = ProviderError::read(error);
        if let Some(status) = said.status() {
            return Self { status: None, ..Self::of_answer(status, None, error) };
        }
        let (kind, retry) = if said.context_too_long() {
            (ModelFault::ContextTooLong, Retry::Never)
        } else if said.is(&["insufficient_quota"]) {
            (ModelFault::RateLimited, Retry::Never)
        } else if said.is(&OVER_THE_LIMIT) {
            (ModelFault::RateLimited, Retry::Backoff)
        } else if said.is(&["authentication_error", "permission_error", "invalid_api_key"]) {
            (ModelFault::Auth, Retry::Never)
        } else if said.refuses()
            || said.is(&["invalid_request_error", "invalid_prompt", "not_found_error"])
        {
            (ModelFault::Invalid, Retry::Never)
        } else {
            (ModelFault::Unavailable, Retry::Backoff)
        };
        let is_refusal = kind == ModelFault::Invalid && said.refuses();
        Self { is_refusal, ..Self::new(kind, retry, said.message_or(error)) }
    }

    /// As it may be shown: without secrets, which providers quote in their messages,
    /// and only then cut, so that no piece of one stays.
    pub(crate) fn shown(self, endpoint: &Endpoint) -> Self {
        Self { message: bounded(&endpoint.redact(&self.message)), ..self }
    }

    /// The error that callers see.
    pub(crate) fn into_error(self, provider: &str, attempts: u32) -> Error {
        let Self { kind: fault, status, message, retry, .. } = self;
        let retry_after_ms = (fault == ModelFault::RateLimited).then(|| retry.asked_ms()).flatten();
        let provider = provider.to_owned();
        let cause = ProviderFailure { provider, attempts, status, message, retry_after_ms };
        Error::Provider { fault, cause }
    }
}

impl From<sse::Error> for Fault {
    fn from(error: sse::Error) -> Self {
        Self::garbled(error.to_string())
    }
}

/// What a provider says of an error, in whichever shape.
struct ProviderError {
    message: Option<String>,
    /// Its type and its code.
    codes: Vec<String>,
    /// A code that is a number.
    number: Option<u16>,
    /// Whether it says itself that it is an error.
    is_error: bool,
}

#[derive(Deserialize, Default)]
struct Shape<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    detail: Option<&'a RawValue>,
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
}

impl ProviderError {
    fn read(body: &str) -> Self {
        let outer: Shape<'_> = serde_json::from_str(body).unwrap_or_default();
        let inner: Shape<'_> = outer
            .error
            .and_then(|error| serde_json::from_str(error.get()).ok())
            .unwrap_or_default();
        let plain = outer.error.and_then(json::string);
        let text = |raw: Option<&RawValue>| raw.and_then(json::string);
        let codes = [inner.r#type, inner.code, outer.r#type, outer.code];
        Self {
            is_error: outer.error.is_some_and(|error| error.get() != "null"),
            message: text(inner.message)
                .or(text(outer.message))
                .or(text(outer.detail))
                .or_else(|| plain.clone()),
            codes: codes.into_iter().filter_map(text).chain(plain).collect(),
            number: [inner.code, outer.code]
                .into_iter()
                .flatten()
                .find_map(|code| serde_json::from_str(code.get()).ok()),
        }
    }

    fn is(&self, codes: &[&str]) -> bool {
        self.codes.iter().any(|code| codes.contains(&code.as_str()))
    }

    fn refuses_the_key(&self) -> bool {
        self.message.as_deref().is_some_and(|message| message.starts_with("API key not valid"))
    }

    fn refuses(&self) -> bool {
        self.is(&["content_filter", "content_policy_violation"])
    }

    fn status(&self) -> Option<u16> {
        self.number.filter(|number| (400..600).contains(number))
    }

    /// Each provider's way to say that a conversation is too long.
    fn context_too_long(&self) -> bool {
        const SAYINGS: &[&str] = &[
            "prompt is too long",
            "maximum context length",
            "context window",
            "context length",
            "context limit",
            "context size",
            "exceeds the maximum number of tokens",
            "input is too long",
        ];
        let message = self.message.as_deref().unwrap_or_default().to_ascii_lowercase();
        self.is(&["context_length_exceeded", "exceed_context_size_error", "request_too_large"])
            || SAYINGS.iter().any(|saying| message.contains(saying))
    }

    fn message_or(self, body: &str) -> String {
        let message = self.message.filter(|message| !message.trim().is_empty());
        match message {
            Some(message) => message,
            None if body.trim().is_empty() => "no message".to_owned(),
            None => body.to_owned(),
        }
    }
}

/// The beginning of a text, on one line, at most [`ERROR_MESSAGE_BYTES_MAX`].
fn bounded(text: &str) -> String {
    let text = text.trim();
    let end = text.floor_char_boundary(ERROR_MESSAGE_BYTES_MAX);
    let line = text[..end].replace(|c: char| c.is_control(), " ");
    if end < text.len() { format!("{line}…") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn shown(fault: &Fault) -> String {
        let refusal = if fault.is_refusal { ", a refusal" } else { "" };
        format!("{:?}{refusal} {:?} {}", fault.kind, fault.retry, fault.message)
    }

    #[test]
    fn only_the_four_statuses_and_failures_of_the_server_are_retried() {
        let retried: Vec<u16> = (300..600)
            .filter(|status| Fault::of_answer(*status, None, "").retry != Retry::Never)
            .collect();
        let expected: Vec<u16> = [408, 409, 425, 429].into_iter().chain(500..600).collect();
        assert_eq!(retried, expected);
    }

    #[test]
    fn a_provider_that_says_when_it_takes_more_is_waited_for() {
        let wait = Some(Duration::from_secs(300));
        let asked = |status, wait| match Fault::of_answer(status, wait, "").into_error("api", 6) {
            Error::Provider { fault, cause } => (fault, cause.retry_after_ms),
            Error::Script(_) => unreachable!("of a provider"),
        };
        for status in [429, 503, 529] {
            assert_eq!(asked(status, wait), (ModelFault::RateLimited, Some(300_000)), "{status}");
        }
        for status in [503, 529] {
            assert_eq!(asked(status, None), (ModelFault::RateLimited, Some(0)), "{status}");
        }
        // Of one that is down nobody knows whether it comes back.
        assert_eq!(asked(500, None), (ModelFault::Unavailable, None));
        assert_eq!(asked(502, wait), (ModelFault::Unavailable, None));
    }

    #[test]
    fn answers_are_read_in_every_shape() {
        let table = [
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"too long","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 8 tokens.","type":"BadRequestError","code":400}"#,
            ),
            (413, r#"{"error":{"type":"request_too_large","message":"too many bytes"}}"#),
            (400, r#"{"error":{"code":"content_filter","message":"filtered"}}"#),
            (400, r#"{"error":"model not found"}"#),
            (401, r#"{"error":{"type":"authentication_error","message":"invalid x-api-key"}}"#),
            (429, r#"{"error":{"type":"insufficient_quota","message":"no credit"}}"#),
            (429, ""),
            (422, r#"{"detail":"no"}"#),
            (
                400,
                r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}"#,
            ),
            (
                404,
                r#"{"error":{"code":404,"message":"models/m is not found","status":"NOT_FOUND"}}"#,
            ),
            (502, "<html>bad\ngateway</html>"),
        ];
        let read: Vec<String> = table
            .iter()
            .map(|(status, body)| shown(&Fault::of_answer(*status, None, body)))
            .collect();
        expect![[r#"
            ContextTooLong Never prompt is too long: 9 tokens > 8 maximum
            ContextTooLong Never too long
            ContextTooLong Never This model's maximum context length is 8 tokens.
            ContextTooLong Never too many bytes
            Invalid, a refusal Never filtered
            Invalid Never model not found
            Auth Never invalid x-api-key
            RateLimited Never no credit
            RateLimited Backoff no message
            Invalid Never no
            Auth Never API key not valid. Please pass a valid API key.
            ContextTooLong Never The input token count (9) exceeds the maximum number of tokens allowed (8).
            Invalid Never models/m is not found
            Unavailable Backoff <html>bad
            gateway</html>"#]]
        .assert_eq(&read.join("\n"));
    }

    #[test]
    fn errors_inside_a_stream_are_read_in_every_shape() {
        let table = [
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#,
            r#"{"type":"error","error":{"type":"api_error","message":"oops"}}"#,
            r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#,
            r#"{"error":{"code":502,"message":"upstream"}}"#,
            r#"{"error":{"code":529,"message":"busy"}}"#,
            r#"{"error":{"code":400,"message":"bad"}}"#,
            r#"{"code":"server_error","message":"oops"}"#,
            r#"{"code":"invalid_prompt","message":"no"}"#,
            "what?",
        ];
        let read: Vec<String> = table.iter().map(|error| shown(&Fault::of_event(error))).collect();
        expect![[r#"
            RateLimited Backoff Overloaded
            RateLimited Backoff slow
            Unavailable Backoff oops
            ContextTooLong Never too long
            Unavailable Backoff upstream
            RateLimited Backoff busy
            Invalid Never bad
            Unavailable Backoff oops
            Invalid Never no
            Unavailable Backoff what?"#]]
        .assert_eq(&read.join("\n"));
    }

    #[test]
    fn messages_are_bounded() {
        let long = "ü".repeat(ERROR_MESSAGE_BYTES_MAX);
        assert!(bounded(&long).len() <= ERROR_MESSAGE_BYTES_MAX + "…".len());
    }
}
