//! Who asks the store, and which of its memory scopes there are for them.
//!
//! Owns [`Scope`], which only authentication makes, and the one rule of what it sees:
//! a person's memory scope is for that person, a group's for its members, the organisation's
//! for everybody in it, memory and skills alike. Must never look at what is in a memory scope;
//! finer rights are rules, which are asked before the store is.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::RuleSet;
use crate::directory::{Directory, Membership, Principal};

/// Somebody who was authenticated, and the groups that they are in. What it does not see
/// does not exist for whoever holds it.
///
/// Only [`Directory::authenticate`] and [`RuleSet::authenticate`] make one:
///
/// ```compile_fail
/// // The fields are private: nobody else can claim to be somebody.
/// let forged = outrigger_policy::Scope {
///     person: "ada".into(),
///     groups: Default::default(),
///     organisation: "acme".into(),
/// };
/// ```
///
/// ```compile_fail
/// // And none can be read from storage, where groups may have changed since.
/// fn storable<T: serde::de::DeserializeOwned>() {}
/// storable::<outrigger_policy::Scope>();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    person: String,
    groups: BTreeSet<String>,
    organisation: String,
}

impl Directory {
    /// The scope of a person whose identity was proved to the caller: their groups are
    /// those of this directory, also by being in a group that is in one. Nothing for
    /// whoever is not a person.
    #[must_use]
    pub fn authenticate(&self, who: &Principal) -> Option<Scope> {
        Membership::new(self).authenticate(who)
    }
}

impl RuleSet {
    /// The scope of a person whose identity was proved to the caller, by the directory that
    /// the rules are for; as [`Directory::authenticate`].
    #[must_use]
    pub fn authenticate(&self, who: &Principal) -> Option<Scope> {
        self.membership().authenticate(who)
    }
}

impl Membership {
    fn authenticate(&self, who: &Principal) -> Option<Scope> {
        let Principal::Person(person) = who else { return None };
        let groups = self.groups_of(who).into_iter().filter_map(|group| match group {
            Principal::Group(name) => Some(name),
            Principal::Person(_) | Principal::Agent(_) | Principal::Organisation(_) => None,
        });
        let organisation = self.organisation.clone();
        Some(Scope { person: person.clone(), groups: groups.collect(), organisation })
    }
}

impl Scope {
    /// Who it is.
    #[must_use]
    pub fn person(&self) -> Principal {
        Principal::Person(self.person.clone())
    }

    /// The names of the groups that they are in.
    #[must_use]
    pub fn groups(&self) -> &BTreeSet<String> {
        &self.groups
    }

    /// The name of their organisation.
    #[must_use]
    pub fn organisation(&self) -> &str {
        &self.organisation
    }

    /// Whether there is such a memory scope for them.
    #[must_use]
    pub fn sees(&self, memory_scope: &MemoryScope) -> bool {
        match &memory_scope.owner {
            Owner::Person(name) => *name == self.person,
            Owner::Group(name) => self.groups.contains(name),
            Owner::Organisation(name) => *name == self.organisation,
        }
    }

    /// Whether they may change what is on it, directly or, where the memory scope says so, by a
    /// proposal that somebody else accepts.
    #[must_use]
    pub fn may_write(&self, memory_scope: &MemoryScope) -> bool {
        // Whoever reads a memory scope of theirs may propose for it: whether more is possible
        // is up to the memory scope and to the rules.
        self.sees(memory_scope)
    }

    /// Every memory scope of a kind that there is for them: their own, then those of their
    /// groups by name, then the organisation's.
    #[must_use]
    pub fn memory_scopes(&self, kind: MemoryKind) -> Vec<MemoryScope> {
        let groups = self.groups.iter().cloned().map(Owner::Group);
        let owners = [Owner::Person(self.person.clone())].into_iter().chain(groups);
        let owners = owners.chain([Owner::Organisation(self.organisation.clone())]);
        owners.map(|owner| MemoryScope { kind, owner }).collect()
    }

    /// Every memory scope that there is for them, those of memory first.
    pub fn all_memory_scopes(&self) -> impl Iterator<Item = MemoryScope> {
        MemoryKind::ALL.into_iter().flat_map(|kind| self.memory_scopes(kind))
    }
}

