//! Programs that are killed while they change entries.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use outrigger_store::entries::{
    Attribution, ChangeRequest, DerivativePolicy, Entries, EntryPrecondition, EntryState, Reach,
    Which,
};

use super::{at, fits_together, member, put};
use crate::support::{Home, open};

const DIRECTORY: &str = "OUTRIGGER_STORE_TEST_ENTRIES";

/// The child's side: writes, moves and redacts for as long as it lives, and prints what was
/// acknowledged. Without a directory in the environment there is nothing to do.
#[tokio::test]
async fn changes_until_it_is_killed() {
    use std::io::Write as _;
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let store = open(directory.as_ref()).await;
    let who = member("ada");
    println!();
    for number in 0u64.. {
        let (here, there) = (at("crash/here"), at(&format!("crash/there/{}", number % 5)));
        let text = format!("text {number} {}", "padding ".repeat(number as usize % 900));
        let here_now = put(&store, &who, &here, &text).await;
        let there_now = store.stat(&who, &there).await.map(|node| node.revision);
        let expected = there_now.map_or(EntryPrecondition::Absent, EntryPrecondition::Revision);
        let (from, to) = (here.clone(), there.clone());
        let change = ChangeRequest::Move { from, revision: Some(here_now), to, expected };
        let moved = store.change(&who, change, Attribution::person(1)).await.unwrap();
        let revision = moved.version().unwrap().revision;
        if number % 7 == 3 {
            let (which, reach, why) = (Which::Revision(here_now), Reach::Named, String::new());
            let change = ChangeRequest::Redact {
                at: here,
                which,
                reach,
                derived: DerivativePolicy::Leave,
                why,
            };
            store.change(&who, change, Attribution::person(1)).await.unwrap();
        }
        // One write, so that a kill does not mix lines.
        let line = format!("acknowledged {} {revision} {number}\n", there.path);
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
    }
}

on_both!(what_was_acknowledged_survives_kill_9);

async fn what_was_acknowledged_survives_kill_9(directory: Home) {
    let who = member("ada");
    for round in 0..12usize {
        let name = "entries::crash::changes_until_it_is_killed";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(DIRECTORY, directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        // Killed after another number of acknowledgements each time, at whatever it does then.
        while text.matches("acknowledged ").count() <= round * 7 % 23 {
            assert!(output.read_line(&mut text).unwrap() > 0, "the child ended: {text}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        output.read_to_string(&mut text).unwrap();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);

        let store = open(directory.path()).await;
        for line in whole.lines().filter_map(|line| line.strip_prefix("acknowledged ")) {
            let words: Vec<&str> = line.split(' ').collect();
            let revision = words[1].parse().unwrap();
            let read = store.read(&who, &at(words[0]), Some(revision)).await.unwrap();
            let begin = format!("text {} ", words[2]);
            assert!(read.bytes.starts_with(begin.as_bytes()), "{line}");
            assert!(matches!(read.version.state, EntryState::File { .. }));
        }
        store.close().await;
        fits_together(directory.path()).await;
    }
}
