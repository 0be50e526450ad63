//! What the grants of a sandbox allow.
//!
//! Owns the decision, and the sentence for who is refused. Pure: values in, values out.

use outrigger_policy::{HostVerdict, OutgoingRequest, RequestRules};

use crate::flow::Refusal;
use crate::host::{Host, Target, parse_authority};
use crate::limits;
use crate::network::{Destination, Grant, NAMED_PORTS, Network, Scheme};
use crate::rule::{RequestLine, Rule, allows_method, allows_path, cut, is_ambiguous};
use crate::secrets::{HeldSecret, Secrets};

/// Grants in the form in which they are asked.
#[derive(Debug)]
pub(crate) struct Rules {
    rules: Vec<Rule>,
    pub(crate) secrets: Secrets,
    /// `None`: nobody is asked about what no grant names.
    declined: Option<Vec<Destination>>,
    pub(crate) proxy: Option<UpstreamProxy>,
    pub(crate) sent_bytes_max: Option<u64>,
    /// What forbids requests that are granted.
    requests: Option<RequestRules>,
}

/// The operator's proxy, as it is dialled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpstreamProxy {
    pub(crate) host: Host,
    pub(crate) port: u16,
    /// `user:password`.
    pub(crate) user: Option<String>,
    without: Vec<String>,
}

impl Rules {
    /// From what the caller grants.
    ///
    /// # Errors
    /// With a sentence, when a grant or the proxy can't be what was meant.
    pub(crate) fn new(network: &Network, secrets: Vec<HeldSecret>) -> Result<Self, String> {
        if network.grants.len() > limits::GRANTS_MAX {
            return Err(format!("there are more than {} grants", limits::GRANTS_MAX));
        }
        let rules = network.grants.iter().map(Rule::new).collect::<Result<_, _>>()?;
        network.captured_ports()?;
        Ok(Self {
            rules,
            secrets: Secrets::new(secrets)?,
            declined: None,
            proxy: network.proxy.as_ref().map(UpstreamProxy::new).transpose()?,
            sent_bytes_max: network.sent_bytes_max,
            requests: network.rules.clone(),
        })
    }

    /// These rules for a sandbox about which somebody is there: they are asked about hosts that no grant names, but for those that they
    /// declined.
    pub(crate) fn asking(self, declined: Option<Vec<Destination>>) -> Result<Self, String> {
        if declined.as_ref().is_some_and(|declined| declined.len() > limits::DECLINED_MAX) {
            return Err(format!("there are more than {} declined hosts", limits::DECLINED_MAX));
        }
        Ok(Self { declined, ..self })
    }

    /// Whether somebody declined a host.
    fn declines(&self, target: &Target) -> bool {
        self.declined.as_ref().is_some_and(|all| all.contains(&target.destination()))
    }

    /// Whether a host is to be asked about: no grant names it, it was not declined, and what a
    /// person would write allows it. Those that are not public are named first or not reached.
    pub(crate) fn asks(&self, target: &Target) -> bool {
        let grantable =
            !matches!((target.scheme, target.port), (Scheme::Http, 443) | (Scheme::Https, 80));
        self.declined.is_some()
            && grantable
            && !target.host.is_private()
            && !self.knows(target)
            && !self.declines(target)
    }

    /// Where connections go that a name led to a port, if no byte of them says it.
    pub(crate) fn captured(&self, port: u16) -> Option<Target> {
        let mut streams = self.rules.iter().filter_map(Rule::stream);
        streams.find(|target| target.port == port && !NAMED_PORTS.contains(&port))
    }

