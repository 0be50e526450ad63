//! The keys in the environment, on their way to the gate.
//!
//! Owns that they leave this process before anything else is done: each is sealed by the
//! gate for the servers that it is for by what the person said, and the program begins anew
//! with that in its place. What stands in a journal sends no key anywhere.

use outrigger_gate::{SecretPlace, SecretTerms, SecretValue};
use outrigger_model::endpoint;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::choose::{elsewhere, variable, whose};
use super::keys;
use crate::config::{Config, ModelFile, Provider, SEALED_KEYS};
use crate::exit::{Failure, Kind, Outcome};
use crate::network::{ORGANISATION, caller};
use crate::paths::Paths;

/// Hands the keys in the environment to the gate, where there are any, and begins the program
/// anew without them. `asked`: what the command line says of the model.
pub(crate) fn hand_over(paths: &Paths, asked: ModelFile) -> Outcome {
    // What is wrong with the configuration is told by who reads it for more.
    let Ok(config) = Config::of_files(paths.configs()) else { return Ok(()) };
    let mut file = config.model;
    file.overlay(asked);
    if file.script.is_some() {
        return Ok(());
    }
    let found: Vec<_> = variables(&file).into_iter().filter_map(|name| key(&name, &file)).collect();
    if found.is_empty() {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| Failure::from_error(Kind::ModelFailed, &error))?;
    let gate = caller::gate(paths)?;
    let mut command = Command::new("/proc/self/exe");
    let mut keys = keys::all();
    for (terms, value) in found {
        let name = terms.name.clone();
        let sealed = runtime.block_on(gate.seal(None, terms, value));
        command.env_remove(&name);
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

/// The variables in which keys are looked for.
fn variables(file: &ModelFile) -> Vec<String> {
    let usual = Provider::all().into_iter().filter_map(|it| it.key_env.map(str::to_owned));
    let mut names: Vec<_> = usual.chain(file.api_key_env.clone()).collect();
    names.sort();
    names.dedup();
    names
}

/// A key that is a secret, with where it is sent. What can't be one is told when it is used.
fn key(name: &str, file: &ModelFile) -> Option<(SecretTerms, SecretValue)> {
    let text = std::env::var(name).ok().filter(|text| !keys::is_word(text))?;
    let value = SecretValue::new(text.trim().to_owned().into()).ok()?;
    let servers = addresses(name, file).into_iter().filter_map(|url| endpoint::server(&url).ok());
    let mut places: Vec<SecretPlace> = Vec::new();
    for server in servers {
        let grant = caller::grant(&server);
        if places.iter().all(|place| place.grant != grant) {
            places.push(SecretPlace::new(grant));
        }
    }
    let (name, organisation) = (name.to_owned(), ORGANISATION.to_owned());
    Some((SecretTerms { name, organisation, places, ends_ms: None }, value))
}

/// Where the key of a variable is sent: to its providers, where the environment says that they
/// are, and where the person says that the model is.
fn addresses(name: &str, file: &ModelFile) -> Vec<String> {
    let asked = whose(file, &variable).ok().flatten().map(|(provider, _)| provider);
    let is_its = |provider: &Provider| {
        let is_asked = asked.as_ref().map_or(provider.is_local(), |asked| asked == provider);
        let own = file.api_key_env.as_deref().filter(|_| is_asked);
        own.or(provider.key_env) == Some(name)
    };
    let mut urls = Vec::new();
    for provider in Provider::all().iter().filter(|provider| is_its(provider)) {
        urls.push(provider.base_url.to_owned());
        urls.extend(elsewhere(provider, &variable));
    }
    // Of a session it may be any provider's, as the session says.
    let said = file.provider.is_none() || asked.as_ref().is_some_and(is_its);
    let base_url = file.base_url.clone().or_else(|| variable("OUTRIGGER_BASE_URL"));
    urls.extend(base_url.filter(|_| said));
    urls
}
