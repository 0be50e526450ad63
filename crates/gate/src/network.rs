//! What a sandbox may reach, as data.
//!
//! Owns the types that callers fill in and store. What they mean is in `rules`.

use std::fmt;

use serde::{Deserialize, Serialize};

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
    /// Whether the name may lead to loopback and to private addresses.
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
}

impl Scheme {
    /// The port where nothing else is said.
    pub(crate) fn port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
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
