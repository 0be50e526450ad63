//! `[telemetry]`: where `outrigger serve` sends its traces.
//!
//! A stronger file's table takes the place of a weaker one's whole, so that no key reaches a
//! collector that it was not meant for. The variables of OpenTelemetry win over both.

use outrigger_model::endpoint::{self, ServerAddress};
use serde::Deserialize;
use std::collections::BTreeMap;

use crate::exit::{Failure, Kind, Outcome};

/// What stands behind the base of a collector's address, for traces.
const TRACES: &str = "/v1/traces";
/// Variables of the specification of OpenTelemetry: a base, and an address for traces as it is.
const BASE_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_VARIABLE: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

/// Where `outrigger serve` sends traces of its sessions, by OTLP over HTTP in JSON
/// (`docs/how-to/observe.md`). Changes hold from the next start on.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TelemetryFile {
    /// The collector; `/v1/traces` comes behind it. If absent, traces go nowhere. Instead:
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`, or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` for the whole address.
    #[cfg_attr(test, schemars(example = &"http://127.0.0.1:4318"))]
    pub(crate) endpoint: Option<String>,
    /// Headers of every request, each with the environment variable that holds its value. Values
    /// themselves never stand in a file of ours.
    #[cfg_attr(test, schemars(example = BTreeMap::from([("authorization", "OTLP_AUTHORIZATION")])))]
    pub(crate) headers_env: BTreeMap<String, String>,
    /// Whether traces have what people, models and tools said: messages, arguments of calls, their
    /// output. Otherwise they have names, times, counts and kinds of errors alone.
    pub(crate) content: bool,
}

/// Where traces go.
#[derive(Debug, Clone)]
pub(crate) struct Collector {
    /// The whole address.
    pub(crate) url: String,
    pub(crate) server: ServerAddress,
    pub(crate) headers_env: BTreeMap<String, String>,
    pub(crate) content: bool,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

impl TelemetryFile {
    /// Takes in what a stronger file says, if it says anything.
    pub(super) fn absorb(&mut self, above: Self) {
        if above.endpoint.is_some() || !above.headers_env.is_empty() || above.content {
            *self = above;
        }
    }

    /// The collector, if one is named.
    pub(crate) fn collector(&self) -> Outcome<Option<Collector>> {
        self.with(variable)
    }

    fn with(&self, variable: impl Fn(&str) -> Option<String>) -> Outcome<Option<Collector>> {
        let base = |base: String| format!("{}{TRACES}", base.trim().trim_end_matches('/'));
        let named = variable(TRACES_VARIABLE).map(|url| (url.trim().to_owned(), TRACES_VARIABLE));
        let named = named.or_else(|| variable(BASE_VARIABLE).map(|it| (base(it), BASE_VARIABLE)));
        let own = self.endpoint.clone().map(|it| (base(it), "telemetry.endpoint"));
        let Some((url, said_in)) = named.or(own) else { return Ok(None) };
        let wrong = |what: &str| {
            Failure::new(Kind::Usage, format!("`{said_in}`: {what}"))
                .hint("docs/how-to/observe.md shows how a collector is named.")
        };
        let server = endpoint::server(&url).map_err(|error| wrong(&error.to_string()))?;
        if !self.headers_env.is_empty() && !server.is_tls && !endpoint::is_here(&server.host) {
            return Err(wrong(
                "the headers with keys would be there to read on the way: name it with https",
            ));
        }
        if let Some((name, unset)) = self.headers_env.iter().find(|(_, it)| variable(it).is_none())
        {
            let what = format!("its header `{name}` is in the variable {unset}, which is not set");
            return Err(wrong(&what));
        }
        let (headers_env, content) = (self.headers_env.clone(), self.content);
        Ok(Some(Collector { url, server, headers_env, content }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_named_by_a_file_or_by_the_usual_variables() {
        let file = |text: &str| toml::from_str::<TelemetryFile>(text).unwrap();
        let at = |text: &str, set: &[(&str, &str)]| {
            let variable = |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            let found = file(text).with(variable).map_err(|failure| failure.message);
            found.map(|collector| collector.map(|it| it.url))
        };
        let own = "endpoint = 'http://127.0.0.1:4318/'";
        assert_eq!(at("", &[]), Ok(None));
        assert_eq!(at(own, &[]), Ok(Some("http://127.0.0.1:4318/v1/traces".to_owned())));
        let base = (BASE_VARIABLE, "https://c.example/otlp");
        assert_eq!(at(own, &[base]), Ok(Some("https://c.example/otlp/v1/traces".to_owned())));
        let whole = (TRACES_VARIABLE, "https://t.example/x");
        assert_eq!(at(own, &[base, whole]), Ok(Some("https://t.example/x".to_owned())));
        let keyed = "endpoint = 'http://c.example'\nheaders_env = { a = 'A' }";
        assert!(at(keyed, &[]).unwrap_err().contains("telemetry.endpoint"));
        let unset = at("endpoint = 'https://c.example'\nheaders_env = { a = 'A' }", &[]);
        assert!(unset.unwrap_err().contains("the variable A, which is not set"));
        assert!(at("", &[(BASE_VARIABLE, "c.example")]).unwrap_err().contains(BASE_VARIABLE));
        let mut weak = file("endpoint = 'https://a'\nheaders_env = { a = 'A' }\ncontent = true");
        weak.absorb(file("endpoint = 'https://b'"));
        assert!(weak.headers_env.is_empty() && !weak.content);
    }
}
