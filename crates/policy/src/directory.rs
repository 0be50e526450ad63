//! Who there is: people, agents and groups of an organisation.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use crate::limits;

/// Somebody who acts, or on whose behalf something is done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Principal {
    /// `person:ada`
    Person(String),
    /// `agent:reviewer`
    Agent(String),
    /// `group:ops`
    Group(String),
    /// `org:acme`
    Organisation(String),
}

impl FromStr for Principal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not person:NAME, agent:NAME, group:NAME or org:NAME");
        let (kind, name) = text.split_once(':').ok_or_else(wrong)?;
        if name.is_empty() || name.len() > limits::NAME_BYTES_MAX || !is_plain(name) {
            return Err(wrong());
        }
        match kind {
            "person" => Ok(Self::Person(name.to_owned())),
            "agent" => Ok(Self::Agent(name.to_owned())),
            "group" => Ok(Self::Group(name.to_owned())),
            "org" => Ok(Self::Organisation(name.to_owned())),
            _ => Err(wrong()),
        }
    }
}

/// Names are compared as they are, so that what looks alike must be alike.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',' && byte != b'"')
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person(name) => write!(f, "person:{name}"),
            Self::Agent(name) => write!(f, "agent:{name}"),
            Self::Group(name) => write!(f, "group:{name}"),
            Self::Organisation(name) => write!(f, "org:{name}"),
        }
    }
}

impl TryFrom<String> for Principal {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Principal> for String {
    fn from(principal: Principal) -> Self {
        principal.to_string()
    }
}

/// Who is in which group. A role is a group. Whoever is not in it is still somebody,
/// of the organisation and of no group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Directory {
    /// The name of the organisation.
    pub organisation: String,
    /// The members of each group, by its name: people, agents and other groups.
    pub groups: BTreeMap<String, BTreeSet<Principal>>,
}

impl Default for Directory {
    fn default() -> Self {
        Self { organisation: "local".to_owned(), groups: BTreeMap::new() }
    }
}

impl Directory {
    /// Whether there is such a group.
    pub(crate) fn has_group(&self, name: &str) -> bool {
        self.groups.contains_key(name)
    }

    /// What can't be in a directory.
    pub(crate) fn fault(&self) -> Option<String> {
        let members = self.groups.values().flatten();
        if self.groups.len() + members.clone().count() > limits::MEMBERSHIPS_MAX {
            return Some(format!("more than {} groups and members", limits::MEMBERSHIPS_MAX));
        }
        let names = self.groups.keys().map(|name| format!("group:{name}"));
        let organisation = format!("org:{}", self.organisation);
        let mut names = names.chain([organisation]);
        if let Some(wrong) = names.find_map(|name| name.parse::<Principal>().err()) {
            return Some(wrong);
        }
        members.clone().find_map(|member| match member {
            Principal::Organisation(_) => Some(format!("`{member}` can't be in a group")),
            Principal::Group(name) if !self.has_group(name) => {
                Some(format!("there is no `{member}`"))
            }
            Principal::Person(_) | Principal::Agent(_) | Principal::Group(_) => None,
        })
    }
}

/// A directory, looked up from its members' side.
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) organisation: String,
    direct: BTreeMap<Principal, BTreeSet<Principal>>,
}

impl Membership {
    pub(crate) fn new(directory: &Directory) -> Self {
        let mut direct: BTreeMap<Principal, BTreeSet<Principal>> = BTreeMap::new();
        for (name, members) in &directory.groups {
            for member in members {
                let groups = direct.entry(member.clone()).or_default();
                groups.insert(Principal::Group(name.clone()));
            }
        }
        Self { organisation: directory.organisation.clone(), direct }
    }

    /// The groups that somebody is in, also by being in a group that is in it.
    pub(crate) fn groups_of(&self, who: &Principal) -> BTreeSet<Principal> {
        let mut found = BTreeSet::new();
        let mut open = vec![who];
        while let Some(member) = open.pop() {
            for group in self.direct.get(member).into_iter().flatten() {
                if found.insert(group.clone()) {
                    open.push(group);
                }
            }
        }
        found
    }
}
