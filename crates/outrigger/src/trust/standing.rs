//! How a file of a repository stands: as a person said of these very contents, if one did.

use outrigger_agent::Message;
use std::path::Path;

use super::record::{self, TrustAnswer, TrustDecision};
use crate::exit::Outcome;
use crate::paths::Paths;
use crate::project_file::{ProjectFile, Purpose};
use crate::session;

/// How a file stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Trusted,
    /// A person said no, or not now.
    Declined,
    /// Other contents of it were trusted.
    Changed,
    /// Nobody was asked about it.
    New,
    /// It is longer than what anybody is told of it.
    Oversized,
}

impl Standing {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Declined => "declined",
            Self::Changed => "changed",
            Self::New => "new",
            Self::Oversized => "too long",
        }
    }

    /// Whether an answer of a person is wanted.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::New | Self::Changed)
    }
}

/// A file, and how it stands.
#[derive(Debug, Clone)]
pub(crate) struct JudgedFile {
    pub(crate) file: ProjectFile,
    pub(crate) standing: Standing,
    /// What it said when it was trusted last.
    pub(crate) before: Option<String>,
}

impl JudgedFile {
    /// What it says to an agent, as whose word it is; nothing if it is not told to agents.
    pub(crate) fn message(self) -> Option<Message> {
        match (self.file.purpose, self.standing) {
            (Purpose::Servers | Purpose::Image, _) => None,
            (Purpose::Guide, Standing::Trusted) => Some(self.file.trusted_by(session::WHO)),
            (Purpose::Guide, _) => Some(self.file.untrusted()),
        }
    }
}

/// How files of a directory stand.
pub(crate) fn judge(
    paths: &Paths,
    dir: &Path,
    files: impl IntoIterator<Item = ProjectFile>,
) -> Outcome<Vec<JudgedFile>> {
    let record = record::read(paths, dir)?;
    let judged = files.into_iter().map(|file| {
        let known = record.files.get(&file.name);
        let before = known.and_then(|known| known.text.clone());
        let said = known.and_then(|known| known.of(&file.digest)).map(|said| said.answer);
        let standing = match (said, &before) {
            _ if file.is_cut => Standing::Oversized,
            (Some(TrustAnswer::Trusted), _) => Standing::Trusted,
            (Some(TrustAnswer::Declined), _) => Standing::Declined,
            (None, Some(_)) => Standing::Changed,
            (None, None) => Standing::New,
        };
        JudgedFile { file, standing, before }
    });
    Ok(judged.collect())
}

/// Remembers what a person says of a file as it was read.
pub(crate) fn decide(
    paths: &Paths,
    dir: &Path,
    judged: &mut JudgedFile,
    answer: TrustAnswer,
) -> Outcome {
    let ProjectFile { name, text, digest, .. } = &judged.file;
    let (sha256, by, at_ms) = (digest.clone(), session::WHO.to_owned(), session::now_ms());
    record::change(paths, dir, |record| {
        let decision = TrustDecision { sha256, answer, by, at_ms };
        record.files.entry(name.clone()).or_default().decide(decision, text);
        Ok(())
    })?;
    judged.standing = match answer {
        TrustAnswer::Trusted => Standing::Trusted,
        TrustAnswer::Declined => Standing::Declined,
    };
    Ok(())
}
