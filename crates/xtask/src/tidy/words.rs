//! Rules of words that a source may not hold: suppressions without a reason,
//! unfinished work, waiting by the clock, `unsafe` outside the isolation crates, docs that
//! only point at their neighbour.

use super::project::Project;
use crate::finding::Finding;
use crate::source::Source;

/// Crates that make sandboxes, and so may hold `unsafe`, and the program that attacks
/// them from inside.
const UNSAFE_CRATES: &[&str] =
    &["evil", "guest", "sandbox-native", "sandbox-docker", "sandbox-kube", "sandbox-remote"];

/// How a doc comment begins that says nothing to who reads it alone: a tooltip shows one
/// item, without its neighbour and without its module.
const BEGINNINGS: &[&str] = &[
    "See the module",
    "The same,",
    "The same.",
    "The same;",
    "The same for ",
    "The same with ",
    "The same where ",
    "The same by ",
    "The same of ",
    "The same without ",
    "The same to be ",
];

fn find(
    project: &Project,
    each: impl Fn(&Source) -> Vec<(usize, String)>,
    rule: &'static str,
) -> Vec<Finding> {
    project
        .sources
        .files
        .iter()
        .flat_map(|source| {
            each(source)
                .into_iter()
                .map(|(line, message)| Finding::error(&source.path, line, rule, message))
        })
        .collect()
}

/// A lint is expected with a reason, and no test is switched off.
pub(super) fn suppressions(project: &Project) -> Vec<Finding> {
    const PATTERNS: &[(&[&str], &str)] = &[
        (
            &["#", "[", "allow", "("],
            "`allow` outlives its cause: `#[expect(lint, reason = \"...\")]`",
        ),
        (
            &["#", "!", "[", "allow", "("],
            "`allow` outlives its cause: `#![expect(lint, reason = \"...\")]`",
        ),
        (&["#", "[", "ignore"], "an ignored test tests nothing: mend it or remove it"),
    ];
    find(project, |source| matches(source, PATTERNS), "suppression")
}

/// Nothing in the tree is a promise to finish it later.
pub(super) fn unfinished(project: &Project) -> Vec<Finding> {
    const PATTERNS: &[(&[&str], &str)] = &[
        (&["todo", "!"], "unfinished: write it, or leave out what leads here"),
        (&["unimplemented", "!"], "unfinished: write it, or leave out what leads here"),
    ];
    // In two halves, so that this file does not find itself.
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
    let each = |source: &Source| {
        let mut found = matches(source, PATTERNS);
        for (index, line) in source.lexed.without_literals(&source.text).iter().enumerate() {
            let is_word = |char: char| char.is_alphanumeric() || char == '_';
            if let Some(mark) = line.split(|char| !is_word(char)).find(|word| marks.contains(word))
            {
                found.push((index + 1, format!("`{mark}`: do it, or open an issue")));
            }
        }
        found
    };
    find(project, each, "unfinished")
}

/// A test waits for an event, or polls with a bound and says so on the line.
pub(super) fn sleeps(project: &Project) -> Vec<Finding> {
    let each = |source: &Source| {
        let lines: Vec<&str> = source.text.lines().collect();
        let reasoned = |line: usize| {
            let above = line.checked_sub(2).and_then(|index| lines.get(index));
            let same = lines.get(line - 1);
            above.is_some_and(|text| text.trim_start().starts_with("// poll:"))
                || same.is_some_and(|text| text.contains("// poll:"))
        };
        let tokens = &source.lexed.tokens;
        tokens
            .windows(3)
            .filter(|window| window[1].text == "sleep" && window[2].text == "(")
            // A method of a virtual clock, or a definition, waits for nothing.
            .filter(|window| window[0].text != "." && window[0].text != "fn")
            .map(|window| window[1].line)
            .filter(|line| source.is_test_line(*line) && !reasoned(*line))
            .map(|line| {
                (line, "a test sleeps: wait for an event, or give `// poll:` and why".to_owned())
            })
            .collect()
    };
    find(project, each, "sleep-in-test")
}

/// Only the crates that make sandboxes hold `unsafe`, and nobody lifts the ban.
pub(super) fn unsafe_code(project: &Project) -> Vec<Finding> {
    let message = "`unsafe` is for the crates that make sandboxes: find a safe call";
    let each = |source: &Source| {
        if UNSAFE_CRATES.contains(&source.krate.as_str()) {
            return Vec::new();
        }
        let words = source.lexed.find(&["unsafe"]);
        let lifted = ["allow", "warn", "expect"]
            .iter()
            .flat_map(|lint| source.lexed.find(&[lint, "(", "unsafe_code"]).collect::<Vec<_>>());
        words.chain(lifted).map(|line| (line, message.to_owned())).collect()
    };
    find(project, each, "unsafe")
}

