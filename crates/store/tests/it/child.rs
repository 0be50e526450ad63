//! Processes that append: this test program, started again with a task in its environment.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use outrigger_agent::{Seq, SessionId};
use outrigger_store::{Cover, Error, Journal, SessionSummary};

use crate::support::{open, said, session};

const DIRECTORY: &str = "OUTRIGGER_STORE_TEST_DIRECTORY";
const NAME: &str = "OUTRIGGER_STORE_TEST_NAME";
const COUNT: &str = "OUTRIGGER_STORE_TEST_COUNT";

/// A child that appends `count` events to session `shared`, each with `name` and
/// a number, and prints `<place> <name>-<number>` for each that was acknowledged.
pub(crate) fn command(directory: &Path, name: &str, count: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "child::appends", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(NAME, name)
        .env(COUNT, count.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// The acknowledged events in what a child printed.
pub(crate) fn acknowledged(output: &str) -> Vec<(u64, String)> {
    // What is cut off by a kill was never wholly printed.
    let whole = output.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole.lines().filter_map(|line| line.strip_prefix("acknowledged "));
    lines
        .map(|line| {
            let (place, text) = line.split_once(' ').unwrap();
            (place.parse().unwrap(), text.to_owned())
        })
        .collect()
}

/// The child's side. Without a task in the environment there is nothing to do.
#[tokio::test]
async fn appends() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let name = std::env::var(NAME).unwrap();
    let count: u64 = std::env::var(COUNT).unwrap().parse().unwrap();
    let store = open(directory.as_ref()).await;
    let shared = session("shared");
    println!();
    let mut after = store.head(&shared).await.unwrap();
    for number in 0..count {
        let text = format!("{name}-{number}");
        after = insist(&store, &shared, after, &text).await;
        // One write, so that a kill does not mix lines.
        let line = format!("acknowledged {after} {text}\n");
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
    }
    store.close().await;
}

async fn insist(journal: &dyn Journal, session: &SessionId, mut after: Seq, text: &str) -> Seq {
    loop {
        // Some are large enough to be blobs.
        let pad = if after.0 % 16 == 7 { "x".repeat(70_000) } else { String::new() };
        let events = [said(format!("{text} {pad}"))];
        // Some are covered by a checkpoint in the same transaction.
        let cover = if after.0 % 3 == 2 { Cover::Now } else { Cover::Soon };
        let summary = SessionSummary { cover, ..SessionSummary::default() };
        match journal.append(session, after, 1_000, &events, summary).await {
            Ok(seq) => return seq,
            Err(Error::Conflict { found, .. }) => after = found,
            Err(other) => panic!("an append failed: {other:?}"),
        }
    }
}
