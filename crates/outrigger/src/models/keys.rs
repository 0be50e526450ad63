//! The keys of providers: which is sent to a server.

use outrigger_gate::SealedSecret;
use outrigger_model::Key;
use outrigger_model::endpoint::ServerAddress;

use crate::config::ProviderModel;
use crate::exit::{Failure, Kind, Outcome};
use crate::sealed_keys::{is_for, is_word, sealed};

/// What is sent as the key of a provider.
pub(super) enum ProviderKey {
    /// What the gate puts the key in the place of.
    Sealed(Box<SealedSecret>),
    /// A word that opens nothing.
    Word(Key),
}

/// The key of a model, from the variable that the configuration or the provider names.
pub(super) fn of(model: &ProviderModel, server: &ServerAddress) -> Outcome<Option<ProviderKey>> {
    let named = model.api_key_env.as_deref();
    let Some(variable) = named.or(model.provider.key_env) else { return Ok(None) };
    let failed = |text: String| Failure::new(Kind::Auth, text);
    // A server of one's own often wants none.
    let is_needed = model.base_url.is_none() || named.is_some();
    if let Some(key) = sealed(variable) {
        return match is_for(&key, server) {
            true => Ok(Some(ProviderKey::Sealed(Box::new(key)))),
            false if is_needed || server.is_tls => {
                let text = format!("the key in {variable} is not sent to {}", server.host);
                Err(failed(text).hint("Say where the model is when the program starts: with OUTRIGGER_BASE_URL, or with model.base_url in the configuration."))
            }
            false => Ok(None),
        };
    }
    match std::env::var(variable) {
        Ok(text) if !text.is_empty() => match Key::new(&text) {
            Ok(word) if is_word(&text) => Ok(Some(ProviderKey::Word(word))),
            Ok(_) => Err(failed(format!("the key in {variable} was not handed to the gate"))),
            Err(error) => Err(failed(format!("{variable} holds no usable key: {error}"))),
        },
        _ if !is_needed => Ok(None),
        _ => Err(failed(format!("the environment variable {variable} holds no key")).hint(format!(
            "Set {variable}, or name another variable with model.api_key_env in the configuration."
        ))),
    }
}
