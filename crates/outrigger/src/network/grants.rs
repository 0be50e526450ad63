//! What the words of a session come to on this machine.

use outrigger_engine::NO_NETWORK;
use outrigger_gate::{Grant, Network, Proxy, Scheme, grant_of, ready};
use std::net::IpAddr;
use std::path::Path;

use super::mirrors::Mirrors;
use super::words::{PACKAGES, REPOSITORY, SECRET};
use crate::shell;

/// What the words of a session grant.
pub(super) fn network(words: &[String], mirrors: &Mirrors, proxy: Option<Proxy>) -> Network {
    // Each was read before it became a part of the session.
    let grants = words.iter().flat_map(|word| of_word(word, mirrors).unwrap_or_default());
    Network { grants: grants.collect(), proxy, ..Network::default() }
}

/// What one word grants.
///
/// # Errors
/// Why nothing can be reached under it.
pub(super) fn of_word(word: &str, mirrors: &Mirrors) -> Result<Vec<Grant>, String> {
    match word.strip_prefix(REPOSITORY) {
        Some(url) => Ok(ready::git(url).unwrap_or_default()),
        None if word == PACKAGES => Ok([ready::packages(), mirrors.grants.clone()].concat()),
        None if word.starts_with(SECRET) || word == NO_NETWORK => Ok(Vec::new()),
        None => grant_of(word),
    }
}

/// Where this machine's own package managers get packages.
pub(crate) fn mirrors() -> Mirrors {
    let shell = shell::of_person();
    Mirrors::find(Path::new("/"), &shell.home, &shell.vars)
}

/// The proxy through which this machine reaches others, as its environment says: what goes over
/// TLS, and all that sandboxes reach.
pub(super) fn proxy() -> Option<Proxy> {
    proxy_of(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
}

/// The proxy through which the harness reaches a host: none for this machine itself, and for
/// what is without TLS the one that the environment has for that.
pub(super) fn proxy_to(Grant { host, scheme, .. }: &Grant) -> Option<Proxy> {
    let is_here = match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    };
    match scheme {
        _ if is_here => None,
        Scheme::Https | Scheme::Tcp => proxy(),
        // Not HTTP_PROXY, which the header `Proxy` of a request sets where a program is run for it.
        Scheme::Http => proxy_of(&["http_proxy", "all_proxy", "ALL_PROXY"]),
    }
}

/// By the first of these variables that is there.
fn proxy_of(names: &[&str]) -> Option<Proxy> {
    let of = |names: &[&str]| names.iter().find_map(|name| std::env::var(name).ok());
    let url = of(names)?;
    let no_proxy = of(&["no_proxy", "NO_PROXY"]).unwrap_or_default();
    let no_proxy = no_proxy.split(',').map(|it| it.trim().to_owned());
    let no_proxy = no_proxy.filter(|it| !it.is_empty()).collect();
    (!url.is_empty()).then_some(Proxy { url, no_proxy })
}
