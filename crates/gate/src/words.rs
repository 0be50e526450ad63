//! What a person writes to let a sandbox reach something.
//!
//! Owns the reading of it, and the sentence where it can't be read.

use crate::host::{Host, parse_authority};
use crate::network::{Grant, Scheme};

/// What can be written, for every sentence.
const FORMS: &str = "write a host (example.com), a host and port (example.com:8443), hosts beneath one \
     (*.example.com), the beginning of a URL (https://example.com/path*) or what is passed on \
     unread (tcp:example.com:5432)";

/// The grants that a person means by `HOST`, `HOST:PORT`, `*.HOST`, `http://HOST[:PORT]`,
/// `https://HOST[:PORT][/PATH]`, with `*` in a path for any characters, or `tcp:HOST:PORT`. A
/// host alone is granted with and without TLS. `localhost` and addresses of private networks are
/// granted as such when they are written.
///
/// # Errors
/// One sentence, which says what is wrong and what can be written.
pub fn grant_of(words: &str) -> Result<Vec<Grant>, String> {
    let fault = |what: &str| format!("{:?} {what}; {FORMS}", crate::rule::cut(words));
    let (scheme, rest) = match words.split_once("://") {
        None => match words.strip_prefix("tcp:") {
            Some(rest) => (Some(Scheme::Tcp), rest),
            None => (None, words),
        },
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Some(Scheme::Https), rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Some(Scheme::Http), rest),
        Some(_) => return Err(fault("is not of a scheme that the network has")),
    };
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    if !path.is_empty() && matches!(scheme, None | Some(Scheme::Tcp)) {
        return Err(fault("has a path but does not begin with https://"));
    }
    if path.contains(['?', '#', ' ', '\\']) || !path.is_ascii() {
        return Err(fault("has more than a path behind the host"));
    }
    if authority.contains('@') {
        return Err(fault("names a user, which has no place in a grant"));
    }
    if !authority.is_ascii() {
        return Err(fault("is not in ASCII, in which the host is written xn--…"));
    }
    let (beneath, authority) = match authority.strip_prefix("*.") {
        Some(rest) => ("*.", rest),
        None => ("", authority),
    };
    let (host, port) = parse_authority(authority)
        .or_else(|| Host::parse_bare(authority).map(|host| (host, None)))
        .ok_or_else(|| fault("is not a host"))?;
    if scheme == Some(Scheme::Tcp) && (port.is_none() || !beneath.is_empty()) {
        return Err(fault("does not name one host and one port"));
    }
    let private = host.is_private() || scheme == Some(Scheme::Tcp);
    let name = match &host {
        Host::Address(_) if !beneath.is_empty() => {
            return Err(fault("has nothing beneath it, because it is an address"));
        }
        Host::Address(address) => address.to_string(),
        Host::Name(name) => format!("{beneath}{name}"),
    };
    let paths = if matches!(path, "" | "/" | "/*") { Vec::new() } else { vec![path.to_owned()] };
    let grant = |(scheme, port): (Scheme, u16)| Grant {
        name: words.to_owned(),
        host: name.clone(),
        port,
        scheme,
        methods: Vec::new(),
        paths: paths.clone(),
        queries: Vec::new(),
        private,
    };
    Ok(places(scheme, port).into_iter().map(grant).collect())
}

/// What is meant by a scheme and a port, of which either may be missing.
fn places(scheme: Option<Scheme>, port: Option<u16>) -> Vec<(Scheme, u16)> {
    match (scheme, port) {
        (Some(scheme), port) => vec![(scheme, port.unwrap_or(scheme.port()))],
        (None, Some(443)) => vec![(Scheme::Https, 443)],
        (None, Some(80)) => vec![(Scheme::Http, 80)],
        (None, Some(port)) => vec![(Scheme::Https, port), (Scheme::Http, port)],
        (None, None) => vec![(Scheme::Https, 443), (Scheme::Http, 80)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> String {
        match grant_of(words) {
            Err(sentence) => sentence,
            Ok(grants) => grants
                .iter()
                .map(|grant| {
                    let private = if grant.private { " private" } else { "" };
                    let scheme = format!("{:?}", grant.scheme).to_lowercase();
                    format!(
                        "{scheme} {} {}{}{private}",
                        grant.host,
                        grant.port,
                        grant.paths.concat()
                    )
                })
                .collect::<Vec<_>>()
                .join(", "),
        }
    }

    #[test]
    fn what_a_person_writes_is_read() {
        for (words, expected) in [
            ("Example.com", "https example.com 443, http example.com 80"),
            ("example.com:443", "https example.com 443"),
            ("example.com:80", "http example.com 80"),
            ("example.com:8443", "https example.com 8443, http example.com 8443"),
            ("*.example.com", "https *.example.com 443, http *.example.com 80"),
            ("http://example.com", "http example.com 80"),
            ("http://example.com:8080", "http example.com 8080"),
            ("https://example.com/", "https example.com 443"),
            ("https://example.com/v1/*", "https example.com 443/v1/*"),
            ("https://example.com:8443/v1", "https example.com 8443/v1"),
            ("127.0.0.1:3000", "https 127.0.0.1 3000 private, http 127.0.0.1 3000 private"),
            ("localhost:443", "https localhost 443 private"),
            ("10.1.2.3:443", "https 10.1.2.3 443 private"),
            ("1.1.1.1:443", "https 1.1.1.1 443"),
            ("[::1]:443", "https ::1 443 private"),
            ("::1", "https ::1 443 private, http ::1 80 private"),
            ("169.254.169.254:80", "http 169.254.169.254 80 private"),
            ("tcp:DB.internal:5432", "tcp db.internal 5432 private"),
            ("tcp:[::1]:22", "tcp ::1 22 private"),
        ] {
            assert_eq!(read(words), expected, "{words}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (words, expected) in [
            ("", "is not a host"),
            ("*", "is not a host"),
            ("ftp://example.com", "is not of a scheme"),
            ("example.com/path", "has a path but does not begin"),
            ("https://example.com/a?b", "has more than a path"),
            ("https://me:pw@example.com", "names a user"),
            ("exämple.com", "is not in ASCII"),
            ("10.0.0.0/8", "has a path but does not begin"),
            ("127.1", "is not a host"),
            ("example.com.", "is not a host"),
            ("*.1.2.3.4", "has nothing beneath it"),
            ("example.com:99999", "is not a host"),
            ("tcp:example.com", "does not name one host and one port"),
            ("tcp:*.example.com:22", "does not name one host and one port"),
            ("tcp:5432", "is not a host"),
            ("tcp:git@example.com:22", "names a user"),
            ("tcp:example.com:22/path", "has a path but does not begin"),
            ("tcp://example.com:22", "is not of a scheme"),
        ] {
            let sentence = grant_of(words).unwrap_err();
            assert!(sentence.contains(expected) && sentence.contains("write a host"), "{sentence}");
        }
    }
}
