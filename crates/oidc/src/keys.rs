//! The keys by which a provider signs.
//!
//! Owns which of them a token may be signed by. What is no public key for signatures is none.

use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header};
use serde_json::Value;

use crate::limits;

/// How tokens may be signed: by public keys alone. A token that says `none`, or that is
/// authenticated by a shared secret, is refused whatever it says further.
pub(crate) const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// The keys of a provider.
#[derive(Debug, Clone, Default)]
pub(crate) struct IssuerKeys(Vec<Jwk>);

impl IssuerKeys {
    /// Those of a set (RFC 7517). One that can't be read is left out: it may be of a kind that came
    /// later.
    pub(crate) fn read(set: &Value) -> Self {
        let keys = set.get("keys").and_then(Value::as_array).into_iter().flatten();
        let keys = keys.take(limits::KEYS_MAX);
        Self(
            keys.filter_map(|key| serde_json::from_value(key.clone()).ok()).filter(signs).collect(),
        )
    }

    /// The key that a token says that it is signed by. `None`: it is not known (yet).
    pub(crate) fn key(&self, header: &Header) -> Option<DecodingKey> {
        let named = |key: &&Jwk| match (&header.kid, &key.common.key_id) {
            (Some(wanted), Some(id)) => wanted == id,
            (Some(_), None) => false,
            (None, _) => true,
        };
        let mut fitting = self.0.iter().filter(named).filter(|key| fits(key, header.alg));
        let key = fitting.next()?;
        // Without a name it has to be the only one.
        if header.kid.is_none() && fitting.next().is_some() {
            return None;
        }
        DecodingKey::from_jwk(key).ok()
    }
}

/// Whether a key is a public one, and for signatures.
fn signs(key: &Jwk) -> bool {
    let is_public = matches!(
        key.algorithm,
        AlgorithmParameters::RSA(_)
            | AlgorithmParameters::EllipticCurve(_)
            | AlgorithmParameters::OctetKeyPair(_)
    );
    is_public && !matches!(key.common.public_key_use, Some(PublicKeyUse::Encryption))
}

/// Whether a key may sign so: also where the key itself says how it does.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let of_kind =
        DecodingKey::from_jwk(key).is_ok_and(|key| key.family().algorithms().contains(&algorithm));
    let said = key.common.key_algorithm.as_ref();
    // The library keeps to itself which is which; both are called as the standard does.
    of_kind && said.is_none_or(|said| format!("{said:?}") == format!("{algorithm:?}"))
}
