//! The keys of this process, as the gate has sealed them for it.
//!
//! Owns which is in which variable, and for whom. None is here in clear.

use outrigger_gate::SealedSecret;
use outrigger_model::endpoint::ServerAddress;
use std::collections::BTreeMap;

use crate::config::SEALED_KEYS;
use crate::limits;
use crate::network::caller;

/// All of them, by the variables that they were in.
pub(crate) fn all() -> BTreeMap<String, SealedSecret> {
    let text = std::env::var(SEALED_KEYS).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// What was in a variable.
pub(crate) fn sealed(variable: &str) -> Option<SealedSecret> {
    all().remove(variable)
}

/// Whether a key is sent to a server.
pub(crate) fn is_for(key: &SealedSecret, server: &ServerAddress) -> bool {
    key.terms.places.iter().any(|place| place.grant == caller::grant(server))
}

/// What a variable holds: the key is its last word, and stays what it is when the rest of a
/// header stands before it (`Basic`).
pub(crate) fn parts(text: &str) -> (Option<&str>, &str) {
    match text.trim().rsplit_once(' ') {
        Some((scheme, key)) => (Some(scheme.trim_end()), key),
        None => (None, text.trim()),
    }
}

/// Whether a text is too short to be anybody's secret, as what servers without keys are given.
pub(crate) fn is_word(text: &str) -> bool {
    text.trim().len() < limits::KEY_CHARS_MIN
}
