//! Facts as the evaluator takes them: who asks, the context, and the few entities that count.

use cedar_policy::{Context, Entities, Entity, EntityUid, Request, RestrictedExpression};
use std::collections::BTreeSet;

use crate::directory::{Membership, Principal};
use crate::resource::Resource;
use crate::vocabulary::{Kind, VOCABULARY};
use crate::{Action, Facts, limits};

/// Everything of a situation that is the same whoever is asked of.
pub(crate) struct AccessQuery {
    pub(crate) action: Action,
    /// The person whose session it is, then the others who spoke.
    pub(crate) people: Vec<Principal>,
    /// The one that acts, and those above it.
    pub(crate) agents: Vec<Principal>,
    pub(crate) organisation: Principal,
    resource: EntityUid,
    context: Context,
    entities: Entities,
}

/// A situation that can't be put to the rules; it is forbidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) String);

impl AccessQuery {
    /// `also` is somebody else who will be asked of.
    pub(crate) fn new(
        facts: &Facts<'_>,
        membership: &Membership,
        also: Option<&Principal>,
    ) -> Result<Self, Malformed> {
        let named = |text: &str, fits: fn(&Principal) -> bool| match text.parse::<Principal>() {
            Ok(principal) if fits(&principal) => Ok(principal),
            Ok(_) | Err(_) => Err(Malformed(format!("`{text}` is nobody who can be asked of"))),
        };
        let is_agent = |it: &Principal| matches!(it, Principal::Agent(_));
        if facts.speakers.len() > limits::SPEAKERS_MAX {
            let speakers = facts.speakers.len();
            return Err(Malformed(format!("{speakers} people spoke in one turn")));
        }
        let speakers = facts.speakers.iter().map(String::as_str);
        let people = std::iter::once(facts.principal).chain(speakers);
        let people = people.map(|text| named(text, |it| matches!(it, Principal::Person(_))));
        let people = people.collect::<Result<Vec<_>, _>>()?;
        let organisation = match facts.organisation {
            "" => Principal::Organisation(membership.organisation.clone()),
            text => named(text, |it| matches!(it, Principal::Organisation(_)))?,
        };
        if facts.above.len() > limits::AGENTS_ABOVE_MAX {
            return Err(Malformed(format!("{} agents started one another", facts.above.len())));
        }
        let above = facts.above.iter().map(String::as_str);
        let agents = std::iter::once(facts.agent).chain(above);
        let agents = agents.map(|text| named(text, is_agent)).collect::<Result<Vec<_>, _>>()?;
        let resource = Resource::of(facts)
            .ok_or_else(|| Malformed(format!("`{}` has no sure spelling", facts.resource)))?;
        let host = facts.outgoing.host.map(|host| {
            Resource::host(Action::Egress, host)
                .ok_or_else(|| Malformed(format!("`{host}` is no name of a host")))
        });
        let host = host.transpose()?;

        let of = Of { person: &people[0], agent: &agents[0], organisation: &organisation };
        let context = context(facts, &of, host.as_ref())?;
        let mut who: BTreeSet<&Principal> = agents.iter().chain(&people).collect();
        who.insert(&organisation);
        who.extend(also);
        let who = who.into_iter().map(|it| member(it, &organisation, membership));
        let mut what = vec![resource.entity(), VOCABULARY.action(resource.action).clone()];
        // A host is there once, though it be both.
        what.extend(host.map(|it| it.entity()).filter(|it| it.uid() != resource.uid()));
        // A subagent may be who acts.
        what.retain(|it| !agents.iter().any(|agent| VOCABULARY.principal(agent) == it.uid()));
        let entities = Entities::from_entities(who.chain(what), None)
            .map_err(|error| Malformed(error.to_string()))?;
        let (action, resource) = (resource.action, resource.uid());
        Ok(Self { action, people, agents, organisation, resource, context, entities })
    }

