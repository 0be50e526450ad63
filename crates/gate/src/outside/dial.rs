//! Reaching a host.
//!
//! Owns that a name is resolved once, that every address it has is looked at, and that what
//! was looked at is what is dialled; and that nothing is written to a host before its
//! certificate was verified.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::HeaderValue;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::ServerName;

use super::Outside;
use super::proxy;
use super::stream::Stream;
use crate::address::{Reach, reach};
use crate::flow::Refusal;
use crate::host::{Host, Target};
use crate::limits;
use crate::network::Scheme;
use crate::rules::{Rules, UpstreamProxy};

/// A connection to a host.
#[derive(Debug)]
pub(crate) struct Dialled {
    pub(crate) stream: Stream,
    /// Whether HTTP/2 is spoken.
    pub(crate) two: bool,
    /// The operator's proxy is at the other end and is asked with whole URLs.
    pub(crate) whole: Option<WholeUrls>,
}

/// How a proxy is asked for a URL.
#[derive(Debug, Clone)]
pub(crate) struct WholeUrls {
    pub(crate) authorization: Option<HeaderValue>,
}

/// Why there is none.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) refusal: Refusal,
    pub(crate) status: StatusCode,
    pub(crate) words: String,
}

impl Failure {
    fn new(refusal: Refusal, words: String) -> Self {
        let status = match refusal {
            Refusal::Private => StatusCode::FORBIDDEN,
            _ => StatusCode::BAD_GATEWAY,
        };
        Self { refusal, status, words }
    }

    /// The sandbox has all the connections that it may have.
    pub(crate) fn crowded() -> Self {
        let words = "this sandbox has as many connections to the outside as it may have.";
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self { refusal: Refusal::Limit, status, words: words.to_owned() }
    }

    fn late(words: String) -> Self {
        Self { refusal: Refusal::Unreachable, status: StatusCode::GATEWAY_TIMEOUT, words }
    }

    /// The host broke a connection that it had.
    pub(crate) fn broken(target: &Target, error: &dyn std::error::Error) -> Self {
        Self::new(Refusal::Unreachable, format!("{} broke the connection: {error}.", target.host))
    }
}

/// Dials. `private`: whether the grant says so; `two`: whether HTTP/2 would be of use.
///
/// # Errors
/// With what is answered instead.
pub(crate) async fn dial(
    outside: &Outside,
    rules: &Rules,
    target: &Target,
    private: bool,
    two: bool,
) -> Result<Dialled, Failure> {
    let through = rules.proxy.as_ref().filter(|proxy| proxy.is_for(&target.host));
    let limit = Duration::from_millis(limits::DIAL_MS_MAX);
    let late = |_| Failure::late(format!("{} did not answer in time.", target.host));
    let reached = reach_host(through, target, private);
    let stream = timeout(limit, reached).await.map_err(late)??;
    let _ = stream.set_nodelay(true);
    if target.scheme != Scheme::Https {
        let through = through.filter(|_| target.scheme == Scheme::Http);
        let whole = through.map(|proxy| WholeUrls { authorization: proxy::authorization(proxy) });
        return Ok(Dialled { stream: Stream::Plain(stream), two: false, whole });
    }
    let config = if two { &outside.two } else { &outside.one };
    let name = match &target.host {
        Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| {
            Failure::new(Refusal::Certificate, format!("{name} can't have a certificate."))
        })?,
        Host::Address(address) => ServerName::IpAddress((*address).into()),
    };
    let limit = Duration::from_millis(limits::HANDSHAKE_MS_MAX);
    let handshake = Box::pin(TlsConnector::from(Arc::clone(config)).connect(name, stream));
    let stream = timeout(limit, handshake).await.map_err(late)?;
    let stream = stream.map_err(|error| unsafe_host(target, &error))?;
    let two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok(Dialled { stream: Stream::Tls(Box::new(stream)), two, whole: None })
}

fn unsafe_host(target: &Target, error: &io::Error) -> Failure {
    let host = &target.host;
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(why)) => Failure::new(
            Refusal::Certificate,
            format!("the certificate of {host} is not valid: {why}."),
        ),
        Some(rustls::Error::InvalidMessage(_)) => Failure::new(
            Refusal::Unreachable,
            format!("{}:{} does not speak TLS.", host, target.port),
        ),
        _ => Failure::new(Refusal::Unreachable, format!("no TLS with {host}: {error}.")),
    }
}

