//! The words of a person for what a sandbox may reach.
//!
//! Owns how they are read. They stand in the session as they were said, but for `git`, which
//! stands there with the repositories that it meant.

use outrigger_agent::{SessionId, State};
use outrigger_engine::{Engine, NO_NETWORK, ResumeChange};
use outrigger_gate::{Network, grant_of};
use outrigger_repository::remotes;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use crate::exit::{Failure, Kind, Outcome};
use crate::repository;
use crate::session::WHO;

/// The registries of packages.
pub(super) const PACKAGES: &str = "packages";
/// The remotes of the repository.
const GIT: &str = "git";
/// Before the address of a repository, as it stands in a session.
pub(super) const REPOSITORY: &str = "git:";
/// Before a host and a port that are passed on unread.
const TCP: &str = "tcp:";
/// Before the name of a secret.
pub(super) const SECRET: &str = "secret:";

/// What a sandbox may reach, as a person says it. `none` is a word that stands alone; no word
/// at all leaves it to whoever is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Words(Vec<String>);

impl Words {
    /// Reads words, each of which may be several with commas between them.
    pub(crate) fn parse<T: AsRef<str>>(said: &[T]) -> Result<Self, String> {
        let all = said.iter().flat_map(|said| said.as_ref().split(','));
        let all: BTreeSet<&str> = all.map(str::trim).filter(|word| !word.is_empty()).collect();
        if all.contains(NO_NETWORK) && all.len() > 1 {
            return Err("`none` stands alone: there is no network, or there is some".to_owned());
        }
        let words = all.into_iter().map(|word| known(word).map(|()| word.to_owned()));
        words.collect::<Result<_, _>>().map(Self)
    }

    /// The words, one by one.
    pub(crate) fn all(&self) -> &[String] {
        &self.0
    }

    /// These as well; nothing at all with none.
    pub(crate) fn with(&self, more: &Self) -> Self {
        Self(widened(&self.0, &more.0))
    }

    /// Those that mean something without a repository.
    pub(crate) fn without_repository(&self) -> Self {
        Self(self.0.iter().filter(|word| *word != GIT).cloned().collect())
    }

    /// As they are recorded where there is no repository.
    pub(crate) fn settle_alone(&self) -> Outcome<Vec<String>> {
        if self.0.iter().any(|word| word == GIT) {
            let text = "`git` means the remotes of a repository, and there is none here";
            return Err(Failure::new(Kind::Usage, text)
                .hint("Name the host instead, for example `github.com`."));
        }
        can_be_told_apart(self.0.clone())
    }

    /// These as well as those of before; `none` takes all of it back.
    pub(crate) fn over(&self, before: &[String]) -> Vec<String> {
        widened(before, &self.0)
    }

    /// As they are recorded beside those of before.
    pub(crate) fn settle_over(&self, before: &[String], dir: &Path) -> Outcome<Vec<String>> {
        can_be_told_apart(widened(before, &self.settle(dir)?))
    }

    /// As a session records them: `git` with the remotes of the directory's repository.
    pub(crate) fn settle(&self, dir: &Path) -> Outcome<Vec<String>> {
        let mut settled = Vec::new();
        for word in &self.0 {
            if word != GIT {
                settled.push(word.clone());
                continue;
            }
            let remotes = remotes(dir).map_err(|error| repository::failed(dir, &error))?;
            if remotes.is_empty() {
                let text = "`git` means the remotes of the repository, and it has none that can be reached over HTTPS without a password";
                return Err(Failure::new(Kind::Usage, text)
                    .hint("Name a host instead, for example `--net github.com`."));
            }
            settled.extend(remotes.into_iter().map(|it| format!("{REPOSITORY}{}", it.url)));
        }
        settled.sort();
        settled.dedup();
        can_be_told_apart(settled)
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Said {
            One(String),
            Several(Vec<String>),
        }
        let said = match Said::deserialize(deserializer)? {
            Said::One(one) => vec![one],
            Said::Several(several) => several,
        };
        Self::parse(&said).map_err(serde::de::Error::custom)
    }
}

/// Whether a word means something.
fn known(word: &str) -> Result<(), String> {
    if matches!(word, PACKAGES | GIT | NO_NETWORK) {
        return Ok(());
    }
    if let Some(name) = word.strip_prefix(SECRET) {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        return match !name.is_empty() && name.bytes().all(plain) {
            true => Ok(()),
            false => Err("a secret has the name of a variable: letters, digits and _".to_owned()),
        };
    }
    let grants = grant_of(word).map(drop);
    grants.map_err(|why| format!("{why}. Or `packages`, `git`, `secret:NAME` or `none`"))
}

/// What else is to be reachable, beside what was; `none` takes all of it back.
fn widened(before: &[String], more: &[String]) -> Vec<String> {
    if more == [NO_NETWORK] {
        return more.to_vec();
    }
    let all: BTreeSet<&String> = before.iter().chain(more).collect();
    let mut all: Vec<String> = all.into_iter().cloned().collect();
    all.retain(|word| word != NO_NETWORK || more.is_empty());
    all
}

