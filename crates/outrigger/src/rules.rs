//! Takes the configured rules into force, and notices when they change.

use outrigger_engine::{RuleSource, RuleSourceError};
use outrigger_policy::{AccessRules, Directory, Principal, Problems, RulePart, RuleSet, Source};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::{self, Config, Policy};
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::session::now_ms;
use crate::signed_in::SignedIn;

const HINT: &str = "docs/how-to/write-policies.md shows how rules and people are written.";

/// The rules that hold, as the configuration says.
pub(crate) fn load(policy: &Policy) -> Outcome<RuleSet> {
    let (sources, directory) = read(policy)?;
    RuleSet::new(&sources, directory).map_err(refused)
}

fn refused(Problems(problems): Problems) -> Failure {
    let said = problems.first().map(ToString::to_string).unwrap_or_default();
    let more = problems.len().saturating_sub(1);
    let failure = Failure::new(Kind::Usage, said);
    let help = problems.into_iter().map(|problem| problem.help).find(|help| !help.is_empty());
    let failure = help.into_iter().fold(failure, Failure::hint);
    if more > 0 {
        return failure.hint(format!("`outrigger policy check` names {more} more."));
    }
    failure.hint(HINT)
}

/// Who there is, as the configuration and the provider of logins say.
pub(crate) fn directory(paths: &Paths, config: &Config) -> Outcome<Directory> {
    let people = people(&config.policy)?;
    Ok(SignedIn::load(paths)?.directory(&people, config.oidc.as_ref(), now_ms()))
}

/// Texts of rules, not looked at yet.
pub(crate) fn sources(files: &[PathBuf], part: RulePart) -> Outcome<Vec<Source>> {
    let source =
        |file: &PathBuf| Ok(Source { name: file.display().to_string(), text: text(file)?, part });
    files.iter().map(source).collect()
}

/// The rules in force, read again when a file changed that says which they are.
#[derive(Debug)]
pub(crate) struct ConfiguredRules {
    paths: Paths,
    loaded: Mutex<LoadedRules>,
}

#[derive(Debug)]
struct LoadedRules {
    rules: RuleSet,
    access: Arc<AccessRules>,
    /// Who is named in a file of the configuration.
    named: Directory,
    /// Who there is, also by what a provider of logins says.
    directory: Directory,
    signed_in: SignedIn,
    /// The provider that is believed.
    issuer: Option<String>,
    /// When somebody is not believed any more, milliseconds since 1970.
    changes_ms: u64,
    /// The files that they were read from, as they were right before.
    files: Vec<(PathBuf, Option<Stamp>)>,
}

