//! What went wrong, and above all whether the server may have done it all the same.
//!
//! Owns that in doubt it may have. Must never quote a server: its words are content, and
//! come as an answer or not at all.

use outrigger_tools::outside::{Block, Fault, ToolAnswer};
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use std::error::Error;
use std::time::Duration;

use crate::routed::Unsent;

/// What a call came to that has no result.
pub(crate) enum CallError {
    /// The server refused it, in its own words.
    Refused(ToolAnswer),
    /// The server knows this connection no more; it did nothing.
    Forgotten,
    Fault(Fault),
}

/// Of a call that was sent, or was to be.
pub(crate) fn of_call(error: ServiceError, timeout_ms: u64) -> CallError {
    let may_have =
        |detail: &str| CallError::Fault(Fault::MayHaveHappened { detail: detail.to_owned() });
    match error {
        ServiceError::McpError(error) => {
            let text = format!("The server refused: {} (code {})", error.message, error.code.0);
            CallError::Refused(ToolAnswer { blocks: vec![Block::Text(text)], failed: true })
        }
        ServiceError::Timeout { .. } => CallError::Fault(late(true, timeout_ms)),
        ServiceError::TransportSend(error) => match sent(&error) {
            Delivery::Never(detail) => CallError::Fault(Fault::NotAsked { detail }),
            Delivery::Forgotten => CallError::Forgotten,
            Delivery::Perhaps(detail) => may_have(&detail),
        },
        ServiceError::TransportClosed => may_have("the connection ended before the answer"),
        ServiceError::UnexpectedResponse => may_have("the answer was none to this call"),
        other => {
            drop(other);
            may_have("the call was given up by the protocol")
        }
    }
}

/// Of a connection or a list of tools: nothing was to be done yet.
pub(crate) fn of_connecting(error: &ClientInitializeError) -> Fault {
    let detail = match error {
        ClientInitializeError::TransportError { error, .. } => words(sent(error)),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            return of_connecting(fallback);
        }
        ClientInitializeError::JsonRpcError(error) => {
            format!("the server refused the connection (code {})", error.code.0)
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "the server speaks no revision of the protocol that is known here".to_owned()
        }
        ClientInitializeError::ConnectionClosed(_) => "the server hung up".to_owned(),
        _ => "what answered does not speak the Model Context Protocol".to_owned(),
    };
    Fault::NotAsked { detail }
}

pub(crate) fn of_listing(error: &ServiceError) -> Fault {
    let detail = match error {
        ServiceError::McpError(error) => {
            format!("the server refused to list its tools (code {})", error.code.0)
        }
        ServiceError::TransportSend(error) => words(sent(error)),
        ServiceError::Timeout { timeout } => format!("no list of tools within {timeout:?}"),
        ServiceError::TransportClosed => "the server hung up".to_owned(),
        _ => "the server's list of tools is none".to_owned(),
    };
    Fault::NotAsked { detail }
}

/// Of a call that has no answer in its time; whether it was sent tells what that means.
pub(crate) fn late(sent: bool, timeout_ms: u64) -> Fault {
    if sent {
        Fault::MayHaveHappened { detail: format!("no answer within {timeout_ms} ms") }
    } else {
        let detail = format!("the server could not be asked within {timeout_ms} ms");
        Fault::NotAsked { detail }
    }
}

pub(crate) fn too_slow(what: &str, waited: Duration) -> Fault {
    Fault::NotAsked { detail: format!("{what} took longer than {waited:?}") }
}

/// How far a message got.
enum Delivery {
    Never(String),
    Forgotten,
    Perhaps(String),
}

fn words(sent: Delivery) -> String {
    match sent {
        Delivery::Never(detail) | Delivery::Perhaps(detail) => detail,
        Delivery::Forgotten => "the server knows the connection no more".to_owned(),
    }
}

fn sent(error: &DynamicTransportError) -> Delivery {
    let Some(error) = find::<StreamableHttpError<reqwest::Error>>(&*error.error) else {
        return Delivery::Perhaps("the connection broke".to_owned());
    };
    match error {
        StreamableHttpError::Client(error) if error.is_connect() || error.is_builder() => {
            Delivery::Never(format!("the server can't be reached: {}", root(error)))
        }
        StreamableHttpError::Io(error) => match error.get_ref().and_then(|it| it.downcast_ref()) {
            Some(Unsent(said)) => Delivery::Never(format!("the server can't be reached: {said}")),
            None => Delivery::Perhaps("the connection broke".to_owned()),
        },
        StreamableHttpError::Client(error) => match error.status() {
            Some(status) => of_status(status.as_u16()),
            None => Delivery::Perhaps(format!("the connection broke: {}", root(error))),
        },
        StreamableHttpError::HttpStatus(error) => of_status(error.status),
        StreamableHttpError::AuthRequired(_) => of_status(401),
        StreamableHttpError::InsufficientScope(_) => of_status(403),
        StreamableHttpError::SessionExpired => Delivery::Forgotten,
        StreamableHttpError::ResponseBodyTooLarge { max_size } => {
            Delivery::Perhaps(format!("the answer has more than {max_size} bytes"))
        }
        StreamableHttpError::UnexpectedServerResponse(text) => match status_in(text) {
            Some(status) => of_status(status),
            None => Delivery::Perhaps("the answer is not of the protocol".to_owned()),
        },
        StreamableHttpError::UnexpectedContentType(_) => {
            Delivery::Perhaps("the answer is neither JSON nor a stream of events".to_owned())
        }
        StreamableHttpError::ReservedHeaderConflict(name) => {
            Delivery::Never(format!("the header `{name}` can't be configured"))
        }
        _ => Delivery::Perhaps("the connection broke before the answer".to_owned()),
    }
}

/// Statuses by which a server says that it did not look at the request. A redirect is
/// followed nowhere.
fn of_status(status: u16) -> Delivery {
    match status {
        401 | 403 => Delivery::Never(format!(
            "the server does not accept the credentials (HTTP {status}); see `token_env` in its configuration"
        )),
        // It may be said after the deed as well.
        300..=399 => Delivery::Perhaps(format!(
            "the server points to another address (HTTP {status}), which is not followed; configure that address"
        )),
        404 | 405 | 406 | 411 | 413 | 415 | 421 | 429 => {
            Delivery::Never(format!("the server refused the request (HTTP {status})"))
        }
        _ => Delivery::Perhaps(format!("the server answered with HTTP {status}")),
    }
}

fn status_in(text: &str) -> Option<u16> {
    text.strip_prefix("HTTP ")?.get(..3)?.parse().ok()
}

fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// What is at the bottom of it: an error of ours or of the system.
fn root(error: &dyn Error) -> String {
    let mut last = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        last = error.to_string();
        next = error.source();
    }
    last
}
