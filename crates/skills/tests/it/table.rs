//! Texts with what is said of each: the rules one by one.

use std::fmt::Write;

use expect_test::expect_file;
use outrigger_skills::validate;

use crate::{only, reference};

/// The folder and the frontmatter, between its lines.
const FRONTS: &[(&str, &str)] = &[
    ("pdf-processing", "name: pdf-processing\ndescription: Reads PDF files."),
    ("a", "name: a\ndescription: b"),
    (
        "a",
        "name: a\ndescription: b\nlicense: Apache-2.0\ncompatibility: needs git\nmetadata:\n  author: example-org\n  version: \"1.0\"\nallowed-tools: Bash(git:*) Read",
    ),
    // The specification's invalid names.
    ("PDF-Processing", "name: PDF-Processing\ndescription: b"),
    ("-pdf", "name: -pdf\ndescription: b"),
    ("pdf--processing", "name: pdf--processing\ndescription: b"),
    ("pdf-", "name: pdf-\ndescription: b"),
    ("pdf_processing", "name: pdf_processing\ndescription: b"),
    ("a b", "name: a b\ndescription: b"),
    ("a.b", "name: a.b\ndescription: b"),
    ("b", "name: a\ndescription: b"),
    ("a", "name: ''\ndescription: b"),
    ("a", "name:\ndescription: b"),
    ("a", "name: '  '\ndescription: b"),
    ("a", "name: ' a '\ndescription: b"),
    ("a", "name: [a]\ndescription: b"),
    ("a", "name:\n  - a\ndescription: b"),
    ("a", "name:\n  b: a\ndescription: b"),
    ("1", "name: 1\ndescription: 2"),
    ("true", "name: true\ndescription: null"),
    ("2026-01-01", "name: 2026-01-01\ndescription: ~"),
    ("größe", "name: größe\ndescription: b"),
    ("技能", "name: 技能\ndescription: b"),
    ("навык", "name: навык\ndescription: b"),
    ("Навык", "name: Навык\ndescription: b"),
    ("ﬁle", "name: file\ndescription: b"),
    ("file", "name: ﬁle\ndescription: b"),
    ("cafe\u{301}", "name: café\ndescription: b"),
    ("a²", "name: a²\ndescription: b"),
    ("ⅷ", "name: ⅷ\ndescription: b"),
    ("a🅰", "name: a🅰\ndescription: b"),
    ("का", "name: का\ndescription: b"),
    ("ªb", "name: ªb\ndescription: b"),
    ("σς", "name: σς\ndescription: b"),
    ("ｆｏｏ", "name: ｆｏｏ\ndescription: b"),
    ("a\u{200d}b", "name: a\u{200d}b\ndescription: b"),
    // The description.
    ("a", "name: a"),
    ("a", "description: b"),
    ("a", "name: a\ndescription:"),
    ("a", "name: a\ndescription: ''"),
    ("a", "name: a\ndescription: \"\\t\\x1c\""),
    ("a", "name: a\ndescription:\n  - b"),
    ("a", "name: a\ndescription: |\n  b\n  c"),
    ("a", "name: a\ndescription: >-\n  b\n  c"),
    ("a", "name: a\ndescription: b\n  c\n  d"),
    ("a", "name: a\ndescription: <b> & \"c\" 'd'"),
    ("a", "name: a\ndescription: 'it''s'"),
    ("a", "name: a\ndescription: \"\\u00e9\\n\\\"\""),
    ("a", "name: a\ndescription: Use when: always"),
    ("a", "name: a\ndescription: a # b"),
    ("a", "name: a\ndescription: # b"),
    ("a", "name: a\ndescription: ="),
    ("a", "name: a\ndescription: <<"),
    ("a", "name: a\ndescription: b\tc"),
    ("a", "name: a\ndescription: b # \tc"),
    ("a", "name: a\ndescription: 'b\tc'"),
    ("a", "name: a\ndescription: |\n  b\tc"),
    ("a", "name: a\ndescription: |\t\n  b"),
    ("a", "name: a\ndescription: b\t"),
    // The other fields.
    ("a", "name: a\ndescription: b\nversion: 1"),
    ("a", "name: a\ndescription: b\nName: a"),
    ("a", "name: a\ndescription: b\nallowed_tools: x"),
    ("a", "name: a\ndescription: b\ncompatibility: ''"),
    ("a", "name: a\ndescription: b\ncompatibility:\n  - x"),
    ("a", "name: a\ndescription: b\nmetadata: x"),
    ("a", "name: a\ndescription: b\nmetadata:\n  - x"),
    ("a", "name: a\ndescription: b\nmetadata:"),
    ("a", "name: a\ndescription: b\nmetadata:\n  x:\n    y: z"),
    ("a", "name: a\ndescription: b\nallowed-tools:\n  - x\n  - y"),
    ("a", "name: a\ndescription: b\nlicense:\n  - x"),
    // What the frontmatter does not take.
    ("a", "name: a\ndescription: {b: c}"),
    ("a", "{name: a, description: b}"),
    ("a", "name: &x a\ndescription: b"),
    ("a", "name: a\ndescription: *x"),
    ("a", "name: &x a\ndescription: *x"),
    ("a", "name: !!str a\ndescription: b"),
    ("a", "name: !x a\ndescription: b"),
    ("a", "name: a\nname: a\ndescription: b"),
    ("a", "name: a\ndescription: b\nmetadata:\n  x: 1\n  x: 2"),
    ("a", "name: a\ndescription: b\nmetadata: {}"),
    ("a", "name: a\ndescription: b\nmetadata:\n  <<:\n    x: y"),
    ("a", "- name: a"),
    ("a", "just text"),
    ("a", ""),
    ("a", "# only words"),
    ("a", "name: a\n\tdescription: b"),
    ("a", "name: a\n description: b"),
    ("a", "name: 'a\ndescription: b"),
    ("a", "name: a\ndescription: \"\\q\""),
    ("a", "name: a\ndescription: @b"),
    ("a", "name: a\ndescription: `b`"),
    ("a", "name: a\ndescription: %b"),
    ("a", "name: a\ndescription: - b"),
    ("a", "name: a\ndescription: b\n..."),
    ("a", "name: a\ndescription: b\n...\nname: a"),
    ("a", "%YAML 1.2\nname: a\ndescription: b"),
    ("a", "? name\n: a\n? description\n: b"),
    ("a", "? - x\n: a"),
    ("a", "\"name\": a\n'description': b"),
    ("a", "name : a\ndescription : b"),
    ("a", "name:a\ndescription: b"),
    ("a", "name: a\ndescription: b\u{7}"),
    ("a", "name: a\ndescription: b\u{85}c"),
    ("a", "name: a\ndescription: b\u{2028}c"),
    ("a", "name: a\ndescription: b\u{feff}c"),
    ("a", "name: a\ndescription: \"b\n\n  c\""),
    ("a", "name: a\r\ndescription: b\r\n"),
    ("a", "name: a\rdescription: b"),
    ("a", "  name: a\n  description: b"),
    ("a", "name: a\ndescription: b\nmetadata:\n    x: y\n    z: w"),
    ("a", "name: a\ndescription: b\nmetadata:\n x: y\nlicense:\n  x: y"),
    ("a", "name: a\ndescription: b\nmetadata:\n- x\n- y"),
];