    fn of<'a>(&'a self, target: &Target) -> impl Iterator<Item = &'a Grant> {
        let rules = self.rules.iter().chain(self.secrets.rules());
        rules.filter(|rule| rule.is_for(target)).map(|rule| &rule.grant)
    }

    fn having(&self, secrets: Secrets) -> Self {
        Self {
            rules: self.rules.clone(),
            secrets,
            declined: self.declined.clone(),
            proxy: self.proxy.clone(),
            sent_bytes_max: self.sent_bytes_max,
            requests: self.requests.clone(),
        }
    }

    /// The rules with secrets that hosts answered with.
    pub(crate) fn with(&self, minted: Vec<HeldSecret>) -> Result<Self, String> {
        let secrets = self.secrets.with(minted)?;
        Ok(self.having(secrets))
    }

    /// The rules without one of the secrets. `None`: they don't have it.
    pub(crate) fn without(&self, secret: &str) -> Option<Self> {
        let secrets = self.secrets.without(secret)?;
        Some(self.having(secrets))
    }

    /// Whether there is a grant for a host at all.
    pub(crate) fn knows(&self, target: &Target) -> bool {
        self.of(target).next().is_some()
    }

    /// The grant that allows a request: of several, one that reaches furthest.
    ///
    /// # Errors
    /// Why none does.
    pub(crate) fn decide(
        &self,
        target: &Target,
        asked: RequestLine<'_>,
    ) -> Result<&Grant, Refusal> {
        let mut refusal = Refusal::NotGranted;
        let mut allowed = None;
        for grant in self.of(target) {
            if !allows_method(grant, asked.method) {
                if refusal == Refusal::NotGranted {
                    refusal = Refusal::Method;
                }
            } else if allows_path(grant, asked) {
                let further = grant.private && allowed.is_none_or(|it: &Grant| !it.private);
                allowed = if further { Some(grant) } else { allowed.or(Some(grant)) };
            } else {
                refusal = Refusal::Path;
            }
        }
        if refusal == Refusal::NotGranted && self.declines(target) {
            refusal = Refusal::Declined;
        }
        let allowed = allowed.ok_or(refusal)?;
        match self.forbidden(target, asked) {
            Some(_) => Err(Refusal::Rule),
            None => Ok(allowed),
        }
    }

    /// Why a rule forbids a request, if one does. Of a connection they were asked before it was
    /// granted.
    fn forbidden(&self, target: &Target, asked: RequestLine<'_>) -> Option<String> {
        let rules = self.requests.as_ref().filter(|_| !asked.path.is_empty())?;
        let path = match rules.rules().looks().path {
            true if is_ambiguous(asked.path) || asked.path.contains("//") => None,
            true => decoded(asked.path),
            false => Some(asked.path.to_owned()),
        };
        let Some(path) = path else {
            return Some(
                "Its path can be read in two ways, and the rules look at paths.".to_owned(),
            );
        };
        let outgoing = OutgoingRequest {
            host: None,
            port: Some(target.port),
            method: Some(asked.method),
            path: Some(&path),
        };
        match rules.judge(&target.host.to_string(), outgoing) {
            HostVerdict::Forbid(why) => Some(why),
            HostVerdict::Permit | HostVerdict::Ask => None,
        }
    }

    /// The sentence for a refusal of [`Rules::decide`].
    pub(crate) fn words(
        &self,
        target: &Target,
        asked: RequestLine<'_>,
        refusal: Refusal,
    ) -> String {
        let (host, authority) = (&target.host, target.authority());
        let wish = wish(target);
        match refusal {
            Refusal::Method => {
                let mut methods: Vec<&str> = Vec::new();
                for method in self.of(target).flat_map(|grant| &grant.methods) {
                    if !methods.contains(&method.as_str()) {
                        methods.push(method);
                    }
                }
                let reading = methods.iter().all(|method| matches!(*method, "GET" | "HEAD"));
                let what = if reading { "reading from " } else { "" };
                format!(
                    "the network of this sandbox allows {what}{authority} only ({}), not {}; \
                     `--net {wish}` would allow it.",
                    methods.join(", "),
                    asked.method
                )
            }
            Refusal::Path => format!(
                "the network of this sandbox includes parts of {authority} only, and {} is none of \
                 them; `--net {wish}` would allow it.",
                cut(asked.path)
            ),
            Refusal::Rule => {
                let why = self.forbidden(target, asked).unwrap_or_default();
                format!("{} {} is not allowed there. {why}", asked.method, cut(asked.path))
            }
            _ => format!(
                "the network of this sandbox does not include {host}:{}; `--net {wish}` would allow it.",
                target.port
            ),
        }
    }
}

