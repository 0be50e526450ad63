//! The table is whole: every number is there, each tried or with a reason.

use std::collections::BTreeSet;

use outrigger_attack::table::{By, How, rows};

#[test]
fn every_number_from_1_to_85_is_there_once() {
    let numbers: Vec<u8> = rows().map(|row| row.number).collect();
    assert_eq!(numbers, (1..=85).collect::<Vec<u8>>());
    let names: BTreeSet<&str> = rows().map(|row| row.name).collect();
    assert_eq!(names.len(), numbers.len());
}

#[test]
fn every_attack_is_tried_or_says_why_not() {
    for row in rows() {
        match row.how {
            How::Tried(probes) => assert!(!probes.is_empty(), "{}", row.number),
            How::NotApplicable(why) => assert!(why.len() > 20, "{}: {why}", row.number),
        }
    }
}

#[test]
fn every_weakness_that_is_known_is_told_to_users() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../SECURITY.md"));
    let page = page.unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    for row in rows() {
        let How::Tried(probes) = row.how else { continue };
        for probe in probes {
            let all = probe.but.iter().map(|(_, expect)| expect).chain([&probe.expect]);
            let all = all.chain(probe.on.iter().map(|(_, _, expect)| expect));
            for why in all.filter_map(|expect| expect.known) {
                assert!(page.contains(why), "{}: SECURITY.md does not say: {why}", row.number);
            }
        }
    }
}

#[test]
fn nothing_that_is_tried_inside_goes_unjudged() {
    let prefixes: BTreeSet<&str> = rows()
        .filter_map(|row| match row.how {
            How::Tried(probes) => Some(probes),
            How::NotApplicable(_) => None,
        })
        .flatten()
        .filter_map(|probe| match probe.by {
            By::Inside(prefix) => Some(prefix.split('/').next().unwrap()),
            By::Outside(..) => None,
        })
        .collect();
    let source = include_str!("../../../evil/src/main.rs");
    let groups =
        source.lines().filter_map(|line| line.trim().strip_prefix("(\"")?.split('"').next());
    let groups: BTreeSet<&str> = groups.collect();
    assert_eq!(prefixes, groups);
}