async fn reach_host(
    through: Option<&UpstreamProxy>,
    target: &Target,
    private: bool,
) -> Result<TcpStream, Failure> {
    if let Host::Address(address) = target.host {
        look_at(target, (address, target.port).into(), private)?;
    }
    let Some(proxy) = through else {
        let addresses = resolve(&target.host, target.port).await?;
        for address in &addresses {
            look_at(target, *address, private)?;
        }
        return connect(&target.host, &addresses).await;
    };
    // Where the operator's proxy lies is the operator's to say, and where names lead that it
    // resolves is the proxy's.
    let addresses = resolve(&proxy.host, proxy.port).await?;
    let mut stream = connect(&proxy.host, &addresses).await?;
    if target.scheme != Scheme::Http {
        let failed = |error| {
            let words = format!("the proxy does not reach {}: {error}.", target.host);
            Failure::new(Refusal::Unreachable, words)
        };
        proxy::tunnel(&mut stream, proxy, target).await.map_err(failed)?;
    }
    Ok(stream)
}

async fn resolve(host: &Host, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    let name = match host {
        Host::Address(address) => return Ok(vec![(*address, port).into()]),
        Host::Name(name) => name,
    };
    // A dot at the end keeps the resolver from trying the domains of this host, but then it
    // does not look at its file of hosts, where `localhost` is.
    let found = tokio::net::lookup_host((name.as_str(), port)).await;
    let nowhere =
        |why: &str| Failure::new(Refusal::Unresolved, format!("there is no {name}: {why}."));
    let found: Vec<_> = found.map_err(|error| nowhere(&error.to_string()))?.collect();
    if found.is_empty() { Err(nowhere("it has no address")) } else { Ok(found) }
}

/// Whether an address may be dialled for a host.
fn look_at(target: &Target, address: SocketAddr, private: bool) -> Result<(), Failure> {
    let host = &target.host;
    let literal = *host == Host::Address(address.ip());
    // Whoever answers for a name is not to lead what nobody reads to this machine.
    let misled = target.scheme == Scheme::Tcp && address.ip().is_loopback() && !host.is_private();
    let (may, what) = match reach(address.ip()) {
        Reach::Public => return Ok(()),
        Reach::Private(what) => (private && !misled, what),
        Reach::Literal(what) => (private && literal, what),
    };
    if may {
        return Ok(());
    }
    let words = if literal {
        format!("{host} is not public ({what}); `--net {host}` would allow it.")
    } else {
        let ip = address.ip();
        format!("{host} leads to {ip}, which is not public ({what}).")
    };
    Err(Failure::new(Refusal::Private, words))
}

async fn connect(host: &Host, addresses: &[SocketAddr]) -> Result<TcpStream, Failure> {
    let limit = Duration::from_millis(limits::DIAL_ADDRESS_MS_MAX);
    let mut last = io::Error::from(io::ErrorKind::TimedOut);
    for address in addresses {
        match timeout(limit, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => {}
        }
    }
    Err(Failure::new(Refusal::Unreachable, format!("{host} can't be reached: {last}.")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn may(words: &str, address: &str) -> bool {
        let grant = crate::words::grant_of(words).unwrap().remove(0);
        let host = Host::parse_bare(&grant.host).unwrap();
        let target = Target { scheme: grant.scheme, host, port: grant.port };
        look_at(&target, (address.parse::<IpAddr>().unwrap(), 1).into(), grant.private).is_ok()
    }

    #[test]
    fn a_name_leads_to_private_networks_only_where_it_is_passed_on_unread() {
        for (words, leads) in [
            ("db.test", [true, false, false, false, false]),
            ("tcp:db.test:1", [true, true, true, false, false]),
            ("tcp:localhost:1", [true, true, true, true, false]),
        ] {
            let addresses = ["1.1.1.1", "10.0.0.1", "fd12::1", "127.0.0.1", "169.254.169.254"];
            assert_eq!(addresses.map(|address| may(words, address)), leads, "{words}");
        }
        assert!(may("tcp:127.0.0.1:1", "127.0.0.1"));
        assert!(may("tcp:169.254.169.254:1", "169.254.169.254"));
    }
}