    /// The question of whether this one may.
    pub(crate) fn request(&self, who: &Principal) -> Result<Request, Malformed> {
        let action = VOCABULARY.action(self.action).uid();
        let (who, what) = (VOCABULARY.principal(who), self.resource.clone());
        Request::new(who, action, what, self.context.clone(), Some(&VOCABULARY.schema))
            .map_err(|error| Malformed(error.to_string()))
    }

    pub(crate) fn entities(&self) -> &Entities {
        &self.entities
    }
}

fn member(who: &Principal, organisation: &Principal, membership: &Membership) -> Entity {
    let mut within: BTreeSet<Principal> = membership.groups_of(who);
    if who != organisation {
        within.insert(organisation.clone());
    }
    let within = within.iter().map(|group| VOCABULARY.principal(group));
    Entity::new_no_attrs(VOCABULARY.principal(who), within.collect())
}

struct Of<'a> {
    person: &'a Principal,
    agent: &'a Principal,
    organisation: &'a Principal,
}

fn context(facts: &Facts<'_>, of: &Of<'_>, host: Option<&Resource>) -> Result<Context, Malformed> {
    let entity = |who: &Principal| RestrictedExpression::new_entity_uid(VOCABULARY.principal(who));
    let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
    let set = |all: &BTreeSet<String>| RestrictedExpression::new_set(all.iter().map(|it| text(it)));
    let hours = facts.at_ms / 3_600_000;
    // The first of January 1970 was a Thursday.
    let weekday = (hours / 24 + 3) % 7 + 1;
    let left = [
        ("tokens", facts.left.tokens),
        ("steps", facts.left.steps),
        ("money_micros", facts.left.money_micros),
        ("egress_bytes", facts.left.egress_bytes),
    ];
    let left = left.into_iter().filter_map(|(name, left)| Some((name.to_owned(), long(left?))));
    let trigger = VOCABULARY.uid(Kind::Trigger, facts.trigger.as_str());
    let mut pairs = vec![
        ("person", entity(of.person)),
        ("agent", entity(of.agent)),
        ("organisation", entity(of.organisation)),
        ("depth", long(facts.above.len() as u64)),
        ("labels", set(facts.labels)),
        ("trigger", RestrictedExpression::new_entity_uid(trigger)),
        ("at_ms", long(facts.at_ms)),
        ("hour_utc", long(hours % 24)),
        ("weekday_utc", long(weekday)),
        ("left", record(left)?),
    ];
    let outgoing = facts.outgoing;
    let method = outgoing.method.map(str::to_ascii_uppercase);
    let texts = [
        ("sandbox", facts.sandbox),
        ("tool", facts.tool),
        ("method", method.as_deref()),
        ("path", outgoing.path),
    ];
    pairs.extend(texts.into_iter().filter_map(|(name, found)| Some((name, text(found?)))));
    pairs.extend(outgoing.port.map(|port| ("port", long(u64::from(port)))));
    pairs.extend(host.map(|host| ("host", RestrictedExpression::new_entity_uid(host.uid()))));
    if let Some(shell) = facts.shell {
        let shell = [
            ("programs".to_owned(), set(&shell.programs)),
            ("touches".to_owned(), set(&shell.touches)),
            ("opaque".to_owned(), RestrictedExpression::new_bool(shell.opaque)),
        ];
        pairs.push(("shell", record(shell)?));
    }
    if let Some(outside) = facts.outside {
        let known = [
            ("read_only", outside.read_only),
            ("changed", outside.changed),
            ("elsewhere", outside.elsewhere),
        ];
        let known = known.map(|(name, is)| (name.to_owned(), RestrictedExpression::new_bool(is)));
        pairs.push(("outside", record(known)?));
    }
    Context::from_pairs(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)))
        .map_err(|error| Malformed(error.to_string()))
}

fn record(
    pairs: impl IntoIterator<Item = (String, RestrictedExpression)>,
) -> Result<RestrictedExpression, Malformed> {
    RestrictedExpression::new_record(pairs).map_err(|error| Malformed(error.to_string()))
}

fn long(number: u64) -> RestrictedExpression {
    RestrictedExpression::new_long(i64::try_from(number).unwrap_or(i64::MAX))
}
