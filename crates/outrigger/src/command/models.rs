//! `outrigger models`: what the providers offer that can be asked.

use clap::Args;
use outrigger_agent::Price;
use outrigger_model::ListedModel;
use serde_json::{Value, json};

use crate::config::Config;
use crate::exit::Outcome;
use crate::flags::{Limits, Model, Output};
use crate::models::{self, ProviderSurvey};
use crate::paths::Paths;
use crate::show::{self, Screen, Tone};

#[derive(Debug, Args)]
pub(crate) struct Models {
    #[command(flatten)]
    pub(crate) model: Model,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Asks the provider that is named, or else all whose keys are set and the servers on this
/// machine.
pub(crate) async fn execute(paths: &Paths, asked: Models) -> Outcome<u8> {
    let config = Config::load(paths.configs(), &asked.model, Limits::default())?;
    let candidates = models::candidates(&config.model, &models::variable)?;
    let only = candidates.len() == 1;
    let mut screen = Screen::new(asked.output);
    let asking = models::survey(paths, &config.model, candidates);
    let mut surveys = screen.during("asking providers for their models", asking).await;
    if let (true, Some(survey)) = (only, surveys.pop_if(|survey| survey.models.is_err())) {
        survey.models?;
    }
    let all = surveys.iter().map(|survey| Ok((survey, offers(&config, survey)?)));
    let all: Vec<_> = all.collect::<Outcome<_>>()?;
    if screen.is_json() {
        let all: Vec<_> = all.iter().map(|(survey, offers)| object(survey, offers)).collect();
        show::line(&json!({ "type": "models", "providers": all }))?;
        return Ok(0);
    }
    for (survey, offers) in &all {
        let provider = &survey.candidate.provider;
        match &survey.models {
            Err(failure) => screen.note(Tone::Warning, format!("! {}", failure.message)),
            Ok(_) => {
                let text = format!("{}, at {}", provider.name, survey.candidate.address());
                screen.note(Tone::Strong, text);
            }
        }
        for offer in offers {
            let usual = if provider.model == Some(&*offer.0.name) { "  usual" } else { "" };
            show::row(&format!("{}  {}{usual}", provider.name, told(&offer.0, offer.1)))?;
        }
    }
    if all.is_empty() {
        screen.note(Tone::Detail, "no key is set, and no server of models answers on this machine");
        screen.note(Tone::Detail, "`outrigger init` says what was looked for");
    }
    Ok(0)
}

/// The models of a provider by their names, each with its price: as the configuration and the
/// file of prices have it, which is what counts, or else as the provider says.
fn offers(config: &Config, survey: &ProviderSurvey) -> Outcome<Vec<(ListedModel, Option<Price>)>> {
    let candidate = &survey.candidate;
    let known = config.budget.prices_of(candidate.provider.name, candidate.base_url.is_some())?;
    let mut models: Vec<_> = survey.models.as_deref().unwrap_or_default().to_vec();
    models.sort_by(|one, other| one.name.cmp(&other.name));
    let priced = models.into_iter().map(|model| {
        let price = known(&model.name).or(model.price);
        (model, price)
    });
    Ok(priced.collect())
}

/// A model in a line.
pub(super) fn told(model: &ListedModel, price: Option<Price>) -> String {
    let context =
        model.context_tokens.map_or_else(String::new, |tokens| format!("{tokens} tokens"));
    let price = price.map_or_else(String::new, |price| {
        let dollars = |micros: u64| show::amounts::money(micros.saturating_mul(1_000));
        format!("{} in, {} out for a million", dollars(price.input), dollars(price.output))
    });
    format!("{:<40}  {context:<16}  {price}", model.name).trim_end().to_owned()
}

fn object(survey: &ProviderSurvey, offers: &[(ListedModel, Option<Price>)]) -> Value {
    let candidate = &survey.candidate;
    let models = offers.iter().map(|(model, price)| {
        json!({
            "name": model.name,
            "context_tokens": model.context_tokens,
            "output_tokens_max": model.output_tokens_max,
            "micro_dollars_per_million_tokens": price,
        })
    });
    json!({
        "provider": candidate.provider.name,
        "address": candidate.address(),
        "usual": candidate.provider.model,
        "models": models.collect::<Vec<_>>(),
        "error": survey.models.as_ref().err().map(|failure| &failure.message),
    })
}
