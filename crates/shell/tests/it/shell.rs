//! Our words against the shell's own.

use std::io::Write;
use std::process::{Command, Stdio};

use outrigger_shell::label;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// A character of a path, quoted in one of the ways.
fn disguised(c: char) -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        c.to_string(),
        c.to_string(),
        format!("\\{c}"),
        format!("'{c}'"),
        format!("\"{c}\""),
        format!("''{c}"),
        format!("{c}\"\""),
        format!("$'\\x{:02x}'", u32::from(c)),
        format!("$'\\{:o}'", u32::from(c)),
        format!("{{{c},x}}"),
        format!("\\\n{c}"),
    ])
}

/// Ways to write a path.
fn written() -> impl Strategy<Value = String> {
    let front =
        vec!["/", "//", "/./", "../", "./../", "/x/../", "~/../", "$v/../../", "''/", "\"$u\"/"];
    let spelled = "memory".chars().map(disguised).collect::<Vec<_>>();
    let joined = prop::sample::select(vec![
        "$v$w",
        "/$v/../$v\"$w\"",
        "${v}ory",
        "{/memory,x}",
        "\"$v\"ory",
    ]);
    let loose = prop::sample::select(vec![
        "/", "m", "memory", "..", ".", "x", "'", "\"", "\\", "{", "}", ",", "$v", "\"$v\"", "$w",
        "~",
    ]);
    prop_oneof![
        (prop::sample::select(front), spelled)
            .prop_map(|(front, name)| front.to_owned() + &name.concat()),
        joined.prop_map(str::to_owned),
        prop::collection::vec(loose, 1..8).prop_map(|pieces| pieces.concat()),
    ]
}

/// Whether a path that the shell made of a word is a guarded one.
fn guarded(path: &str) -> bool {
    let mut parts: Vec<&str> = Vec::new();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/workspace/{path}") };
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.first() == Some(&"memory")
}

/// What the shell makes of words of `cat`; nothing where it finds an error.
fn words(commands: &[String]) -> Vec<Option<Vec<String>>> {
    let mut script = String::from("cat() { printf '%s\\0' \"$@\"; }\nHOME=/workspace\n");
    for command in commands {
        let text = command.replace('\'', "'\\''");
        script +=
            &format!("(set -f; eval '{text}') 2>/dev/null || printf '\\1\\0'; printf '\\2\\0'\n");
    }
    let mut shell = Command::new("bash")
        .args(["--norc", "--noprofile", "-s"])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("this test needs `bash`: {error}"));
    let mut input = shell.stdin.take().expect("its input is a pipe");
    let writer =
        std::thread::spawn(move || input.write_all(script.as_bytes()).expect("it reads all"));
    let output = shell.wait_with_output().expect("it ends");
    writer.join().expect("it was written");
    let text = String::from_utf8(output.stdout).expect("words are text");
    let mut out = vec![Some(Vec::new())];
    for word in text.split_terminator('\0') {
        match word {
            "\u{1}" => *out.last_mut().expect("one is open") = None,
            "\u{2}" => out.push(Some(Vec::new())),
            word => {
                if let Some(words) = out.last_mut().expect("one is open") {
                    words.push(word.to_owned());
                }
            }
        }
    }
    out.pop();
    out
}

#[test]
fn no_word_that_the_shell_turns_into_a_guarded_path_is_clean() {
    let mut runner = TestRunner::default();
    let mut commands = Vec::new();
    for _ in 0..3_000 {
        let word = written().new_tree(&mut runner).unwrap().current();
        commands.push(format!("v=/mem; w=ory; cat {word}"));
    }
    let shell = words(&commands);
    assert_eq!(shell.len(), commands.len());
    let mut reached = 0;
    for (command, words) in commands.iter().zip(shell) {
        let Some(words) = words else { continue };
        if words.iter().any(|word| guarded(word)) {
            reached += 1;
            let facts = label(command, &["/memory"]);
            assert!(!facts.is_clean(), "{command} becomes {words:?}");
        }
    }
    assert!(reached > 1_000, "only {reached} of them reach a guarded path");
}
