//! Processes that are killed, and processes that compete.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use outrigger_agent::{Event, Seq};
use outrigger_audit::Report;
use outrigger_store::{Audit, AuditRequest, Journal, load_all};

use crate::child::{acknowledged, command};
use crate::support::{Home, address, open, session};

/// The texts of the shared session, without their padding.
async fn texts(directory: &Path) -> Vec<String> {
    let store = open(directory).await;
    let shared = session("shared");
    let mut texts = Vec::new();
    load_all(&store, &shared, Seq(0), |record| match record.event {
        Event::Said(message) => {
            texts.push(message.text.split(' ').next().unwrap().to_owned());
        }
        other => panic!("nobody appended {other:?}"),
    })
    .await
    .unwrap();
    assert_eq!(store.verify(&shared).await.unwrap().head, Seq(texts.len() as u64));
    store.close().await;
    texts
}

async fn audit(directory: &Path) -> Report {
    let audit = Audit::open(directory, &address(directory)).await.unwrap();
    audit.verify(&AuditRequest::default(), &Arc::default()).await.unwrap()
}

on_both!(what_was_acknowledged_survives_kill_9);

async fn what_was_acknowledged_survives_kill_9(directory: Home) {
    let mut promised = Vec::new();
    for round in 0..20u64 {
        let mut child = command(directory.path(), &format!("r{round}"), 1_000_000).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        // Killed after another number of acknowledgements each time, at whatever it does then.
        for _ in 0..=(round * 7 % 23) {
            while output.read_line(&mut text).unwrap() > 0 {
                if text.lines().last().unwrap().starts_with("acknowledged ") {
                    break;
                }
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        output.read_to_string(&mut text).unwrap();
        let acknowledged = acknowledged(&text);
        assert!(!acknowledged.is_empty(), "the child did not run: {text}");
        // Before anybody opens it again: whatever the kill hit fits together.
        let report = audit(directory.path()).await;
        assert!(report.is_clean(), "{report:?}");
        promised.extend(acknowledged);
    }
    let texts = texts(directory.path()).await;
    for (place, text) in &promised {
        assert_eq!(texts[usize::try_from(place - 1).unwrap()], *text, "event {place} was promised");
    }
    assert!(audit(directory.path()).await.entries > 20);
    // A killed child may have stored one event that it could not acknowledge any more.
    assert!(texts.len() <= promised.len() + 20);
}

on_both!(two_processes_in_one_session_share_out_the_places);

async fn two_processes_in_one_session_share_out_the_places(directory: Home) {
    // Also the race of making the database is part of it.
    let children = ["a", "b"].map(|name| command(directory.path(), name, 60).spawn().unwrap());
    let mut promised = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        promised.extend(acknowledged(&text));
    }
    promised.sort();
    let places: Vec<u64> = promised.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, (1..=120).collect::<Vec<_>>(), "each place has one winner");
    let promised: Vec<String> = promised.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts(directory.path()).await, promised);
    let report = audit(directory.path()).await;
    assert!(report.is_clean() && report.entries >= 40, "{report:?}");
}
