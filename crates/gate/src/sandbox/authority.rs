//! The authority of a sandbox: the certificate that programs inside trust, and those it signs.
//!
//! Owns the keys and the file that keeps them, so that a gate that is started again has the
//! same authority for the same sandbox. It signs for whichever host a program inside asks for, granted or not: nobody else trusts
//! it. No key leaves the process but into that file.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType, SerialNumber,
};
use rustix::fs::{AtFlags, Mode, OFlags};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::NoServerSessionStorage;

use crate::host::Host;
use crate::limits;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Where the certificate begins in the file, behind the key.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// The authority of a sandbox.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    /// Of all certificates that it signs.
    key: KeyPair,
    provider: Arc<CryptoProvider>,
    leaves: Mutex<HashMap<Host, (Instant, Arc<ServerConfig>)>>,
}

impl Authority {
    /// The one that a directory keeps for a sandbox, or a new one.
    pub(crate) fn open(
        dir: BorrowedFd<'_>,
        sandbox: &str,
        provider: Arc<CryptoProvider>,
    ) -> io::Result<Self> {
        let file = file_name(sandbox);
        let kept = read(dir, &file).ok().and_then(|text| {
            let (key, pem) = text.split_at(text.find(CERTIFICATE)?);
            Some((KeyPair::from_pem(key).ok()?, pem.to_owned()))
        });
        let (ca_key, pem) = match kept {
            Some(kept) => kept,
            None => {
                let key = new_key()?;
                let pem = params(sandbox).self_signed(&key).map_err(io::Error::other)?.pem();
                write(dir, &file, &format!("{}{pem}", key.serialize_pem()))?;
                (key, pem)
            }
        };
        Ok(Self {
            issuer: Issuer::new(params(sandbox), ca_key),
            pem,
            key: new_key()?,
            provider,
            leaves: Mutex::default(),
        })
    }

    /// Deletes what a directory keeps.
    pub(crate) fn remove(dir: BorrowedFd<'_>, sandbox: &str) {
        let _ = rustix::fs::unlinkat(dir, file_name(sandbox), AtFlags::empty());
    }

    /// The certificate, PEM.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// What a host is played with towards the inside.
    pub(crate) fn server(&self, host: &Host) -> io::Result<Arc<ServerConfig>> {
        let mut leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made, leaf)) = leaves.get(host)
            && made.elapsed() < Duration::from_millis(limits::LEAF_KEPT_MS)
        {
            return Ok(Arc::clone(leaf));
        }
        if leaves.len() >= limits::LEAVES_MAX {
            // They cost 20 µs each, less than it would take to know which of them is needed.
            leaves.clear();
        }
        let leaf = Arc::new(self.leaf(host)?);
        leaves.insert(host.clone(), (Instant::now(), Arc::clone(&leaf)));
        Ok(leaf)
    }

    fn leaf(&self, host: &Host) -> io::Result<ServerConfig> {
        let mut params = CertificateParams::default();
        params.not_before = (SystemTime::now() - DAY).into();
        let valid = DAY * u32::try_from(limits::LEAF_DAYS).unwrap_or(1);
        params.not_after = (SystemTime::now() + valid).into();
        params.serial_number = Some(serial());
        params.distinguished_name.push(DnType::CommonName, "outrigger");
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names = vec![match host {
            Host::Name(name) => {
                SanType::DnsName(name.as_str().try_into().map_err(io::Error::other)?)
            }
            Host::Address(address) => SanType::IpAddress(IpAddr::to_canonical(address)),
        }];
        let leaf = params.signed_by(&self.key, &self.issuer).map_err(io::Error::other)?;
        let chain = vec![CertificateDer::clone(leaf.der())];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // A handshake here costs less than it costs to keep sessions for 10,000 sandboxes.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

fn new_key() -> io::Result<KeyPair> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(io::Error::other)
}

/// No two certificates of an authority have the same (RFC 5280, 4.1.2.2).
fn serial() -> SerialNumber {
    let bytes = fastrand::u128(1..=u128::MAX >> 1).to_be_bytes();
    SerialNumber::from_slice(&bytes)
}

/// The certificate of the authority. Its name has to come out the same each time.
fn params(sandbox: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.not_before = (SystemTime::now() - DAY).into();
    let valid = DAY * u32::try_from(limits::AUTHORITY_DAYS).unwrap_or(1);
    params.not_after = (SystemTime::now() + valid).into();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let sandbox = sandbox.get(..sandbox.len().min(32)).unwrap_or_default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "Outrigger gate");
    params.distinguished_name.push(DnType::CommonName, format!("sandbox {sandbox}"));
    params
}

fn file_name(sandbox: &str) -> String {
    format!("{sandbox}.pem")
}

fn read(dir: BorrowedFd<'_>, name: &str) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = std::fs::File::from(rustix::fs::openat(dir, name, flags, Mode::empty())?);
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Under another name first, so that there is never half of one.
fn write(dir: BorrowedFd<'_>, name: &str, text: &str) -> io::Result<()> {
    let part = format!(".{name}");
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let mut file = std::fs::File::from(rustix::fs::openat(dir, &part, flags, mode)?);
    file.write_all(text.as_bytes())?;
    rustix::fs::renameat(dir, &part, dir, name)?;
    Ok(())
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without what signs.
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}
