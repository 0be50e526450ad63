//! What a sandbox may reach, as data.
//!
//! Owns the types that callers fill in and store. What they mean is in `rules`.

use std::collections::BTreeMap;
use std::fmt;

use outrigger_policy::RequestRules;
use serde::{Deserialize, Serialize};

use crate::limits;

/// All that a sandbox may reach. Empty: nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// What may be reached. A request passes if one of them allows it.
    #[serde(default)]
    pub grants: Vec<Grant>,
    /// The operator's own proxy, through which everything goes.
    #[serde(default)]
    pub proxy: Option<Proxy>,
    /// How many bytes may be sent from now on, those among them that were sent and not told
    /// yet ([`crate::NetworkClient::flows`]). `None`: any number.
    #[serde(default)]
    pub sent_bytes_max: Option<u64>,
    /// Rules that look at methods or paths. They forbid requests that a grant allows, and allow
    /// none. `None`: nothing is forbidden so.
    #[serde(default)]
    pub rules: Option<RequestRules>,
}

/// Ports at which a connection that a name led there says its host: by TLS, or by HTTP.
pub(crate) const NAMED_PORTS: [u16; 2] = [443, 80];

impl Network {
    /// Ports at which a program that knows no proxy gets to the one host of [`Scheme::Tcp`] that
    /// is granted there. At 443 and 80 it says its host, so they are never among them.
    ///
    /// # Errors
    /// One sentence, if there are two hosts at one of them, or too many ports.
    pub fn captured_ports(&self) -> Result<Vec<u16>, String> {
        let mut hosts = BTreeMap::new();
        let is_stream =
            |grant: &&Grant| grant.scheme == Scheme::Tcp && !NAMED_PORTS.contains(&grant.port);
        for Grant { host, port, .. } in self.grants.iter().filter(is_stream) {
            let known = hosts.entry(*port).or_insert(host);
            if *known != host {
                return Err(format!(
                    "{known} and {host} can't both be passed on unread at port {port}: there a \
                     program does not say which of them it means"
                ));
            }
        }
        match hosts.len() {
            0..=limits::CAPTURED_PORTS_MAX => Ok(hosts.into_keys().collect()),
            many => Err(format!(
                "{many} ports are to be passed on unread, of at most {}",
                limits::CAPTURED_PORTS_MAX
            )),
        }
    }
}

/// One place that may be reached, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// What it was granted as: a ready set, or the host as a person wrote it. Shown in flows.
    pub name: String,
    /// An exact host in lower case, `*.example.com` for one or more labels before it, or the
    /// literal of an address (of version 6 without brackets).
    pub host: String,
    /// The port.
    pub port: u16,
    /// What is spoken there.
    pub scheme: Scheme,
    /// Methods, in upper case. Empty: all.
    #[serde(default)]
    pub methods: Vec<String>,
    /// Paths without their queries, `*` for any characters. Empty: all. If there are any, a
    /// path that a server could read in another way (`..`, `%2f`, `\`) matches none.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Each `name=value` that the query must have. Empty: any query.
    #[serde(default)]
    pub queries: Vec<String>,
    /// Whether the name may lead to loopback and to private addresses. One of [`Scheme::Tcp`]
    /// leads to loopback only where it says so itself.
    #[serde(default)]
    pub private: bool,
}

/// What is spoken with a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// HTTP over TLS.
    Https,
    /// HTTP.
    Http,
    /// Anything, over TCP: it is passed on unread. Only for one host by its name or address.
    Tcp,
}

impl Scheme {
    /// The port where nothing else is said. 0, which no host has: it always is.
    pub(crate) fn port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
            Self::Tcp => 0,
        }
    }
}

/// A host and port that a connection from inside names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    /// The host as a URL has it, in lower case. It was read strictly: letters, digits, `-`, `_`
    /// and `.`, or the literal of an address.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Destination {
    /// What [`crate::grant_of`] takes to allow it.
    pub fn words(&self) -> String {
        match self.port {
            443 | 80 => self.host.clone(),
            port => format!("{}:{port}", self.host),
        }
    }
}

/// The operator's proxy.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proxy {
    /// `http://[user:password@]host:port`.
    pub url: String,
    /// Hosts and suffixes of hosts that are reached without it; `*` for all.
    #[serde(default)]
    pub no_proxy: Vec<String>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What stands before the host may be a password.
        let host = self.url.rsplit_once('@').map_or(self.url.as_str(), |(_, host)| host);
        f.debug_struct("Proxy").field("host", &host).field("no_proxy", &self.no_proxy).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let proxy = Proxy { url: "http://me:secret@proxy:3128".to_owned(), no_proxy: Vec::new() };
        let shown = format!(
            "{:?}",
            Network { grants: Vec::new(), proxy: Some(proxy), ..Network::default() }
        );
        assert!(shown.contains("proxy:3128"), "{shown}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
