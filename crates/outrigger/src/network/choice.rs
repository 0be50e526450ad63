//! What a person can say where a sandbox asks for a host, and what is done about it.
//!
//! Owns that a yes for the session, or for ever, is one for what waits now as well.

use outrigger_engine::{Egress, EgressAnswer, EgressQuestion};
use outrigger_gate::{Destination, ready};
use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::rule;
use super::words::{PACKAGES, Words};
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;

/// A key by which a person chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostChoice {
    Once,
    Session,
    /// All registries of packages, of which the host is one.
    Packages,
    /// Also in sessions to come: it is written into the configuration.
    Rule,
    No,
}

impl HostChoice {
    /// The keys, as they are shown with a question.
    pub(crate) fn shown(question: &EgressQuestion) -> &'static str {
        match is_registry(&question.words) {
            true => "o once · s in this session · p all of `packages` · r always, as a rule · n no",
            false => "o once · s in this session · r always, as a rule · n no",
        }
    }

    /// What a person typed.
    pub(crate) fn parse(text: &str, question: &EgressQuestion) -> Option<Self> {
        Some(match text.trim().to_lowercase().as_str() {
            "o" | "once" => Self::Once,
            "s" | "session" => Self::Session,
            "p" | "packages" if is_registry(&question.words) => Self::Packages,
            "r" | "rule" => Self::Rule,
            "n" | "no" => Self::No,
            _ => return None,
        })
    }

    /// What stands in the session from now on.
    pub(crate) fn words(self, question: &EgressQuestion) -> Option<Words> {
        let word = match self {
            Self::Session | Self::Rule => &question.words,
            Self::Packages => PACKAGES,
            Self::Once | Self::No => return None,
        };
        Words::parse(&[word]).ok()
    }

    fn answer(self) -> EgressAnswer {
        match self {
            Self::Once => EgressAnswer::Once,
            Self::Session | Self::Packages | Self::Rule => EgressAnswer::Session,
            Self::No => EgressAnswer::No,
        }
    }
}

/// Whether `packages` would allow a place.
pub(super) fn is_registry(words: &str) -> bool {
    static REGISTRIES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let hosts = ready::packages().into_iter();
        hosts.map(|grant| Destination { host: grant.host, port: grant.port }.words()).collect()
    });
    REGISTRIES.contains(words)
}

/// Does what a person said; a line about it.
pub(crate) async fn act(
    egress: &dyn Egress,
    paths: &Paths,
    question: &EgressQuestion,
    choice: HostChoice,
) -> Outcome<String> {
    let host = &question.words;
    let words = if choice == HostChoice::Packages { PACKAGES } else { host }.to_owned();
    let answered = EgressQuestion { words, ..question.clone() };
    let answered = egress.answer(&answered, choice.answer()).await;
    answered.map_err(|error| Failure::new(Kind::SandboxUnavailable, error.to_string()))?;
    Ok(match choice {
        HostChoice::Once => format!("  {host} may be reached by this command"),
        HostChoice::Session => format!("  {host} may be reached in this session"),
        HostChoice::Packages => "  `packages` may be reached in this session".to_owned(),
        HostChoice::Rule => {
            let place = match paths.supervisor() {
                Some(supervisor) => supervisor.allow_host(host)?,
                None => rule::add(paths, host)?,
            };
            format!("  {host} may be reached, and stands in {}", place.display())
        }
        HostChoice::No => format!("  {host} stays out of reach"),
    })
}
