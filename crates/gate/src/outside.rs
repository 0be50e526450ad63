//! The outside: what the gate trusts there and how it is reached.
//!
//! Owns the roots and the TLS settings towards hosts. They are read once, at the start,
//! before the process can't open files any more.

mod dial;
mod proxy;
mod stream;

use std::sync::Arc;

use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

pub(crate) use dial::{Dialled, Failure, WholeUrls, dial};

/// What all sandboxes share of the outside.
#[derive(Debug)]
pub(crate) struct Outside {
    provider: Arc<CryptoProvider>,
    /// For requests of HTTP/1, and for those of HTTP/2.
    one: Arc<ClientConfig>,
    two: Arc<ClientConfig>,
}

impl Outside {
    /// Reads the roots of this host. Without any, no host has a valid certificate.
    pub(crate) fn new() -> Result<Self, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let found = rustls_native_certs::load_native_certs().certs;
        let mut roots = RootCertStore::empty();
        for certificate in found {
            // What can't be parsed vouches for nobody.
            let _ = roots.add(certificate);
        }
        let roots = Arc::new(roots);
        let config = |protocols: &[&[u8]]| {
            let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
                .with_safe_default_protocol_versions()?
                .with_root_certificates(Arc::clone(&roots))
                .with_no_client_auth();
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            Ok::<_, rustls::Error>(Arc::new(config))
        };
        let (one, two) = (config(&[b"http/1.1"])?, config(&[b"h2", b"http/1.1"])?);
        Ok(Self { provider, one, two })
    }

    pub(crate) fn provider(&self) -> Arc<CryptoProvider> {
        Arc::clone(&self.provider)
    }
}
