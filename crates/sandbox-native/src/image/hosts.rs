//! Where a registry may lead whoever pulls from it.
//!
//! Owns the answer: to itself, to hosts that were named by whoever asked, and over TLS to
//! public addresses, where registries keep blobs and give tokens. A registry is hostile,
//! and this host stands in networks of which it should learn nothing: a name is judged by
//! the route, by the addresses that are dialled, and not by a lookup before.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

use super::route::HostReach;

/// Places of one registry.
#[derive(Debug)]
pub(super) struct AllowedHosts {
    registry: Url,
    /// Hosts beside the registry's own.
    named: BTreeSet<String>,
}

/// Why a place is none to go to.
#[derive(Debug, thiserror::Error)]
pub(super) enum HostRefusal {
    #[error("it leads to `{0:.200}`, which is not a public host")]
    Private(String),
    #[error("it leads to `{0:.200}`, which is not spoken to over TLS")]
    Plain(String),
}

fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

impl AllowedHosts {
    /// Those of the registry at this address, and of other hosts that were named.
    pub(super) fn new(registry: Url, named: &[String]) -> Self {
        let named = named.iter().map(|name| name.to_lowercase()).collect();
        Self { registry, named }
    }

    /// The registry's own address.
    pub(super) fn registry(&self) -> &Url {
        &self.registry
    }

    /// Whether it is the registry itself, which alone is shown its token.
    pub(super) fn is_registry(&self, url: &Url) -> bool {
        url.origin() == self.registry.origin()
    }

    fn is_named(&self, name: &str) -> bool {
        name == host(&self.registry) || self.named.contains(name)
    }

    /// Which addresses the host of a request may have.
    pub(super) fn reach(&self, url: &Url) -> HostReach {
        if self.is_named(host(url)) { HostReach::Any } else { HostReach::Public }
    }

    /// Whether a request may be made of this address. Names are judged when they are
    /// resolved.
    pub(super) fn judge(&self, url: &Url) -> Result<(), HostRefusal> {
        if self.is_registry(url) || (url.scheme() == "http" && self.named.contains(host(url))) {
            return Ok(());
        }
        if url.scheme() != "https" {
            return Err(HostRefusal::Plain(url.to_string()));
        }
        match host(url).parse() {
            Ok(address) if !self.is_named(host(url)) && !is_public(address) => {
                Err(HostRefusal::Private(url.to_string()))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// Whether an address is one of the internet (IANA's registries of special addresses).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_four(address),
        IpAddr::V6(address) => is_public_six(address),
    }
}

fn is_public_four(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let protocols = a == 192 && b == 0 && c == 0;
    let benchmarks = a == 198 && (18..20).contains(&b);
    let special = address.is_loopback() || address.is_private() || address.is_link_local();
    !(special || shared || protocols || benchmarks || a == 0 || a >= 224)
}

fn is_public_six(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let four = |high: u16, low: u16| {
        let ([w, x], [y, z]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_four(Ipv4Addr::new(w, x, y, z))
    };
    match (a, b) {
        // Those that stand for an address of the other kind: mapped, NAT64, 6to4.
        (0, 0) => (c, d, e, f) == (0, 0, 0, 0xffff) && four(g, h),
        (0x64, 0xff9b) => (c, d, e, f) == (0, 0, 0, 0) && four(g, h),
        (0x2002, _) => four(b, c),
        // Global unicast; all else is special or not given to anybody.
        _ => a & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(registry: &str) -> AllowedHosts {
        AllowedHosts::new(
            registry.parse().unwrap(),
            &["Blobs.example".to_owned(), "10.0.0.9".to_owned()],
        )
    }

    #[test]
    fn private_places_in_all_spellings_are_refused_and_named_ones_are_not() {
        let hosts = hosts("https://registry.example:5000");
        let judge = |url: &str| hosts.judge(&url.parse().unwrap()).is_ok();
        for url in [
            "https://registry.example:5000/v2/",
            "https://registry.example/token",
            "https://cdn.example/blob",
            "https://1.1.1.1/blob",
            "https://[2606:4700::1]/blob",
            "http://blobs.example/blob",
            "https://10.0.0.9/blob",
        ] {
            assert!(judge(url), "{url}");
        }
        for url in [
            "http://registry.example:5000/v2/",
            "http://cdn.example/blob",
            "file:///etc/passwd",
            "https://127.0.0.1/x",
            "https://2130706433/x",
            "https://0x7f.1/x",
            "https://0.0.0.0/x",
            "https://10.0.0.8/x",
            "https://172.16.0.1/x",
            "https://192.168.1.1/x",
            "https://169.254.169.254/latest/meta-data",
            "https://100.100.100.200/x",
            "https://[::1]/x",
            "https://[::ffff:127.0.0.1]/x",
            "https://[::ffff:a9fe:a9fe]/x",
            "https://[64:ff9b::7f00:1]/x",
            "https://[2002:7f00:1::]/x",
            "https://[fd00:ec2::254]/x",
            "https://[fe80::1]/x",
        ] {
            assert!(!judge(url), "{url}");
        }
    }

    #[test]
    fn names_that_nobody_named_lead_to_public_addresses_alone() {
        let hosts = hosts("https://registry.example");
        let reach = |url: &str| hosts.reach(&url.parse().unwrap());
        assert_eq!(reach("https://localhost/x"), HostReach::Public);
        assert_eq!(reach("https://registry.example/x"), HostReach::Any);
        assert_eq!(reach("https://blobs.example/x"), HostReach::Any);
    }
}
