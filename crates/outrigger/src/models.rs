//! Opens the model that the configuration names.

use outrigger_agent::ModelSpec;
use outrigger_model::{Client, Model, RetryPolicy, ScriptedModel};
use std::path::Path;
use std::sync::Arc;

use crate::config::{ModelChoice, ModelFile, Provider, ProviderModel};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::NewModel;
use crate::paths::Paths;

mod choose;
mod keyed;
mod keys;
mod offers;
mod reach;

pub(crate) use choose::{candidates, choose, converses, of_listed, variable};
pub(crate) use keyed::keyed;
pub(crate) use offers::{ProviderSurvey, survey};

/// The provider's name of a script.
const SCRIPT: &str = "script";
/// The address of the script that is built in.
const BUNDLED: &str = "demo";
/// What the scripted model of `outrigger demo` says.
pub(crate) const DEMO_TURNS: &str = include_str!("../demo/turns.toml");

/// A model, and what a session records of it.
#[derive(Debug, Clone)]
pub(crate) struct OpenedModel {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) spec: ModelSpec,
}

/// Opens it, and a way to it through the gate, which has the key.
pub(crate) async fn open(paths: &Paths, choice: &ModelChoice) -> Outcome<OpenedModel> {
    match choice {
        ModelChoice::Unset => Err(unset()),
        ModelChoice::Bundled(text) => scripted(text, BUNDLED.to_owned()),
        ModelChoice::Script(path) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            scripted(&read(&path)?, path.display().to_string())
        }
        ModelChoice::Provider(model) => provider(paths, model).await,
    }
}

/// Nothing says which model is meant, and none was found.
pub(crate) fn unset() -> Failure {
    let keys = Provider::all().into_iter().filter_map(|provider| provider.key_env);
    let mut keys: Vec<_> = keys.collect();
    keys.dedup();
    let text = "no model is chosen, no key is set, and no server of models answers on this machine";
    Failure::new(Kind::Usage, text)
        .hint(format!("Set the key of a provider: {}.", keys.join(", ")))
        .hint("Or name a server with --base-url, or start one: Ollama, LM Studio, vLLM and llama.cpp are found by themselves. Then `outrigger init` keeps one as your choice.")
        .hint("`outrigger demo` needs neither a model nor a key.")
}

/// The model that a session was opened with.
pub(crate) async fn reopen(
    paths: &Paths,
    spec: &ModelSpec,
    config: &ModelFile,
) -> Outcome<OpenedModel> {
    let address = spec.address.clone();
    match (spec.provider.as_str(), address.as_deref()) {
        (SCRIPT, Some(BUNDLED)) => return open(paths, &ModelChoice::Bundled(DEMO_TURNS)).await,
        (SCRIPT, Some(path)) => return open(paths, &ModelChoice::Script(path.into())).await,
        _ => {}
    }
    let Some(provider) = Provider::named(&spec.provider) else {
        let text = format!("the session's provider `{}` is not known", spec.provider);
        return Err(Failure::new(Kind::Usage, text));
    };
    let same = config.provider.as_ref().is_none_or(|configured| *configured == provider);
    let model = ProviderModel {
        base_url: address,
        api_key_env: config.api_key_env.clone().filter(|_| same),
        context_tokens: Some(spec.context_tokens),
        output_tokens_max: Some(spec.output_tokens_max),
        ..config.model_of(provider, spec.name.clone())
    };
    open(paths, &ModelChoice::Provider(Box::new(model))).await
}

/// What is asked for in the place of a session's model. What is not said stays as it was: the
/// provider too, unless the name says that the model is another one's.
pub(crate) fn instead(spec: &ModelSpec, config: &ModelFile, asked: &NewModel) -> ModelFile {
    let before = Provider::named(&spec.provider);
    let has_all = |provider: &Provider| provider.model_prefixes.is_empty();
    let told = asked.model.as_deref().and_then(Provider::of_model);
    let told = told.filter(|_| spec.address.is_none() && !before.as_ref().is_some_and(has_all));
    let same = config.provider.is_none() || config.provider == before;
    let mut file = ModelFile {
        base_url: spec.address.clone().filter(|_| before.is_some()),
        provider: before,
        api_key_env: config.api_key_env.clone().filter(|_| same),
        http_hosts: config.http_hosts.clone(),
        attempts_max: config.attempts_max,
        ..ModelFile::default()
    };
    let asked = ModelFile::instead(asked);
    file.overlay(ModelFile { provider: asked.provider.clone().or(told), ..asked });
    file
}

/// A model for an engine that only ends a session, which asks none: so that no key
/// is needed to cancel.
pub(crate) fn unasked() -> Outcome<OpenedModel> {
    scripted("[[turn]]\ntext = \"The session was cancelled.\"\n", "unasked".to_owned())
}

fn read(path: &Path) -> Outcome<String> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::new(Kind::Usage, format!("the script {} can't be read: {error}", path.display()))
    })
}

fn scripted(text: &str, address: String) -> Outcome<OpenedModel> {
    let scripted = ScriptedModel::parse(text).map_err(|error| {
        let mut failure = Failure::from_error(Kind::Usage, &error);
        failure.message = format!("{address}: {}", failure.message);
        failure
    })?;
    let price = scripted.price();
    let model: Arc<dyn Model> = Arc::new(scripted);
    let spec = ModelSpec { price, ..model_spec(&*model, SCRIPT, Some(address)) };
    Ok(OpenedModel { model, spec })
}

async fn provider(paths: &Paths, model: &ProviderModel) -> Outcome<OpenedModel> {
    let (http, endpoint) = reach::reach(paths, model).await?;
    let policy = RetryPolicy::new(uuid::Uuid::new_v4().as_u64_pair().0);
    let attempts_max = model.attempts_max.unwrap_or(policy.attempts_max);
    let policy = RetryPolicy { attempts_max, ..policy };
    let client = Client::new(http, endpoint, policy).map_err(|error| reach::unusable(&error))?;
    let opened: Arc<dyn Model> = Arc::new(client);
    let spec = model_spec(&*opened, model.provider.name, model.base_url.clone());
    Ok(OpenedModel { model: opened, spec })
}

/// What a session records of its model, so that it can be resumed with the same one.
fn model_spec(model: &dyn Model, provider: &str, address: Option<String>) -> ModelSpec {
    let description = model.describe();
    ModelSpec {
        name: description.name.clone(),
        provider: provider.to_owned(),
        address,
        context_tokens: description.context_tokens,
        output_tokens_max: description.output_tokens_max,
        scripted: description.scripted,
        price: None,
    }
}
