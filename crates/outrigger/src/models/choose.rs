//! Which model is asked, where the configuration leaves something open: the provider that a
//! name or a key speaks of, its usual model, or a server on this machine that answers.
//!
//! Owns the order of all that. Must never ask anybody where what is configured is enough.

use futures_util::future::join_all;
use outrigger_model::{Api, ListedModel};

use super::offers::ServerCandidate;
use crate::config::{ModelChoice, ModelFile, Provider, ProviderModel};
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::paths::Paths;
use crate::sealed_keys;

/// What a variable of the environment holds, if it holds something.
type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What is known of a model before anybody is asked.
#[derive(Debug, PartialEq, Eq)]
enum ModelLookup {
    /// Which it is.
    Known(ModelChoice),
    /// It is the first one of the first of these that answers.
    FirstOf(Vec<ServerCandidate>),
}

/// The model that is asked. Servers are asked for their models only where none is named.
pub(crate) async fn choose(paths: &Paths, file: &ModelFile) -> Outcome<ModelChoice> {
    match lookup(file, &variable)? {
        ModelLookup::Known(choice) => Ok(choice),
        ModelLookup::FirstOf(candidates) => first_of(paths, file, &candidates).await,
    }
}

/// A variable of this process's environment.
pub(crate) fn variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    // Of a key that was handed to the gate it is known only that it was there.
    value.or_else(|| sealed_keys::sealed(name).map(|key| key.id))
}

/// The servers that may be on this machine.
pub(crate) fn local_servers(variable: Variable<'_>) -> Vec<ServerCandidate> {
    let local = Provider::all().into_iter().filter(Provider::is_local);
    let candidate = |provider: Provider| {
        let because = Some(format!("{} answers on this machine", provider.name));
        ServerCandidate { base_url: elsewhere(&provider, variable), provider, because }
    };
    local.map(candidate).collect()
}

/// The providers that can be asked: the one that is named, or else each whose key is set or
/// that has an address, and the servers that may be on this machine.
pub(crate) fn candidates(
    file: &ModelFile,
    variable: Variable<'_>,
) -> Outcome<Vec<ServerCandidate>> {
    if file.provider.is_some() || file.base_url.is_some() {
        let named = ModelFile { name: None, script: None, ..file.clone() };
        if let Some((provider, because)) = whose(&named, variable)? {
            let base_url = file.base_url.clone().or_else(|| elsewhere(&provider, variable));
            return Ok(vec![ServerCandidate { provider, base_url, because }]);
        }
    }
    let other = Provider::of_other_servers();
    let keyed = |provider: &Provider| provider.key_env.is_some_and(|key| variable(key).is_some());
    let there = |provider: &Provider| elsewhere(provider, variable).is_some();
    let is_there = |provider: &Provider| match *provider == other {
        // Its key and its own address are those of OpenAI, where it is not meant.
        true => there(provider),
        false if provider.base_url == other.base_url => keyed(provider) && !there(provider),
        false => keyed(provider),
    };
    let found = Provider::all().into_iter().filter(is_there).map(|provider| {
        let set = provider.key_env.filter(|key| variable(key).is_some());
        let because = set.or(provider.base_url_env).map(|name| format!("{name} is set"));
        ServerCandidate { base_url: elsewhere(&provider, variable), provider, because }
    });
    Ok(found.chain(local_servers(variable)).collect())
}

/// Where a provider is that is not at its own address.
pub(crate) fn elsewhere(provider: &Provider, variable: Variable<'_>) -> Option<String> {
    provider.address(&variable(provider.base_url_env?)?)
}

fn lookup(file: &ModelFile, variable: Variable<'_>) -> Outcome<ModelLookup> {
    if let Some(script) = &file.script {
        return Ok(ModelLookup::Known(ModelChoice::Script(script.clone())));
    }
    let Some((provider, because)) = whose(file, variable)? else {
        return Ok(ModelLookup::FirstOf(local_servers(variable)));
    };
    let base_url = file.base_url.clone().or_else(|| elsewhere(&provider, variable));
    // What stands in for Anthropic has Anthropic's models; another server has whatever it has.
    let usual = base_url.is_none() || provider.wire == Api::AnthropicMessages;
    let usual = provider.model.filter(|_| usual).map(str::to_owned);
    let because = because.filter(|_| file.name.is_none());
    let candidate = ServerCandidate { provider, base_url, because };
    Ok(match file.name.clone().or(usual) {
        Some(name) => {
            ModelLookup::Known(ModelChoice::Provider(Box::new(candidate.model(file, name))))
        }
        None => ModelLookup::FirstOf(vec![candidate]),
    })
}

