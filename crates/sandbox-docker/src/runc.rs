//! Whether the runtime below a daemon is one that is known to be broken.
//!
//! Owns the versions of runc that let a container out by way of its masked paths, its
//! console or redirected writes, and those that do not. Knows nothing of daemons.

use outrigger_sandbox::Layer;

/// A version of runc: its numbers, and which candidate for that version it is.
type Version = (u64, u64, u64, u64);

/// What is no candidate comes after all that are.
const FINAL: u64 = u64::MAX;

/// The first version of each branch without CVE-2025-31133, CVE-2025-52565 and
/// CVE-2025-52881; see the advisories of opencontainers/runc. Older branches have none.
const FIXED: [Version; 3] = [(1, 2, 8, FINAL), (1, 3, 3, FINAL), (1, 4, 0, 3)];

/// The version that a text begins with, as in `v1.4.0-rc.3+dev` or `1.1.5+ds1`.
fn parse(text: &str) -> Option<Version> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let mut numbers = numbers.trim_end_matches('.').split('.').map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let (major, minor, patch) = (next()?, next()?, next()?);
    let candidate = match rest.strip_prefix("-rc.").or_else(|| rest.strip_prefix("~rc")) {
        None => FINAL,
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..end].parse().ok()?
        }
    };
    Some((major, minor, patch, candidate))
}

fn is_fixed(version: Version) -> bool {
    let (major, minor, ..) = version;
    match FIXED.iter().find(|fixed| (fixed.0, fixed.1) == (major, minor)) {
        Some(fixed) => version >= *fixed,
        None => FIXED.iter().all(|fixed| version > *fixed),
    }
}

/// What is said of it.
pub(crate) fn layer(version: &str) -> Layer {
    let (active, said) = match parse(version) {
        Some(found) if is_fixed(found) => (true, "without the escapes of November 2025"),
        Some(_) => (
            false,
            "containers can get out of it by CVE-2025-31133, CVE-2025-52565 and CVE-2025-52881: \
             upgrade to 1.2.8, 1.3.3, 1.4.0-rc.3 or later, unless your distribution says that \
             it mended this one",
        ),
        None => (false, "of an unknown version: it must be 1.2.8, 1.3.3, 1.4.0-rc.3 or later"),
    };
    Layer { name: "runc".to_owned(), active, detail: format!("runc {version}, {said}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_with_the_fixes_are_told_from_those_without() {
        let broken = [
            "1.0.3",
            "1.1.5+ds1",
            "1.1.15",
            "1.2.7",
            "v1.2.7-0-g123",
            "1.3.2",
            "1.3.0-rc.2",
            "1.4.0-rc.2",
            "1.4.0~rc2+ds",
            "1.2.8-rc.1",
            "0.9",
            "unknown",
            "",
            "1.2.x",
        ];
        for version in broken {
            assert!(!layer(version).active, "{version}");
        }
        let fixed = [
            "1.2.8",
            "v1.2.9-0-g1",
            "1.3.3",
            "1.3.3+ds1-2",
            "1.4.0-rc.3",
            "1.4.0~rc3",
            "1.4.0",
            "1.5.1",
            "2.0.0",
            "1.4.0-rc.3+dev",
        ];
        for version in fixed {
            assert!(layer(version).active, "{version}");
        }
        let said = layer("1.1.5+ds1").detail;
        assert!(said.starts_with("runc 1.1.5+ds1, ") && said.contains("1.3.3"), "{said}");
    }
}
