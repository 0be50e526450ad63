//! What is acted on, in its one spelling, with all that it belongs to.
//!
//! Rules compare names. Whatever can be spelled in two ways is brought into one here,
//! and what has no sure spelling is refused before a rule sees it.

use cedar_policy::{Entity, EntityUid};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::vocabulary::{Kind, VOCABULARY};
use crate::{Action, Facts, limits};

/// What is acted on, and by which action: a file tool that reaches for shared memory
/// writes shared memory.
pub(crate) struct Resource {
    pub(crate) action: Action,
    kind: Kind,
    id: String,
    within: Vec<(Kind, String)>,
}

impl Resource {
    /// `None` if it has no sure spelling.
    pub(crate) fn of(facts: &Facts<'_>) -> Option<Self> {
        let name = facts.resource;
        if name.len() > limits::NAME_BYTES_MAX || name.contains('\0') {
            return None;
        }
        let action = facts.action;
        match action {
            Action::AskModel => Some(Self::plain(action, Kind::Model, name)),
            Action::Provision | Action::Execute => Some(Self::plain(action, Kind::Sandbox, name)),
            Action::UseSecret => Some(Self::plain(action, Kind::Secret, name)),
            Action::Approve => Some(Self::plain(action, Kind::Effect, name)),
            Action::StartSubagent => {
                let name = name.strip_prefix("agent:").unwrap_or(name);
                Some(Self::plain(action, Kind::Agent, name))
            }
            Action::ReadFiles | Action::WriteFiles => Self::file(facts),
            Action::WriteSharedMemory => Self::memory(&path(name, "/")?),
            Action::CallOutsideTool => Self::tool(name),
            Action::Egress => Self::host(action, name),
        }
    }

    fn plain(action: Action, kind: Kind, id: &str) -> Self {
        Self { action, kind, id: id.to_owned(), within: Vec::new() }
    }

    fn file(facts: &Facts<'_>) -> Option<Self> {
        let path = path(facts.resource, "/workspace")?;
        if facts.action == Action::WriteFiles
            && ["/memory", "/skills"].iter().any(|root| is_within(&path, root))
        {
            return Self::memory(&path);
        }
        let mut within: Vec<_> =
            folders(&path).map(|folder| (Kind::Path, folder.to_owned())).collect();
        if path != "/" {
            within.push((Kind::Path, "/".to_owned()));
        }
        within.extend(facts.sandbox.map(|name| (Kind::Sandbox, name.to_owned())));
        Some(Self { action: facts.action, kind: Kind::Path, id: path, within })
    }

    fn memory(path: &str) -> Option<Self> {
        let id = path.strip_prefix('/')?;
        let within = folders(id).map(|folder| (Kind::Memory, folder.to_owned())).collect();
        let action = Action::WriteSharedMemory;
        Some(Self { action, kind: Kind::Memory, id: id.to_owned(), within })
    }

    fn tool(name: &str) -> Option<Self> {
        let plain = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
        };
        let (server, tool) = name.split_once('/')?;
        (plain(server) && plain(tool)).then(|| Self {
            action: Action::CallOutsideTool,
            kind: Kind::Tool,
            id: name.to_owned(),
            within: vec![(Kind::Server, server.to_owned())],
        })
    }

    /// A name of a host or an address.
    pub(crate) fn host(action: Action, text: &str) -> Option<Self> {
        let host = Host::parse(text)?;
        let mut within = Vec::new();
        let id = match host {
            Host::Address(address) => {
                within.extend(zones(address).map(|zone| (Kind::Zone, zone.to_owned())));
                address.to_string()
            }
            Host::Name(name) => {
                let dots = name.match_indices('.');
                within.extend(dots.map(|(at, _)| (Kind::Host, name[at + 1..].to_owned())));
                if name == "localhost" || name.ends_with(".localhost") {
                    within.push((Kind::Zone, "loopback".to_owned()));
                }
                name
            }
        };
        Some(Self { action, kind: Kind::Host, id, within })
    }

    /// How a name is spelled by which rules speak of something; the error if it has none.
    /// A rule that spells it otherwise would never apply.
    pub(crate) fn spelling(kind: &str, id: &str) -> Result<String, ()> {
        let found = match kind {
            "Host" => Self::host(Action::Egress, id),
            "Tool" => Self::tool(id),
            "Memory" => path(id, "/").as_deref().and_then(Self::memory),
            "Path" => return path(id, "/").ok_or(()),
            _ => return Ok(id.to_owned()),
        };
        found.map(|found| found.id).ok_or(())
    }

    pub(crate) fn uid(&self) -> EntityUid {
        VOCABULARY.uid(self.kind, &self.id)
    }

    pub(crate) fn entity(&self) -> Entity {
        let within = self.within.iter().map(|(kind, id)| VOCABULARY.uid(*kind, id));
        Entity::new_no_attrs(self.uid(), within.collect())
    }
}

