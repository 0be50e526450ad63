//! What a decision costs, by how many rules it looks at.

use outrigger_policy::{
    Action, Directory, Facts, Left, Principal, RulePart, RuleSet, ShellFacts, Source,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use crate::error::{Error, ErrorContext, Outcome};
use crate::figure::Figure;
use crate::sizes;

/// What is promised for the 99th percentile of the figure with this name.
const PROMISED: (&str, &str) = ("policy/200_rules", "1");

pub(crate) fn measure() -> Outcome<Vec<Figure>> {
    let mut figures = Vec::new();
    let everybody = [
        ("policy/default", 0, ""),
        ("policy/50_rules", 50, ""),
        ("policy/200_rules", 200, ""),
        ("policy/200_of_one", 200, "principal"),
        ("policy/1000_rules", 1_000, ""),
    ];
    for (name, count, of) in everybody {
        figures.push(decisions(name, &rules(count, of)?)?);
    }
    Ok(figures)
}

/// The default rules, and so many that look at everything and apply to nothing but the
/// last. They speak of whoever is asked, or of the situation alone.
fn rules(count: usize, of: &str) -> Outcome<RuleSet> {
    let mut text = String::new();
    for number in 0..count {
        let who = match of {
            "" => "context.person",
            own => own,
        };
        writeln!(
            text,
            "@id(\"rule-{number}\") @approvable(\"group:ops\")
            forbid (principal, action == Action::\"egress\", resource in Host::\"h{number}.example\")
            when {{ {who} in Group::\"ops\" && context.labels.contains(\"untrusted\")
                && !(context has shell && context.shell.programs.contains(\"p{number}\")) }};"
        )
        .expect("a String takes everything");
    }
    let member = |number: usize| Principal::Person(format!("p{number}"));
    let mut ops: BTreeSet<Principal> = (0..sizes::POLICY_PEOPLE).map(member).collect();
    ops.insert(Principal::Person("ada".to_owned()));
    let groups = BTreeMap::from([("ops".to_owned(), ops)]);
    let directory = Directory { organisation: "acme".to_owned(), groups };
    let own = Source { name: "rules".to_owned(), text, part: RulePart::Rules };
    RuleSet::new(&[RuleSet::default_source(), own], directory).doing("taking rules into force")
}

fn decisions(name: &'static str, rules: &RuleSet) -> Outcome<Figure> {
    let labels: BTreeSet<String> = ["untrusted".to_owned(), "from:web".to_owned()].into();
    let shell = ShellFacts { programs: ["curl".to_owned()].into(), ..ShellFacts::default() };
    let facts = Facts {
        labels: &labels,
        shell: Some(&shell),
        sandbox: Some("main"),
        tool: Some("execute"),
        left: Left { tokens: Some(1_000_000), ..Left::default() },
        at_ms: 1_700_000_000_000,
        ..Facts::new("person:ada", Action::Egress, "api.h0.example")
    };
    let found = rules.judge(&facts);
    if found.rules().is_empty() {
        return Err(Error::Astray(format!("{name}: nothing decided: {found:?}")));
    }
    let samples = (0..sizes::POLICY_DECISIONS).map(|number| {
        // The same situation is not weighed twice.
        let facts = Facts { at_ms: facts.at_ms + number as u64, ..facts };
        let begun = Instant::now();
        black_box(rules.judge(black_box(&facts)));
        begun.elapsed().as_secs_f64() * 1_000.0
    });
    Ok(Figure::of(name, "ms", samples.collect()))
}

pub(crate) fn shown(figures: &[Figure]) -> String {
    let mut text = format!(
        "{:<22}{:<5}{:>7}{:>9}{:>9}{:>9}  target of p99\n",
        "figure", "unit", "n", "min", "p50", "p99"
    );
    for Figure { name, unit, n, min, p50, p99 } in figures {
        let target = if *name == PROMISED.0 { PROMISED.1 } else { "-" };
        writeln!(text, "{name:<22}{unit:<5}{n:>7}{min:>9.3}{p50:>9.3}{p99:>9.3}  {target}")
            .expect("a String takes everything");
    }
    text.push_str(
        "\nRules of every line but `of_one` speak of the situation and are asked once; those of \
         `of_one`\nspeak of whoever is asked, and are asked of agent, person and organisation.",
    );
    text
}