/// The words of a session for a person: each repository by its address.
pub(crate) fn shown(words: &[String]) -> String {
    if words.is_empty() {
        return "nothing that is not allowed when it is asked for".to_owned();
    }
    let word = |word: &String| match word.strip_prefix(SECRET) {
        Some(name) => format!("the secret {name}"),
        None => word.strip_prefix(REPOSITORY).unwrap_or(word).to_owned(),
    };
    words.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// The names of secrets among the words of a session.
pub(super) fn named(words: &[String]) -> impl Iterator<Item = &str> {
    words.iter().filter_map(|word| word.strip_prefix(SECRET))
}

/// What commands may reach, as a line of a model's instructions.
pub(crate) fn told(words: &[String]) -> String {
    match words {
        [] => {
            return "- No network is granted, and there are no credentials. What needs a host may be tried once: a person who is there is asked while the command waits, and may allow it. Do not look for a way around; say what you would need.\n".to_owned();
        }
        [none] if none == NO_NETWORK => {
            return "- There is no network and there are no credentials. Do not look for them; say what you would need.\n".to_owned();
        }
        _ => {}
    }
    let packages = match words.iter().any(|word| word == PACKAGES) {
        true => {
            " (`packages` are the registries of pip, npm, cargo, Go, Maven, RubyGems and apt, for reading)"
        }
        false => "",
    };
    let tcp = match words.iter().any(|word| word.starts_with(TCP)) {
        true => {
            " (`tcp:HOST:PORT` is whatever is spoken at that port: connect to the host by its name, to 127.64.0.1 if it has none, or by CONNECT of the proxy)"
        }
        false => "",
    };
    let (secrets, places): (Vec<_>, Vec<_>) =
        words.iter().cloned().partition(|word| word.starts_with(SECRET));
    let secrets: Vec<_> = named(&secrets).map(|name| format!("`${name}`")).collect();
    let secrets = match secrets.is_empty() {
        true => "There are no credentials.".to_owned(),
        false => format!(
            "{} stand for credentials: commands use them as they are (git does by itself), they become the real ones on their way to the hosts that they are for, and are worth nothing elsewhere.",
            secrets.join(", ")
        ),
    };
    let places = match places.is_empty() {
        true => "what those credentials are for".to_owned(),
        false => format!("{}{packages}{tcp}", shown(&places)),
    };
    format!(
        "- Commands may reach over HTTP and HTTPS: {places}. All else is refused, and the refusal says what would allow it: pass that on, and do not look for a way around. {secrets}\n"
    )
}

/// Lets a session that rests reach these as well, or nothing. Gives all that it may.
pub(crate) async fn widen(
    engine: &Engine,
    session: &SessionId,
    words: &Words,
) -> Outcome<Vec<String>> {
    let network = of_session(&engine.state(session).await?, words)?;
    let change = ResumeChange { network: Some(network.clone()), ..ResumeChange::default() };
    engine.resume(session, WHO, change).await?;
    Ok(network)
}

/// What a session that goes on may reach: what it could, and these words.
pub(crate) fn of_session(state: &State, words: &Words) -> Outcome<Vec<String>> {
    let spec = state.spec();
    let before = spec.map_or(&[][..], |spec| spec.network());
    let dir = spec.and_then(|spec| spec.workspace.as_ref()).map(|it| Path::new(&it.source));
    words.settle_over(before, dir.unwrap_or(Path::new(".")))
}

/// These words, if a program can say which of their hosts it means.
fn can_be_told_apart(words: Vec<String>) -> Outcome<Vec<String>> {
    let grants = words.iter().filter(|word| word.starts_with(TCP));
    // Each was read before.
    let grants = grants.flat_map(|word| grant_of(word).unwrap_or_default()).collect();
    let ports = Network { grants, ..Network::default() }.captured_ports();
    ports.map(|_| words).map_err(|why| {
        Failure::new(Kind::Usage, why).hint("`none` takes back what a session may reach.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(said: &[&str]) -> Result<Vec<String>, String> {
        Words::parse(said).map(|words| words.0)
    }

    #[test]
    fn words_are_read_one_by_one_or_with_commas() {
        assert_eq!(
            parsed(&["packages,git", "b.example"]).unwrap(),
            ["b.example", "git", "packages"]
        );
        assert_eq!(parsed(&["none"]).unwrap(), ["none"]);
        assert_eq!(parsed(&[]).unwrap(), [""; 0]);
        assert!(parsed(&["none,git"]).unwrap_err().contains("stands alone"));
        let why = parsed(&["pakages!"]).unwrap_err();
        assert!(why.contains("Or `packages`, `git`, `secret:NAME` or `none`"), "{why}");
    }

    #[test]
    fn more_is_added_and_none_takes_all_back() {
        let some = |words: &[&str]| words.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        let before = some(&["git:https://a.example/b", "packages"]);
        let widened_by = |more: &[&str]| shown(&widened(&before, &some(more)));
        assert_eq!(widened_by(&["c.example"]), "c.example, https://a.example/b, packages");
        assert_eq!(widened_by(&["none"]), "none");
        assert_eq!(shown(&widened(&some(&["none"]), &some(&["c.example"]))), "c.example");
    }
}