/// Whose model it is, and why where nobody says so. Nothing if nothing speaks of anybody.
pub(super) fn whose(
    file: &ModelFile,
    variable: Variable<'_>,
) -> Outcome<Option<(Provider, Option<String>)>> {
    if let Some(provider) = &file.provider {
        return Ok(Some((provider.clone(), None)));
    }
    let other = Provider::of_other_servers();
    // Most of what is put in the place of OpenAI speaks nothing else.
    let in_place = |provider: Provider| match file.base_url.is_none() {
        true if provider.base_url == other.base_url && elsewhere(&other, variable).is_some() => {
            other.clone()
        }
        _ => provider,
    };
    let keyed = |provider: &Provider| provider.key_env.is_some_and(|key| variable(key).is_some());
    let Some(name) = &file.name else {
        if file.base_url.is_some() {
            return Ok(Some((other, None)));
        }
        let because = |name: Option<&str>| name.map(|name| format!("{name} is set"));
        if let Some(provider) = Provider::all().into_iter().find(keyed) {
            let because = because(provider.key_env);
            return Ok(Some((in_place(provider), because)));
        }
        let there = elsewhere(&other, variable);
        return Ok(there.map(|_| (other.clone(), because(other.base_url_env))));
    };
    if let Some(provider) = Provider::of_model(name) {
        return Ok(Some((in_place(provider), None)));
    }
    if file.base_url.is_some() || elsewhere(&other, variable).is_some() {
        return Ok(Some((other, None)));
    }
    // Some have models of everybody.
    let all = |provider: &Provider| provider.model_prefixes.is_empty() && *provider != other;
    let found = Provider::all().into_iter().find(|provider| all(provider) && keyed(provider));
    let names: Vec<_> = Provider::all().into_iter().map(|provider| provider.name).collect();
    found.map(|provider| Some((provider, None))).ok_or_else(|| {
        Failure::new(Kind::Usage, format!("the provider of the model `{name}` is not known"))
            .hint(format!("Say it with --provider: {}.", names.join(", ")))
            .hint("Or say where it is with --base-url.")
    })
}

/// The first model of the first server that has one; all are asked at once.
async fn first_of(
    paths: &Paths,
    file: &ModelFile,
    candidates: &[ServerCandidate],
) -> Outcome<ModelChoice> {
    let asked = candidates.iter().map(|candidate| candidate.models(paths, file));
    let mut last = None;
    for (candidate, answer) in candidates.iter().zip(join_all(asked).await) {
        match answer.map(|models| models.into_iter().find(converses)) {
            Ok(Some(model)) => {
                return Ok(ModelChoice::Provider(Box::new(of_listed(file, candidate, &model))));
            }
            Ok(None) => last = Some(empty(candidate)),
            Err(failure) => last = Some(failure),
        }
    }
    match (candidates, last) {
        ([_], Some(failure)) => {
            Err(failure
                .hint("Name the model with --model, and where its server is with --base-url."))
        }
        _ => Ok(ModelChoice::Unset),
    }
}

fn empty(candidate: &ServerCandidate) -> Failure {
    let (name, address) = (candidate.provider.name, candidate.address());
    Failure::new(Kind::ModelFailed, format!("{name} at {address} has no model"))
}

/// Whether a model is for conversations, as far as its name says.
pub(crate) fn converses(model: &ListedModel) -> bool {
    !["embed", "rerank", "whisper"].iter().any(|word| model.name.contains(word))
}

