//! What the words of a session come to on this machine.

use outrigger_gate::{Grant, Network, Proxy, grant_of, ready};
use std::path::Path;

use super::mirrors::Mirrors;
use super::words::{PACKAGES, REPOSITORY, SECRET};
use crate::shell;

/// What the words of a session grant.
pub(super) fn network(words: &[String], mirrors: &Mirrors, proxy: Option<Proxy>) -> Network {
    let mut grants: Vec<Grant> = Vec::new();
    for word in words {
        match word.strip_prefix(REPOSITORY) {
            Some(url) => grants.extend(ready::git(url).unwrap_or_default()),
            None if word == PACKAGES => {
                grants.extend(ready::packages());
                grants.extend(mirrors.grants.iter().cloned());
            }
            None if word.starts_with(SECRET) => {}
            // It was read before it became a part of the session.
            None => grants.extend(grant_of(word).unwrap_or_default()),
        }
    }
    Network { grants, proxy }
}

/// Where this machine's own package managers get packages.
pub(crate) fn mirrors() -> Mirrors {
    let shell = shell::of_person();
    Mirrors::find(Path::new("/"), &shell.home, &shell.vars)
}

/// The proxy through which this machine reaches others, as its environment says.
pub(super) fn proxy() -> Option<Proxy> {
    let of = |names: [&str; 2]| names.iter().find_map(|name| std::env::var(name).ok());
    let url = of(["https_proxy", "HTTPS_PROXY"]).or_else(|| of(["all_proxy", "ALL_PROXY"]))?;
    let no_proxy = of(["no_proxy", "NO_PROXY"]).unwrap_or_default();
    let no_proxy = no_proxy.split(',').map(|it| it.trim().to_owned());
    let no_proxy = no_proxy.filter(|it| !it.is_empty()).collect();
    (!url.is_empty()).then_some(Proxy { url, no_proxy })
}
