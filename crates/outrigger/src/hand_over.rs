//! The keys in the environment, on their way to the gate.
//!
//! Owns that they leave this process before anything else is done: each is sealed by the
//! gate for the servers that it is for by what the person said, and the program begins anew
//! with that in its place. What stands in a journal sends no key anywhere.

use outrigger_gate::{SecretPlace, SecretTerms, SecretValue};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::config::{Config, ModelFile, SEALED_KEYS};
use crate::exit::{Failure, Kind, Outcome};
use crate::network::{ORGANISATION, caller};
use crate::paths::Paths;
use crate::{models, outside, sealed_keys, signed_in, telemetry};

/// By the variables in which keys are, where each is sent.
type Places = BTreeMap<String, Vec<SecretPlace>>;

/// A key, and what its variable holds beside it.
struct HandedKey {
    terms: SecretTerms,
    value: SecretValue,
    scheme: Option<String>,
}

/// Hands the keys in the environment to the gate, where there are any, and begins the program
/// anew without them. `asked`: what the command line says of the model.
pub(crate) fn hand_over(paths: &Paths, asked: ModelFile) -> Outcome {
    // What is wrong with the configuration is told by who reads it for more.
    let Ok(config) = Config::of_files(paths.configs()) else { return Ok(()) };
    let found: Vec<_> = places(&config, asked).into_iter().filter_map(key).collect();
    if found.is_empty() {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| Failure::from_error(Kind::ModelFailed, &error))?;
    let gate = caller::gate(paths)?;
    let mut command = Command::new("/proc/self/exe");
    let mut keys = sealed_keys::all();
    for HandedKey { terms, value, scheme } in found {
        let name = terms.name.clone();
        let sealed = runtime.block_on(gate.seal(None, terms, value));
        match scheme {
            Some(scheme) => command.env(&name, scheme),
            None => command.env_remove(&name),
        };
        keys.insert(name, sealed.map_err(|error| caller::without(&error))?);
    }
    let keys = serde_json::to_string(&keys);
    let keys = keys.map_err(|error| Failure::from_error(Kind::ModelFailed, &error))?;
    let mut args = std::env::args_os();
    command.arg0(args.next().unwrap_or_default()).args(args).env(SEALED_KEYS, keys);
    // It gives back only an error.
    let error = command.exec();
    let text = format!("the program can't begin anew without keys in its environment: {error}");
    Err(Failure::new(Kind::ModelFailed, text))
}

fn places(config: &Config, asked: ModelFile) -> Places {
    let mut file = config.model.clone();
    file.overlay(asked);
    let mut places = Places::new();
    let all = models::keyed(&file).into_iter().chain(outside::keyed(config));
    for (variable, place) in all.chain(signed_in::keyed(config)).chain(telemetry::keyed(config)) {
        let known: &mut Vec<SecretPlace> = places.entry(variable).or_default();
        match known.iter_mut().find(|known| known.grant == place.grant) {
            // A model's, which goes into the usual headers.
            Some(known) if known.headers.is_empty() => {}
            Some(known) => known.headers.extend(place.headers),
            None => known.push(place),
        }
    }
    places
}

/// A key that is a secret: the last word of its variable. What can't be one is told when it is
/// used.
fn key((name, places): (String, Vec<SecretPlace>)) -> Option<HandedKey> {
    let text = std::env::var(&name).ok()?;
    let (scheme, key) = sealed_keys::parts(&text);
    if sealed_keys::is_word(key) {
        return None;
    }
    let (scheme, value) = (scheme.map(str::to_owned), SecretValue::new(key.to_owned().into()));
    let organisation = ORGANISATION.to_owned();
    let terms = SecretTerms { name, organisation, places, ends_ms: None, verifies: false };
    Some(HandedKey { terms, value: value.ok()?, scheme })
}
