//! What a request and an answer lose and keep on their way through.
//!
//! Owns the headers that are for the next hop alone (RFC 9110, 7.6.1), and the form of a
//! request for the connection that it goes out on.

use hyper::header::{
    ALT_SVC, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Request, Uri, Version};

use super::answer::REFUSED;
use crate::host::Target;
use crate::outside::WholeUrls;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
/// For the next hop, whether `Connection` says so or not.
const HOP: [HeaderName; 9] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// What a connection to the outside speaks.
#[derive(Debug, Clone)]
pub(super) enum Dialect {
    One,
    Two,
    /// HTTP/1 with the operator's proxy.
    Whole(WholeUrls),
}

/// Removes what is for the next hop alone.
fn remove_hop(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        let listed: Vec<HeaderName> = headers
            .get_all(CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
            // Those say where a message ends and whom it is for, whoever lists them.
            .filter(|name| *name != HOST && *name != CONTENT_LENGTH)
            .collect();
        for name in listed {
            headers.remove(name);
        }
    }
    for name in &HOP {
        headers.remove(name);
    }
}

/// What of a request does not go on. The gate itself says that a body may come.
pub(super) fn clean_request(headers: &mut HeaderMap) {
    let trailers = headers.get(TE).is_some_and(|value| value == "trailers");
    remove_hop(headers);
    headers.remove(EXPECT);
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// What of an answer does not go on. Another service for the host would be past the gate, and
/// what the gate refuses nobody else says.
pub(super) fn clean_response(headers: &mut HeaderMap) {
    remove_hop(headers);
    headers.remove(ALT_SVC);
    headers.remove(REFUSED);
}

/// About as many bytes as headers are on the wire.
pub(super) fn size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

/// Gives a request the form of a connection. It can be given another one after.
pub(super) fn adapt<B>(request: &mut Request<B>, target: &Target, dialect: &Dialect) {
    let path = request.uri().path_and_query().cloned();
    let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
    let authority = target.authority();
    let whole = |scheme: Scheme, path: PathAndQuery| {
        let authority = Authority::try_from(authority.as_str()).ok()?;
        Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build().ok()
    };
    let uri = match dialect {
        Dialect::One => None,
        Dialect::Two => whole(Scheme::HTTPS, path.clone()),
        Dialect::Whole(_) => whole(Scheme::HTTP, path.clone()),
    };
    *request.uri_mut() = uri.unwrap_or_else(|| Uri::from(path));
    let headers = request.headers_mut();
    headers.remove(HOST);
    if let Dialect::Whole(WholeUrls { authorization: Some(value) }) = dialect {
        headers.insert(PROXY_AUTHORIZATION, value.clone());
    }
    if matches!(dialect, Dialect::Two) {
        *request.version_mut() = Version::HTTP_2;
    } else {
        headers.remove(TE);
        if let Ok(value) = HeaderValue::try_from(&authority) {
            headers.insert(HOST, value);
        }
        *request.version_mut() = Version::HTTP_11;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_the_next_hop_stays_behind() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "keep-alive, X-Private, Content-Length, host"),
            ("x-private", "1"),
            ("content-length", "3"),
            ("host", "a"),
            ("proxy-authorization", "Basic x"),
            ("te", "gzip"),
            ("x-kept", "1"),
            ("alt-svc", "h3=\":443\""),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        clean_response(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-length", "host", "x-kept"]);
    }
}
