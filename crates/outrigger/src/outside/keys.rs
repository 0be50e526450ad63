//! The keys of servers of tools: in which headers they are sent, and to whom.

use outrigger_gate::{SealedSecret, SecretPlace};
use outrigger_mcp::ServerUrl;
use outrigger_model::endpoint::ServerAddress;

use crate::config::{Config, Server, Way};
use crate::network::caller;
use crate::sealed_keys::{is_for, is_word, sealed};

/// What is sent as the key of a server.
pub(super) enum HeaderKey {
    /// What the gate puts the key in the place of, after what stands before it.
    Sealed { scheme: String, sealed: Box<SealedSecret> },
    /// A word that opens nothing.
    Word(String),
}

/// The headers with keys, each with its variable and what stands before the key.
pub(super) fn headers(server: &Server) -> impl Iterator<Item = (&str, &str, &'static str)> {
    let token = server.token_env.iter();
    let token = token.map(|variable| ("Authorization", variable.as_str(), "Bearer "));
    let others = server.headers_env.iter();
    token.chain(others.map(|(name, variable)| (name.as_str(), variable.as_str(), "")))
}

/// The variables in which keys of servers are, each with the place that its key is sent to.
pub(crate) fn keyed(config: &Config) -> Vec<(String, SecretPlace)> {
    let mut all = Vec::new();
    for server in config.tools.values() {
        let Way::Url(url) = &server.way else { continue };
        let Ok(url) = ServerUrl::new(url) else { continue };
        let names: Vec<_> = headers(server).map(|(name, ..)| name.to_ascii_lowercase()).collect();
        let place = SecretPlace { headers: names, ..SecretPlace::new(caller::grant(url.server())) };
        all.extend(headers(server).map(|(_, variable, _)| (variable.to_owned(), place.clone())));
    }
    all
}

/// The key in a variable; the error is what is wrong with it.
pub(super) fn of(variable: &str, server: &ServerAddress) -> Result<HeaderKey, String> {
    let text = std::env::var(variable).unwrap_or_default();
    match sealed(variable) {
        Some(sealed) if is_for(&sealed, server) => {
            let scheme = if text.is_empty() { text } else { text + " " };
            Ok(HeaderKey::Sealed { scheme, sealed: Box::new(sealed) })
        }
        Some(_) => Err(format!("the key in {variable} is not sent to {}", server.host)),
        None if text.trim().is_empty() => {
            Err(format!("the environment variable {variable} holds no key"))
        }
        None if is_word(&text) => Ok(HeaderKey::Word(text.trim().to_owned())),
        None => Err(format!("the key in {variable} was not handed to the gate")),
    }
}