/// An absolute path without `.`, `..`, and empty parts; a relative one begins at `base`.
fn path(text: &str, base: &str) -> Option<String> {
    let absolute = if text.starts_with('/') { text.to_owned() } else { format!("{base}/{text}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in absolute.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    (parts.len() <= limits::DEPTH_MAX).then(|| format!("/{}", parts.join("/")))
}

/// Whether a path in its one spelling is `root` or beneath it.
#[must_use]
pub fn is_within(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The folders above a path, without the root.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).filter(|folder| !folder.is_empty())
}

enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    fn parse(text: &str) -> Option<Self> {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        if bare.is_some() || text.contains(':') {
            let address: Ipv6Addr = bare.unwrap_or(text).parse().ok()?;
            return Some(Self::Address(embedded(address).map_or(address.into(), IpAddr::from)));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let labels: Vec<&str> = name.split('.').collect();
        let plain = |label: &&str| {
            !label.is_empty()
                && label.len() <= 63
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        if name.len() > 253 || labels.len() > limits::DEPTH_MAX || !labels.iter().all(plain) {
            return None;
        }
        let last = labels.last()?;
        // What ends in a number is an address to every resolver, in one of many notations;
        // only the plain one is taken.
        let numeric = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
        if numeric {
            return name.parse::<Ipv4Addr>().ok().map(|address| Self::Address(address.into()));
        }
        Some(Self::Name(name))
    }
}

/// The IPv4 address that an IPv6 one stands for: mapped, compatible, translated, 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => Some(v4(high, low)),
        (0, 0, 0, 0, 0, 0) if high != 0 => Some(v4(high, low)),
        (0x2002, ..) => Some(v4(b, c)),
        _ => None,
    }
}

fn zones(address: IpAddr) -> impl Iterator<Item = &'static str> {
    let zone = match address {
        IpAddr::V4(address) => zone_v4(address),
        IpAddr::V6(address) => zone_v6(address),
    };
    zone.into_iter()
}

fn zone_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    if address.is_loopback() {
        return Some("loopback");
    }
    // Metadata services of clouds answer at some that look public.
    let metadata = [[168, 63, 129, 16], [192, 0, 0, 192], [100, 100, 100, 200]];
    if address.is_link_local() || metadata.contains(&address.octets()) {
        return Some("link_local");
    }
    if address.is_private() || (a == 100 && (64..128).contains(&b)) {
        return Some("private");
    }
    let special = a == 0 || a >= 224 || (a, b, c) == (192, 0, 0) || (a == 198 && b & 0xfe == 18);
    special.then_some("special")
}

fn zone_v6(address: Ipv6Addr) -> Option<&'static str> {
    let first = address.segments()[0];
    if address.is_loopback() {
        return Some("loopback");
    }
    if first & 0xffc0 == 0xfe80 {
        return Some("link_local");
    }
    if first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfec0 {
        return Some("private");
    }
    (address.is_unspecified() || address.is_multicast()).then_some("special")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(action: Action, resource: &str) -> Option<String> {
        let facts = Facts { sandbox: Some("main"), ..Facts::new("person:ada", action, resource) };
        Resource::of(&facts).map(|found| {
            let within: Vec<_> =
                found.within.iter().map(|(kind, id)| format!("{kind:?}:{id}")).collect();
            format!("{:?} {:?}:{} in {}", found.action, found.kind, found.id, within.join(" "))
        })
    }

    #[test]
    fn every_spelling_of_a_path_is_one() {
        let expected = "WriteFiles Path:/workspace/a/b in Path:/workspace Path:/workspace/a Path:/ Sandbox:main";
        for spelling in ["/workspace/a/b", "a/b", "./a//b/", "/../workspace/x/../a/./b"] {
            assert_eq!(spelled(Action::WriteFiles, spelling).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_file_tool_that_reaches_for_memory_writes_memory() {
        let expected = "WriteSharedMemory Memory:memory/team/x in Memory:memory Memory:memory/team";
        for spelling in ["/memory/team/x", "../memory//team/x", "/workspace/../memory/./team/x"] {
            assert_eq!(spelled(Action::WriteFiles, spelling).as_deref(), Some(expected));
        }
        assert!(spelled(Action::WriteFiles, "/memory2/x").unwrap().starts_with("WriteFiles"));
    }

    #[test]
    fn hosts_have_one_spelling_or_none() {
        let is = |text: &str, expected: &str| {
            assert_eq!(spelled(Action::Egress, text).as_deref(), Some(expected), "{text}");
        };
        is("API.GitHub.com.", "Egress Host:api.github.com in Host:github.com Host:com");
        is("127.0.0.1", "Egress Host:127.0.0.1 in Zone:loopback");
        is("[::ffff:169.254.169.254]", "Egress Host:169.254.169.254 in Zone:link_local");
        is("64:ff9b::a00:1", "Egress Host:10.0.0.1 in Zone:private");
        is("2002:7f00:1::", "Egress Host:127.0.0.1 in Zone:loopback");
        is("::1", "Egress Host:::1 in Zone:loopback");
        is("fd00:ec2::254", "Egress Host:fd00:ec2::254 in Zone:private");
        is("0.0.0.0", "Egress Host:0.0.0.0 in Zone:special");
        is("8.8.8.8", "Egress Host:8.8.8.8 in ");
        for text in [
            "",
            ".",
            "a..b",
            "2130706433",
            "127.1",
            "0x7f.0.0.1",
            "0x7f000001",
            "0177.0.0.1",
            "1.2.3.256",
            "a b",
            "evil.com\0.github.com",
            "evil.com/github.com",
            "user@github.com",
            "gïthub.com",
            "github.com:443",
            "[::1",
            "fe80::1%eth0",
            "github。com",
        ] {
            assert_eq!(spelled(Action::Egress, text), None, "{text}");
        }
    }

    #[test]
    fn tools_are_named_with_their_server() {
        assert!(spelled(Action::CallOutsideTool, "github/delete_repository").is_some());
        for text in ["delete", "a/b/c", "/b", "a/", "a/b c", "a/b\u{200b}"] {
            assert_eq!(spelled(Action::CallOutsideTool, text), None, "{text}");
        }
    }
}
