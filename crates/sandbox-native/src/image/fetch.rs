//! Requests of a registry (OCI distribution spec), of what anybody may read.
//!
//! Owns the token that a registry wants and gives to everybody, the way along its
//! redirects, and how much of an answer is read: no answer is held in memory before its
//! bound is looked at. What comes is not checked here.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use outrigger_sandbox::Error;
use reqwest::header::{ACCEPT, HeaderValue, LOCATION, RANGE, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode, Url, redirect};
use serde::Deserialize;

use super::hosts::{AllowedHosts, HostRefusal};
use super::manifest::invalid;
use crate::limits;

/// Why something did not come.
#[derive(Debug)]
pub(super) enum Failure {
    /// Another attempt may be luckier.
    Lost(String),
    /// The registry said so.
    Status(StatusCode),
    /// None of ours is worth it.
    Final(Error),
}

/// Ways to one repository of a registry.
#[derive(Debug)]
pub(super) struct RepositoryClient {
    http: reqwest::Client,
    hosts: AllowedHosts,
    /// The path below which its parts are.
    repository: String,
    token: Mutex<Option<String>>,
}

/// What a registry wants a token for.
#[derive(Debug, PartialEq, Eq)]
struct Challenge {
    realm: String,
    service: Option<String>,
}

/// A token that everybody gets.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

/// All that an error says, cause by cause.
fn words(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn refused(refused: &HostRefusal) -> Failure {
    Failure::Final(Error::Unavailable {
        reason: format!("the registry was not followed: {refused}"),
        advice: "name that host beside the image, if it is meant".to_owned(),
    })
}

fn lost(error: &reqwest::Error) -> Failure {
    let causes =
        std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    match causes.filter_map(|error| error.downcast_ref::<HostRefusal>()).next() {
        Some(place) => refused(place),
        None => Failure::Lost(words(error)),
    }
}

/// The challenge of a header, if it is for a token (RFC 9110, section 11.6.1).
fn challenge(header: &str) -> Option<Challenge> {
    let (scheme, mut rest) = header.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (mut realm, mut service) = (None, None);
    while let Some((name, after)) = rest.split_once('=') {
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(',').unwrap_or((after, "")),
        };
        match name.trim_matches([',', ' ']).to_ascii_lowercase().as_str() {
            "realm" => realm = Some(value.to_owned()),
            "service" => service = Some(value.to_owned()),
            _ => {}
        }
        rest = after;
    }
    Some(Challenge { realm: realm?, service })
}

