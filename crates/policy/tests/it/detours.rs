//! What is forbidden for good, reached another way: each way is refused.

use outrigger_policy::{RuleSet, Ruling};

use crate::world::{acme, all_pass, cases, rules};

const RULES: &str = include_str!("detours.cedar");
const DETOURS: &str = include_str!("detours.toml");
const OPEN: &str = include_str!("open_ways.toml");

fn set() -> RuleSet {
    RuleSet::new(&[RuleSet::default_source(), rules(RULES)], acme()).unwrap()
}

#[test]
fn no_detour_leads_past_a_rule_that_forbids() {
    let cases = cases(DETOURS);
    assert!(cases.len() >= 30, "{} detours", cases.len());
    assert!(cases.iter().all(|case| case.expect == Ruling::Forbid));
    // Each is refused though everybody approved.
    assert!(cases.iter().all(|case| !case.approved_by.is_empty()));
    all_pass(&set(), &cases);
}

#[test]
fn every_rule_that_forbids_ends_a_detour() {
    let set = set();
    let ended: Vec<String> =
        cases(DETOURS).iter().flat_map(|case| case.run(&set).verdict.rules().to_vec()).collect();
    let without: Vec<&str> = set
        .rules()
        .filter(|rule| rule.source == "rules.cedar" && rule.id != "own-changes")
        .map(|rule| rule.id.as_str())
        .filter(|id| !ended.iter().any(|ended| ended == id))
        .collect();
    assert_eq!(without, [""; 0]);
}

/// Every detour is open to where nothing is forbidden, so that what stops one elsewhere is a
/// rule.
#[test]
fn the_ways_themselves_are_open() {
    all_pass(&set(), &cases(OPEN));
}
