//! The people who came by a provider of logins, as a file of the data directory remembers them.
//!
//! Owns whose a name is: that of the account that had it first, until somebody who runs the server
//! says otherwise. And how long what the provider said of somebody is believed.

use outrigger_gate::SecretPlace;
use outrigger_model::endpoint::ServerAddress;
use outrigger_policy::{Directory, Principal};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::config::{Config, Oidc};
use crate::exit::{Failure, Kind, Outcome};
use crate::json_file;
use crate::limits;
use crate::network::caller;
use crate::paths::Paths;

/// What is done about a file that can't be read.
const MEND: &str = "Put the file back from a backup. Without it everybody logs in anew, and the names of all are free again.";

/// All of them, by their names: `person:ada@example.com`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SignedIn(BTreeMap<String, SignedInPerson>);

/// Somebody who came by a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignedInPerson {
    /// The provider.
    pub(crate) issuer: String,
    /// The account, as the provider alone knows it.
    pub(crate) subject: String,
    /// What the provider said of groups, as far as it stood for any of ours.
    pub(crate) groups: BTreeSet<String>,
    /// When they logged in last, milliseconds since 1970.
    pub(crate) since_ms: u64,
    /// Until when they are let in, milliseconds since 1970.
    pub(crate) ends_ms: u64,
}

/// The variable in which the secret of the provider's client is, with the places that it is sent
/// to. The tokens that it answers with stay in the gate, too.
pub(crate) fn keyed(config: &Config) -> Vec<(String, SecretPlace)> {
    let Some(oidc) = &config.oidc else { return Vec::new() };
    let place = |server: &ServerAddress| SecretPlace {
        headers: vec!["authorization".to_owned()],
        fields: vec!["client_secret".to_owned()],
        mints: ["access_token", "refresh_token"].map(str::to_owned).into(),
        ..SecretPlace::new(caller::grant(server))
    };
    let variables = oidc.secret_env.iter();
    let all = variables.flat_map(|variable| {
        oidc.secret_to.iter().map(move |server| (variable.clone(), place(server)))
    });
    all.collect()
}

impl SignedIn {
    pub(crate) fn path(paths: &Paths) -> PathBuf {
        paths.harness().join("people.json")
    }

    pub(crate) fn load(paths: &Paths) -> Outcome<Self> {
        json_file::load(&Self::path(paths), MEND)
    }

    /// Takes in that somebody logged in.
    pub(crate) fn enter(paths: &Paths, name: &str, person: SignedInPerson) -> Outcome {
        json_file::change(paths, &Self::path(paths), MEND, |all: &mut Self| all.add(name, person))
            .map(drop)
    }

    /// Forgets somebody, whose name is free then. Whether there was one.
    pub(crate) fn forget(paths: &Paths, name: &str) -> Outcome<bool> {
        if !Self::load(paths)?.0.contains_key(name) {
            return Ok(false);
        }
        let forgotten = json_file::change(paths, &Self::path(paths), MEND, |all: &mut Self| {
            all.0.remove(name);
            Ok(())
        });
        forgotten.map(|_| true)
    }

    fn add(&mut self, name: &str, person: SignedInPerson) -> Outcome {
        let same =
            |one: &SignedInPerson| one.issuer == person.issuer && one.subject == person.subject;
        match self.0.get(name) {
            Some(known) if !same(known) => {
                let text = format!("{name} is the name of another account of the provider");
                return Err(Failure::new(Kind::Denied, text).hint(format!(
                    "Where the other one is gone, who runs this server frees the name: `outrigger keys revoke --person {}`.",
                    name.trim_start_matches("person:")
                )));
            }
            None if self.0.len() >= limits::SIGNED_IN_PEOPLE_MAX => {
                let text = format!("{} people are known, and no more can be", self.0.len());
                return Err(Failure::new(Kind::Denied, text));
            }
            Some(_) | None => {}
        }
        // Who is called otherwise now is nobody under the old name any more.
        for (_, old) in self.0.iter_mut().filter(|(old, one)| *old != name && same(one)) {
            old.groups.clear();
            old.ends_ms = old.ends_ms.min(person.since_ms);
        }
        self.0.insert(name.to_owned(), person);
        Ok(())
    }

    /// Until when somebody is let in who came by a provider: not at all where it was another one
    /// than is configured now.
    pub(crate) fn ends_ms(&self, name: &str, issuer: Option<&str>) -> Option<u64> {
        let person = self.0.get(name)?;
        Some(if issuer == Some(person.issuer.as_str()) { person.ends_ms } else { 0 })
    }