/// A model that a server has, held to what it says of it.
pub(crate) fn of_listed(
    file: &ModelFile,
    candidate: &ServerCandidate,
    listed: &ListedModel,
) -> ProviderModel {
    let model = candidate.model(file, listed.name.clone());
    let (Some(context), None) = (listed.context_tokens, file.context_tokens) else { return model };
    let usual = model.output_tokens_max.unwrap_or(limits::OUTPUT_TOKENS_DEFAULT);
    let output = usual.min(listed.output_tokens_max.unwrap_or(usual)).min(context / 4).max(1);
    ProviderModel { context_tokens: Some(context), output_tokens_max: Some(output), ..model }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// A configuration, variables that are set, and what comes of them.
    fn check(table: &[(&str, &[(&str, &str)])], expected: Expect) {
        let shown: Vec<String> = table
            .iter()
            .map(|(file, set)| {
                let file: ModelFile = toml::from_str(file).unwrap();
                let variable = |name: &str| {
                    set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
                };
                match lookup(&file, &variable) {
                    Ok(ModelLookup::Known(ModelChoice::Provider(model))) => shown(&model),
                    Ok(ModelLookup::Known(choice)) => format!("{choice:?}"),
                    Ok(ModelLookup::FirstOf(candidates)) => {
                        let all = candidates.iter();
                        let all = all.map(|it| format!("{} {}", it.provider.name, it.address()));
                        format!("ask {}", all.collect::<Vec<_>>().join(", "))
                    }
                    Err(failure) => failure.message,
                }
            })
            .collect();
        expected.assert_eq(&shown.join("\n"));
    }

    fn shown(model: &ProviderModel) -> String {
        let at = model.base_url.as_ref().map_or_else(String::new, |url| format!(" at {url}"));
        let because = model.because.as_ref().map_or_else(String::new, |it| format!(", {it}"));
        format!("{} of {}{at}{because}", model.name, model.provider.name)
    }

    #[test]
    fn what_is_named_is_taken_and_what_is_not_is_told_by_keys() {
        let (anthropic, openai) = (("ANTHROPIC_API_KEY", "k"), ("OPENAI_API_KEY", "k"));
        let router = ("OPENROUTER_API_KEY", "k");
        check(
            &[
                ("", &[]),
                ("", &[anthropic]),
                ("", &[openai, anthropic]),
                ("", &[openai]),
                ("", &[router]),
                ("name = 'gpt-5'", &[anthropic]),
                ("name = 'qwen3'", &[]),
                ("name = 'qwen3'", &[openai, anthropic]),
                ("name = 'qwen3'", &[router]),
                ("provider = 'groq'", &[]),
                ("provider = 'ollama'", &[]),
                ("provider = 'ollama'\nname = 'qwen3'", &[("OLLAMA_HOST", "gpu:9")]),
                ("script = 's'\nname = 'x'", &[]),
            ],
            expect![[r#"
                ask ollama http://127.0.0.1:11434/v1, lmstudio http://127.0.0.1:1234/v1, vllm http://127.0.0.1:8000/v1, llama.cpp http://127.0.0.1:8080/v1
                claude-sonnet-5-5 of anthropic, ANTHROPIC_API_KEY is set
                claude-sonnet-5-5 of anthropic, ANTHROPIC_API_KEY is set
                gpt-6.1-sol of openai, OPENAI_API_KEY is set
                anthropic/claude-sonnet-5.5 of openrouter, OPENROUTER_API_KEY is set
                gpt-5 of openai
                the provider of the model `qwen3` is not known
                the provider of the model `qwen3` is not known
                qwen3 of openrouter
                openai/gpt-oss-120b of groq
                ask ollama http://127.0.0.1:11434/v1
                qwen3 of ollama at http://gpu:9/v1
                Script("s")"#]],
        );
    }

    #[test]
    fn addresses_of_other_programs_are_honoured() {
        let (key, there) = (("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://gpu:8000/v1"));
        let home = ("OPENAI_BASE_URL", "https://api.openai.com/v1/");
        let gate = ("ANTHROPIC_BASE_URL", "https://gate.example");
        check(
            &[
                ("", &[key, there]),
                ("", &[there]),
                ("", &[key, home]),
                ("name = 'gpt-oss'", &[key, there]),
                ("name = 'qwen3'", &[there]),
                ("name = 'gpt-5'\nprovider = 'openai'", &[key, there]),
                ("base_url = 'http://own:1/v1'\nname = 'm'", &[key, there]),
                ("base_url = 'http://own:1/v1'", &[key, there]),
                ("", &[("ANTHROPIC_API_KEY", "k"), gate]),
                ("name = 'claude-x'", &[gate]),
                ("name = 'claude-x'", &[there]),
            ],
            expect![[r#"
                ask openai-chat http://gpu:8000/v1
                ask openai-chat http://gpu:8000/v1
                gpt-6.1-sol of openai, OPENAI_API_KEY is set
                gpt-oss of openai-chat at http://gpu:8000/v1
                qwen3 of openai-chat at http://gpu:8000/v1
                gpt-5 of openai at http://gpu:8000/v1
                m of openai-chat at http://own:1/v1
                ask openai-chat http://own:1/v1
                claude-sonnet-5-5 of anthropic at https://gate.example, ANTHROPIC_API_KEY is set
                claude-x of anthropic at https://gate.example
                claude-x of anthropic"#]],
        );
    }
}
