//! `outrigger init`: which keys and servers there are, and which model is asked from now on.
//!
//! Owns the `[model]` of a person's own configuration file. Must never write one that is there
//! unless it is told to, nor anything but that table, nor a key.

use clap::Args;
use outrigger_model::ListedModel;
use serde_json::json;
use std::fs;
use std::path::Path;

use super::finish::write;
use crate::config::{self, Config, ModelFile, ProviderModel};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::{Limits, Model, Output};
use crate::limits;
use crate::models::{self, ProviderSurvey};
use crate::paths::Paths;
use crate::show::{self, Screen, Tone};

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Write it without a question: the model that is named, or the first that was found.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Also where the file says already which model is asked: its `[model]` is replaced.
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) model: Model,
    #[command(flatten)]
    pub(crate) output: Output,
}

pub(crate) async fn execute(paths: &Paths, init: Init) -> Outcome<u8> {
    // What the files say of the model is what may be replaced: only flags choose here.
    Config::load(paths.configs(), &init.model, Limits::default())?;
    let asked = ModelFile::flags(&init.model);
    let candidates = models::candidates(&asked, &models::variable)?;
    let mut screen = Screen::new(init.output);
    let asking = models::survey(paths, &asked, candidates);
    let surveys = screen.during("looking for keys and servers", asking).await;
    surveys.iter().for_each(|survey| tell(&screen, survey));
    let mut choices = choices(&asked, &surveys);
    if choices.is_empty() {
        models::open(paths, &models::choose(paths, &asked).await?).await?;
        let text = "no provider that was found has a model";
        return Err(Failure::new(Kind::NotFound, text).hint("Name one with --model."));
    }
    let place = paths.config_places().last().expect("there is always one");
    let before = before(place)?;
    let can_ask = screen.can_ask() && !init.yes;
    let chosen = if can_ask && choices.len() > 1 { which(&screen, &choices).await? } else { 0 };
    let model = choices.swap_remove(chosen);
    let table = table(&model);
    let taken = before.as_ref().is_some_and(|text| model_table(text).is_some());
    if taken && !init.replace {
        let text = format!("{} says already which model is asked", place.display());
        return Err(Failure::new(Kind::Conflict, text).hint(format!(
            "`outrigger init --replace` puts {} of {} in its place.",
            model.name, model.provider.name
        )));
    }
    if can_ask {
        table.lines().for_each(|line| screen.note(Tone::Plain, format!("    {line}")));
    }
    let question = format!("Write this to {}?", place.display());
    let written = init.yes || can_ask && screen.ask(&question).await?;
    if written {
        let text = with_model(before.as_deref().unwrap_or_default(), &table);
        config::parse::<config::File>(&text, place, "Nothing was written.")?;
        write(place, text.as_bytes()).map_err(|error| {
            Failure::new(Kind::Storage, format!("{}: {error}", place.display()))
        })?;
        screen.note(Tone::Good, format!("● written to {}", place.display()));
        screen.note(Tone::Detail, "`outrigger run TASK` asks that model from now on");
    } else {
        let text =
            format!("nothing was written; `outrigger init --yes` writes to {}", place.display());
        screen.note(Tone::Detail, text);
        if !screen.is_json() {
            show::out(table.trim_end())?;
        }
    }
    if screen.is_json() {
        let found: Vec<_> = surveys.iter().map(object).collect();
        show::line(&json!({
            "type": "init",
            "found": found,
            "provider": model.provider.name,
            "model": model.name,
            "base_url": model.base_url,
            "file": place.display().to_string(),
            "written": written,
        }))?;
    }
    Ok(0)
}

/// Says what was found of a provider.
fn tell(screen: &Screen, survey: &ProviderSurvey) {
    let candidate = &survey.candidate;
    let why = candidate.because.as_deref().unwrap_or("it is named");
    match &survey.models {
        Ok(models) => {
            let models = show::count(models.len() as u64, "model");
            let at = candidate.address();
            screen.note(
                Tone::Good,
                format!("✓ {}: {why}; {models} at {at}", candidate.provider.name),
            );
        }
        Err(failure) => {
            screen.note(
                Tone::Warning,
                format!("– {}: {why}; {}", candidate.provider.name, failure.message),
            );
        }
    }
}

