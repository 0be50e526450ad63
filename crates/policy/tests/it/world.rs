//! A small organisation, and what tests say of it.

use outrigger_policy::{Case, Cases, Directory, Principal, RulePart, RuleSet, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// `acme`: ada leads operations, bob is in them, eve is a contractor.
pub(crate) fn acme() -> Directory {
    let members = |names: &[&str]| -> BTreeSet<Principal> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    };
    let groups = BTreeMap::from([
        ("leads".to_owned(), members(&["person:ada"])),
        ("ops".to_owned(), members(&["person:bob", "group:leads"])),
        ("contractors".to_owned(), members(&["person:eve", "agent:visitor"])),
    ]);
    Directory { organisation: "acme".to_owned(), groups }
}

pub(crate) fn rules(text: &str) -> Source {
    Source { name: "rules.cedar".to_owned(), text: text.to_owned(), part: RulePart::Rules }
}

pub(crate) fn ceiling(text: &str) -> Source {
    Source { name: "ceiling.cedar".to_owned(), text: text.to_owned(), part: RulePart::Ceiling }
}

/// Rules for `acme`.
pub(crate) fn set(text: &str) -> RuleSet {
    RuleSet::new(&[rules(text)], acme()).unwrap()
}

pub(crate) fn cases(text: &str) -> Vec<Case> {
    toml::from_str::<Cases>(text).unwrap().case
}

/// Fails with every case that differs.
pub(crate) fn all_pass(rules: &RuleSet, cases: &[Case]) {
    let mut wrong = String::new();
    for case in cases {
        let tried = case.run(rules);
        if !tried.passed {
            let (name, expected) = (&case.name, case.expect);
            let why = rules.explain(&case.when.facts());
            writeln!(wrong, "{name}: expected {expected:?}, found {tried:?}: {why:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
