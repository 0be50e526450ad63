//! The hosts that a request names.
//!
//! Owns that they are one, and what is answered where they are not.

use hyper::header::HOST;
use hyper::{Request, StatusCode};

use super::answer::Denial;
use crate::flow::Refusal;
use crate::host::Target;

/// Whether every `Host` of a request names its target.
pub(super) fn hosts_agree<B>(request: &Request<B>, target: &Target) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    hosts.all(|host| host.to_str().is_ok_and(|host| target.is_named(host)))
}

/// For a request that names two hosts.
pub(super) fn mismatch() -> Denial {
    let words = "the request names another host than its connection.";
    Denial::new(Refusal::Mismatch, StatusCode::MISDIRECTED_REQUEST, words)
}
