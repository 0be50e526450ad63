//! Where the keys of models are sent.
//!
//! Owns that it is what the person says: the providers' own addresses, the environment, the
//! configuration and the command line.

use outrigger_gate::SecretPlace;
use outrigger_model::endpoint;

use super::choose::{elsewhere, variable, whose};
use crate::config::{ModelFile, Provider};
use crate::network::caller;

/// The variables in which keys of models are looked for, each with the places that its key is
/// sent to.
pub(crate) fn keyed(file: &ModelFile) -> Vec<(String, SecretPlace)> {
    if file.script.is_some() {
        return Vec::new();
    }
    let place = |url: &String| Some(SecretPlace::new(caller::grant(&endpoint::server(url).ok()?)));
    let of = |name: String| {
        let places: Vec<_> = addresses(&name, file).iter().filter_map(place).collect();
        places.into_iter().map(move |place| (name.clone(), place))
    };
    variables(file).into_iter().flat_map(of).collect()
}

/// The variables in which keys are looked for.
fn variables(file: &ModelFile) -> Vec<String> {
    let usual = Provider::all().into_iter().filter_map(|it| it.key_env.map(str::to_owned));
    let mut names: Vec<_> = usual.chain(file.api_key_env.clone()).collect();
    names.sort();
    names.dedup();
    names
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
