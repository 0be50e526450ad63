//! What the gate seals and opens: values of secrets, under the master key.
//!
//! Owns the keys: one for each organisation, derived from the master key (HKDF, RFC 5869),
//! and one for placeholders. The terms of a secret are sealed with it (AES-256-GCM, additional
//! data): who changes them has a secret that nobody opens.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{hkdf, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::{Mode, OFlags};
use rustix::rand::{GetRandomFlags, getrandom};
use zeroize::Zeroizing;

use crate::client::{FROM_STDIN, MASTER_KEY};
use crate::limits::{MASTER_KEY_BYTES, MASTER_KEY_TEXT_BYTES_MAX};
use crate::secret::{SealedSecret, SecretTerms, SecretValue};
use crate::secrets::{HeldSecret, Minter};

/// Bytes of what a secret is known by.
const ID_BYTES: usize = 16;
/// What the secrets of Standard Webhooks begin with (standardwebhooks.com).
const STANDARD_WEBHOOK: &str = "whsec_";
/// Where the master key is, if the environment has none.
const FILE: &str = "master.key";

/// What seals and opens.
#[derive(Debug)]
pub(super) struct Vault {
    master: hkdf::Prk,
}

type MasterKey = Zeroizing<[u8; MASTER_KEY_BYTES]>;

impl Vault {
    /// With the master key of the environment, of a command, or of the directory, where one is
    /// made if there is none.
    pub(super) fn open(dir: &OwnedFd) -> io::Result<Self> {
        let key = match std::env::var(MASTER_KEY).map(Zeroizing::new) {
            Ok(text) if *text == FROM_STDIN => of_command()?,
            Ok(text) => parse(text.trim()).ok_or_else(|| {
                io::Error::other(format!("{MASTER_KEY} is not 32 bytes in base64"))
            })?,
            Err(_) => of_directory(dir)?,
        };
        Ok(Self { master: hkdf::Salt::new(hkdf::HKDF_SHA256, b"outrigger").extract(&*key) })
    }

    fn derive(&self, what: &[&[u8]]) -> Result<Zeroizing<[u8; 32]>, String> {
        let mut key = Zeroizing::new([0; 32]);
        let derived = self.master.expand(what, hkdf::HKDF_SHA256);
        derived.and_then(|derived| derived.fill(&mut *key)).map_err(|_| broken())?;
        Ok(key)
    }

    fn key_of(&self, organisation: &str) -> Result<LessSafeKey, String> {
        let key = self.derive(&[b"organisation ", organisation.as_bytes()])?;
        UnboundKey::new(&AES_256_GCM, &*key).map(LessSafeKey::new).map_err(|_| broken())
    }

    /// Seals a value, under the id that it has or a new one.
    pub(super) fn seal(
        &self,
        id: Option<String>,
        terms: SecretTerms,
        value: &SecretValue,
    ) -> Result<SealedSecret, String> {
        terms.check()?;
        let id = match id {
            Some(id) => id,
            None => new_id()?,
        };
        let mut bytes = Zeroizing::new(Vec::with_capacity(value.text().len() + 64));
        bytes.extend_from_slice(value.text().as_bytes());
        let about = Aad::from(about(&id, &terms));
        let key = self.key_of(&terms.organisation)?;
        // By chance: an organisation has a few thousand of them in all its life.
        let mut sealed = random(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(&sealed).map_err(|_| broken())?;
        key.seal_in_place_append_tag(nonce, about, &mut *bytes).map_err(|_| broken())?;
        sealed.extend_from_slice(&bytes);
        Ok(SealedSecret { id, terms, sealed: STANDARD.encode(sealed) })
    }

    /// Opens a secret for a sandbox.
    pub(super) fn hold(&self, secret: &SealedSecret, sandbox: &str) -> Result<HeldSecret, String> {
        let value = self.unsealed(secret)?;
        let key = self.derive(&[b"placeholders"])?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, &*key);
        let minter = Minter { key, sandbox: sandbox.to_owned() };
        HeldSecret::new(secret, value, minter)
    }