/// Whole texts.
const WHOLE: &[&str] = &[
    "",
    "---",
    "------",
    "---\n---",
    "---\nname: a\ndescription: b\n",
    "---name: a\ndescription: b---",
    "---\nname: a\ndescription: b---c\n---\n",
    "\n---\nname: a\ndescription: b\n---\n",
    " ---\nname: a\ndescription: b\n---\n",
    "\u{feff}---\nname: a\ndescription: b\n---\n",
    "--- # x\nname: a\ndescription: b\n---\n",
    "----\nname: a\ndescription: b\n---\n",
    "# Words\n\nname: a",
    "---\nname: a\ndescription: b\n----\n",
    "---\nname: a\ndescription: b\n---",
    "---\r\nname: a\r\ndescription: b\r\n---\r\nbody\r\n",
    "---\nname: a\ndescription: |\n  b\n  ---\n  c\n---\n",
];

fn texts() -> Vec<(String, String)> {
    let fronts = FRONTS
        .iter()
        .map(|(folder, front)| ((*folder).to_owned(), format!("---\n{front}\n---\n# Body\n")));
    let whole = WHOLE.iter().map(|text| ("a".to_owned(), (*text).to_owned()));
    let long = [
        ("a".repeat(64), format!("---\nname: {}\ndescription: b\n---\n", "a".repeat(64))),
        ("a".repeat(65), format!("---\nname: {}\ndescription: b\n---\n", "a".repeat(65))),
        ("a".to_owned(), format!("---\nname: a\ndescription: {}\n---\n", "é".repeat(1_024))),
        ("a".to_owned(), format!("---\nname: a\ndescription: {}\n---\n", "é".repeat(1_025))),
        (
            "a".to_owned(),
            format!("---\nname: a\ndescription: b\ncompatibility: {}\n---\n", "é".repeat(500)),
        ),
        (
            "a".to_owned(),
            format!("---\nname: a\ndescription: b\ncompatibility: {}\n---\n", "é".repeat(501)),
        ),
    ];
    fronts.chain(whole).chain(long).collect()
}

#[test]
fn every_text_of_the_table_has_its_problems() {
    let mut said = String::new();
    for (folder, text) in texts() {
        let short: String = format!("{text:?}").chars().take(100).collect();
        writeln!(said, "{folder} {short}").expect("a text grows");
        for problem in validate(&only(&text), &folder) {
            writeln!(said, "    {problem}: {}", problem.reason).expect("a text grows");
        }
    }
    expect_file!["table.txt"].assert_eq(&said);
}

#[test]
fn the_reference_says_the_same_of_the_table() {
    let texts = texts();
    assert!(texts.len() > 120);
    let valid = reference::agree(&texts);
    assert!(valid > 40, "{valid} are valid");
}
