//! Rules and how they combine: forbid wins over ask, ask over permit, and what
//! no rule speaks of is forbidden.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Action, Facts, Granted, Refused, RuleSetHash, Verdict};

/// What a rule says when it applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It may be done.
    Permit,
    /// It may not.
    Forbid,
    /// A person decides.
    Ask,
}

/// When a rule applies to one part of the facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Matcher {
    /// Always.
    Any,
    /// To exactly this text.
    Is(String),
}

impl Matcher {
    fn covers(&self, value: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Is(text) => text == value,
        }
    }
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Unique name, journalled with every decision that it makes.
    pub id: String,
    /// What it says.
    pub outcome: Outcome,
    /// Of whom.
    pub principal: Matcher,
    /// Of which actions.
    pub actions: Vec<Action>,
    /// Of what.
    pub resource: Matcher,
}

impl Rule {
    fn applies(&self, facts: &Facts<'_>) -> bool {
        self.actions.contains(&facts.action)
            && self.principal.covers(facts.principal)
            && self.resource.covers(facts.resource)
    }
}

/// The rules in force, with the hash that names them.
#[derive(Debug, Clone)]
pub struct RuleSet {
    rules: Vec<Rule>,
    hash: RuleSetHash,
}

impl RuleSet {
    /// Takes rules into force.
    #[must_use]
    pub fn new(rules: Vec<Rule>) -> Self {
        let mut hasher = Sha256::new();
        for rule in &rules {
            // Debug output of these plain types is injective, which is all that
            // a name needs; nothing parses it.
            hasher.update(format!("{rule:?}\n").as_bytes());
        }
        Self { rules, hash: RuleSetHash::new(hasher.finalize().into()) }
    }

    /// What one developer on a laptop accepts unchanged: the model may be asked,
    /// and within a sandbox without network and secrets everything may be done.
    #[must_use]
    pub fn local_default() -> Self {
        let permit = |id: &str, actions: &[Action]| Rule {
            id: id.to_owned(),
            outcome: Outcome::Permit,
            principal: Matcher::Any,
            actions: actions.to_vec(),
            resource: Matcher::Any,
        };
        Self::new(vec![
            permit("model", &[Action::AskModel]),
            permit(
                "inside-the-sandbox",
                &[Action::Provision, Action::Execute, Action::ReadFiles, Action::WriteFiles],
            ),
        ])
    }

    /// The name of exactly these rules.
    #[must_use]
    pub fn hash(&self) -> RuleSetHash {
        self.hash
    }

    /// Judges a situation.
    #[must_use]
    pub fn judge(&self, facts: &Facts<'_>) -> Verdict {
        let saying = |outcome: Outcome| -> Vec<String> {
            let says = |rule: &&Rule| rule.outcome == outcome && rule.applies(facts);
            self.rules.iter().filter(says).map(|rule| rule.id.clone()).collect()
        };
        let forbidding = saying(Outcome::Forbid);
        if !forbidding.is_empty() {
            return Verdict::Forbid { rules: forbidding };
        }
        let asking = saying(Outcome::Ask);
        if !asking.is_empty() {
            return Verdict::Ask { rules: asking, approvers: Vec::new() };
        }
        let permitting = saying(Outcome::Permit);
        if permitting.is_empty() {
            return Verdict::Forbid { rules: Vec::new() };
        }
        Verdict::Permit { rules: permitting }
    }

    /// Judges again, at execution, and hands out the authority to perform `effect`.
    /// A person's approval turns ask into permit, if it was given under these very
    /// rules; it never overrides forbid.
    ///
    /// # Errors
    /// [`Refused`] with the verdict if the rules do not permit it now.
    pub fn grant<T>(
        &self,
        facts: &Facts<'_>,
        approved: &[Approved],
        effect: T,
    ) -> Result<Granted<T>, Refused> {
        let verdict = self.judge(facts);
        let given = approved.iter().any(|approved| approved.rule_set == self.hash);
        match &verdict {
            Verdict::Permit { .. } => Ok(Granted::mint(effect)),
            Verdict::Ask { .. } if given => Ok(Granted::mint(effect)),
            Verdict::Ask { .. } | Verdict::Forbid { .. } => Err(Refused { verdict }),
        }
    }
}

/// A person's approval of one effect, as its journal says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approved {
    /// Who gave it.
    pub by: String,
    /// The rules that asked for it.
    pub rule_set: RuleSetHash,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(id: &str, outcome: Outcome, resource: Matcher) -> Rule {
        let actions = vec![Action::Execute];
        Rule { id: id.to_owned(), outcome, principal: Matcher::Any, actions, resource }
    }

    fn facts(resource: &str) -> Facts<'_> {
        Facts { principal: "person:local", action: Action::Execute, resource }
    }

    fn set() -> RuleSet {
        RuleSet::new(vec![
            rule("all", Outcome::Permit, Matcher::Any),
            rule("careful", Outcome::Ask, Matcher::Is("deploy".to_owned())),
            rule("careful-too", Outcome::Ask, Matcher::Is("wipe".to_owned())),
            rule("never", Outcome::Forbid, Matcher::Is("wipe".to_owned())),
        ])
    }

    #[test]
    fn forbid_wins_over_ask_and_ask_over_permit() {
        let id = |name: &str| vec![name.to_owned()];
        for (resource, expected) in [
            ("test", Verdict::Permit { rules: id("all") }),
            ("deploy", Verdict::Ask { rules: id("careful"), approvers: vec![] }),
            ("wipe", Verdict::Forbid { rules: id("never") }),
        ] {
            assert_eq!(set().judge(&facts(resource)), expected, "{resource}");
        }
    }

    #[test]
    fn what_no_rule_speaks_of_is_forbidden() {
        let facts = Facts { action: Action::AskModel, ..facts("model") };
        assert_eq!(set().judge(&facts), Verdict::Forbid { rules: vec![] });
    }

    #[test]
    fn an_approval_never_overrides_a_forbid() {
        let under = |rule_set| vec![Approved { by: "person:ada".to_owned(), rule_set }];
        let (now, before) = (under(set().hash()), under(RuleSet::local_default().hash()));
        let granted =
            |resource, approved: &[_]| set().grant(&facts(resource), approved, ()).is_ok();
        assert!(granted("test", &[]));
        assert!(!granted("deploy", &[]));
        assert!(!granted("deploy", &before), "the rules changed since");
        assert!(granted("deploy", &now));
        assert!(!granted("wipe", &now));
    }

    #[test]
    fn the_hash_names_the_rules() {
        assert_eq!(set().hash(), set().hash());
        assert_ne!(set().hash(), RuleSet::local_default().hash());
        let text = String::from(set().hash());
        assert_eq!(RuleSetHash::try_from(text).unwrap(), set().hash());
        assert!(RuleSetHash::try_from("zz".to_owned()).is_err());
    }
}