/// What a person would write to allow a host.
fn wish(target: &Target) -> String {
    match (target.scheme, target.port) {
        (Scheme::Https, 443) | (Scheme::Http, 80) => target.host.to_string(),
        _ => format!("{}:{}", target.host, target.port),
    }
}

impl UpstreamProxy {
    fn new(proxy: &crate::network::Proxy) -> Result<Self, String> {
        let bad = || "the proxy has to be http://[user:password@]host:port".to_owned();
        let rest = proxy.url.strip_prefix("http://").ok_or_else(bad)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, authority) = match rest.rsplit_once('@') {
            Some((user, authority)) => (Some(decoded(user).ok_or_else(bad)?), authority),
            None => (None, rest),
        };
        let (host, port) = parse_authority(authority).ok_or_else(bad)?;
        Ok(Self { host, port: port.unwrap_or(80), user, without: proxy.no_proxy.clone() })
    }

    /// Whether a host is reached through it.
    pub(crate) fn is_for(&self, host: &Host) -> bool {
        let host = host.to_string();
        !self.without.iter().any(|entry| {
            let entry = entry.trim().trim_start_matches("*.").trim_start_matches('.');
            entry == "*"
                || host.eq_ignore_ascii_case(entry)
                || (!entry.is_empty() && {
                    let end = format!(".{}", entry.to_ascii_lowercase());
                    host.ends_with(&end)
                })
        })
    }
}

