//! The few rules that one decision has to look at, found before it is asked for.

use cedar_policy::{Authorizer, Effect, Entities, Policy, PolicySet, Request};
use std::collections::{BTreeMap, BTreeSet};

use crate::Action;
use crate::rule::{Rule, Whose};

/// Rules by what they can apply to.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    by_scope: BTreeMap<Scope, Slice>,
}

/// An action, whose situation, and the organisation if it is of one only.
type Scope = (Action, Whose, Option<String>);

#[derive(Debug, Default)]
struct Slice {
    permits: PolicySet,
    forbids: PolicySet,
}

/// What the rules of a slice said.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct MatchedRules {
    pub(crate) permits: BTreeSet<String>,
    /// Those that ask among them.
    pub(crate) forbids: BTreeSet<String>,
    /// Forbidding rules that could not be worked out: they forbid, and nobody can approve.
    pub(crate) failed: BTreeSet<String>,
}

impl MatchedRules {
    pub(crate) fn join(&mut self, other: Self) {
        self.permits.extend(other.permits);
        self.forbids.extend(other.forbids);
        self.failed.extend(other.failed);
    }
}

impl Slices {
    pub(crate) fn new<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> Self {
        let mut slices = Self::default();
        for rule in rules {
            let (whose, organisation) = rule.whose();
            for action in rule.actions() {
                for whose in &whose {
                    let scope = (action, *whose, organisation.clone());
                    slices.by_scope.entry(scope).or_default().add(&rule.policy);
                }
            }
        }
        slices
    }

    /// How many rules a decision looks at, at most.
    pub(crate) fn len(&self, action: Action) -> usize {
        let of = self.by_scope.iter().filter(|((it, ..), _)| *it == action);
        of.map(|(_, slice)| slice.permits.num_of_policies() + slice.forbids.num_of_policies()).sum()
    }

    /// Asks the rules of one slice. The question is put only if there are any.
    pub(crate) fn ask<E>(
        &self,
        (action, whose, organisation): (Action, Whose, &str),
        request: impl FnOnce() -> Result<Request, E>,
        entities: &Entities,
    ) -> Result<MatchedRules, E> {
        let of = |organisation| self.by_scope.get(&(action, whose, organisation));
        let slices = [of(None), of(Some(organisation.to_owned()))];
        if slices.iter().all(Option::is_none) {
            return Ok(MatchedRules::default());
        }
        let request = request()?;
        let mut said = MatchedRules::default();
        slices.into_iter().flatten().for_each(|slice| said.join(slice.ask(&request, entities)));
        Ok(said)
    }
}

impl Slice {
    fn add(&mut self, policy: &Policy) {
        let set = match policy.effect() {
            Effect::Permit => &mut self.permits,
            Effect::Forbid => &mut self.forbids,
        };
        set.add(policy.clone()).expect("names are unique, and each is added once");
    }

    fn ask(&self, request: &Request, entities: &Entities) -> MatchedRules {
        // Apart, because a rule that forbids hides those that permit, and an approval
        // needs both.
        let (permits, _) = satisfied(&self.permits, request, entities);
        let (forbids, failed) = satisfied(&self.forbids, request, entities);
        MatchedRules { permits, forbids, failed }
    }
}

fn satisfied(
    rules: &PolicySet,
    request: &Request,
    entities: &Entities,
) -> (BTreeSet<String>, BTreeSet<String>) {
    if rules.is_empty() {
        return Default::default();
    }
    let response = Authorizer::new().is_authorized(request, rules, entities);
    let found = response.diagnostics();
    let names = found.reason().map(ToString::to_string);
    let failed = found.errors().map(|error| match error {
        cedar_policy::AuthorizationError::PolicyEvaluationError(error) => {
            error.policy_id().to_string()
        }
    });
    (names.collect(), failed.collect())
}
