//! Permit, forbid and ask, of everybody who is asked of.

use outrigger_policy::{Action, Facts, RuleSet, RuleSetHash, Verdict};

use crate::world::{acme, all_pass, cases, ceiling, rules, set};

const RULES: &str = r#"
@id("all") permit (principal, action == Action::"execute", resource);
@id("careful") @approvable("anyone")
forbid (principal, action == Action::"execute", resource == Sandbox::"deploy");
@id("careful-too") @approvable("group:ops")
forbid (principal, action == Action::"execute", resource == Sandbox::"wipe");
@id("never") forbid (principal, action == Action::"execute", resource == Sandbox::"wipe");
@id("ops-look") @approvable("group:ops,person:eve")
forbid (principal, action == Action::"execute", resource == Sandbox::"billing");
"#;

fn facts(resource: &str) -> Facts<'_> {
    Facts::new("person:ada", Action::Execute, resource)
}

#[test]
fn forbid_wins_over_ask_and_ask_over_permit() {
    let id = |name: &str| vec![name.to_owned()];
    let approvers = vec!["group:ops".to_owned(), "person:eve".to_owned()];
    for (resource, expected) in [
        ("test", Verdict::Permit { rules: id("all") }),
        ("deploy", Verdict::Ask { rules: id("careful"), approvers: vec![], escalates: vec![] }),
        ("billing", Verdict::Ask { rules: id("ops-look"), approvers, escalates: vec![] }),
        ("wipe", Verdict::forbid(id("never"))),
    ] {
        assert_eq!(set(RULES).judge(&facts(resource)), expected, "{resource}");
    }
}

#[test]
fn what_no_rule_speaks_of_is_forbidden() {
    let nothing = Verdict::forbid(vec![]);
    let facts = Facts { action: Action::AskModel, ..facts("model") };
    assert_eq!(set(RULES).judge(&facts), nothing);
    // Nor can anybody approve what only rules that ask speak of.
    let asks = r#"@id("a") @approvable("anyone") forbid (principal, action, resource);"#;
    assert_eq!(set(asks).judge(&facts), nothing);
}

const MIXED: &str = r#"
@id("people") permit (principal is Person, action == Action::"execute", resource);
@id("ops") permit (principal in Group::"ops", action == Action::"egress", resource);
@id("reviewer") permit (principal == Agent::"reviewer", action == Action::"execute", resource);
@id("helper") permit (principal == Agent::"helper", action == Action::"execute", resource);
@id("acme") permit (principal == Organisation::"acme", action, resource);
@id("default") permit (principal == Agent::"default", action == Action::"egress", resource);
@id("eve-not-prod") forbid (principal == Person::"eve", action, resource == Sandbox::"prod");
@id("no-weekend") forbid (principal is Agent, action, resource)
    when { context.weekday_utc > 5 };
@id("small") forbid (principal is Organisation, action, resource)
    when { context.left has tokens && context.left.tokens < 10 };
"#;

#[test]
fn others_who_spoke_must_be_permitted_too() {
    all_pass(
        &set(MIXED),
        &cases(
            r#"
            [[case]]
            name = "others who spoke and are permitted"
            when = { agent = "agent:reviewer", speakers = ["person:ada"], person = "person:bob", action = "execute", resource = "x" }
            expect = "permit"
            [[case]]
            name = "somebody who spoke and is forbidden it"
            when = { agent = "agent:reviewer", speakers = ["person:eve"], person = "person:bob", action = "execute", resource = "prod" }
            expect = "forbid"
            rules = ["eve-not-prod"]
            [[case]]
            name = "somebody who spoke and is in no group that may"
            when = { speakers = ["person:eve"], person = "person:bob", action = "egress", resource = "example.com" }
            expect = "forbid"
            "#,
        ),
    );
}

#[test]
fn whoever_is_asked_of_must_be_permitted() {
    all_pass(
        &set(MIXED),
        &cases(
            r#"
            [[case]]
            name = "agent, person and organisation"
            when = { agent = "agent:reviewer", person = "person:ada", action = "execute", resource = "x" }
            expect = "permit"
            rules = ["acme", "people", "reviewer"]
            [[case]]
            name = "an agent that nobody permitted"
            when = { person = "person:ada", action = "execute", resource = "x" }
            expect = "forbid"
            rules = []
            [[case]]
            name = "another organisation"
            when = { agent = "agent:reviewer", organisation = "org:umbrella", action = "execute", resource = "x" }
            expect = "forbid"
            [[case]]
            name = "a member of a group"
            when = { person = "person:bob", action = "egress", resource = "example.com" }
            expect = "permit"
            [[case]]
            name = "a member of a group in the group"
            when = { person = "person:ada", action = "egress", resource = "example.com" }
            expect = "permit"
            [[case]]
            name = "no member"
            when = { person = "person:eve", action = "egress", resource = "example.com" }
            expect = "forbid"
            [[case]]
            name = "a person who is forbidden it, though the agent is not"
            when = { person = "person:eve", agent = "agent:reviewer", action = "execute", resource = "prod" }
            expect = "forbid"
            rules = ["eve-not-prod"]
            [[case]]
            name = "agents above that are all permitted"
            when = { agent = "agent:helper", above = ["agent:reviewer"], action = "execute", resource = "x" }
            expect = "permit"
            [[case]]
            name = "an agent above that is not"
            when = { agent = "agent:helper", above = ["agent:reviewer", "agent:default"], action = "execute", resource = "x" }
            expect = "forbid"
            [[case]]
            name = "a Saturday"
            when = { agent = "agent:reviewer", action = "execute", resource = "x", at_ms = 172800000 }
            expect = "forbid"
            rules = ["no-weekend"]
            [[case]]
            name = "little left"
            when = { agent = "agent:reviewer", action = "execute", resource = "x", left = { tokens = 9 } }
            expect = "forbid"
            rules = ["small"]
            "#,
        ),
    );
}