/// By what a file is known that nobody wrote to since.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    inode: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl From<Metadata> for Stamp {
    fn from(meta: Metadata) -> Self {
        Self {
            inode: (meta.dev(), meta.ino()),
            bytes: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

fn stamped(files: impl Iterator<Item = PathBuf>) -> Vec<(PathBuf, Option<Stamp>)> {
    files
        .map(|file| {
            let stamp = std::fs::metadata(&file).ok().map(Stamp::from);
            (file, stamp)
        })
        .collect()
}

impl ConfiguredRules {
    /// Reads them. Wrong ones are an error before anything is done.
    pub(crate) fn read(paths: &Paths) -> Outcome<Self> {
        let loaded = LoadedRules::read(paths)?;
        Ok(Self { paths: paths.clone(), loaded: Mutex::new(loaded) })
    }

    /// What people may do on a server now.
    pub(crate) fn access(&self) -> Outcome<Arc<AccessRules>> {
        self.now(|loaded| Arc::clone(&loaded.access))
    }

    /// Who there is now.
    pub(crate) fn directory(&self) -> Outcome<Directory> {
        self.now(|loaded| loaded.directory.clone())
    }

    /// By what agents are judged now.
    pub(crate) fn in_force(&self) -> Outcome<RuleSet> {
        self.now(|loaded| loaded.rules.clone())
    }

    /// Whether a file of the configuration has somebody in a group.
    pub(crate) fn names(&self, person: &str) -> Outcome<bool> {
        let Ok(person) = person.parse::<Principal>() else { return Ok(false) };
        self.now(|loaded| loaded.named.groups.values().any(|members| members.contains(&person)))
    }

    /// Until when somebody is let in who came by a provider of logins.
    pub(crate) fn login_ends_ms(&self, person: &str) -> Outcome<Option<u64>> {
        self.now(|loaded| loaded.signed_in.ends_ms(person, loaded.issuer.as_deref()))
    }

    fn now<T>(&self, of: impl FnOnce(&LoadedRules) -> T) -> Outcome<T> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if !loaded.is_current() {
            *loaded = LoadedRules::read(&self.paths)?;
        }
        Ok(of(&loaded))
    }
}

impl LoadedRules {
    fn read(paths: &Paths) -> Outcome<Self> {
        // Looked at before they are read: whoever writes meanwhile is noticed the next time.
        let configs = stamped(paths.config_places().iter().cloned());
        let there: Vec<PathBuf> = configs
            .iter()
            .filter(|(_, stamp)| stamp.is_some())
            .map(|(file, _)| file.clone())
            .collect();
        let Config { policy, oidc, .. } = Config::of_files(&there)?;
        let rules = policy.files.iter().chain(&policy.ceiling).chain(&policy.access);
        let rules = rules.chain(&policy.people).cloned();
        let files = stamped(rules.chain([SignedIn::path(paths)]));
        let files = configs.into_iter().chain(files).collect();
        let (signed_in, now_ms) = (SignedIn::load(paths)?, now_ms());
        let (texts, named) = read(&policy)?;
        let directory = signed_in.directory(&named, oidc.as_ref(), now_ms);
        let access = AccessRules::new(&sources(&policy.access, RulePart::Rules)?, &directory);
        Ok(Self {
            rules: RuleSet::new(&texts, directory.clone()).map_err(refused)?,
            access: Arc::new(access.map_err(refused)?),
            named,
            directory,
            issuer: oidc.map(|oidc| oidc.client.issuer),
            changes_ms: signed_in.changes_ms(now_ms).unwrap_or(u64::MAX),
            signed_in,
            files,
        })
    }

    fn is_current(&self) -> bool {
        let now = |file: &PathBuf| std::fs::metadata(file).ok().map(Stamp::from);
        self.files.iter().all(|(file, stamp)| now(file) == *stamp) && now_ms() < self.changes_ms
    }
}

impl RuleSource for ConfiguredRules {
    fn current(&self) -> Result<RuleSet, RuleSourceError> {
        self.in_force().map_err(|failure| {
            let hint = failure.hints.first().map(|hint| format!(" {hint}")).unwrap_or_default();
            RuleSourceError { reason: failure.message + &hint }
        })
    }
}

/// Who is in which group, as the configuration says.
fn people(policy: &Policy) -> Outcome<Directory> {
    let directory = policy.people.as_deref().map(written).transpose()?;
    Ok(directory.unwrap_or_default())
}

/// The texts of rules and who there is, not looked at yet.
pub(crate) fn read(policy: &Policy) -> Outcome<(Vec<Source>, Directory)> {
    let mut sources = Vec::new();
    if policy.defaults {
        sources.push(RuleSet::default_source());
    }
    sources.extend(self::sources(&policy.files, RulePart::Rules)?);
    sources.extend(self::sources(&policy.ceiling, RulePart::Ceiling)?);
    Ok((sources, people(policy)?))
}

fn written(path: &Path) -> Outcome<Directory> {
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

/// The policy with these files, if any, instead of those that are configured.
pub(crate) fn instead(policy: &Policy, files: &[PathBuf]) -> Policy {
    let mut policy = policy.clone();
    if !files.is_empty() {
        policy.files = files.to_vec();
    }
    policy
}
