//! What people may do on a server, by roles and by what is shared with them.
//!
//! Owns the table of a person's rights, worked out once: what they may do depends on who they
//! are and how they stand to a session, and on nothing else. What agents may do is judged by
//! [`RuleSet`](crate::RuleSet).

use cedar_policy::{
    Authorizer, Context, Decision, Entities, Entity, EntityUid, PolicySet, Request,
    RestrictedExpression, Schema,
};
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::check;
use crate::directory::{Directory, Membership, Principal};
use crate::problem::{Problem, Problems, Severity};
use crate::rule::{RulePart, Says, Source};

/// The rules of access that hold where nobody configured others, as they stand in this crate.
const ACCESS: &str = include_str!("access.cedar");

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let text = include_str!("access.cedarschema");
    let (schema, _) = Schema::from_cedarschema_str(text).expect("a test parses the schema");
    schema
});

/// What a person does on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessAction {
    /// See everything in a session.
    View,
    /// Speak in it, stop it, let it go on.
    Speak,
    /// Answer what it asks.
    Answer,
    /// Write back its changes, fork it, take it back, end it, share it.
    Manage,
    /// Remove it for good, once it is over.
    Remove,
    /// Begin a session.
    Start,
    /// Change memory and skills, and accept what is proposed for them.
    WriteMemory,
    /// Set secrets, and say what may be spent.
    Administer,
}

impl AccessAction {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::View,
        Self::Speak,
        Self::Answer,
        Self::Manage,
        Self::Remove,
        Self::Start,
        Self::WriteMemory,
        Self::Administer,
    ];

    /// The name that rules use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Speak => "speak",
            Self::Answer => "answer",
            Self::Manage => "manage",
            Self::Remove => "remove",
            Self::Start => "start",
            Self::WriteMemory => "write_memory",
            Self::Administer => "administer",
        }
    }

    fn is_in_session(self) -> bool {
        !matches!(self, Self::Start | Self::WriteMemory | Self::Administer)
    }
}

/// How a person stands to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionStanding {
    /// It is neither theirs nor shared with them.
    None,
    /// It is shared with them, to read.
    Read,
    /// It is shared with them, to take part.
    TakePart,
    /// It is theirs.
    Owner,
}

impl SessionStanding {
    const ALL: [Self; 4] = [Self::None, Self::Read, Self::TakePart, Self::Owner];

    fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::TakePart => "take_part",
            Self::Owner => "owner",
        }
    }
}

/// All that a person may do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessRights {
    person: String,
    /// Everybody in whose name something may be shared with them.
    known_as: BTreeSet<String>,
    permitted: BTreeSet<(AccessAction, SessionStanding)>,
}

impl AccessRights {
    /// How they stand to a session of somebody that is shared with these.
    #[must_use]
    pub fn standing<'a>(
        &self,
        owner: &str,
        shares: impl IntoIterator<Item = (&'a str, SessionStanding)>,
    ) -> SessionStanding {
        if owner == self.person {
            return SessionStanding::Owner;
        }
        let theirs = shares.into_iter().filter(|(with, _)| self.known_as.contains(*with));
        theirs.map(|(_, standing)| standing).max().unwrap_or(SessionStanding::None)
    }

    /// Whether they may do something in a session to which they stand so.
    #[must_use]
    pub fn permit(&self, action: AccessAction, standing: SessionStanding) -> bool {
        self.permitted.contains(&(action, standing))
    }

    /// Whether they may do what is done in no session.
    #[must_use]
    pub fn permit_anywhere(&self, action: AccessAction) -> bool {
        self.permit(action, SessionStanding::None)
    }
}

/// The rules of access in force.
#[derive(Debug)]
pub struct AccessRules {
    policies: PolicySet,
    membership: Membership,
    known: Mutex<BTreeMap<String, Arc<AccessRights>>>,
}

