//! Whatever the rules: an approval never overrides one that forbids, and nobody can do
//! more together than each of them alone.

use outrigger_policy::{Action, Approved, Facts, RuleSet, Ruling};
use proptest::prelude::*;
use std::collections::BTreeSet;

use crate::world::{acme, rules};

#[derive(Debug, Clone)]
struct Made {
    says: &'static str,
    principal: &'static str,
    action: &'static str,
    resource: &'static str,
    condition: &'static str,
}

impl Made {
    fn text(&self, id: usize, without: &str) -> Option<String> {
        let Self { says, principal, action, resource, condition } = self;
        (says != &without).then(|| {
            format!("@id(\"r{id}\") {says} (principal{principal}, action{action}, resource{resource}){condition};\n")
        })
    }
}

const ASKS: &str = "@approvable(\"group:ops\") forbid";

fn made() -> impl Strategy<Value = Made> {
    let says = prop::sample::select(vec!["permit", "permit", "permit", "forbid", ASKS]);
    let principal = prop::sample::select(vec![
        "",
        "",
        " is Person",
        " is Agent",
        " is Organisation",
        " in Group::\"ops\"",
        " in Organisation::\"acme\"",
        " == Agent::\"visitor\"",
        " == Person::\"eve\"",
    ]);
    // None speaks of who may approve: that is told apart.
    let action = prop::sample::select(vec![
        " in [Action::\"inside\", Action::\"ask_model\"]",
        " == Action::\"execute\"",
        " in Action::\"inside\"",
        " in [Action::\"execute\", Action::\"provision\"]",
    ]);
    let resource = prop::sample::select(vec!["", "", " == Sandbox::\"main\""]);
    let condition = prop::sample::select(vec![
        "",
        "",
        " when { context.labels.contains(\"untrusted\") }",
        " unless { principal == context.person }",
        " when { context.agent == Agent::\"visitor\" }",
    ]);
    (says, principal, action, resource, condition).prop_map(
        |(says, principal, action, resource, condition)| Made {
            says,
            principal,
            action,
            resource,
            condition,
        },
    )
}

fn set(all: &[Made], without: &str) -> RuleSet {
    let text = all.iter().enumerate().filter_map(|(id, made)| made.text(id, without));
    RuleSet::new(&[rules(&text.collect::<String>())], acme()).unwrap()
}

fn everybody(set: &RuleSet) -> Vec<Approved> {
    let (rule_set, escalated) = (set.hash(), false);
    let one = |by: &str| Approved { by: by.to_owned(), rule_set, escalated };
    ["person:ada", "person:bob", "person:eve"].map(one).to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..Default::default() })]

    #[test]
    fn rules_combine(
        all in prop::collection::vec(made(), 0..8),
        person in prop::sample::select(vec!["person:ada", "person:eve", "person:nobody"]),
        agent in prop::sample::select(vec!["agent:default", "agent:visitor"]),
        above in prop::collection::vec(prop::sample::select(vec!["agent:visitor", "agent:other"]), 0..3),
        tainted in any::<bool>(),
    ) {
        let labels: BTreeSet<String> =
            tainted.then(|| "untrusted".to_owned()).into_iter().collect();
        let above: Vec<String> = above.into_iter().map(str::to_owned).collect();
        let facts = Facts {
            agent,
            above: &above,
            labels: &labels,
            ..Facts::new(person, Action::Execute, "main")
        };
        let whole = set(&all, "");
        let verdict = whole.judge(&facts);
        let granted = whole.grant(&facts, &everybody(&whole), ()).is_ok();

        // An approval changes ask alone.
        prop_assert_eq!(granted, verdict.ruling() != Ruling::Forbid);
        prop_assert_eq!(
            whole.grant(&facts, &[], ()).is_ok(),
            verdict.ruling() == Ruling::Permit
        );

        // Ask is what would be permitted if the rules that ask were not there, and each
        // of them only takes away.
        let silent = set(&all, ASKS).judge(&facts).ruling();
        prop_assert_eq!(silent == Ruling::Forbid, verdict.ruling() == Ruling::Forbid);
        prop_assert!(verdict.ruling() != Ruling::Permit || silent == Ruling::Permit);

        // Nobody may together what one of them may not.
        let explanation = whole.explain(&facts);
        let all_permitted =
            explanation.subjects.iter().all(|subject| !subject.permitting.is_empty());
        prop_assert_eq!(explanation.subjects.len(), 3 + above.len());
        prop_assert!(all_permitted || verdict.ruling() == Ruling::Forbid);
        let alone = whole.judge(&Facts { above: &[], ..facts }).ruling();
        prop_assert!(verdict.ruling() == Ruling::Forbid || alone != Ruling::Forbid);
    }
}