/// Hands an answer on, piece by piece.
pub(super) async fn pieces(
    mut response: Response,
    mut take: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Failure> {
    while let Some(piece) = response.chunk().await.map_err(|error| lost(&error))? {
        take(&piece).map_err(Failure::Final)?;
    }
    Ok(())
}

/// Reads an answer that is held in memory, up to a bound.
pub(super) async fn whole(response: Response, bytes_max: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let take = |piece: &[u8]| {
        if (bytes.len() + piece.len()) as u64 > bytes_max {
            let long = format_args!("an answer of its registry is longer than {bytes_max} bytes");
            return Err(invalid(long));
        }
        bytes.extend_from_slice(piece);
        Ok(())
    };
    pieces(response, take).await?;
    Ok(bytes)
}

impl RepositoryClient {
    /// Of this repository. Asks for nothing yet.
    pub(super) fn new(hosts: AllowedHosts, repository: &str) -> Result<Self, Error> {
        let http = reqwest::Client::builder()
            .user_agent("outrigger")
            // Places are judged by the addresses that are dialled, which a proxy would hide.
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .connect_timeout(Duration::from_millis(limits::REGISTRY_CONNECT_MS_MAX))
            .read_timeout(Duration::from_millis(limits::REGISTRY_READ_MS_MAX))
            .dns_resolver(hosts.clone())
            .build()
            .map_err(|error| Error::Backend(format!("no HTTP client: {}", words(&error))))?;
        Ok(Self { http, hosts, repository: repository.to_owned(), token: Mutex::default() })
    }

    /// The beginning of an answer: of a part of the repository as one of these types, from
    /// this byte on.
    pub(super) async fn get(
        &self,
        part: &str,
        accept: &str,
        from: u64,
    ) -> Result<Response, Failure> {
        let limit = Duration::from_millis(limits::REGISTRY_MANIFEST_MS_MAX);
        tokio::time::timeout(limit, self.with_token(part, accept, from))
            .await
            .map_err(|_| Failure::Lost("it takes too long".to_owned()))?
    }

    async fn with_token(&self, part: &str, accept: &str, from: u64) -> Result<Response, Failure> {
        let path = format!("v2/{}/{part}", self.repository);
        let url = self.hosts.registry().join(&path).map_err(|_| {
            Failure::Final(invalid(format_args!("`{path:.200}` is no path of a registry")))
        })?;
        let first = self.follow(url.clone(), accept, from).await?;
        let last = match first.status() {
            StatusCode::UNAUTHORIZED => {
                let wanted = first.headers().get_all(WWW_AUTHENTICATE).iter();
                let wanted = wanted.filter_map(|value| value.to_str().ok()).find_map(challenge);
                let wanted = wanted.ok_or(Failure::Status(first.status()))?;
                drop(first);
                self.renew(&wanted).await?;
                self.follow(url, accept, from).await?
            }
            _ => first,
        };
        if last.status().is_success() { Ok(last) } else { Err(Failure::Status(last.status())) }
    }

    async fn follow(&self, mut url: Url, accept: &str, from: u64) -> Result<Response, Failure> {
        for _ in 0..=limits::REGISTRY_REDIRECTS_MAX {
            self.hosts.judge(&url).map_err(|place| refused(&place))?;
            let mut request = self.http.get(url.clone()).header(ACCEPT, accept);
            if from > 0 {
                request = request.header(RANGE, format!("bytes={from}-"));
            }
            let token = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(token) = token.filter(|_| self.hosts.is_registry(&url)) {
                request = request.bearer_auth(token);
            }
            let response = request.send().await.map_err(|error| lost(&error))?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            let to = response.headers().get(LOCATION).map(HeaderValue::to_str);
            let to = to.and_then(|to| url.join(to.ok()?).ok());
            url = to.ok_or(Failure::Status(response.status()))?;
        }
        Err(Failure::Final(Error::Backend("the registry leads nowhere: it redirects".to_owned())))
    }

    /// Gets the token that everybody gets.
    async fn renew(&self, wanted: &Challenge) -> Result<(), Failure> {
        let mut url: Url = wanted.realm.parse().map_err(|_| {
            Failure::Final(invalid("its registry names no address that gives tokens"))
        })?;
        let scope = format!("repository:{}:pull", self.repository);
        {
            let mut query = url.query_pairs_mut();
            if let Some(service) = &wanted.service {
                query.append_pair("service", service);
            }
            query.append_pair("scope", &scope);
        }
        let response = self.follow(url, "application/json", 0).await?;
        if !response.status().is_success() {
            return Err(Failure::Status(StatusCode::UNAUTHORIZED));
        }
        let bytes = whole(response, limits::REGISTRY_TOKEN_BYTES_MAX).await?;
        let token = serde_json::from_slice(&bytes).ok();
        let token = token.and_then(|token: Token| token.token.or(token.access_token));
        let token = token.ok_or_else(|| {
            Failure::Final(invalid("its registry gave something else as a token"))
        })?;
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_in_the_forms_that_registries_have() {
        let found = |realm: &str, service: Option<&str>| {
            Some(Challenge { realm: realm.to_owned(), service: service.map(str::to_owned) })
        };
        let hub = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="a:b,c""#;
        let hub = (hub, found("https://auth.docker.io/token", Some("registry.docker.io")));
        for (header, expected) in [
            hub,
            (r#"bearer service=x, realm="https://a/b?c=d""#, found("https://a/b?c=d", Some("x"))),
            (r#"Bearer realm=https://a"#, found("https://a", None)),
            (r#"Bearer service="x""#, None),
            (r#"Bearer realm="https://a"#, None),
            (r#"Basic realm="https://a""#, None),
            ("", None),
        ] {
            assert_eq!(challenge(header), expected, "{header}");
        }
    }
}
