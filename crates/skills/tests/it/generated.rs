//! Texts that nobody thought of, judged by us and by the reference.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::reference;

/// Values, well and badly written.
fn value() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "b", "Use this", " ", " ", "-", "--", ":", ": ", "#", " #", "'", "\"", "\\", "\\n",
        "|", ">", "&", "*", "!", "%", "@", "`", "{", "}", "[", "]", ",", "?", "é", "名", "1",
        "null", "~", "\n  ", "\n", "\n- ", "\t", "=", "<", "''", "\"\"", "...", "\u{a0}",
    ]);
    let tidy = prop::sample::select(vec![
        "a",
        "text of a kind",
        "'quoted: text'",
        "\"double \\u00e9\"",
        "|\n  two\n  lines",
        ">-\n  folded\n\n  text",
        "\n  - one\n  - two",
        "\n  x: y\n  z: w",
        "",
        "1.0",
        "\n  more\n  lines",
    ]);
    prop_oneof![
        2 => tidy.prop_map(str::to_owned),
        1 => prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat()),
    ]
}

fn line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "license",
        "compatibility",
        "metadata",
        "allowed-tools",
        "license",
        "metadata",
        "name",
        "extra",
        "  nested",
        "? key",
        "- item",
        "\"license\"",
        "#",
    ]);
    let colon = prop::sample::select(vec![": ", ": ", ": ", ":", " : ", ":  "]);
    (key, colon, value()).prop_map(|(key, colon, value)| format!("{key}{colon}{value}\n"))
}

fn text() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "a", "a", "a", "a", "a ", "'a'", "\"a\"", "A", "b", "-a", "a # x",
    ]);
    let description = prop_oneof![3 => Just("b".to_owned()), 2 => value()];
    (name, description, prop::collection::vec(line(), 0..4), prop::bool::weighted(0.1)).prop_map(
        |(name, description, lines, mixed)| {
            let mut parts =
                vec![format!("name: {name}\n"), format!("description: {description}\n")];
            parts.extend(lines);
            if mixed {
                parts.reverse();
            }
            format!("---\n{}---\nbody\n", parts.concat())
        },
    )
}

#[test]
fn the_reference_says_the_same_of_five_hundred_texts() {
    // The same ones each time: what is held here is that we agree, not where we may not.
    let mut runner = TestRunner::deterministic();
    let count =
        std::env::var("SKILLS_TEXTS").ok().and_then(|count| count.parse().ok()).unwrap_or(500);
    let texts: Vec<(String, String)> = (0..count)
        .map(|_| ("a".to_owned(), text().new_tree(&mut runner).expect("it makes one").current()))
        .collect();
    let valid = reference::agree(&texts);
    assert!(valid * 10 > texts.len(), "{valid} are valid");
}
