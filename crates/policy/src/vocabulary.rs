//! The words of the rules: the schema, and names as its entities.

use cedar_policy::{Entity, EntityId, EntityTypeName, EntityUid, Schema};
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::LazyLock;

use crate::Action;
use crate::directory::Principal;

/// The schema, as it stands in this crate.
pub const SCHEMA: &str = include_str!("schema.cedarschema");

/// A constant in a form that the evaluator takes.
pub(crate) static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(Vocabulary::new);

/// Types of what is acted on and of who acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Person,
    Agent,
    Group,
    Organisation,
    Model,
    Sandbox,
    Path,
    Zone,
    Host,
    Secret,
    Memory,
    Server,
    Tool,
    Effect,
    Trigger,
}

impl Kind {
    const ALL: [Self; 15] = [
        Self::Person,
        Self::Agent,
        Self::Group,
        Self::Organisation,
        Self::Model,
        Self::Sandbox,
        Self::Path,
        Self::Zone,
        Self::Host,
        Self::Secret,
        Self::Memory,
        Self::Server,
        Self::Tool,
        Self::Effect,
        Self::Trigger,
    ];

    fn name(self) -> String {
        format!("{self:?}")
    }
}

pub(crate) struct Vocabulary {
    pub(crate) schema: Schema,
    types: BTreeMap<Kind, EntityTypeName>,
    actions: BTreeMap<Action, Entity>,
}

impl Vocabulary {
    fn new() -> Self {
        let (schema, _) = Schema::from_cedarschema_str(SCHEMA).expect("a test parses the schema");
        let known = schema.action_entities().expect("its actions are in no circle");
        let name = |kind: Kind| EntityTypeName::from_str(&kind.name()).expect("it is a word");
        let action = |action: Action| {
            let uid = action_uid(action.as_str());
            (action, known.get(&uid).expect("a test finds every action").clone())
        };
        Self {
            types: Kind::ALL.into_iter().map(|kind| (kind, name(kind))).collect(),
            actions: Action::ALL.into_iter().map(action).collect(),
            schema,
        }
    }

    /// The names of all types.
    pub(crate) fn types(&self) -> String {
        Kind::ALL.map(Kind::name).join(", ")
    }

    pub(crate) fn uid(&self, kind: Kind, id: &str) -> EntityUid {
        let name = self.types.get(&kind).expect("every kind is there").clone();
        EntityUid::from_type_name_and_id(name, EntityId::new(id))
    }

    pub(crate) fn principal(&self, principal: &Principal) -> EntityUid {
        match principal {
            Principal::Person(name) => self.uid(Kind::Person, name),
            Principal::Agent(name) => self.uid(Kind::Agent, name),
            Principal::Group(name) => self.uid(Kind::Group, name),
            Principal::Organisation(name) => self.uid(Kind::Organisation, name),
        }
    }

    pub(crate) fn action(&self, action: Action) -> &Entity {
        self.actions.get(&action).expect("every action is there")
    }

    /// The actions that are this one, or in the group of that name.
    pub(crate) fn actions_of(&self, uid: &EntityUid) -> Vec<Action> {
        let known = self.schema.action_entities().expect("as before");
        let within = |action: &Action| known.is_ancestor_of(uid, &action_uid(action.as_str()));
        Action::ALL
            .into_iter()
            .filter(|action| action.as_str() == uid.id().unescaped() || within(action))
            .collect()
    }
}

fn action_uid(name: &str) -> EntityUid {
    let kind = EntityTypeName::from_str("Action").expect("it is a word");
    EntityUid::from_type_name_and_id(kind, EntityId::new(name))
}
