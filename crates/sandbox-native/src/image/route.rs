//! The port to the outside: a registry is asked by whoever may reach it.

use async_trait::async_trait;
use reqwest::{Request, Response};

/// Which addresses a name may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostReach {
    /// Those of the internet: the name came from a registry, which is hostile.
    Public,
    /// Any: whoever pulls named that host.
    Any,
}

/// Why a request has no answer of its host. Each has a sentence.
#[derive(Debug)]
pub enum RouteError {
    /// Its host is at an address that is not public.
    Private(String),
    /// The host was not reached, or the connection broke. Another attempt may be luckier.
    Lost(String),
    /// It is not sent. None will be.
    Refused(String),
}

/// The way to hosts of registries.
#[async_trait]
pub trait RegistryRoute: Send + Sync {
    /// Sends a request to its host and nowhere else: no redirect is followed, and nothing is
    /// sent twice. The name is judged by the address that is dialled. Given up when it is
    /// dropped; gives the head of the answer, whose body comes while it is read.
    async fn send(&self, request: Request, reach: HostReach) -> Result<Response, RouteError>;
}
