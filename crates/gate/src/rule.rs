//! One grant, as requests are compared with it.
//!
//! Owns what of a host, a path and a query is the same, and that a path with two readings is
//! none. Pure: values in, values out.

use crate::host::{Host, Target};
use crate::limits;
use crate::network::{Grant, Scheme};

/// A grant with its host taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    host: Pattern,
    pub(crate) grant: Grant,
}

#[derive(Debug, Clone)]
enum Pattern {
    Exact(Host),
    /// `.example.com`: what a host must end in, with something before it.
    Beneath(String),
}

/// What was asked of a host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestLine<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
}

/// The first bytes of a path.
pub(crate) fn cut(path: &str) -> &str {
    let mut end = path.len().min(limits::ROW_PATH_BYTES_MAX);
    while !path.is_char_boundary(end) {
        end -= 1;
    }
    &path[..end]
}

impl Rule {
    pub(crate) fn new(grant: &Grant) -> Result<Self, String> {
        let bad = || format!("{:?} is not a host that can be granted", cut(&grant.host));
        let beneath = grant.host.strip_prefix("*.").filter(|_| grant.scheme != Scheme::Tcp);
        let host = match beneath {
            None => Pattern::Exact(Host::parse_bare(&grant.host).ok_or_else(bad)?),
            Some(rest) => {
                let name = Host::parse(rest).and_then(|host| host.name().map(str::to_owned));
                Pattern::Beneath(format!(".{}", name.ok_or_else(bad)?))
            }
        };
        Ok(Self { host, grant: grant.clone() })
    }

    /// Where a connection goes that it passes on unread.
    pub(crate) fn stream(&self) -> Option<Target> {
        let Grant { scheme, port, .. } = self.grant;
        match &self.host {
            Pattern::Exact(host) if scheme == Scheme::Tcp => {
                Some(Target { scheme, host: host.clone(), port })
            }
            Pattern::Exact(_) | Pattern::Beneath(_) => None,
        }
    }

    /// Whether it allows a request.
    pub(crate) fn allows(&self, target: &Target, asked: RequestLine<'_>) -> bool {
        self.is_for(target)
            && allows_method(&self.grant, asked.method)
            && allows_path(&self.grant, asked)
    }

    pub(crate) fn is_for(&self, target: &Target) -> bool {
        self.grant.port == target.port
            && self.grant.scheme == target.scheme
            && match (&self.host, &target.host) {
                (Pattern::Exact(host), asked) => host == asked,
                (Pattern::Beneath(end), Host::Name(name)) => {
                    name.len() > end.len() && name.ends_with(end.as_str())
                }
                (Pattern::Beneath(_), Host::Address(_)) => false,
            }
    }
}

pub(crate) fn allows_method(grant: &Grant, method: &str) -> bool {
    grant.methods.is_empty() || grant.methods.iter().any(|allowed| allowed == method)
}

pub(crate) fn allows_path(grant: &Grant, asked: RequestLine<'_>) -> bool {
    let path = grant.paths.is_empty()
        || (!is_ambiguous(asked.path) && grant.paths.iter().any(|glob| matches(glob, asked.path)));
    let has = |wanted: &String| {
        let mut pairs = asked.query.unwrap_or_default().split('&');
        pairs.any(|pair| pair == wanted)
    };
    path && grant.queries.iter().all(has) && queries_are_single(grant, asked.query)
}

/// A name of which a value is asked stands once in the query: of several, servers choose.
fn queries_are_single(grant: &Grant, query: Option<&str>) -> bool {
    let name = |pair: &str| pair.split('=').next().map(str::to_ascii_lowercase);
    grant.queries.iter().all(|wanted| {
        let pairs = query.unwrap_or_default().split(['&', ';']);
        pairs.filter(|pair| name(pair) == name(wanted)).count() == 1
    })
}

/// Whether servers could read a path in another way than as it is written.
pub(crate) fn is_ambiguous(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let dots = path.replace("%2e", ".");
    let steps = |segment: &str| matches!(segment.split(';').next(), Some("." | ".."));
    !path.starts_with('/')
        || path.contains(['\\', '\0'])
        || ["%2f", "%5c", "%00", "%25"].iter().any(|code| path.contains(code))
        || dots.split('/').any(steps)
}

/// Whether a text is what a glob says, in which `*` stands for any characters.
pub(crate) fn matches(glob: &str, text: &str) -> bool {
    let mut parts = glob.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_from_end_to_end() {
        for (glob, text, expected) in [
            ("/a", "/a", true),
            ("/a", "/ab", false),
            ("*", "", true),
            ("/a*", "/a", true),
            ("/*/b", "/x/y/b", true),
            ("/*/b", "/b", false),
            ("a*a", "a", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "abc", true),
            ("a*bb*b", "abb", false),
            ("a**b", "ab", true),
        ] {
            assert_eq!(matches(glob, text), expected, "{glob} {text}");
        }
    }
}
