//! Ready sets of grants.
//!
//! Owns their data (`ready/packages.toml`), and the grants for one repository. It must
//! never grant what writes.

use serde::Deserialize;

use crate::host::{Host, parse_authority};
use crate::network::{Grant, Scheme};
use crate::secret::SecretPlace;

/// When the data were last looked at.
pub const DATE: &str = "2026-11-26";

const PACKAGES: &str = include_str!("ready/packages.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    date: String,
    registry: Vec<Registry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Registry {
    #[expect(dead_code, reason = "says in the data whose hosts these are")]
    name: String,
    hosts: Vec<String>,
    /// Those that are asked without TLS as well: what they serve is signed.
    #[serde(default)]
    plain: Vec<String>,
    /// The only paths that are read, if any are named.
    #[serde(default)]
    paths: Vec<String>,
    /// Paths that are asked by POST, which change nothing.
    #[serde(default)]
    post: Vec<String>,
}

fn data() -> Data {
    toml::from_str(PACKAGES).expect("a test reads the same data")
}

/// Registries of packages, to be read from.
pub fn packages() -> Vec<Grant> {
    let data = data();
    debug_assert_eq!(data.date, DATE);
    let mut grants = Vec::new();
    for registry in data.registry {
        for host in &registry.hosts {
            let base = reading("packages", host, Scheme::Https, Scheme::Https.port());
            grants.push(Grant { paths: registry.paths.clone(), ..base });
            if !registry.post.is_empty() {
                let base = reading("packages", host, Scheme::Https, Scheme::Https.port());
                let methods = vec!["POST".to_owned()];
                grants.push(Grant { methods, paths: registry.post.clone(), ..base });
            }
        }
        for host in &registry.plain {
            grants.push(reading("packages", host, Scheme::Http, Scheme::Http.port()));
        }
    }
    grants
}

fn reading(name: &str, host: &str, scheme: Scheme, port: u16) -> Grant {
    Grant {
        name: name.to_owned(),
        host: host.to_owned(),
        port,
        scheme,
        methods: vec!["GET".to_owned(), "HEAD".to_owned()],
        paths: Vec::new(),
        queries: Vec::new(),
        private: false,
    }
}

/// A repository of git, as its remote names it.
#[derive(Debug)]
struct Repository {
    host: String,
    port: u16,
    /// Without `.git` at its end.
    path: String,
}

impl Repository {
    fn parse(remote_https_url: &str) -> Option<Self> {
        let rest = remote_https_url.strip_prefix("https://")?;
        let (authority, path) = rest.split_at(rest.find('/')?);
        // Who the person is there is not for the sandbox.
        let authority = authority.rsplit_once('@').map_or(authority, |(_, authority)| authority);
        let (host, port) = parse_authority(authority)?;
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~+".contains(&byte);
        if path.len() < 2 || !path.bytes().all(plain) || path.split('/').any(|part| part == "..") {
            return None;
        }
        let host = match host {
            Host::Name(name) => name,
            Host::Address(address) => address.to_string(),
        };
        let port = port.unwrap_or(Scheme::Https.port());
        Some(Self { host, port, path: path.to_owned() })
    }

    /// A request that git makes of it. The person named it, so it may be in their own network.
    fn grant(&self, method: &str, end: &str, query: Option<&str>) -> Grant {
        let path = &self.path;
        Grant {
            methods: vec![method.to_owned()],
            paths: vec![format!("{path}.git/{end}"), format!("{path}/{end}")],
            queries: query.map(str::to_owned).into_iter().collect(),
            private: true,
            ..reading("git", &self.host, Scheme::Https, self.port)
        }
    }

    fn fetching(&self) -> [Grant; 2] {
        [
            self.grant("GET", "info/refs", Some("service=git-upload-pack")),
            self.grant("POST", "git-upload-pack", None),
        ]
    }
}

/// What it takes to fetch from one repository, and from no other of its host. `None`: the
/// remote is not one of HTTPS, or not a repository.
pub fn git(remote_https_url: &str) -> Option<Vec<Grant>> {
    Repository::parse(remote_https_url).map(|repository| repository.fetching().to_vec())
}

/// Where the secret of one repository is sent: to fetch from it, and to push to these refs
/// (full names, `*` for any characters); without any only to fetch. `None`: as [`git`].
pub fn repository(remote_https_url: &str, refs: &[String]) -> Option<Vec<SecretPlace>> {
    let repository = Repository::parse(remote_https_url)?;
    let place = |grant, refs| SecretPlace { refs, ..SecretPlace::new(grant) };
    let mut places = repository.fetching().map(|grant| place(grant, Some(Vec::new()))).to_vec();
    if !refs.is_empty() {
        let refs_of = repository.grant("GET", "info/refs", Some("service=git-receive-pack"));
        places.push(place(refs_of, Some(refs.to_vec())));
        let pack = repository.grant("POST", "git-receive-pack", None);
        places.push(place(pack, Some(refs.to_vec())));
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Network;
    use crate::rules::Rules;

    #[test]
    fn the_data_are_as_dated_and_can_be_granted() {
        assert_eq!(data().date, DATE);
        let grants = packages();
        for grant in &grants {
            let reading = grant.methods == ["GET", "HEAD"];
            assert!(reading || (grant.methods == ["POST"] && !grant.paths.is_empty()), "{grant:?}");
            assert!(!grant.private);
        }
        assert!(grants.iter().any(|grant| grant.host == "files.pythonhosted.org"));
        Rules::new(&Network { grants, ..Network::default() }, Vec::new()).unwrap();
    }

    #[test]
    fn a_repository_is_fetched_from_and_no_other() {
        let grants = git("https://me:token@git.example.com:8443/org/repo.git").unwrap();
        assert!(grants.iter().all(|grant| grant.host == "git.example.com" && grant.port == 8443));
        assert_eq!(grants[0].paths, ["/org/repo.git/info/refs", "/org/repo/info/refs"]);
        assert_eq!(grants[1].paths, ["/org/repo.git/git-upload-pack", "/org/repo/git-upload-pack"]);
        for bad in [
            "http://a.test/r",
            "git@a.test:o/r",
            "ssh://a.test/o/r",
            "https://a.test",
            "https://a.test/",
            "https://a.test/*",
            "https://a.test/o/../r",
            "https://a.test/o%2fr",
            "https://127.1/o/r",
        ] {
            assert_eq!(git(bad), None, "{bad}");
        }
    }
}
