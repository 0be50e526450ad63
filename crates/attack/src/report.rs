//! What became of all attacks, for people and for programs.
//!
//! Owns the verdicts and their two forms.

use std::fmt;

use serde::Serialize;

/// How an attempt went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptVerdict {
    /// As expected: the sandbox held.
    Held,
    /// As expected, and a weakness that SECURITY.md names.
    Documented,
    /// Not as expected.
    Unexpected,
    /// There was nothing to try it on.
    NotApplicable,
}

impl fmt::Display for AttemptVerdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Held => "held",
            Self::Documented => "documented",
            Self::Unexpected => "UNEXPECTED",
            Self::NotApplicable => "not applicable",
        })
    }
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttemptReport {
    /// Number of the attack.
    pub number: u8,
    /// Name of the attack.
    pub name: String,
    /// The attempt.
    pub attempt: String,
    /// What was expected.
    pub expected: String,
    /// What was seen.
    pub seen: String,
    /// What is worth knowing beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// How it went.
    pub verdict: AttemptVerdict,
}

/// All attempts on a backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TargetReport {
    /// The backend and its isolation.
    pub backend: String,
    /// In the order of the table.
    pub attempts: Vec<AttemptReport>,
    /// How long all of it took, in milliseconds.
    pub wall_ms: u64,
}

impl TargetReport {
    /// Attempts that did not go as expected.
    pub fn unexpected(&self) -> impl Iterator<Item = &AttemptReport> {
        self.attempts.iter().filter(|judged| judged.verdict == AttemptVerdict::Unexpected)
    }

    fn count(&self, verdict: AttemptVerdict) -> usize {
        self.attempts.iter().filter(|judged| judged.verdict == verdict).count()
    }
}

/// A line for every attack, and one below it for every attempt that a person should see.
impl fmt::Display for TargetReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "backend {}", self.backend)?;
        for row in self.attempts.chunk_by(|one, next| one.number == next.number) {
            let worst =
                [AttemptVerdict::Unexpected, AttemptVerdict::Documented, AttemptVerdict::Held];
            let has =
                |verdict: &AttemptVerdict| row.iter().any(|judged| judged.verdict == *verdict);
            let verdict = worst.into_iter().find(has).unwrap_or(AttemptVerdict::NotApplicable);
            let (number, name) = (row[0].number, &row[0].name);
            writeln!(formatter, "{number:>3} {name}: {} tried: {verdict}", row.len())?;
            // A few attempts are shown each; of a long table only what stands out.
            let few = row.len() <= 4;
            for judged in row {
                let plain = judged.verdict == AttemptVerdict::Held && judged.note.is_none();
                if few || !plain {
                    let AttemptReport { attempt, expected, seen, verdict, note, .. } = judged;
                    write!(
                        formatter,
                        "      {attempt}: expected {expected}; seen {seen}: {verdict}"
                    )?;
                    match note {
                        Some(note) => writeln!(formatter, " ({note})")?,
                        None => writeln!(formatter)?,
                    }
                }
            }
        }
        writeln!(
            formatter,
            "{}: {} attempts: {} held, {} documented, {} not applicable, {} unexpected, in {:.1} s",
            self.backend,
            self.attempts.len(),
            self.count(AttemptVerdict::Held),
            self.count(AttemptVerdict::Documented),
            self.count(AttemptVerdict::NotApplicable),
            self.count(AttemptVerdict::Unexpected),
            self.wall_ms as f64 / 1_000.0
        )
    }
}
