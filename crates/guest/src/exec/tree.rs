//! The process tree as `/proc` shows it, for hosts without cgroups.
//!
//! Owns the reading of `/proc/<pid>/stat` and the rule which processes belong to a
//! command. What it reads is written by commands in part (their names), so it
//! parses from the last parenthesis on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::sys;

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    session: i32,
    dead: bool,
    stopped: bool,
    waits: bool,
}

/// Reads a line of `/proc/<pid>/stat`; see proc_pid_stat(5).
fn parse(stat: &str) -> Option<Process> {
    let pid = stat.split(' ').next()?.parse().ok()?;
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    let (dead, stopped) = (matches!(state, "Z" | "X"), matches!(state, "T" | "t"));
    let waits = state == "D";
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    Some(Process { pid, parent, session, dead, stopped, waits })
}

fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter_map(|pid| parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?))
        .filter(|process| process.pid > 1 && !process.dead)
        .collect()
}

/// Processes whose parent is process 1.
pub(crate) fn orphans() -> BTreeSet<i32> {
    all().into_iter().filter(|process| process.parent == 1).map(|process| process.pid).collect()
}

/// Whether a process was started from outside of this process namespace: its parent
/// is none in it. One whose parent ended has this program for its parent.
pub(crate) fn is_from_outside(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    stat.and_then(|stat| parse(&stat))
        .is_some_and(|process| process.pid == pid && process.parent == 0)
}

/// Processes that are not stopped, but for this one and those from outside, and
/// whether each waits where no signal reaches it. One in the middle of vfork(2) waits
/// so for its child, which may be stopped: what it was sent it obeys when it goes on.
pub(crate) fn going_on() -> BTreeMap<i32, bool> {
    let all = all().into_iter().filter(|process| process.parent != 0 && !process.stopped);
    all.map(|process| (process.pid, process.waits)).collect()
}

/// The members of a command among `all`: what descends from `main` or shares a
/// session with such a process, and orphans that appeared since it began and are
/// no main process (nor of the session of one) of another command.
fn select(
    all: &[Process],
    main: i32,
    before: &BTreeSet<i32>,
    others: &BTreeSet<i32>,
) -> BTreeSet<i32> {
    let mut members = BTreeSet::from([main]);
    let mut sessions = BTreeSet::from([main]);
    loop {
        let count = members.len();
        for process in all {
            let foreign = others.contains(&process.pid) || others.contains(&process.session);
            let orphan = process.parent == 1 && !before.contains(&process.pid) && !foreign;
            if members.contains(&process.parent) || sessions.contains(&process.session) || orphan {
                members.insert(process.pid);
                sessions.insert(process.session);
            }
        }
        if members.len() == count {
            break;
        }
    }
    members.retain(|pid| all.iter().any(|process| process.pid == *pid));
    members
}

/// Living processes of the command.
pub(crate) fn members(main: i32, before: &BTreeSet<i32>, others: &BTreeSet<i32>) -> BTreeSet<i32> {
    select(&all(), main, before, others)
}

/// Stops, then kills, all that is found, so that nothing forks away in between.
pub(crate) fn kill(main: i32, before: &BTreeSet<i32>, others: &BTreeSet<i32>) {
    let found = members(main, before, others);
    for signal in [libc::SIGSTOP, libc::SIGKILL] {
        for pid in &found {
            sys::kill(*pid, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_is_read() {
        let line = "42 (a) R 9 (b) S 7 42 41 0 -1 4194560";
        let process =
            Process { pid: 42, parent: 7, session: 41, dead: false, stopped: false, waits: false };
        assert_eq!(parse(line), Some(process));
        assert_eq!(parse("garbage"), None);
    }

    #[test]
    fn members_are_descendants_sessions_and_new_orphans_but_not_other_commands() {
        let process = |pid, parent, session| Process {
            pid,
            parent,
            session,
            dead: false,
            stopped: false,
            waits: false,
        };
        let all = [
            process(10, 1, 10),  // the command
            process(11, 10, 10), // its child
            process(12, 11, 12), // a grandchild with its own session
            process(13, 1, 12),  // an orphan of that session
            process(14, 1, 14),  // a new orphan with its own session
            process(5, 1, 5),    // a daemon from before
            process(20, 1, 20),  // another command
            process(21, 20, 20), // and its child
            process(22, 1, 20),  // and an orphan of its session
        ];
        let members = select(&all, 10, &BTreeSet::from([5]), &BTreeSet::from([20]));
        assert_eq!(members, BTreeSet::from([10, 11, 12, 13, 14]));
    }
}
