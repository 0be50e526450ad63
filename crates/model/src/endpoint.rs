//! Where a model is reached, and as whom: values that the composition root gives.
//!
//! Must never be read from the environment here, nor show a key or the value of
//! a header.

use outrigger_agent::Raw;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::fmt;
use std::net::IpAddr;

use crate::limits::HEADER_SECRET_BYTES_MIN;
use crate::{Api, Key};

/// Where a model is reached.
#[derive(Clone)]
pub struct Endpoint {
    /// The wire.
    pub api: Api,
    /// The base URL, for example `https://api.anthropic.com`,
    /// `https://api.openai.com/v1` or `http://127.0.0.1:8000/v1`. Without a path,
    /// `/v1` is meant, or for Gemini `/v1beta`.
    pub base_url: String,
    /// The key; `None` for a server that wants none.
    pub key: Option<Key>,
    /// Hosts to which keys go over plain http as well; to this machine they always do.
    pub http_hosts: Vec<String>,
    /// Headers to send besides; one of a name that is sent anyway takes its place.
    pub headers: Vec<(String, String)>,
    /// The model, as the provider names it.
    pub model: String,
    /// Tokens that its context holds, input and output together.
    pub context_tokens: u64,
    /// Tokens of output that one call may ask for.
    pub output_tokens_max: u64,
    /// Whether the OpenAI wires send the session as `prompt_cache_key`; to be
    /// turned off for a server that refuses fields that it does not know.
    pub prompt_cache_key: bool,
    /// Fields of the request's body besides, verbatim, for example
    /// `thinking`, `reasoning` or `temperature`.
    pub body: Vec<(String, Raw)>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Endpoint")
            .field("api", &self.api)
            .field("model", &self.model)
            .field("key", &self.key)
            .field("headers", &headers)
            .finish_non_exhaustive()
    }
}

/// Whom requests go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// Whether TLS is spoken there.
    pub is_tls: bool,
    /// Its name, or the literal of its address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// What is wrong with an endpoint: the configuration's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The base URL is none.
    #[error("the base URL {0}")]
    BaseUrl(&'static str),
    /// The key would be there to read for whoever stands between.
    #[error(
        "the key would go to {host} over plain http: give a base URL with https, or name that host in `model.http_hosts` of the configuration"
    )]
    PlainHttp {
        /// Where to.
        host: String,
    },
    /// A header cannot be sent.
    #[error("the header {name:?} has a name or a value that HTTP does not allow")]
    Header {
        /// Its name.
        name: String,
    },
    /// A field of the body is not to be set by hand.
    #[error(
        "the field {name:?} of the request's body is set twice, or written by the program itself"
    )]
    Field {
        /// Its name.
        name: String,
    },
    /// The model has no name, or a limit is zero.
    #[error("{0}")]
    Model(&'static str),
}

impl Endpoint {
    /// Where requests go, and the host that stands for the provider.
    pub(crate) fn url(&self) -> Result<(Url, String), Error> {
        let (mut url, host) = self.at(&self.api.path(&self.model))?;
        if self.api == Api::Gemini {
            // Else it answers with a list, when all of it is there.
            url.set_query(Some("alt=sse"));
        }
        Ok((url, host))
    }

    /// Where a path behind the version of the API is, and the host.
    pub(crate) fn at(&self, path: &str) -> Result<(Url, String), Error> {
        let (mut url, host) = parse(&self.base_url)?;
        let base = url.path().trim_end_matches('/').to_owned();
        let versioned = match self.api {
            // Anthropic's own clients take the base without the version.
            Api::AnthropicMessages => base.ends_with("/v1"),
            Api::Gemini => base.ends_with("/v1beta") || base.ends_with("/v1"),
            Api::OpenAiResponses | Api::OpenAiChat => !base.is_empty(),
        };
        let version = if versioned { "" } else { self.api.version() };
        let slash = if versioned { "" } else { "/" };
        url.set_path(&format!("{base}{slash}{version}/{path}"));
        Ok((url, host))
    }

