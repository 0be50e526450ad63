//! What is wrong with rules is told with its line and what to do.

use expect_test::{Expect, expect};
use outrigger_policy::{Directory, Problem, RuleSet};
use std::fmt::Write;

use crate::world::{acme, ceiling, rules};

fn told(problems: &[Problem]) -> String {
    let mut text = String::new();
    for problem in problems {
        writeln!(text, "{:?}: {problem} [{}]", problem.severity, problem.help).unwrap();
    }
    text
}

fn check(text: &str, expected: Expect) {
    let found = match RuleSet::new(&[rules(text)], acme()) {
        Ok(set) => told(set.warnings()),
        Err(problems) => told(&problems.0),
    };
    expected.assert_eq(&found);
}

#[test]
fn a_text_that_is_no_cedar() {
    check(
        "\n\npermit (principal, action, resource) when { ; }",
        expect![[r#"
            Error: rules.cedar, line 3: unexpected token `;` (expected `!`, `(`, `-`, `[`, `{`, `}`, `false`, identifier, `if`, number, `?principal`, `?resource`, string literal, or `true`) []
            Error: rules.cedar, line 3: unexpected token `}` (expected `@` or identifier) []
        "#]],
    );
    check(
        "@id(\"a\")\npermit (principal, action);",
        expect![[r#"
        Error: rules.cedar, line 2: this policy is missing the `resource` variable in the scope [policy scopes must contain a `principal`, `action`, and `resource` element in that order]
    "#]],
    );
}

#[test]
fn words_that_the_schema_does_not_know() {
    check(
        "@id(\"a\")\npermit (principal, action == Action::\"exec\", resource);",
        expect![[r#"
            Error: rules.cedar, line 2: for policy `a`, unrecognized action `Action::"exec"` [did you mean `Action::"execute"`?]
        "#]],
    );
    check(
        "@id(\"a\")\npermit (principal, action, resource)\nwhen { context.label.contains(\"x\") };",
        expect![[r#"
            Error: rules.cedar, line 3: for policy `a`, attribute `label` in context not found [did you mean `labels`?]
        "#]],
    );
    check(
        "@id(\"a\")\npermit (principal == User::\"ada\", action, resource);",
        expect![[r#"
            Error: rules.cedar, line 2: for policy `a`, unrecognized entity type `User` [The types are Person, Agent, Group, Organisation, Model, Sandbox, Path, Zone, Host, Secret, Memory, Server, Tool, Effect, Trigger.]
        "#]],
    );
    check(
        "@id(\"a\")\npermit (principal, action, resource)\nwhen { context.shell.opaque };",
        expect![[r#"
            Error: rules.cedar, line 3: for policy `a`, unable to guarantee safety of access to optional attribute `shell` in context [try testing for the attribute's presence with `context has shell && ..`]
        "#]],
    );
}

#[test]
fn names_that_nothing_has() {
    for name in [
        "Host::\"Evil.example\"",
        "Host::\"127.1\"",
        "Host::\"::ffff:10.0.0.1\"",
        "Memory::\"/memory/team/\"",
        "Path::\"src/main.rs\"",
        "Tool::\"delete\"",
        "Zone::\"internal\"",
    ] {
        let text = format!("@id(\"a\") forbid (principal, action, resource in {name});");
        assert!(RuleSet::new(&[rules(&text)], acme()).is_err(), "{name}");
    }
    check(
        "@id(\"a\") forbid (principal, action, resource in Host::\"Evil.example\");",
        expect![[r#"
            Error: rules.cedar, line 1: `a` names Host::"Evil.example", and nothing is ever spelled so [Write `Host::"evil.example"`.]
        "#]],
    );
    check(
        "@id(\"a\") forbid (principal, action, resource) when { context.trigger == Trigger::\"cron\" };",
        expect![[r#"
            Error: rules.cedar, line 1: for policy `a`: entity `Trigger::"cron"` is of an enumerated entity type, but `"cron"` is not declared as a valid eid [valid entity eids: "person", "schedule", "webhook", "agent"]
        "#]],
    );
}

#[test]
fn names_and_annotations() {
    check(
        "permit (principal, action, resource);",
        expect![[r#"
        Error: rules.cedar, line 1: it has no name: expected `@id("...")` with 1 to 64 characters of a-z A-Z 0-9 _ - . : / [Decisions name the rules that made them.]
    "#]],
    );
    check(
        "@id(\"a b\") permit (principal, action, resource);",
        expect![[r#"
        Error: rules.cedar, line 1: it has no name: expected `@id("...")` with 1 to 64 characters of a-z A-Z 0-9 _ - . : / [Decisions name the rules that made them.]
    "#]],
    );
    check(
        "@id(\"a\") @approveable(\"x\") forbid (principal, action, resource);",
        expect![[r#"
        Error: rules.cedar, line 1: `@approveable` is unknown: the annotations are @id, @approvable, @escalates and @reason []
    "#]],
    );
    check(
        "@id(\"a\") @approvable(\"anyone\") permit (principal, action, resource);",
        expect![[r#"
            Error: rules.cedar, line 1: `a` permits, and what is permitted needs no approval [Write a `forbid` that is approvable, beside a `permit`.]
        "#]],
    );
    check(
        "@id(\"a\") @approvable(\"agent:x\") forbid (principal, action, resource);",
        expect![[r#"
            Error: rules.cedar, line 1: `a` names nobody who may approve: `agent:x` can't approve: only people do [For example `@approvable("group:ops,person:ada")` or `@approvable("anyone")`.]
        "#]],
    );
    check(
        "@id(\"a\") @approvable(\"ops\") forbid (principal, action, resource);",
        expect![[r#"
        Error: rules.cedar, line 1: `a` names nobody who may approve: `ops` is not person:NAME, agent:NAME, group:NAME or org:NAME [For example `@approvable("group:ops,person:ada")` or `@approvable("anyone")`.]
    "#]],
    );
    check(
        "@id(\"a\") @escalates(\"anyone\") permit (principal, action, resource);",
        expect![[r#"
        Error: rules.cedar, line 1: `a` permits, and what is permitted needs no approval [Write a `forbid` that is approvable, beside a `permit`.]
    "#]],
    );
    check(
        "@id(\"a\") @escalates(\"anyone\") forbid (principal, action, resource);",
        expect![[r#"
        Error: rules.cedar, line 1: `a` escalates, and asks nobody before [Add `@approvable("...")` with whom it asks first.]
    "#]],
    );
    check(
        "@id(\"a\") @approvable(\"anyone\") @escalates(\"ops\") forbid (principal, action, resource);",
        expect![[r#"
            Error: rules.cedar, line 1: `a` names nobody who may approve: `ops` is not person:NAME, agent:NAME, group:NAME or org:NAME [For example `@escalates("group:leads,person:ada")`.]
        "#]],
    );
    check(
        "@id(\"a\") permit (principal, action, resource);\n@id(\"a\") forbid (principal, action, resource);",
        expect![[r#"
            Error: rules.cedar, line 2: `a` is a name of two rules [The other is in rules.cedar, line 1.]
        "#]],
    );
    check(
        "@id(\"a\") permit (principal == ?principal, action, resource);",
        expect![[r#"
        Error: rules.cedar, line 1: `?principal` and `?resource` are not filled in by anybody [Name who or what is meant.]
    "#]],
    );
}

#[test]
fn what_will_hardly_be_meant() {
    check(
        "@id(\"a\") @approvable(\"person:ada\") @escalates(\"group:legal\") forbid (principal, action, resource);",
        expect![[r#"
            Warning: rules.cedar, line 1: `a` asks `group:legal`, and nobody is in it []
        "#]],
    );
    check(
        "@id(\"a\") @approvable(\"anyone\") @escalates(\"person:ada\") forbid (principal, action, resource);",
        expect![[r#"
            Warning: rules.cedar, line 1: `a` asks anyone, so that it escalates to nobody else []
        "#]],
    );
    check(
        "@id(\"a\") @approvable(\"group:legal\") forbid (principal, action, resource);",
        expect![[r#"
            Warning: rules.cedar, line 1: `a` asks `group:legal`, and nobody is in it []
        "#]],
    );
    check(
        "@id(\"a\") permit (principal, action == Action::\"egress\", resource == Model::\"x\");",
        expect![[r#"
            Warning: rules.cedar, line 1: for policy `a`, policy is impossible: the policy expression evaluates to false for all valid requests []
            Warning: rules.cedar, line 1: for policy `a`, unable to find an applicable action given the policy scope constraints []
        "#]],
    );
    let both = [
        rules("@id(\"a\") permit (principal is Organisation, action, resource);"),
        ceiling("@id(\"b\") permit (principal, action, resource);"),
    ];
    let set = RuleSet::new(&both, acme()).unwrap();
    expect![[r#"
        Warning: rules.cedar, line 1: `a` permits the organisation what only its ceiling can []
    "#]]
    .assert_eq(&told(set.warnings()));
}

#[test]
fn a_directory_that_is_none() {
    let mut lost = acme();
    lost.groups.remove("leads");
    let mut empty = Directory::default();
    empty.organisation.clear();
    let mut said = String::new();
    for directory in [lost, empty] {
        said.push_str(&told(&RuleSet::new(&[], directory).unwrap_err().0));
    }
    expect![[r#"
        Error: the directory: there is no `group:leads` []
        Error: the directory: `org:` is not person:NAME, agent:NAME, group:NAME or org:NAME []
    "#]]
    .assert_eq(&said);
}
