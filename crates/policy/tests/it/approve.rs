//! Approvals count under the rules that asked, from people whom they name.

use outrigger_policy::{Action, Approved, Facts, RuleSet, Verdict};

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
@id("release") @approvable("person:bob") @escalates("group:leads")
forbid (principal, action == Action::"execute", resource == Sandbox::"release");
@id("tainted-release") @approvable("person:bob") @escalates("anyone")
forbid (principal, action == Action::"execute", resource == Sandbox::"release")
when { context.labels.contains("untrusted") };
"#;

fn facts(resource: &str) -> Facts<'_> {
    Facts::new("person:eve", Action::Execute, resource)
}

fn by(rules: &RuleSet, names: &[&str]) -> Vec<Approved> {
    names.iter().map(|by| approval(rules, by)).collect()
}

fn approval(rules: &RuleSet, by: &str) -> Approved {
    Approved { by: by.to_owned(), rule_set: rules.hash(), escalated: false }
}

fn may(set: &RuleSet, facts: &Facts<'_>, by: &str) -> bool {
    set.may_approve(facts, &approval(set, by))
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
    for (resource, name, expected) in [
        ("deploy", "person:ada", true),
        ("deploy", "person:bob", true),
        ("deploy", "person:eve", false),
        ("open", "person:eve", true),
        ("open", "agent:default", false),
        ("test", "person:ada", false),
        ("wipe", "person:ada", false),
    ] {
        assert_eq!(may(&set, &facts(resource), name), expected, "{resource} {name}");
    }
}

#[test]
fn those_to_whom_a_rule_escalates_count_once_it_did() {
    let set = set(RULES);
    let labels = ["untrusted".to_owned()].into();
    for (resource, tainted, name, [before, after]) in [
        ("release", false, "person:bob", [true, true]),
        ("release", false, "person:ada", [false, true]),
        ("release", false, "person:eve", [false, false]),
        ("release", false, "agent:default", [false, false]),
        // Every rule that asks escalates for itself.
        ("release", true, "person:ada", [false, true]),
        ("release", true, "person:eve", [false, false]),
        ("deploy", false, "person:eve", [false, false]),
        ("wipe", false, "person:ada", [false, false]),
    ] {
        let mut facts = facts(resource);
        if tainted {
            facts.labels = &labels;
        }
        for (escalated, expected) in [(false, before), (true, after)] {
            let given = Approved { escalated, ..approval(&set, name) };
            let found = set.grant(&facts, std::slice::from_ref(&given), ()).is_ok();
            assert_eq!(found, expected, "{resource} {tainted} {name} {escalated}");
            // Whom one of two rules names may answer for that one.
            let one = expected || (tainted && escalated && name == "person:eve");
            assert_eq!(set.may_approve(&facts, &given), one, "{resource} {name} {escalated}");
        }
    }
    let verdict = set.judge(&Facts { labels: &labels, ..facts("release") });
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    assert_eq!(
        verdict,
        Verdict::Ask {
            rules: names(&["release", "tainted-release"]),
            approvers: names(&["person:bob"]),
            escalates: names(&["anyone", "group:leads"]),
        }
    );
}

#[test]
fn whom_rules_keep_from_approving_nothing_escalates_to() {
    let text = format!(
        "{RULES}
        @id(\"four-eyes\") forbid (principal, action == Action::\"approve\", resource)
            when {{ principal == context.person }};"
    );
    let set = set(&text);
    let given = Approved { escalated: true, ..approval(&set, "person:ada") };
    assert!(set.may_approve(&facts("release"), &given));
    let own = Facts { principal: "person:ada", ..facts("release") };
    assert!(!set.may_approve(&own, &given));
    assert!(set.grant(&own, &[given], ()).is_err());
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
    assert!(!may(&set, &facts("open"), "person:eve"));
    assert!(may(&set, &facts("open"), "person:bob"));
    let own = Facts { principal: "person:bob", ..facts("deploy") };
    assert!(!may(&set, &own, "person:bob"));
    assert!(may(&set, &own, "person:ada"));
}

#[test]
fn a_rule_that_asks_of_everything_can_be_answered() {
    let text = r#"
        @id("all") permit (principal, action, resource);
        @id("asks") @approvable("anyone") forbid (principal, action, resource);
    "#;
    let set = set(text);
    assert!(may(&set, &facts("x"), "person:ada"));
    assert!(set.grant(&facts("x"), &by(&set, &["person:ada"]), ()).is_ok());
}
