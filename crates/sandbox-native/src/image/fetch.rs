//! Requests of a registry (OCI distribution spec), of what anybody may read.
//!
//! Owns the token that a registry wants and gives to everybody, the way along its
//! redirects, and how much of an answer is read: no answer is held in memory before its
//! bound is looked at. What comes is not checked here, and hosts are reached by a route.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use outrigger_sandbox::Error;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, HeaderName, HeaderValue, LOCATION, RANGE, WWW_AUTHENTICATE,
};
use reqwest::{Method, Request, Response, StatusCode, Url};
use serde::Deserialize;

use super::hosts::{AllowedHosts, HostRefusal};
use super::manifest::invalid;
use super::route::{RegistryRoute, RouteError};
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
pub(super) struct RepositoryClient<'a> {
    route: &'a dyn RegistryRoute,
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
    Failure::Lost(words(error))
}

/// A request of a part, or of a token. What can't stand in a header is no answer of a registry.
fn request(url: &Url, headers: [(HeaderName, Option<String>); 3]) -> Result<Request, Failure> {
    let mut request = Request::new(Method::GET, url.clone());
    for (name, value) in headers {
        let Some(value) = value else { continue };
        let value = HeaderValue::try_from(value)
            .map_err(|_| Failure::Final(invalid("its registry gave something else as a token")))?;
        request.headers_mut().insert(name, value);
    }
    Ok(request)
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
    let limit = Duration::from_millis(limits::REGISTRY_READ_MS_MAX);
    loop {
        let piece = tokio::time::timeout(limit, response.chunk()).await;
        let piece = piece.map_err(|_| Failure::Lost("nothing more comes".to_owned()))?;
        let Some(piece) = piece.map_err(|error| lost(&error))? else { return Ok(()) };
        take(&piece).map_err(Failure::Final)?;
    }
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

impl<'a> RepositoryClient<'a> {
    /// Of this repository. Asks for nothing yet.
    pub(super) fn new(hosts: AllowedHosts, repository: &str, route: &'a dyn RegistryRoute) -> Self {
        Self { route, hosts, repository: repository.to_owned(), token: Mutex::default() }
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
            let range = (from > 0).then(|| format!("bytes={from}-"));
            let token = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let token = token.filter(|_| self.hosts.is_registry(&url));
            let token = token.map(|token| format!("Bearer {token}"));
            let headers =
                [(ACCEPT, Some(accept.to_owned())), (RANGE, range), (AUTHORIZATION, token)];
            let response = self.send(request(&url, headers)?).await?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            let to = response.headers().get(LOCATION).map(HeaderValue::to_str);
            let to = to.and_then(|to| url.join(to.ok()?).ok());
            url = to.ok_or(Failure::Status(response.status()))?;
        }
        Err(Failure::Final(Error::Backend("the registry leads nowhere: it redirects".to_owned())))
    }

    async fn send(&self, request: Request) -> Result<Response, Failure> {
        let reach = self.hosts.reach(request.url());
        let place = request.url().to_string();
        self.route.send(request, reach).await.map_err(|error| match error {
            RouteError::Private(_) => refused(&HostRefusal::Private(place)),
            RouteError::Lost(said) => Failure::Lost(said),
            RouteError::Refused(said) => Failure::Final(Error::Backend(said)),
        })
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