impl AccessRules {
    /// Takes rules into force beside the built-in ones, for the people of a directory.
    ///
    /// # Errors
    /// [`Problems`] if a text can't be parsed, does not fit the schema, asks somebody, or two
    /// rules have one name.
    pub fn new(sources: &[Source], directory: &Directory) -> Result<Self, Problems> {
        let (name, text) = ("access.cedar".to_owned(), ACCESS.to_owned());
        let built_in = Source { name, text, part: RulePart::Rules };
        let (mut policies, mut problems) = (PolicySet::new(), Vec::new());
        for source in std::iter::once(&built_in).chain(sources) {
            let (rules, wrong) = check::parsed(source, &SCHEMA);
            problems.extend(wrong);
            for rule in rules {
                let told = |said: String| Problem::error(&rule.source, rule.line, said);
                if let Says::Ask { .. } = rule.says {
                    problems.push(told(format!(
                        "`{}` asks, and nobody is asked who is let in",
                        rule.id
                    )));
                }
                if policies.add(rule.policy.clone()).is_err() {
                    problems.push(told(format!("`{}` is a name of two rules", rule.id)));
                }
            }
        }
        problems.retain(|problem| problem.severity == Severity::Error);
        problems.sort();
        if !problems.is_empty() {
            return Err(Problems(problems));
        }
        Ok(Self { policies, membership: Membership::new(directory), known: Mutex::default() })
    }

    /// All that a person may do: nothing for whoever is none.
    #[must_use]
    pub fn rights(&self, person: &str) -> Arc<AccessRights> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rights) = known.get(person) {
            return Arc::clone(rights);
        }
        let rights = Arc::new(self.work_out(person).unwrap_or_default());
        known.insert(person.to_owned(), Arc::clone(&rights));
        rights
    }

    fn work_out(&self, person: &str) -> Option<AccessRights> {
        let who = person.parse::<Principal>().ok()?;
        if !matches!(who, Principal::Person(_)) {
            return None;
        }
        let mut within = self.membership.groups_of(&who);
        within.insert(Principal::Organisation(self.membership.organisation.clone()));
        let known_as = within.iter().map(ToString::to_string).chain([person.to_owned()]).collect();
        let entity = Entity::new_no_attrs(uid(&who)?, within.iter().filter_map(uid).collect());
        let actions = SCHEMA.action_entities().ok()?;
        let entities = actions.add_entities([entity], None).ok()?;
        let asked = AccessAction::ALL.into_iter().flat_map(|action| {
            SessionStanding::ALL.into_iter().map(move |standing| (action, standing))
        });
        let permitted = asked
            .filter(|(action, standing)| {
                let of = if action.is_in_session() { Some(*standing) } else { None };
                self.permits(&who, *action, of, &entities).unwrap_or(false)
            })
            .collect();
        Some(AccessRights { person: person.to_owned(), known_as, permitted })
    }

    fn permits(
        &self,
        who: &Principal,
        action: AccessAction,
        standing: Option<SessionStanding>,
        entities: &Entities,
    ) -> Option<bool> {
        let text = |standing: SessionStanding| {
            RestrictedExpression::new_string(standing.as_str().to_owned())
        };
        let share = standing.map(|standing| ("share".to_owned(), text(standing)));
        let context = Context::from_pairs(share).ok()?;
        let resource = if standing.is_some() { r#"Session::"a""# } else { r#"Server::"a""# };
        let resource = EntityUid::from_str(resource).ok()?;
        let action = EntityUid::from_str(&format!("Action::\"{}\"", action.as_str())).ok()?;
        let request = Request::new(uid(who)?, action, resource, context, Some(&SCHEMA)).ok()?;
        let response = Authorizer::new().is_authorized(&request, &self.policies, entities);
        // A rule that can't be worked out permits nothing, and may have been meant to forbid.
        let worked_out = response.diagnostics().errors().next().is_none();
        Some(response.decision() == Decision::Allow && worked_out)
    }
}