    /// Whether a message was signed with a secret, both in base64.
    pub(super) fn verify(
        &self,
        secret: &SealedSecret,
        message: &str,
        signature: &str,
    ) -> Result<bool, String> {
        if !secret.terms.verifies {
            return Err(format!("the secret {} is for something else", secret.terms.name));
        }
        let value = self.unsealed(secret)?;
        let wrong = |what: &str| format!("{what} is not in base64");
        let key = match value.strip_prefix(STANDARD_WEBHOOK) {
            Some(key) => STANDARD.decode(key).map_err(|_| wrong("the secret after whsec_"))?,
            None => value.as_bytes().to_vec(),
        };
        let key = hmac::Key::new(hmac::HMAC_SHA256, &Zeroizing::new(key));
        let message = STANDARD.decode(message).map_err(|_| wrong("the message"))?;
        let signature = STANDARD.decode(signature).map_err(|_| wrong("the signature"))?;
        Ok(hmac::verify(&key, &message, &signature).is_ok())
    }

    fn unsealed(&self, secret: &SealedSecret) -> Result<Zeroizing<String>, String> {
        let name = &secret.terms.name;
        let other = || {
            format!(
                "the secret {name} can't be opened: it was sealed with another master key, or changed since; set it again"
            )
        };
        secret.terms.check()?;
        let sealed = STANDARD.decode(&secret.sealed).map_err(|_| other())?;
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN).ok_or_else(other)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| other())?;
        let mut bytes = Zeroizing::new(sealed.to_vec());
        let about = Aad::from(about(&secret.id, &secret.terms));
        let key = self.key_of(&secret.terms.organisation)?;
        let value = key.open_in_place(nonce, about, &mut bytes).map_err(|_| other())?;
        let value = std::str::from_utf8(value).map_err(|_| other())?;
        Ok(Zeroizing::new(value.to_owned()))
    }
}

/// What is sealed beside a value.
fn about(id: &str, terms: &SecretTerms) -> Vec<u8> {
    serde_json::to_vec(&(id, terms)).unwrap_or_default()
}

fn broken() -> String {
    "the gate's encryption failed".to_owned()
}

fn new_id() -> Result<String, String> {
    Ok(random(ID_BYTES)?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// From the kernel. The library's own source takes 60 ms to be there, which who waits for a
/// key to be sealed would feel.
fn random(length: usize) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        let got = getrandom(&mut bytes[filled..], GetRandomFlags::empty());
        filled += got.map_err(|error| format!("the system gives no random bytes: {error}"))?;
    }
    Ok(bytes)
}

fn parse(text: &str) -> Option<MasterKey> {
    let bytes = Zeroizing::new(STANDARD.decode(text).ok()?);
    Some(Zeroizing::new(bytes.as_slice().try_into().ok()?))
}

/// What a command printed, which whoever starts us lets us read.
fn of_command() -> io::Result<MasterKey> {
    let mut text = Zeroizing::new(String::with_capacity(MASTER_KEY_TEXT_BYTES_MAX));
    // Past the buffer of the library, which nobody wipes.
    let stdin = std::fs::File::from(rustix::io::dup(rustix::stdio::stdin())?);
    stdin.take(MASTER_KEY_TEXT_BYTES_MAX as u64).read_to_string(&mut text)?;
    let wrong = || io::Error::other("its command does not print 32 bytes in base64");
    parse(text.trim()).ok_or_else(wrong)
}

fn of_directory(dir: &OwnedFd) -> io::Result<MasterKey> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(dir.as_fd(), FILE, flags, Mode::empty()) {
        Ok(file) => {
            let mut text = Zeroizing::new(String::new());
            std::fs::File::from(file).read_to_string(&mut text)?;
            parse(text.trim()).ok_or_else(|| {
                io::Error::other(format!("{FILE} in the gate's directory is not a key"))
            })
        }
        Err(rustix::io::Errno::NOENT) => {
            let made = Zeroizing::new(random(MASTER_KEY_BYTES).map_err(io::Error::other)?);
            let mut key = Zeroizing::new([0; MASTER_KEY_BYTES]);
            key.copy_from_slice(&made);
            write(dir, &Zeroizing::new(STANDARD.encode(*key)))?;
            Ok(key)
        }
        Err(error) => Err(error.into()),
    }
}

/// Whole and on disk before anything is sealed with it.
fn write(dir: &OwnedFd, text: &str) -> io::Result<()> {
    let part = ".master.key";
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = rustix::fs::openat(dir.as_fd(), part, flags, mode)?;
    let mut file = std::fs::File::from(file);
    writeln!(file, "{text}")?;
    file.sync_all()?;
    rustix::fs::renameat(dir, part, dir, FILE)?;
    rustix::fs::fsync(dir)?;
    Ok(())
}