fn object(survey: &ProviderSurvey) -> serde_json::Value {
    json!({
        "provider": survey.candidate.provider.name,
        "because": survey.candidate.because,
        "address": survey.candidate.address(),
        "models": survey.models.as_ref().map(Vec::len).ok(),
        "error": survey.models.as_ref().err().map(|failure| &failure.message),
    })
}

/// What can be asked, the best first: the model that is named, the usual ones of providers, and
/// those of servers.
fn choices(asked: &ModelFile, surveys: &[ProviderSurvey]) -> Vec<ProviderModel> {
    let of = |survey: &ProviderSurvey| -> Vec<ProviderModel> {
        let candidate = &survey.candidate;
        let listed = survey.models.as_deref().unwrap_or_default();
        let find = |name: &str| listed.iter().find(|model| model.name == name);
        let named = |name: &str| match find(name) {
            Some(model) => models::of_listed(asked, candidate, model),
            None => candidate.model(asked, name.to_owned()),
        };
        match (asked.name.as_deref(), candidate.provider.model) {
            (Some(name), _) => vec![named(name)],
            (None, Some(usual)) if candidate.base_url.is_none() => vec![named(usual)],
            _ => {
                let fit = listed.iter().filter(|model: &&ListedModel| models::converses(model));
                let fit = fit.take(limits::MODELS_ASKED_MAX);
                fit.map(|model| models::of_listed(asked, candidate, model)).collect()
            }
        }
    };
    surveys.iter().flat_map(of).collect()
}

async fn which(screen: &Screen, choices: &[ProviderModel]) -> Outcome<usize> {
    let shown: Vec<_> =
        choices.iter().map(|model| format!("{} of {}", model.name, model.provider.name)).collect();
    screen.ask_which("Which model is to be asked?", &shown).await?.ok_or_else(|| {
        Failure::new(Kind::Usage, "that is none of the numbers").hint("Nothing was written.")
    })
}

/// The file as it is; nothing if there is none.
fn before(place: &Path) -> Outcome<Option<String>> {
    match fs::read_to_string(place) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::new(Kind::Storage, format!("{}: {error}", place.display()))),
    }
}

/// What is written down of a model.
fn table(model: &ProviderModel) -> String {
    let text = |text: &str| toml::Value::from(text).to_string();
    let mut lines = vec![
        "[model]".to_owned(),
        format!("provider = {}", text(model.provider.name)),
        format!("name = {}", text(&model.name)),
    ];
    lines.extend(model.base_url.as_deref().map(|url| format!("base_url = {}", text(url))));
    let numbers = [
        ("context_tokens", model.context_tokens, model.provider.context_tokens),
        ("output_tokens_max", model.output_tokens_max, model.provider.output_tokens_max),
    ];
    let said = numbers.into_iter().filter(|(_, own, usual)| own != usual);
    lines.extend(said.filter_map(|(name, own, _)| Some(format!("{name} = {}", own?))));
    lines.join("\n") + "\n"
}

/// Where a file says which model is asked: from the header of the table to the next one.
fn model_table(text: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    let mut begin = None;
    for line in text.split_inclusive('\n') {
        let header = line.trim_start().starts_with('[');
        match begin {
            None if line.split('#').next().map(str::trim) == Some("[model]") => begin = Some(at),
            Some(begin) if header => return Some((begin, at)),
            _ => {}
        }
        at += line.len();
    }
    Some((begin?, at))
}

/// A file with another table of the model, and all else as it was.
fn with_model(text: &str, table: &str) -> String {
    match model_table(text) {
        Some((begin, end)) => {
            let rest = &text[end..];
            let gap = if rest.is_empty() { "" } else { "\n" };
            format!("{}{table}{gap}{rest}", &text[..begin])
        }
        None if text.trim().is_empty() => table.to_owned(),
        None => format!("{}\n\n{table}", text.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&with_model(text, "[model]\nname = \"new\"\n"));
    }

    #[test]
    fn only_the_table_of_the_model_changes() {
        check(
            "",
            expect![[r#"
            [model]
            name = "new"
        "#]],
        );
        check(
            "# mine\n[limits]\nsteps_max = 9\n",
            expect![[r#"
            # mine
            [limits]
            steps_max = 9

            [model]
            name = "new"
        "#]],
        );
        check(
            "[model] # mine\nname = \"old\"\n\n[limits]\nsteps_max = 9\n",
            expect![[r#"
            [model]
            name = "new"

            [limits]
            steps_max = 9
        "#]],
        );
    }
}