    /// Who there is, with those who came by the provider in the groups that it says.
    pub(crate) fn directory(
        &self,
        people: &Directory,
        oidc: Option<&Oidc>,
        now_ms: u64,
    ) -> Directory {
        let mut directory = people.clone();
        let Some(oidc) = oidc else { return directory };
        for group in oidc.groups.values().flatten() {
            directory.groups.entry(group.clone()).or_default();
        }
        for (name, person) in self.believed(oidc, now_ms) {
            let Ok(name @ Principal::Person(_)) = name.parse() else { continue };
            let groups = person.groups.iter().filter_map(|value| oidc.groups.get(value)).flatten();
            for group in groups {
                directory.groups.entry(group.clone()).or_default().insert(name.clone());
            }
        }
        directory
    }

    fn believed<'a>(
        &'a self,
        oidc: &'a Oidc,
        now_ms: u64,
    ) -> impl Iterator<Item = (&'a String, &'a SignedInPerson)> {
        self.0.iter().filter(move |(_, person)| {
            person.issuer == oidc.client.issuer && now_ms < person.until_ms()
        })
    }

    /// When somebody is not believed any more of whom something is believed now.
    pub(crate) fn changes_ms(&self, now_ms: u64) -> Option<u64> {
        self.0.values().map(SignedInPerson::until_ms).filter(|until| *until > now_ms).min()
    }
}

impl SignedInPerson {
    /// How long their groups count: a session of theirs may go on when their login is over.
    fn until_ms(&self) -> u64 {
        self.ends_ms.max(self.since_ms.saturating_add(limits::SIGNED_IN_GROUPS_MS_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(subject: &str, since_ms: u64) -> SignedInPerson {
        SignedInPerson {
            issuer: "https://id.example".to_owned(),
            subject: subject.to_owned(),
            groups: BTreeSet::from(["ops".to_owned()]),
            since_ms,
            ends_ms: since_ms + 10,
        }
    }

    #[test]
    fn a_name_is_the_first_accounts() {
        let mut all = SignedIn::default();
        all.add("person:ada@x.y", person("1", 1)).unwrap();
        all.add("person:ada@x.y", person("1", 5)).unwrap();
        assert!(all.add("person:ada@x.y", person("2", 6)).is_err());
        let other = SignedInPerson { issuer: "https://evil.example".to_owned(), ..person("1", 7) };
        assert!(all.add("person:ada@x.y", other).is_err());
        let issuer = Some("https://id.example");
        assert_eq!(all.ends_ms("person:ada@x.y", issuer), Some(15));
        assert_eq!(all.ends_ms("person:ada@x.y", Some("https://new.example")), Some(0));
        assert_eq!(all.ends_ms("person:ada@x.y", None), Some(0));
        assert_eq!(all.ends_ms("person:ci", issuer), None);
        // The account is called otherwise now.
        all.add("person:eve@x.y", person("1", 8)).unwrap();
        assert_eq!(all.ends_ms("person:ada@x.y", issuer), Some(8));
        assert!(all.0["person:ada@x.y"].groups.is_empty());
    }

    #[test]
    fn groups_are_those_that_values_stand_for_and_only_for_so_long() {
        let text = "issuer = 'https://id.example'\nclient_id = 'a'\n[groups]\nops = ['admin', 'night']\nlaw = ['auditor']";
        let oidc = Oidc::of(toml::from_str(text).unwrap()).unwrap().unwrap();
        let mut all = SignedIn::default();
        all.add("person:ada@x.y", person("1", 1)).unwrap();
        let groups = |now_ms| {
            let directory = all.directory(&Directory::default(), Some(&oidc), now_ms);
            let members =
                directory.groups.iter().map(|(name, members)| (name.clone(), members.len()));
            members.collect::<Vec<_>>()
        };
        let of = |admin, auditor, night| {
            vec![
                ("admin".to_owned(), admin),
                ("auditor".to_owned(), auditor),
                ("night".to_owned(), night),
            ]
        };
        assert_eq!(groups(2), of(1, 0, 1));
        let end = all.changes_ms(2).unwrap();
        assert_eq!(end, 1 + limits::SIGNED_IN_GROUPS_MS_MAX);
        assert_eq!((groups(end), all.changes_ms(end)), (of(0, 0, 0), None));
        assert_eq!(all.directory(&Directory::default(), None, 2), Directory::default());
    }
}