    /// The headers of every request.
    pub(crate) fn header_map(&self) -> Result<HeaderMap, Error> {
        let mut map = HeaderMap::new();
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.api == Api::AnthropicMessages {
            map.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        if let Some(key) = &self.key {
            match self.api {
                Api::AnthropicMessages => map.insert("x-api-key", key.header("")),
                Api::OpenAiResponses | Api::OpenAiChat => {
                    map.insert("authorization", key.header("Bearer "))
                }
                Api::Gemini => map.insert("x-goog-api-key", key.header("")),
            };
        }
        for (name, value) in &self.headers {
            let error = || Error::Header { name: name.clone() };
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| error())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| error())?;
            value.set_sensitive(true);
            if matches!(key.as_str(), "host" | "content-length" | "transfer-encoding") {
                return Err(error());
            }
            map.insert(key, value);
        }
        Ok(map)
    }

    /// A text without the key and without the values of headers that may be secret.
    pub(crate) fn redact(&self, text: &str) -> String {
        let text = match &self.key {
            Some(key) => key.redact(text),
            None => text.to_owned(),
        };
        let values = self.headers.iter().map(|(_, value)| value);
        values
            .filter(|value| value.len() >= HEADER_SECRET_BYTES_MIN)
            .fold(text, |text, value| text.replace(value.as_str(), "[header]"))
    }

    /// Whether the rest makes sense. `own_fields` of the body are written from requests.
    pub(crate) fn check(&self, own_fields: &[&str]) -> Result<(), Error> {
        if self.model.is_empty() {
            return Err(Error::Model("the model has no name"));
        }
        if self.output_tokens_max == 0 || self.context_tokens <= self.output_tokens_max {
            return Err(Error::Model(
                "the model's `output_tokens_max` must be above zero and below its `context_tokens`",
            ));
        }
        self.check_secrets()?;
        for (at, (name, _)) in self.body.iter().enumerate() {
            let twice = self.body[..at].iter().any(|(other, _)| other == name);
            if twice || own_fields.contains(&name.as_str()) {
                return Err(Error::Field { name: name.clone() });
            }
        }
        Ok(())
    }

    /// Whether what is secret may go to the address.
    pub(crate) fn check_secrets(&self) -> Result<(), Error> {
        let (url, host) = self.url()?;
        let secret = self.key.is_some() || !self.headers.is_empty();
        if secret && url.scheme() == "http" && !is_here(&host) && !self.http_hosts.contains(&host) {
            return Err(Error::PlainHttp { host });
        }
        Ok(())
    }
}

/// The server of a base URL.
///
/// # Errors
/// [`Error::BaseUrl`].
pub fn server(base_url: &str) -> Result<ServerAddress, Error> {
    let (url, _) = parse(base_url)?;
    of_url(&url).ok_or(Error::BaseUrl("has no port"))
}

/// Whom requests of an address go to, which may have a path, a query or a fragment.
#[must_use]
pub fn address(url: &str) -> Option<ServerAddress> {
    of_url(&Url::parse(url).ok()?)
}

/// Whom requests of an address go to. `None` where it has no host or no port.
#[must_use]
pub fn of_url(url: &Url) -> Option<ServerAddress> {
    let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    Some(ServerAddress {
        is_tls: url.scheme() == "https",
        host,
        port: url.port_or_known_default()?,
    })
}

