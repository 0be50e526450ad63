//! Takes the configured rules into force.

use outrigger_policy::{Directory, Part, Problems, RuleSet, Source};
use std::path::{Path, PathBuf};

use crate::config::{self, Policy};
use crate::exit::{Failure, Kind, Outcome};

const HINT: &str = "docs/how-to/write-policies.md shows how rules and people are written.";

/// The rules that hold, as the configuration says.
pub(crate) fn load(policy: &Policy) -> Outcome<RuleSet> {
    let (sources, directory) = read(policy)?;
    RuleSet::new(&sources, directory).map_err(|Problems(problems)| {
        let said = problems.first().map(ToString::to_string).unwrap_or_default();
        let more = problems.len().saturating_sub(1);
        let failure = Failure::new(Kind::Usage, said);
        let help = problems.into_iter().map(|problem| problem.help).find(|help| !help.is_empty());
        let failure = help.into_iter().fold(failure, Failure::hint);
        if more > 0 {
            return failure.hint(format!("`outrigger policy check` names {more} more."));
        }
        failure.hint(HINT)
    })
}

/// Who there is, as the configuration says.
pub(crate) fn people(policy: &Policy) -> Outcome<Directory> {
    let directory = policy.people.as_deref().map(directory).transpose()?;
    Ok(directory.unwrap_or_default())
}

/// The texts of rules and who there is, not looked at yet.
pub(crate) fn read(policy: &Policy) -> Outcome<(Vec<Source>, Directory)> {
    let mut sources = Vec::new();
    if policy.defaults {
        sources.push(RuleSet::default_source());
    }
    let files = policy.files.iter().map(|file| (file, Part::Rules));
    let ceiling = policy.ceiling.iter().map(|file| (file, Part::Ceiling));
    for (file, part) in files.chain(ceiling) {
        sources.push(Source { name: file.display().to_string(), text: text(file)?, part });
    }
    Ok((sources, people(policy)?))
}

fn directory(path: &Path) -> Outcome<Directory> {
    config::parse(&text(path)?, path, HINT)
}

/// A text that somebody wrote for us.
pub(crate) fn text(path: &Path) -> Outcome<String> {
    let max = outrigger_policy::limits::SOURCE_BYTES_MAX as u64;
    let wrong =
        |said: String| Failure::new(Kind::Usage, format!("{}: {said}", path.display())).hint(HINT);
    let unreadable = |error: std::io::Error| wrong(format!("it can't be read: {error}"));
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > max {
        return Err(wrong(format!("it has {size} bytes, of at most {max}")));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

/// The same rules with other files instead of those that are configured.
pub(crate) fn instead(policy: &Policy, files: &[PathBuf]) -> Policy {
    let mut policy = policy.clone();
    if !files.is_empty() {
        policy.files = files.to_vec();
    }
    policy
}
