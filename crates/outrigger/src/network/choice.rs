//! What a person can say where a sandbox asks for a host, and what is done about it.
//!
//! Owns that a yes for the session, or for ever, is one for what waits now as well.

use outrigger_engine::{Egress, EgressAnswer, EgressQuestion};

use super::rule;
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;

/// A key by which a person chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostChoice {
    Once,
    Session,
    /// Also in sessions to come: it is written into the configuration.
    Rule,
    No,
}

impl HostChoice {
    /// The keys, as they are shown.
    pub(crate) const SHOWN: &str = "o once · s in this session · r always, as a rule · n no";

    /// What a person typed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text.trim().to_lowercase().as_str() {
            "o" | "once" => Self::Once,
            "s" | "session" => Self::Session,
            "r" | "rule" => Self::Rule,
            "n" | "no" => Self::No,
            _ => return None,
        })
    }

    /// Whether it stands in the session's words from now on.
    pub(crate) fn widens(self) -> bool {
        matches!(self, Self::Session | Self::Rule)
    }

    fn answer(self) -> EgressAnswer {
        match self {
            Self::Once => EgressAnswer::Once,
            Self::Session | Self::Rule => EgressAnswer::Session,
            Self::No => EgressAnswer::No,
        }
    }
}

/// Does what a person said; a line about it.
pub(crate) async fn act(
    egress: &dyn Egress,
    paths: &Paths,
    question: &EgressQuestion,
    choice: HostChoice,
) -> Outcome<String> {
    let answered = egress.answer(question, choice.answer()).await;
    answered.map_err(|error| Failure::new(Kind::SandboxUnavailable, error.to_string()))?;
    let host = &question.words;
    Ok(match choice {
        HostChoice::Once => format!("  {host} may be reached by this command"),
        HostChoice::Session => format!("  {host} may be reached in this session"),
        HostChoice::Rule => {
            let place = rule::add(paths, host)?;
            format!("  {host} may be reached, and stands in {}", place.display())
        }
        HostChoice::No => format!("  {host} stays out of reach"),
    })
}
