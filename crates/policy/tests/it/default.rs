//! What the default rules say.

use outrigger_policy::RuleSet;

use crate::world::{all_pass, cases};

#[test]
fn the_default_rules_are_what_a_careful_team_accepts() {
    let rules = RuleSet::local_default();
    assert_eq!(rules.warnings(), []);
    all_pass(&rules, &cases(include_str!("default.toml")));
}
