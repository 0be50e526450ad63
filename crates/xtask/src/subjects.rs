//! Subjects of commits: `area: what changed`.
//!
//! Owns their form. Commits of before it was checked are left as they are.

use std::io::{self, Write};
use std::process::Command;

use crate::limits::SUBJECT_CHARS_MAX;

/// The last commit of before it was checked.
const SINCE: &str = "be26411";

/// Says what is wrong with the commits that are checked, a line each; or that there is no
/// history to check, as in an archive of the sources. The exit code: 1 if anything is wrong.
pub(crate) fn run(out: &mut impl Write) -> io::Result<u8> {
    let range = format!("{SINCE}..HEAD");
    let log =
        Command::new("git").args(["log", "--no-merges", "--format=%h%x09%s", &range]).output();
    let why = match log {
        Ok(log) if log.status.success() => {
            let wrong = wrong(&String::from_utf8_lossy(&log.stdout));
            for line in &wrong {
                writeln!(out, "{line}")?;
            }
            writeln!(out, "subjects: {} errors", wrong.len())?;
            return Ok(u8::from(!wrong.is_empty()));
        }
        Ok(log) => String::from_utf8_lossy(&log.stderr).trim().to_owned(),
        Err(error) => format!("git can't be run: {error}"),
    };
    writeln!(out, "subjects: nothing checked, there is no history of commits: {why}")?;
    Ok(0)
}

fn wrong(log: &str) -> Vec<String> {
    let lines = log.lines().filter_map(|line| line.split_once('\t'));
    lines
        .filter_map(|(commit, subject)| Some(format!("{commit}: {}: {subject}", fault(subject)?)))
        .collect()
}

fn fault(subject: &str) -> Option<String> {
    let length = subject.chars().count();
    if length > SUBJECT_CHARS_MAX {
        return Some(format!("{length} characters, at most {SUBJECT_CHARS_MAX}"));
    }
    let is_area = |area: &str| {
        !area.is_empty()
            && area.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    match subject.split_once(": ") {
        Some((areas, what)) if areas.split(", ").all(is_area) && !what.is_empty() => None,
        _ => Some("no `area: what changed`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_subject_has_an_area_and_an_end() {
        let log = format!(
            "a1\tstore: keep a lock\na2\tsandbox-native, guest: end\na3\tKeep a lock\na4\tStore: keep\na5\tstore: {}\n",
            "x".repeat(70)
        );
        expect![[r"
            a3: no `area: what changed`: Keep a lock
            a4: no `area: what changed`: Store: keep
            a5: 77 characters, at most 72: store: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"]]
        .assert_eq(&wrong(&log).join("\n"));
    }
}