/// A user and a password with what `%` stands for.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let code = [rest.next()?, rest.next()?];
            let code = std::str::from_utf8(&code).ok()?;
            bytes.push(u8::from_str_radix(code, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_policy::{Action, RuleSet, Situation};

    fn grant(host: &str, methods: &[&str], paths: &[&str], queries: &[&str]) -> Grant {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Grant {
            name: "test".to_owned(),
            host: host.to_owned(),
            port: 443,
            scheme: Scheme::Https,
            methods: owned(methods),
            paths: owned(paths),
            queries: owned(queries),
            private: false,
        }
    }

    fn decide(grants: &[Grant], host: &str, method: &str, path: &str) -> Result<(), Refusal> {
        let network = Network { grants: grants.to_vec(), ..Network::default() };
        decided(&network, host, method, path)
    }

    fn decided(network: &Network, host: &str, method: &str, path: &str) -> Result<(), Refusal> {
        let target = Target { scheme: Scheme::Https, host: Host::parse(host).unwrap(), port: 443 };
        let (path, query) = path.split_once('?').map_or((path, None), |(p, q)| (p, Some(q)));
        let rules = Rules::new(network, Vec::new()).unwrap();
        rules.decide(&target, RequestLine { method, path, query }).map(drop)
    }

    #[test]
    fn rules_forbid_what_is_granted_by_method_and_path() {
        let decide = |cedar: &str, method: &str, path: &str| {
            let all = "permit (principal, action, resource);";
            let rules = RuleSet::from_cedar(&format!("@id(\"all\") {all} {cedar}")).unwrap();
            let situation = Situation::new(Action::Egress, "");
            let rules = Some(RequestRules::new(rules, situation));
            let grants = vec![grant("a.test", &[], &[], &[])];
            decided(&Network { grants, rules, ..Network::default() }, "a.test", method, path)
        };
        let no = Err(Refusal::Rule);
        let path = "@id(\"no\") forbid (principal, action == Action::\"egress\", resource)
            when { context has path && context.path like \"/admin*\" };";
        assert_eq!(decide(path, "GET", "/user?to=/admin"), Ok(()));
        // What servers may take for the same, too, and what they may take for anything.
        for other in ["/admin/a", "/%61dmin", "/a/../admin", "//admin", "/a%2fadmin", "*"] {
            assert_eq!(decide(path, "GET", other), no, "{other}");
        }
        let method = "@id(\"no\") forbid (principal, action == Action::\"egress\", resource)
            when { context has method && context.method == \"DELETE\" };";
        assert_eq!(decide(method, "GET", "/@a%2fb"), Ok(()));
        assert_eq!(decide(method, "DELETE", "/@a%2fb"), no);
        assert_eq!(decide(method, "CONNECT", ""), Ok(()));
    }

    #[test]
    fn hosts_match_whole_labels() {
        let exact = [grant("example.com", &[], &[], &[])];
        let beneath = [grant("*.example.com", &[], &[], &[])];
        let get = |grants: &[Grant], host| decide(grants, host, "GET", "/");
        assert_eq!(get(&exact, "example.com"), Ok(()));
        for host in ["www.example.com", "example.com.evil.test", "notexample.com", "1.1.1.1"] {
            assert_eq!(get(&exact, host), Err(Refusal::NotGranted), "{host}");
        }
        assert_eq!(get(&beneath, "a.example.com"), Ok(()));
        assert_eq!(get(&beneath, "a.b.example.com"), Ok(()));
        for host in ["example.com", "aexample.com", "example.com.evil.test"] {
            assert_eq!(get(&beneath, host), Err(Refusal::NotGranted), "{host}");
        }
    }

    #[test]
    fn the_nearest_refusal_is_named() {
        let grants = [
            grant("a.test", &["GET", "HEAD"], &["/x/*"], &[]),
            grant("a.test", &["POST"], &["/y"], &[]),
        ];
        assert_eq!(decide(&grants, "a.test", "GET", "/x/1"), Ok(()));
        assert_eq!(decide(&grants, "a.test", "POST", "/y"), Ok(()));
        assert_eq!(decide(&grants, "a.test", "POST", "/x/1"), Err(Refusal::Path));
        assert_eq!(decide(&grants, "a.test", "DELETE", "/x/1"), Err(Refusal::Method));
        assert_eq!(decide(&grants, "b.test", "GET", "/x/1"), Err(Refusal::NotGranted));
    }

    #[test]
    fn paths_with_two_readings_match_nothing() {
        let grants = [grant("a.test", &[], &["/ok/*"], &[])];
        for path in [
            "/ok/../x",
            "/ok/%2e%2e/x",
            "/ok/.%2E/x",
            "/ok/%2fx",
            "/ok/%5Cx",
            "/ok/\\x",
            "/ok/%00",
            "/ok/./x",
            "/ok/..;/x",
            "/ok/..",
            "/ok/%252e%252e/x",
            "/no",
            "/OK/x",
            "ok/x",
            "*",
        ] {
            assert_eq!(decide(&grants, "a.test", "GET", path), Err(Refusal::Path), "{path}");
        }
        for path in ["/ok/", "/ok/a/b", "/ok/a..b", "/ok/...", "/ok/%20"] {
            assert_eq!(decide(&grants, "a.test", "GET", path), Ok(()), "{path}");
        }
    }

    #[test]
    fn queries_are_asked_for_once() {
        let grants = [grant("a.test", &[], &["/r"], &["service=git-upload-pack"])];
        assert_eq!(decide(&grants, "a.test", "GET", "/r?service=git-upload-pack"), Ok(()));
        assert_eq!(decide(&grants, "a.test", "GET", "/r?a=b&service=git-upload-pack"), Ok(()));
        for query in [
            "",
            "?",
            "?service=git-receive-pack",
            "?service=git-upload-pack&service=git-receive-pack",
            "?service=git-receive-pack;service=git-upload-pack",
            "?xservice=git-upload-pack",
            "?service=git-upload-packs",
            "?SERVICE=x&service=git-upload-pack",
        ] {
            let path = format!("/r{query}");
            assert_eq!(decide(&grants, "a.test", "GET", &path), Err(Refusal::Path), "{path}");
        }
    }

    #[test]
    fn a_proxy_is_taken_apart() {
        let proxy = crate::network::Proxy {
            url: "http://me:p%40ss@proxy.test:3128/".to_owned(),
            no_proxy: vec![".corp.test".to_owned(), "direct.test".to_owned()],
        };
        let proxy = UpstreamProxy::new(&proxy).unwrap();
        assert_eq!(proxy.user.as_deref(), Some("me:p@ss"));
        assert_eq!((proxy.host.to_string().as_str(), proxy.port), ("proxy.test", 3128));
        for (host, expected) in [
            ("a.corp.test", false),
            ("direct.test", false),
            ("other.test", true),
            ("xdirect.test", true),
        ] {
            assert_eq!(proxy.is_for(&Host::parse(host).unwrap()), expected, "{host}");
        }
    }
}