#[test]
fn what_the_ceiling_does_not_permit_nobody_is_permitted() {
    let open = r#"@id("open") permit (principal, action, resource);"#;
    let text = r#"
        @id("inside") permit (principal, action in Action::"inside", resource);
        @id("hosts") permit (principal, action == Action::"egress", resource in Host::"github.com");
        @id("night") forbid (principal, action, resource) when { context.hour_utc < 6 };
    "#;
    let set = RuleSet::new(&[rules(open), ceiling(text)], acme()).unwrap();
    all_pass(
        &set,
        &cases(
            r#"
            [[case]]
            name = "permitted by both"
            when = { action = "egress", resource = "api.github.com", at_ms = 36000000 }
            expect = "permit"
            rules = ["hosts", "open"]
            [[case]]
            name = "not by the ceiling"
            when = { action = "egress", resource = "example.com", at_ms = 36000000 }
            expect = "forbid"
            [[case]]
            name = "forbidden by the ceiling"
            when = { action = "execute", resource = "main" }
            expect = "forbid"
            rules = ["night"]
            "#,
        ),
    );
}

#[test]
fn the_hash_names_rules_and_people_and_not_their_layout() {
    let hash = |text: &str| set(text).hash();
    let plain = r#"@id("a") permit (principal, action, resource); @id("b") forbid (principal, action, resource);"#;
    let other = "// A comment.\n@id(\"b\")\nforbid(principal,action,resource);\n@id(\"a\") permit (principal, action, resource);";
    assert_eq!(hash(plain), hash(other));
    let approvable = plain.replace("@id(\"b\")", "@id(\"b\") @approvable(\"anyone\")");
    let renamed = plain.replace("\"b\"", "\"c\"");
    for changed in [approvable, renamed, plain.replace("forbid", "permit")] {
        assert_ne!(hash(plain), hash(&changed), "{changed}");
    }
    let mut smaller = acme();
    smaller.groups.get_mut("ops").unwrap().pop_first();
    let smaller = RuleSet::new(&[rules(plain)], smaller).unwrap().hash();
    assert_ne!(smaller, hash(plain));
    let below = RuleSet::new(&[ceiling(plain)], acme()).unwrap().hash();
    assert_ne!(below, hash(plain));
    assert_eq!(RuleSetHash::try_from(String::from(below)).unwrap(), below);
    assert!(RuleSetHash::try_from("zz".to_owned()).is_err());
}

#[test]
fn verdicts_of_old_journals_are_read() {
    let verdict = |text: &str| serde_json::from_str::<Verdict>(text).unwrap();
    let rules = vec!["a".to_owned()];
    let old = r#"{"ask":{"rules":["a"]}}"#;
    assert_eq!(
        verdict(old),
        Verdict::Ask { rules: rules.clone(), approvers: vec![], escalates: vec![] }
    );
    assert_eq!(serde_json::to_string(&verdict(old)).unwrap(), old);
    assert_eq!(verdict(r#"{"forbid":{"rules":[]}}"#), Verdict::forbid(vec![]));
}

#[test]
fn a_rule_that_fails_forbids() {
    // The sum is larger than numbers are.
    let text = r#"
        @id("all") permit (principal, action, resource);
        @id("broken") @approvable("anyone") forbid (principal, action, resource)
            when { context.at_ms + 9223372036854775807 < 0 };
    "#;
    let verdict = set(text).judge(&Facts { at_ms: 1, ..facts("x") });
    assert_eq!(verdict, Verdict::forbid(vec!["broken".to_owned()]));
}

#[test]
fn nobody_who_can_be_asked_of_is_forbidden() {
    let set = RuleSet::from_cedar(r#"@id("all") permit (principal, action, resource);"#).unwrap();
    let above = vec!["agent:a".to_owned(); 17];
    for facts in [
        Facts { principal: "", ..facts("x") },
        Facts { principal: "ada", ..facts("x") },
        Facts { principal: "agent:default", ..facts("x") },
        Facts { agent: "person:ada", ..facts("x") },
        Facts { organisation: "group:ops", ..facts("x") },
        Facts { above: &above, ..facts("x") },
        facts("a\0b"),
    ] {
        assert_eq!(set.judge(&facts), Verdict::forbid(vec![]), "{facts:?}");
        assert!(set.explain(&facts).malformed.is_some());
    }
}

/// What is asked again in between is weighed by itself, whatever was weighed before it.
#[test]
fn every_situation_is_weighed_by_its_own_facts() {
    let set = set(RULES);
    for _ in 0..2 {
        for resource in ["test", "deploy", "deploy", "wipe", "test", "test"] {
            let alone = crate::world::set(RULES).judge(&facts(resource));
            assert_eq!(set.judge(&facts(resource)), alone, "{resource}");
            let granted = set.grant(&facts(resource), &[], ());
            assert_eq!(granted.is_ok(), matches!(alone, Verdict::Permit { .. }), "{resource}");
        }
    }
}
