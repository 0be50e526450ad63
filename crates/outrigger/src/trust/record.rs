//! What a person said of the files of one directory, kept beside the journal.
//!
//! Owns that an answer is about the contents that were looked at, and about no others. Only a
//! command that a person gives writes here: no session does, and no change is written back there
//! (`own_files`).

use outrigger_agent::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::{json_file, limits};

/// What is done about a record that can't be read.
const MEND: &str =
    "Put the file back as it was, or delete it: then everything there is asked about again.";

/// What was said of the files of one directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrustRecord {
    /// The directory, as it is shown.
    pub(crate) dir: String,
    /// By name.
    pub(crate) files: BTreeMap<String, FileTrust>,
}

/// What was said of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileTrust {
    /// One for each contents, the newest first.
    pub(crate) decisions: Vec<TrustDecision>,
    /// What it said when it was trusted last, to show what changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

/// What a person said of a file as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrustDecision {
    pub(crate) sha256: Digest,
    pub(crate) answer: TrustAnswer,
    pub(crate) by: String,
    pub(crate) at_ms: u64,
}

/// What a person says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TrustAnswer {
    Trusted,
    Declined,
}

impl TrustAnswer {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Declined => "declined",
        }
    }
}

impl FileTrust {
    /// What was said of these contents.
    pub(crate) fn of(&self, digest: &Digest) -> Option<&TrustDecision> {
        self.decisions.iter().find(|decision| decision.sha256 == *digest)
    }

    /// Takes in what is said of contents, in the place of what was said of them before.
    pub(crate) fn decide(&mut self, decision: TrustDecision, text: &str) {
        self.decisions.retain(|before| before.sha256 != decision.sha256);
        if decision.answer == TrustAnswer::Trusted {
            self.text = Some(text.to_owned());
        }
        self.decisions.insert(0, decision);
        self.decisions.truncate(limits::TRUST_DECISIONS_MAX);
    }
}

/// What was said of a directory's files.
pub(crate) fn read(paths: &Paths, dir: &Path) -> Outcome<TrustRecord> {
    json_file::load(&place(paths, dir), MEND)
}

/// Changes what was said of a directory's files.
pub(crate) fn change(
    paths: &Paths,
    dir: &Path,
    change: impl FnOnce(&mut TrustRecord) -> Outcome,
) -> Outcome<TrustRecord> {
    json_file::change(paths, &place(paths, dir), MEND, |record: &mut TrustRecord| {
        record.dir = dir.display().to_string();
        change(record)
    })
}

/// What was said of all directories, in the order of their names.
pub(crate) fn all(paths: &Paths) -> Outcome<Vec<TrustRecord>> {
    let dir = records(paths);
    let failed =
        |error: std::io::Error| Failure::new(Kind::Storage, format!("{}: {error}", dir.display()));
    let entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut all = Vec::<TrustRecord>::new();
    for entry in entries.take(limits::TRUST_FILES_MAX) {
        let path = entry.map_err(failed)?.path();
        if path.extension() == Some(OsStr::new("json")) {
            all.push(json_file::load(&path, MEND)?);
        }
    }
    all.retain(|record| !record.files.is_empty());
    all.sort_by(|one, other| one.dir.cmp(&other.dir));
    Ok(all)
}

fn records(paths: &Paths) -> PathBuf {
    paths.harness().join("trust")
}

/// A directory's path can have any bytes, and any length.
fn place(paths: &Paths, dir: &Path) -> PathBuf {
    let digest = Digest::of(dir.as_os_str().as_bytes());
    let name: String = digest.as_str().chars().take(limits::SEEN_CHARS).collect();
    records(paths).join(format!("{name}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_about_the_contents_that_were_looked_at() {
        let mut file = FileTrust::default();
        let mut say = |text: &str, answer| {
            let (sha256, by) = (Digest::of(text.as_bytes()), "person:local".to_owned());
            file.decide(TrustDecision { sha256, answer, by, at_ms: 1 }, text);
            let of = |text: &str| file.of(&Digest::of(text.as_bytes())).map(|it| it.answer);
            (of("one"), of("two"), file.text.clone(), file.decisions.len())
        };
        let one = || Some("one".to_owned());
        let (trusted, declined) = (Some(TrustAnswer::Trusted), Some(TrustAnswer::Declined));
        assert_eq!(say("one", TrustAnswer::Trusted), (trusted, None, one(), 1));
        // Another branch of the repository has other contents; both are remembered.
        assert_eq!(say("two", TrustAnswer::Declined), (trusted, declined, one(), 2));
        assert_eq!(say("one", TrustAnswer::Declined), (declined, declined, one(), 2));
        for number in 0..limits::TRUST_DECISIONS_MAX {
            say(&number.to_string(), TrustAnswer::Declined);
        }
        assert_eq!(say("three", TrustAnswer::Declined).3, limits::TRUST_DECISIONS_MAX);
    }
}
