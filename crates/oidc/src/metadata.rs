//! What a provider says of itself (OpenID Connect Discovery 1.0).
//!
//! Owns that it is the issuer that was asked for, and that nothing is asked without TLS but what
//! is on this machine.

use outrigger_model::endpoint::{self, ServerAddress};
use reqwest::Url;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::net::IpAddr;

use crate::Error;
use crate::error::quoted;

/// Where what a provider says of itself is, behind its name.
const WELL_KNOWN: &str = "/.well-known/openid-configuration";

/// What a provider says of itself, as far as it is needed.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct IssuerMetadata {
    issuer: String,
    #[serde(deserialize_with = "url")]
    pub(crate) authorization_endpoint: Url,
    #[serde(deserialize_with = "url")]
    pub(crate) token_endpoint: Url,
    #[serde(deserialize_with = "url")]
    pub(crate) jwks_uri: Url,
    #[serde(deserialize_with = "some_url", default)]
    pub(crate) userinfo_endpoint: Option<Url>,
    #[serde(default = "basic")]
    token_endpoint_auth_methods_supported: Vec<String>,
    /// Whether it says who it is where it sends a browser back (RFC 9207).
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    Url::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

fn some_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Url>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| Url::parse(&text)).transpose().map_err(serde::de::Error::custom)
}

/// What holds where a provider does not say it.
fn basic() -> Vec<String> {
    vec!["client_secret_basic".to_owned()]
}

/// How the client says who it is where it exchanges a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientAuth {
    /// In the header.
    Basic,
    /// In the form.
    Post,
}

/// Where what an issuer says of itself is.
pub(crate) fn address(issuer: &str) -> Result<Url, Error> {
    let text = format!("{}{WELL_KNOWN}", issuer.trim_end_matches('/'));
    let url = Url::parse(&text).map_err(|_| Error::provider(issuer, "it is no URL"))?;
    secure(&url)?;
    Ok(url)
}

impl IssuerMetadata {
    /// What an issuer said of itself at an address.
    pub(crate) fn read(issuer: &str, at: &Url, document: Value) -> Result<Self, Error> {
        let wrong = |what: String| Error::provider(at.as_str(), what);
        let read: Self = serde_json::from_value(document)
            .map_err(|error| wrong(format!("what it says of itself lacks something: {error}")))?;
        if read.issuer != issuer {
            let said = quoted(&read.issuer);
            return Err(wrong(format!(
                "it calls itself `{said}`, and is asked for as `{issuer}`; `oidc.issuer` has to be its own name, to the letter"
            )));
        }
        let rest = [&read.authorization_endpoint, &read.token_endpoint, &read.jwks_uri];
        rest.into_iter().chain(&read.userinfo_endpoint).try_for_each(secure)?;
        Ok(read)
    }

    /// The servers that are asked by us.
    pub(crate) fn servers(&self) -> Vec<ServerAddress> {
        let urls = [&self.token_endpoint, &self.jwks_uri].into_iter();
        let mut servers: Vec<ServerAddress> = Vec::new();
        for server in urls.chain(&self.userinfo_endpoint).filter_map(endpoint::of_url) {
            if !servers.contains(&server) {
                servers.push(server);
            }
        }
        servers
    }

    /// How the client says who it is, with this placeholder. A header has the secret as it is, and
    /// providers read `%` and `+` there as something else (RFC 6749, 2.3.1); a placeholder has the
    /// punctuation of its secret.
    pub(crate) fn auth(&self, placeholder: &str) -> ClientAuth {
        let takes =
            |method: &str| self.token_endpoint_auth_methods_supported.iter().any(|it| it == method);
        let changes = placeholder.contains(['%', '+']);
        match (takes("client_secret_basic"), takes("client_secret_post")) {
            (true, false) => ClientAuth::Basic,
            (true, true) if !changes => ClientAuth::Basic,
            _ => ClientAuth::Post,
        }
    }
}

/// An error where others could read or change what is asked.
fn secure(url: &Url) -> Result<(), Error> {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_here = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_here => Ok(()),
        _ => Err(Error::provider(
            url.as_str(),
            "only https is asked, but for what is on this machine",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document(issuer: &str) -> Value {
        json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/auth"),
            "token_endpoint": "https://tokens.example/token",
            "jwks_uri": format!("{issuer}/keys"),
            "userinfo_endpoint": null,
        })
    }

    fn read(issuer: &str, document: Value) -> Result<IssuerMetadata, Error> {
        IssuerMetadata::read(issuer, &address("https://id.example").unwrap(), document)
    }

    #[test]
    fn an_issuer_is_who_it_was_asked_for_and_is_asked_with_tls() {
        let issuer = "https://id.example";
        let known = read(issuer, document(issuer)).unwrap();
        assert_eq!(known.servers().len(), 2);
        assert!(read("https://id.example/", document(issuer)).is_err());
        assert!(read(issuer, document("https://evil.example")).is_err());
        for (name, url) in [("token_endpoint", "http://id.example/t"), ("jwks_uri", "file:///k")] {
            let mut wrong = document(issuer);
            wrong[name] = json!(url);
            assert!(read(issuer, wrong).is_err(), "{url}");
        }
        assert!(address("http://id.example").is_err());
        for here in ["http://localhost:1/a", "http://127.0.0.1:5556/dex", "http://[::1]:1"] {
            assert!(address(here).is_ok(), "{here}");
        }
        let at = address("https://id.example/realms/a/").unwrap();
        assert_eq!(at.as_str(), "https://id.example/realms/a/.well-known/openid-configuration");
    }

    #[test]
    fn a_secret_goes_where_it_arrives_as_it_is() {
        let issuer = "https://id.example";
        let methods = |methods: &[&str]| {
            let mut said = document(issuer);
            said["token_endpoint_auth_methods_supported"] = json!(methods);
            read(issuer, said).unwrap()
        };
        let both = methods(&["client_secret_post", "client_secret_basic"]);
        assert_eq!(both.auth("abc-def"), ClientAuth::Basic);
        assert_eq!(both.auth("abc+def"), ClientAuth::Post);
        assert_eq!(methods(&["client_secret_post"]).auth("abc"), ClientAuth::Post);
        assert_eq!(read(issuer, document(issuer)).unwrap().auth("a+b"), ClientAuth::Basic);
    }
}
