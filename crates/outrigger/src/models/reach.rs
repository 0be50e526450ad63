//! The way to a model: through the gate, with what stands for its key.

use outrigger_model::{Endpoint, HttpClient, Key, endpoint};

use super::keys::{self, ProviderKey};
use crate::config::ProviderModel;
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::network;
use crate::paths::Paths;

/// What is wrong with the address of a model.
pub(super) fn unusable(error: &endpoint::Error) -> Failure {
    Failure::from_error(Kind::Usage, error)
        .hint("Correct --base-url, OUTRIGGER_BASE_URL or model.base_url: `https://host/path`, as the provider documents it.")
}

/// Where a model is, with what stands for its key, and the way there.
pub(super) async fn reach(paths: &Paths, model: &ProviderModel) -> Outcome<(HttpClient, Endpoint)> {
    let provider = &model.provider;
    let base_url = model.base_url.clone().unwrap_or_else(|| provider.base_url.to_owned());
    let server = endpoint::server(&base_url).map_err(|error| unusable(&error))?;
    let key = keys::of(model, &server)?;
    let mut endpoint = Endpoint {
        api: provider.wire,
        base_url,
        key: None,
        http_hosts: model.http_hosts.clone(),
        headers: Vec::new(),
        model: model.name.clone(),
        context_tokens: model.context_tokens.unwrap_or(limits::CONTEXT_TOKENS_DEFAULT),
        output_tokens_max: model.output_tokens_max.unwrap_or(limits::OUTPUT_TOKENS_DEFAULT),
        prompt_cache_key: model.base_url.is_none() && provider.prompt_cache_key,
        body: Vec::new(),
    };
    let sealed = match key {
        Some(ProviderKey::Sealed(sealed)) => Some(*sealed),
        Some(ProviderKey::Word(word)) => {
            endpoint.key = Some(word);
            None
        }
        None => None,
    };
    let (http, placeholders) =
        network::caller::call(paths, &server, sealed.into_iter().collect()).await?;
    if let Some(placeholder) = placeholders.values().next() {
        let usable = Key::new(placeholder);
        endpoint.key = Some(usable.map_err(|error| Failure::from_error(Kind::Auth, &error))?);
    }
    Ok((http, endpoint))
}
