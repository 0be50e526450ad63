//! Opens the model that the configuration names.

use outrigger_agent::ModelSpec;
use outrigger_model::{Api, Client, Endpoint, Key, Model, RetryPolicy, ScriptedModel, limits};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{ModelChoice, ModelFile, Provider};
use crate::exit::{Failure, Kind, Outcome};
use crate::limits as own;

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

/// Opens it. Keys come from the environment, and go nowhere but into the client.
pub(crate) fn open(choice: &ModelChoice) -> Outcome<OpenedModel> {
    match choice {
        ModelChoice::Unset => Err(Failure::new(Kind::Usage, "no model is chosen")
            .hint("Name one with --model, OUTRIGGER_MODEL or model.name in the configuration, for example `--model claude-sonnet-4-5` with ANTHROPIC_API_KEY set.")
            .hint("`outrigger demo` needs neither a model nor a key.")),
        ModelChoice::Bundled(text) => scripted(text, BUNDLED.to_owned()),
        ModelChoice::Script(path) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            scripted(&read(&path)?, path.display().to_string())
        }
        ModelChoice::Provider { .. } => provider(choice),
    }
}

/// The model that a session was opened with.
pub(crate) fn reopen(spec: &ModelSpec, config: &ModelFile) -> Outcome<OpenedModel> {
    let address = spec.address.clone();
    match (spec.provider.as_str(), address.as_deref()) {
        (SCRIPT, Some(BUNDLED)) => return open(&ModelChoice::Bundled(DEMO_TURNS)),
        (SCRIPT, Some(path)) => return open(&ModelChoice::Script(path.into())),
        _ => {}
    }
    let Some(provider) = Provider::parse(&spec.provider) else {
        let text = format!("the session's provider `{}` is not known", spec.provider);
        return Err(Failure::new(Kind::Usage, text));
    };
    let same = config.provider.is_none_or(|configured| configured == provider);
    let api_key_env = config.api_key_env.clone().filter(|_| same);
    open(&ModelChoice::Provider {
        provider,
        name: spec.name.clone(),
        base_url: address,
        api_key_env,
        http_hosts: config.http_hosts.clone().unwrap_or_default(),
        context_tokens: Some(spec.context_tokens),
        output_tokens_max: Some(spec.output_tokens_max),
        attempts_max: config.attempts(),
    })
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

fn provider(choice: &ModelChoice) -> Outcome<OpenedModel> {
    let ModelChoice::Provider {
        provider,
        name,
        base_url,
        api_key_env,
        http_hosts,
        context_tokens,
        output_tokens_max,
        attempts_max,
    } = choice
    else {
        return Err(Failure::new(Kind::Usage, "no provider is chosen"));
    };
    let (api, address) = match provider {
        Provider::Anthropic => (Api::AnthropicMessages, "https://api.anthropic.com"),
        Provider::Openai => (Api::OpenAiResponses, "https://api.openai.com/v1"),
        Provider::OpenaiChat => (Api::OpenAiChat, "https://api.openai.com/v1"),
    };
    let endpoint = Endpoint {
        api,
        base_url: base_url.clone().unwrap_or_else(|| address.to_owned()),
        key: key(*provider, base_url.is_some(), api_key_env.as_deref())?,
        http_hosts: http_hosts.clone(),
        headers: Vec::new(),
        model: name.clone(),
        context_tokens: context_tokens.unwrap_or(own::CONTEXT_TOKENS_DEFAULT),
        output_tokens_max: output_tokens_max.unwrap_or(own::OUTPUT_TOKENS_DEFAULT),
        prompt_cache_key: base_url.is_none(),
        body: Vec::new(),
    };
    let unusable = |error: &(dyn std::error::Error + 'static)| {
        Failure::from_error(Kind::Usage, error)
            .hint("Correct --base-url, OUTRIGGER_BASE_URL or model.base_url: `https://host/path`, as the provider documents it.")
    };
    let http = outrigger_model::http(Duration::from_millis(limits::CONNECT_MS))
        .map_err(|error| unusable(&error))?;
    let policy = RetryPolicy::new(uuid::Uuid::new_v4().as_u64_pair().0);
    let attempts_max = attempts_max.unwrap_or(policy.attempts_max);
    let policy = RetryPolicy { attempts_max, ..policy };
    let client = Client::new(http, endpoint, policy).map_err(|error| unusable(&error))?;
    let model: Arc<dyn Model> = Arc::new(client);
    let spec = model_spec(&*model, provider.as_str(), base_url.clone());
    Ok(OpenedModel { model, spec })
}

/// The key, from the environment variable that the configuration or the provider names.
fn key(provider: Provider, elsewhere: bool, named: Option<&str>) -> Outcome<Option<Key>> {
    let variable = named.unwrap_or(provider.key_variable());
    match std::env::var(variable) {
        Ok(text) if !text.is_empty() => Key::new(&text).map(Some).map_err(|error| {
            Failure::new(Kind::Auth, format!("{variable} holds no usable key: {error}"))
        }),
        // A server of one's own often wants none.
        _ if elsewhere && named.is_none() => Ok(None),
        _ => Err(Failure::new(
            Kind::Auth,
            format!("the environment variable {variable} holds no key"),
        )
        .hint(format!(
            "Set {variable}, or name another variable with model.api_key_env in the configuration."
        ))),
    }
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
