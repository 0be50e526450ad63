//! Hosts as requests name them, in one spelling only.
//!
//! Owns the parser. What has two readings (`127.1`, `0x7f.1`, a dot at the end, `%`) is no
//! host: whoever decides and whoever dials must never see different ones.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::address::{Reach, reach};
use crate::network::{Destination, Scheme};

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Host {
    /// A name, in lower case.
    Name(String),
    /// The literal of an address.
    Address(IpAddr),
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) scheme: Scheme,
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl Host {
    /// A host as it stands in a URL: an address of version 6 in brackets.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some(inner) = text.strip_prefix('[') {
            return Self::version_6(inner.strip_suffix(']')?);
        }
        let text = text.to_ascii_lowercase();
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            // The parser of the standard library takes the canonical form only.
            return Some(Self::Address(address.into()));
        }
        is_name(&text).then_some(Self::Name(text))
    }

    /// A host as a grant has it: without brackets.
    pub(crate) fn parse_bare(text: &str) -> Option<Self> {
        if text.contains(':') { Self::version_6(text) } else { Self::parse(text) }
    }

    fn version_6(text: &str) -> Option<Self> {
        let address: Ipv6Addr = text.parse().ok()?;
        (address.to_string() == text.to_ascii_lowercase()).then_some(Self::Address(address.into()))
    }

    /// Whether it is of this machine or a private network, as it is written.
    pub(crate) fn is_private(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Self::Address(address) => reach(*address) != Reach::Public,
        }
    }

    /// As TLS names it, or none for an address.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Address(_) => None,
        }
    }
}

fn is_name(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    text.len() <= 253 && text.split('.').all(label) && !is_number(last)
}

/// Whether a name that ends in this is read as an address by some (WHATWG URL, inet_aton(3)).
fn is_number(label: &str) -> bool {
    let hex = label
        .strip_prefix("0x")
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    hex || label.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// `HOST[:PORT]`, and nothing beside it.
pub(crate) fn parse_authority(text: &str) -> Option<(Host, Option<u16>)> {
    let end = if text.starts_with('[') {
        text.find(']')? + 1
    } else {
        text.find(':').unwrap_or(text.len())
    };
    let (host, port) = text.split_at(end);
    let port = match port.strip_prefix(':') {
        Some(port) => Some(parse_port(port)?),
        None if port.is_empty() => None,
        None => return None,
    };
    Some((Host::parse(host)?, port))
}

fn parse_port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| digits)
}

impl Target {
    /// The host, and the port where it is not what the scheme has by itself.
    pub(crate) fn authority(&self) -> String {
        if self.port == self.scheme.port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Host and port, whatever is spoken there.
    pub(crate) fn destination(&self) -> Destination {
        Destination { host: self.host.to_string(), port: self.port }
    }

    /// Whether `HOST[:PORT]` of a request means this.
    pub(crate) fn is_named(&self, authority: &str) -> bool {
        parse_authority(authority).is_some_and(|(host, port)| {
            host == self.host && port.is_none_or(|port| port == self.port)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_one_spelling() {
        for good in [
            "example.com",
            "EXAMPLE.com",
            "a_b.example.com",
            "_dmarc.example.com",
            "xn--nxasmq6b.test",
            "localhost",
            "1.2.3.4",
            "[::1]",
            "[2001:db8::1]",
            "3com.com",
            "0x.example.com",
        ] {
            assert!(Host::parse(good).is_some(), "{good}");
        }
        for bad in [
            "",
            ".",
            "example.com.",
            ".example.com",
            "a..b",
            "-a.com",
            "a-.com",
            "a b",
            "a%2eb",
            "user@example.com",
            "127.1",
            "0177.0.0.1",
            "0x7f.0.0.1",
            "2130706433",
            "0x7f000001",
            "127.0.0.1.",
            "127.0.0.01",
            "1.2.3.4.5",
            "[::1",
            "::1",
            "[0:0:0:0:0:0:0:1]",
            "[::1%lo]",
            "[::127.0.0.1%25]",
            "exämple.com",
            "a\0b",
            "a/b",
            "a\\b",
            "example.0x1f",
            "example.1",
            "[::ffff:7f00:1]",
            "[1.2.3.4]",
            "0x",
        ] {
            assert!(Host::parse(bad).is_none(), "{bad}");
        }
        assert!(Host::parse(&format!("{}.com", "a".repeat(64))).is_none());
        assert!(Host::parse(&"a.".repeat(127).repeat(2)).is_none());
    }

    #[test]
    fn authorities_are_a_host_and_a_port() {
        assert_eq!(
            parse_authority("Example.com:8443"),
            Some((Host::Name("example.com".to_owned()), Some(8443)))
        );
        for bad in [
            "a.com:",
            "a.com:0",
            "a.com:0443",
            "a.com:+1",
            "a.com:65536",
            "a.com:1:2",
            "[::1]x",
            "a.com:4 4",
        ] {
            assert!(parse_authority(bad).is_none(), "{bad}");
        }
    }
}
