//! Addresses that are dialled for a sandbox, and those that never are.
//!
//! Owns the table, from the special-purpose registries of IANA (RFC 6890 and what updates
//! it) and the addresses where clouds give out their secrets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Who may reach an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Everybody.
    Public,
    /// Grants that are private: what it is.
    Private(&'static str),
    /// Grants of this very address: what it is.
    Literal(&'static str),
}

use Reach::{Literal, Private, Public};

/// Who may reach an address.
pub(crate) fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => version_4(address),
        IpAddr::V6(address) => version_6(address),
    }
}

fn version_4(address: Ipv4Addr) -> Reach {
    match address.octets() {
        [169, 254, ..] => Literal("link-local, where clouds give out their secrets"),
        [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => {
            Literal("where a cloud gives out its secrets")
        }
        [0, ..] => Literal("of this host"),
        [127, ..] => Private("loopback"),
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] => Private("private"),
        [100, 64..=127, ..] => Private("shared between networks"),
        [192, 0, 0, _] => Private("reserved for protocols"),
        [198, 18 | 19, ..] => Private("for benchmarks"),
        // Those for documentation (RFC 5737) are nobody's own network: who routes one there
        // means a host outside.
        [192, 88, 99, _] => Private("for relays"),
        [224..=239, ..] => Literal("multicast"),
        [255, 255, 255, 255] => Literal("broadcast"),
        [240..=255, ..] => Literal("reserved"),
        _ => Public,
    }
}

/// The four bytes that two groups hold.
fn embedded(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
}

fn version_6(address: Ipv6Addr) -> Reach {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Literal("of this host"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Private("loopback"),
        [0, 0, 0, 0, 0, 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0, 0, 0, 0, 0, 0, ..] => {
            Literal("of version 4 in disguise")
        }
        [0x64, 0xff9b, ..] => Literal("of version 4 in disguise"),
        [0x2002, high, low, ..] => inner(embedded(high, low)),
        [0x2001, 0, _, _, _, _, high, low] => inner(embedded(!high, !low)),
        [0x2001, 0..=0x1ff, ..] => Private("reserved for protocols"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Private("for documentation"),
        [0xfe80..=0xfebf, ..] => Literal("link-local"),
        [0xfd00, 0xec2, ..]
        | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]
        | [0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe]
        | [0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42] => Literal("where a cloud gives out its secrets"),
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Private("private"),
        [0xff00..=0xffff, ..] => Literal("multicast"),
        [0x2000..=0x3fff, ..] => Public,
        _ => Literal("reserved"),
    }
}

/// A tunnel to an address of version 4 leads as far as that does.
fn inner(address: Ipv4Addr) -> Reach {
    match version_4(address) {
        Public => Public,
        Private(_) | Literal(_) => Literal("of version 4 in disguise"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_their_place() {
        let of = |text: &str| reach(text.parse().unwrap());
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "203.0.113.1",
            "2606:4700::1111",
            "2002:808:808::1",
        ] {
            assert_eq!(of(public), Public, "{public}");
        }
        for private in [
            "127.0.0.1",
            "127.255.255.254",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "198.19.255.255",
            "::1",
            "fc00::1",
            "fd12::1",
            "2001:db8::1",
            "2001:2::1",
            "fec0::1",
        ] {
            assert!(matches!(of(private), Private(_)), "{private}");
        }
        for literal in [
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "169.254.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::ffff:8.8.8.8",
            "::ffff:127.0.0.1",
            "::8.8.8.8",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::a00:1",
            "2002:7f00:1::1",
            "2002:a9fe:a9fe::1",
            "2001:0:1:1:0:0:f5ff:fffe",
            "fe80::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "fd00:42::42",
            "ff02::1",
            "100::1",
            "5f00::1",
            "::ffff:0:127.0.0.1",
        ] {
            assert!(matches!(of(literal), Literal(_)), "{literal}");
        }
    }
}