/// A place of entries.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryScope {
    /// Of what.
    pub kind: MemoryKind,
    /// Whose.
    pub owner: Owner,
}

/// What stands in a memory scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryKind {
    /// What agents and people wrote down.
    Memory,
    /// What agents can learn to do.
    Skills,
    /// Which agents there are: what each is told, has and may spend.
    Agents,
}

impl MemoryKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Skills, Self::Agents];
    /// Those that sessions have as folders: no agent changes what agents are.
    pub const MOUNTED: [Self; 2] = [Self::Memory, Self::Skills];

    /// The name of its folder.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Skills => "skills",
            Self::Agents => "agents",
        }
    }
}

/// Whose a memory scope is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// One person's, by name.
    Person(String),
    /// A group's, by name.
    Group(String),
    /// An organisation's, by name.
    Organisation(String),
}

impl From<&Owner> for Principal {
    fn from(owner: &Owner) -> Self {
        match owner {
            Owner::Person(name) => Self::Person(name.clone()),
            Owner::Group(name) => Self::Group(name.clone()),
            Owner::Organisation(name) => Self::Organisation(name.clone()),
        }
    }
}

/// `memory/person:ada`
impl fmt::Display for MemoryScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.as_str(), Principal::from(&self.owner))
    }
}

impl FromStr for MemoryScope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not KIND/OWNER, for example memory/group:ops");
        let (kind, owner) = text.split_once('/').ok_or_else(wrong)?;
        let kind = MemoryKind::ALL.into_iter().find(|known| known.as_str() == kind);
        let owner = match owner.parse::<Principal>()? {
            Principal::Person(name) => Owner::Person(name),
            Principal::Group(name) => Owner::Group(name),
            Principal::Organisation(name) => Owner::Organisation(name),
            Principal::Agent(_) => return Err(wrong()),
        };
        Ok(Self { kind: kind.ok_or_else(wrong)?, owner })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn directory() -> Directory {
        let text = r#"{"organisation": "acme", "groups": {
            "ops": ["person:ada", "group:night"], "night": ["person:bob"], "law": ["agent:x"],
            "ring": ["group:round"], "round": ["group:ring", "person:eve"]}}"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_there_is_for_whom() {
        let mut text = String::new();
        for who in ["person:ada", "person:bob", "person:eve", "person:new", "agent:x", "group:ops"]
        {
            let scope = directory().authenticate(&who.parse().unwrap());
            let memory_scopes = scope.map(|scope| scope.memory_scopes(MemoryKind::Memory));
            let memory_scopes: Vec<_> =
                memory_scopes.iter().flatten().map(ToString::to_string).collect();
            text += &format!("{who}: {}\n", memory_scopes.join(" "));
        }
        expect![[r#"
            person:ada: memory/person:ada memory/group:ops memory/org:acme
            person:bob: memory/person:bob memory/group:night memory/group:ops memory/org:acme
            person:eve: memory/person:eve memory/group:ring memory/group:round memory/org:acme
            person:new: memory/person:new memory/org:acme
            agent:x: 
            group:ops: 
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn what_is_not_listed_is_not_seen() {
        let scope = directory().authenticate(&"person:bob".parse().unwrap()).unwrap();
        for kind in MemoryKind::ALL {
            for name in ["bob", "ada", "ops", "night", "law", "acme", "none"] {
                let name = name.to_owned();
                let owners = [
                    Owner::Person(name.clone()),
                    Owner::Group(name.clone()),
                    Owner::Organisation(name),
                ];
                for owner in owners {
                    let memory_scope = MemoryScope { kind, owner };
                    assert_eq!(
                        scope.sees(&memory_scope),
                        scope.memory_scopes(kind).contains(&memory_scope),
                        "{memory_scope}"
                    );
                    assert_eq!(memory_scope.to_string().parse(), Ok(memory_scope));
                }
            }
        }
    }

    #[test]
    fn what_is_no_memory_scope() {
        for text in ["", "memory", "memory/", "memory/ada", "notes/person:ada", "skills/agent:x"] {
            assert!(text.parse::<MemoryScope>().is_err(), "{text}");
        }
    }
}