/// A doc comment stands by itself.
pub(super) fn leaning_docs(project: &Project) -> Vec<Finding> {
    let each = |source: &Source| {
        let lines = source.lexed.without_literals(&source.text);
        let docs: Vec<Option<&str>> = lines.iter().map(|line| doc(line)).collect();
        let begins = |index: usize| index == 0 || docs[index - 1].is_none();
        docs.iter()
            .enumerate()
            .filter(|(index, _)| begins(*index))
            .filter_map(|(index, text)| {
                let text = (*text)?;
                let beginning =
                    BEGINNINGS.iter().find(|beginning| text.starts_with(**beginning))?;
                let message = format!("`{}` leans on its neighbour: say it here", beginning.trim());
                Some((index + 1, message))
            })
            .collect()
    };
    find(project, each, "leaning-doc")
}

/// The text of a line of a doc comment.
fn doc(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim_start)
}

fn matches(source: &Source, patterns: &[(&[&str], &str)]) -> Vec<(usize, String)> {
    patterns
        .iter()
        .flat_map(|(tokens, message)| {
            source.lexed.find(tokens).map(|line| (line, (*message).to_owned())).collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::project::check;
    use super::*;

    #[test]
    fn suppressions_carry_a_reason() {
        check(
            suppressions,
            [(
                "crates/store/src/lib.rs",
                "#![allow(dead_code)]\n#[allow(x)]\nfn f() {}\n#[expect(x, reason = \"y\")]\nfn g() { let s = \"#[allow(x)]\"; }\nproptest! {\n    #[test]\n    #[ignore = \"later\"]\n    fn h() {}\n}\n",
            )],
            &expect![[r#"
                crates/store/src/lib.rs:2: suppression: `allow` outlives its cause: `#[expect(lint, reason = "...")]`
                crates/store/src/lib.rs:1: suppression: `allow` outlives its cause: `#![expect(lint, reason = "...")]`
                crates/store/src/lib.rs:8: suppression: an ignored test tests nothing: mend it or remove it
            "#]],
        );
    }

    #[test]
    fn unfinished_work_is_found_in_code_and_comments() {
        let mark = concat!("FIX", "ME");
        let text = format!(
            "fn f() {{ todo!() }}\n// {mark}: later\nfn g() {{ \"{mark}\"; }}\n/// {mark}S and my{mark} are other words.\nfn h() {{\n    unimplemented!(\"x\")\n}}\n"
        );
        check(
            unfinished,
            [("crates/store/src/lib.rs", &text)],
            &expect![[r"
                crates/store/src/lib.rs:1: unfinished: unfinished: write it, or leave out what leads here
                crates/store/src/lib.rs:6: unfinished: unfinished: write it, or leave out what leads here
                crates/store/src/lib.rs:2: unfinished: `FIXME`: do it, or open an issue
            "]],
        );
    }

    #[test]
    fn tests_do_not_sleep() {
        check(
            sleeps,
            [
                (
                    "crates/store/src/lib.rs",
                    "fn f() { std::thread::sleep(d); }\n#[cfg(test)]\nmod tests {\n    fn g() { sleep(d); }\n    fn h() { clock.sleep(d); }\n}\n",
                ),
                (
                    "crates/store/tests/it/main.rs",
                    "fn a() { tokio::time::sleep(d).await; }\nfn b() { sleep(d); } // poll: the kernel tells nobody\n// poll: bounded by TRIES\nfn c() { sleep(d); }\nfn sleep(d: u8) {}\n",
                ),
            ],
            &expect![[r"
                crates/store/src/lib.rs:4: sleep-in-test: a test sleeps: wait for an event, or give `// poll:` and why
                crates/store/tests/it/main.rs:1: sleep-in-test: a test sleeps: wait for an event, or give `// poll:` and why
            "]],
        );
    }

    #[test]
    fn unsafe_stays_in_the_isolation_crates() {
        let text = "#![forbid(unsafe_code)]\nfn f() { unsafe { g() } }\n";
        check(
            unsafe_code,
            [
                ("crates/guest/src/lib.rs", text),
                ("crates/sandbox-native/src/lib.rs", text),
                ("crates/store/src/lib.rs", text),
                ("crates/model/src/lib.rs", "#![expect(unsafe_code, reason = \"fast\")]\n"),
            ],
            &expect![[r"
                crates/model/src/lib.rs:1: unsafe: `unsafe` is for the crates that make sandboxes: find a safe call
                crates/store/src/lib.rs:2: unsafe: `unsafe` is for the crates that make sandboxes: find a safe call
            "]],
        );
    }
    #[test]
    fn docs_stand_by_themselves() {
        check(
            leaning_docs,
            [(
                "crates/store/src/lib.rs",
                "//! The same, once more.\n\n/// Rows.\nfn f() {}\n/// The same for columns.\nfn g() {}\n/// See the module.\nstruct S {\n    /// The same disk.\n    a: u8,\n    /// Cells: what a row has,\n    /// The same. Not the beginning.\n    b: u8,\n    // The same, not shown to anybody.\n    c: u8,\n}\n",
            )],
            &expect![[r"
                crates/store/src/lib.rs:1: leaning-doc: `The same,` leans on its neighbour: say it here
                crates/store/src/lib.rs:5: leaning-doc: `The same for` leans on its neighbour: say it here
                crates/store/src/lib.rs:7: leaning-doc: `See the module` leans on its neighbour: say it here
            "]],
        );
    }
}
