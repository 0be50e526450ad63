//! What was seen of an attempt.

/// What was seen of one attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observation {
    /// The attempt, within its probe.
    pub name: String,
    /// What came of it, in the words that the table expects.
    pub saw: String,
    /// What is worth knowing beside it, figures above all. Never judged.
    pub note: Option<String>,
    /// Why the backend has nothing to attack here: it declares that it lacks it.
    pub lacks: Option<String>,
}

/// One attempt and what came of it.
pub(crate) fn seen(name: impl Into<String>, saw: impl Into<String>) -> Observation {
    Observation { name: name.into(), saw: saw.into(), ..Observation::default() }
}

/// One attempt, what came of it, and something worth knowing.
pub(crate) fn noted(name: &str, saw: impl Into<String>, note: String) -> Observation {
    Observation { note: Some(note), ..seen(name, saw) }
}

/// What the backend declares not to have.
pub(crate) fn lacks(name: &str, what: &str) -> Vec<Observation> {
    let lacks = Some(format!("the backend declares {what}"));
    vec![Observation { lacks, ..seen(name, "") }]
}

/// All that was seen, or why nothing could be.
pub(crate) type ProbeResult = Result<Vec<Observation>, String>;
