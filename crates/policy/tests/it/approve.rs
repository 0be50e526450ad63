//! Approvals count under the rules that asked, from people whom they name.

use outrigger_policy::{Action, Approved, Facts, RuleSet};

use crate::world::{acme, rules, set};

const RULES: &str = r#"
@id("all") permit (principal, action, resource);
@id("deploy") @approvable("group:ops")
forbid (principal, action == Action::"execute", resource == Sandbox::"deploy");
@id("leads") @approvable("person:ada")
forbid (principal, action == Action::"execute", resource == Sandbox::"deploy")
when { context.labels.contains("untrusted") };
@id("open") @approvable("anyone")
forbid (principal, action == Action::"execute", resource == Sandbox::"open");
@id("never") forbid (principal, action == Action::"execute", resource == Sandbox::"wipe");
"#;

fn facts(resource: &str) -> Facts<'_> {
    Facts::new("person:eve", Action::Execute, resource)
}

fn by(rules: &RuleSet, names: &[&str]) -> Vec<Approved> {
    let one = |by: &&str| Approved { by: (*by).to_owned(), rule_set: rules.hash() };
    names.iter().map(one).collect()
}

#[test]
fn every_rule_that_asks_needs_somebody_whom_it_names() {
    let set = set(RULES);
    let labels = ["untrusted".to_owned()].into();
    for (resource, tainted, names, granted) in [
        ("test", false, &[][..], true),
        ("deploy", false, &[], false),
        ("deploy", false, &["person:bob"], true),
        ("deploy", false, &["person:ada"], true),
        ("deploy", false, &["person:eve"], false),
        ("deploy", false, &["group:ops"], false),
        ("deploy", false, &["agent:bob"], false),
        ("deploy", false, &["bob"], false),
        ("deploy", true, &["person:bob"], false),
        ("deploy", true, &["person:ada"], true),
        ("deploy", true, &["person:eve", "person:bob", "person:ada"], true),
        ("open", false, &["person:eve"], true),
        ("open", false, &["agent:default"], false),
        ("wipe", false, &["person:ada", "person:bob"], false),
    ] {
        let mut facts = facts(resource);
        if tainted {
            facts.labels = &labels;
        }
        let found = set.grant(&facts, &by(&set, names), ()).is_ok();
        assert_eq!(found, granted, "{resource} {tainted} {names:?}");
    }
}

#[test]
fn who_may_approve_is_asked_of_the_same_rules() {
    let set = set(RULES);
    for (resource, name, may) in [
        ("deploy", "person:ada", true),
        ("deploy", "person:bob", true),
        ("deploy", "person:eve", false),
        ("open", "person:eve", true),
        ("open", "agent:default", false),
        ("test", "person:ada", false),
        ("wipe", "person:ada", false),
    ] {
        assert_eq!(set.may_approve(&facts(resource), name), may, "{resource} {name}");
    }
}

#[test]
fn an_approval_is_worth_nothing_under_other_rules_or_to_another_role() {
    let before = set(RULES);
    let approved = by(&before, &["person:bob"]);
    assert!(before.grant(&facts("deploy"), &approved, ()).is_ok());
    let more = format!("{RULES}\n@id(\"more\") permit (principal, action, resource);");
    assert!(set(&more).grant(&facts("deploy"), &approved, ()).is_err());
    let mut fewer = acme();
    fewer.groups.get_mut("ops").unwrap().retain(|who| who.to_string() != "person:bob");
    let fewer = RuleSet::new(&[rules(RULES)], fewer).unwrap();
    assert!(fewer.grant(&facts("deploy"), &approved, ()).is_err());
    assert!(fewer.grant(&facts("deploy"), &by(&fewer, &["person:bob"]), ()).is_err());
    assert!(fewer.grant(&facts("deploy"), &by(&fewer, &["person:ada"]), ()).is_ok());
}

#[test]
fn rules_can_keep_somebody_from_approving() {
    let text = format!(
        "{RULES}
        @id(\"four-eyes\") forbid (principal, action == Action::\"approve\", resource)
            when {{ principal == context.person }};"
    );
    let set = set(&text);
    assert!(!set.may_approve(&facts("open"), "person:eve"));
    assert!(set.may_approve(&facts("open"), "person:bob"));
    let own = Facts { principal: "person:bob", ..facts("deploy") };
    assert!(!set.may_approve(&own, "person:bob"));
    assert!(set.may_approve(&own, "person:ada"));
}

#[test]
fn a_rule_that_asks_of_everything_can_be_answered() {
    let text = r#"
        @id("all") permit (principal, action, resource);
        @id("asks") @approvable("anyone") forbid (principal, action, resource);
    "#;
    let set = set(text);
    assert!(set.may_approve(&facts("x"), "person:ada"));
    assert!(set.grant(&facts("x"), &by(&set, &["person:ada"]), ()).is_ok());
}
