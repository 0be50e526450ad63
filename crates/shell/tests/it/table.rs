//! Commands with the labels that they must get.

use crate::word;

/// `label|command`, or `label|command|second label`; `⏎` stands for a line break.
const TABLE: &str = include_str!("table.txt");

#[test]
fn every_command_of_the_table_has_its_label() {
    let rows = TABLE.lines().filter(|row| !row.is_empty() && !row.starts_with("# "));
    let mut wrong = Vec::new();
    let mut count = 0;
    for row in rows {
        let (label, command) = row.split_once('|').unwrap();
        // A command may hold `|` itself.
        let (command, second) = match command.rsplit_once('|') {
            Some((command, second @ ("touches" | "opaque"))) => (command, Some(second)),
            _ => (command, None),
        };
        let expected = match second {
            Some(_) => "opaque, touches",
            None => label,
        };
        let found = word(&command.replace('⏎', "\n"));
        if found != expected {
            wrong.push(format!("{found} instead of {expected}: {command}"));
        }
        count += 1;
    }
    assert!(count > 300, "the table has {count} rows");
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}