fn uid(principal: &Principal) -> Option<EntityUid> {
    let (kind, name) = match principal {
        Principal::Person(name) => ("Person", name),
        Principal::Group(name) => ("Group", name),
        Principal::Organisation(name) => ("Organisation", name),
        Principal::Agent(_) => return None,
    };
    let kind = cedar_policy::EntityTypeName::from_str(kind).ok()?;
    Some(EntityUid::from_type_name_and_id(kind, cedar_policy::EntityId::new(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn directory() -> Directory {
        let text = r#"{"organisation": "acme", "groups": {
            "viewer": ["person:vic"], "approver": ["person:ann"], "auditor": ["person:abe"],
            "admin": ["group:leads"], "leads": ["person:lea"], "ops": ["person:uli"]}}"#;
        serde_json::from_str(text).unwrap()
    }

    fn table(rules: &AccessRules) -> String {
        let mut text = String::new();
        for name in ["uli", "vic", "ann", "abe", "lea", "local"] {
            let rights = rules.rights(&format!("person:{name}"));
            for standing in SessionStanding::ALL {
                let may = AccessAction::ALL.into_iter().filter(|it| rights.permit(*it, standing));
                let may: Vec<_> = may.map(AccessAction::as_str).collect();
                text += &format!("{name} {}: {}\n", standing.as_str(), may.join(" "));
            }
        }
        text
    }

    #[test]
    fn what_each_role_may() {
        let rules = AccessRules::new(&[], &directory()).unwrap();
        expect![[r#"
            uli none: start write_memory
            uli read: view start write_memory
            uli take_part: view speak answer start write_memory
            uli owner: view speak answer manage remove start write_memory
            vic none: 
            vic read: view
            vic take_part: view
            vic owner: view
            ann none: view answer start write_memory
            ann read: view answer start write_memory
            ann take_part: view speak answer start write_memory
            ann owner: view speak answer manage remove start write_memory
            abe none: view start write_memory
            abe read: view start write_memory
            abe take_part: view speak answer start write_memory
            abe owner: view speak answer manage remove start write_memory
            lea none: start write_memory administer
            lea read: view start write_memory administer
            lea take_part: view speak answer start write_memory administer
            lea owner: view speak answer manage remove start write_memory administer
            local none: start write_memory administer
            local read: view start write_memory administer
            local take_part: view speak answer start write_memory administer
            local owner: view speak answer manage remove start write_memory administer
        "#]]
        .assert_eq(&table(&rules));
    }

    #[test]
    fn how_people_stand_to_what_is_shared() {
        let rules = AccessRules::new(&[], &directory()).unwrap();
        let standing = |who: &str, shares: &[(&str, SessionStanding)]| {
            rules.rights(who).standing("person:uli", shares.iter().copied())
        };
        assert_eq!(standing("person:uli", &[]), SessionStanding::Owner);
        assert_eq!(standing("person:lea", &[]), SessionStanding::None);
        let all = [("org:acme", SessionStanding::Read), ("group:admin", SessionStanding::TakePart)];
        assert_eq!(standing("person:lea", &all), SessionStanding::TakePart);
        assert_eq!(standing("person:vic", &all), SessionStanding::Read);
        assert_eq!(
            standing("person:vic", &[("person:ann", SessionStanding::Read)]),
            SessionStanding::None
        );
        // Who is no person stands to nothing, and may nothing.
        assert_eq!(standing("agent:default", &all), SessionStanding::None);
        assert_eq!(*rules.rights("agent:default"), AccessRights::default());
    }

    #[test]
    fn rules_of_ones_own_stand_beside() {
        let source = |text: &str| Source {
            name: "mine".to_owned(),
            text: text.to_owned(),
            part: RulePart::Rules,
        };
        let text = r#"@id("only-ops") forbid (principal, action == Action::"start", resource)
            unless { principal in Group::"ops" };"#;
        let rules = AccessRules::new(&[source(text)], &directory()).unwrap();
        assert!(rules.rights("person:uli").permit_anywhere(AccessAction::Start));
        assert!(!rules.rights("person:lea").permit_anywhere(AccessAction::Start));
        for wrong in [
            r#"@id("owner") permit (principal, action, resource);"#,
            r#"@id("asks") @approvable("anyone") forbid (principal, action, resource);"#,
            r#"@id("no") permit (principal, action == Action::"execute", resource);"#,
            "permit (",
        ] {
            assert!(AccessRules::new(&[source(wrong)], &directory()).is_err(), "{wrong}");
        }
    }
}