/// A base URL and its host, as a URL has it.
fn parse(base_url: &str) -> Result<(Url, String), Error> {
    let url = Url::parse(base_url.trim()).map_err(|_| Error::BaseUrl("is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Error::BaseUrl("is neither http nor https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::BaseUrl("contains a name or a password; give a key or a header"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(Error::BaseUrl("contains a query or a fragment"));
    }
    let host = url.host_str().ok_or(Error::BaseUrl("has no host"))?.to_owned();
    Ok((url, host))
}

/// Whether a host of a URL is this machine.
#[must_use]
pub fn is_here(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(api: Api, base_url: &str) -> Endpoint {
        Endpoint {
            api,
            base_url: base_url.into(),
            key: Some(Key::new("canary").unwrap()),
            http_hosts: Vec::new(),
            headers: vec![("x-other".into(), "canary".into())],
            model: "m".into(),
            context_tokens: 1_000,
            output_tokens_max: 100,
            prompt_cache_key: true,
            body: Vec::new(),
        }
    }

    #[test]
    fn the_url_is_found_from_every_usual_base() {
        use Api::{AnthropicMessages, Gemini, OpenAiChat, OpenAiResponses};
        for (api, base, url) in [
            (
                AnthropicMessages,
                "https://api.anthropic.com",
                "https://api.anthropic.com/v1/messages",
            ),
            (AnthropicMessages, "https://x.test/v1/", "https://x.test/v1/messages"),
            (AnthropicMessages, "https://x.test/anthropic", "https://x.test/anthropic/v1/messages"),
            (OpenAiResponses, "https://api.openai.com/v1", "https://api.openai.com/v1/responses"),
            (OpenAiChat, "http://127.0.0.1:80", "http://127.0.0.1/v1/chat/completions"),
            (OpenAiChat, "https://x.test/api/v4/", "https://x.test/api/v4/chat/completions"),
            (
                Gemini,
                "https://g.test",
                "https://g.test/v1beta/models/m:streamGenerateContent?alt=sse",
            ),
            (
                Gemini,
                "https://g.test/x/v1/",
                "https://g.test/x/v1/models/m:streamGenerateContent?alt=sse",
            ),
        ] {
            assert_eq!(endpoint(api, base).url().unwrap().0.as_str(), url);
        }
        for base in ["", "x.test", "ftp://x.test", "https://a:b@x.test", "https://x.test/?key=1"] {
            let error = endpoint(OpenAiChat, base).url().unwrap_err();
            assert!(matches!(error, Error::BaseUrl(_)), "{base}");
        }
    }

    #[test]
    fn a_key_goes_over_plain_http_only_to_this_machine_or_where_it_may() {
        let refused = |base: &str| {
            let checked = endpoint(Api::OpenAiChat, base).check(&[]);
            matches!(checked, Err(Error::PlainHttp { .. }))
        };
        for base in
            ["http://localhost:1/v1", "http://127.8.9.1", "http://[::1]:9", "https://x.test"]
        {
            assert!(!refused(base), "{base}");
        }
        for base in
            ["http://x.test", "http://10.0.0.1", "http://localhost.x.test", "http://[fe80::1]"]
        {
            assert!(refused(base), "{base}");
        }
        let mut endpoint = endpoint(Api::OpenAiChat, "http://x.test:80/v1");
        endpoint.http_hosts = vec!["x.test".into()];
        assert_eq!(endpoint.check(&[]), Ok(()));
        endpoint.http_hosts.clear();
        (endpoint.key, endpoint.headers) = (None, Vec::new());
        assert_eq!(endpoint.check(&[]), Ok(()), "there is nothing to read");
    }

    #[test]
    fn nothing_that_is_shown_has_a_secret() {
        let endpoint = endpoint(Api::OpenAiChat, "http://localhost");
        assert!(!format!("{endpoint:?}").contains("canary"));
        assert!(!format!("{:?}", endpoint.header_map().unwrap()).contains("canary"));
        let mut endpoint = endpoint;
        endpoint.headers = vec![("x-other".into(), "header-secret".into())];
        let quoted = endpoint.redact("wrong: canary, header-secret");
        assert_eq!(quoted, "wrong: [key], [header]");
    }

    #[test]
    fn fields_of_our_own_are_refused() {
        let mut endpoint = endpoint(Api::OpenAiResponses, "http://localhost");
        let raw = |text: &str| Raw::new(text.to_owned()).unwrap();
        endpoint.body = vec![("reasoning".into(), raw("{}"))];
        let own = crate::codec::own_fields(endpoint.api);
        assert_eq!(endpoint.check(own), Ok(()));
        endpoint.body.push(("store".into(), raw("true")));
        assert_eq!(endpoint.check(own), Err(Error::Field { name: "store".into() }));
    }
}
