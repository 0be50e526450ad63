//! The reference implementation, as the judge of texts.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use outrigger_skills::{prompt, skill_of, validate};
use serde_json::{Value, json};

use crate::{only, pip};

/// What it says of each.
pub(crate) fn judge(texts: &[(String, String)]) -> Vec<Value> {
    let home = pip::installed("skills-ref", "0.1.1", &["strictyaml==1.7.3"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/reference.py");
    let mut python = Command::new(home.join("bin/python"))
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("this test needs `skills-ref`: {error}"));
    let mut input = python.stdin.take().expect("its input is a pipe");
    let lines: Vec<String> = texts
        .iter()
        .map(|(folder, text)| json!({"folder": folder, "text": text}).to_string())
        .collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            writeln!(input, "{line}").expect("it reads all");
        }
    });
    let output = BufReader::new(python.stdout.take().expect("its output is a pipe"));
    let read = |line: std::io::Result<String>| {
        serde_json::from_str(&line.expect("it writes text")).expect("it writes JSON")
    };
    let answers: Vec<Value> = output.lines().map(read).collect();
    writer.join().expect("all was written");
    assert!(python.wait().expect("it ends").success());
    assert_eq!(answers.len(), texts.len());
    answers
}

/// Holds that we say of each text what the reference says.
pub(crate) fn agree(texts: &[(String, String)]) -> usize {
    let mut wrong = Vec::new();
    let mut valid = 0;
    for ((folder, text), theirs) in texts.iter().zip(judge(texts)) {
        let files = only(text);
        let ours = validate(&files, folder);
        let errors = theirs["errors"].as_array().expect("a list");
        if ours.is_empty() != errors.is_empty() {
            let ours: Vec<String> =
                ours.iter().map(|problem| format!("{problem}: {}", problem.reason)).collect();
            wrong.push(format!("{folder}: {text:?}\n  ours: {ours:?}\n  theirs: {errors:?}"));
        } else if ours.is_empty() {
            valid += 1;
            let skill = skill_of(&files, folder).expect("it has no problem");
            if theirs["name"] != skill.name || theirs["description"] != skill.description {
                wrong.push(format!("{folder}: {text:?}\n  ours: {skill:?}\n  theirs: {theirs}"));
            }
            let shown = prompt(&[("/skills/x/SKILL.md", &skill)]);
            if theirs["prompt"] != shown {
                wrong.push(format!("{shown}\n  theirs: {theirs}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), texts.len(), wrong.join("\n"));
    valid
}
