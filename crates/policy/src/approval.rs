//! Who answered, and who may.

use serde::{Deserialize, Serialize};

use crate::RuleSetHash;
use crate::directory::{Membership, Principal};

/// How a rule names all people who may speak in the session.
const ANYONE: &str = "anyone";

/// Somebody approved one effect, under the rules that were in force then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approved {
    /// Who, for example `person:ada`.
    pub by: String,
    /// The rules that asked. Under others it is worth nothing.
    pub rule_set: RuleSetHash,
    /// Nobody had answered for so long that those may, too, to whom the rules escalate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub escalated: bool,
}

/// Whom a rule asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approvers {
    /// Any person who may speak in the session.
    Anyone,
    /// These people and the members of these groups.
    Named(Vec<Principal>),
}

impl Approvers {
    /// From the text of an annotation, as in `@approvable("group:ops,person:ada")`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.trim() == ANYONE {
            return Ok(Self::Anyone);
        }
        let one = |name: &str| match name.trim().parse::<Principal>() {
            Ok(named @ (Principal::Person(_) | Principal::Group(_))) => Ok(named),
            Ok(Principal::Agent(_) | Principal::Organisation(_)) => {
                Err(format!("`{}` can't approve: only people do", name.trim()))
            }
            Err(said) => Err(said),
        };
        text.split(',').map(one).collect::<Result<_, _>>().map(Self::Named)
    }

    /// Whether a person is among them. An agent never is.
    pub(crate) fn include(&self, person: &Principal, membership: &Membership) -> bool {
        match (self, person) {
            (_, Principal::Agent(_) | Principal::Group(_) | Principal::Organisation(_)) => false,
            (Self::Anyone, Principal::Person(_)) => true,
            (Self::Named(named), Principal::Person(_)) => {
                let groups = membership.groups_of(person);
                named.iter().any(|name| name == person || groups.contains(name))
            }
        }
    }

    /// Those who are named; none if it is anyone.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Principal> {
        let named: &[Principal] = match self {
            Self::Anyone => &[],
            Self::Named(named) => named,
        };
        named.iter()
    }

    /// Their names, or that it is anyone.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::Anyone => vec![ANYONE.to_owned()],
            Self::Named(_) => self.names().collect(),
        }
    }

    /// Their names; none if it is anyone.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.named().map(ToString::to_string)
    }
}
