//! The keys of servers of tools: in which headers they are sent, and to whom.

use outrigger_gate::SecretPlace;
use outrigger_mcp::ServerUrl;

use crate::config::{Config, Server, Way};
use crate::header_keys::HeaderVariable;
use crate::network::caller;

/// The headers with keys, each with its variable and what stands before the key.
pub(super) fn headers(server: &Server) -> impl Iterator<Item = HeaderVariable<'_>> {
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
