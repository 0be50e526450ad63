//! Proofs of single events: they hold with nothing else at hand, carry nothing else,
//! and no changed one holds.

use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use outrigger_agent::Seq;
use outrigger_audit::{Proof, ProofFault, VerifyingKey};
use outrigger_store::{Audit, EventText};
use proptest::prelude::*;
use serde_json::Value;

use crate::audit::{store, turn};
use crate::support::{Home, address, append, open, said, session};

/// A key of 32 zeros, for files that must come out the same.
const KEY: &str = "PRIVATE+KEY+outrigger/log/golden+1b5321f3+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\noutrigger/log/golden+1b5321f3+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop\n";

fn with_known_key(directory: &Path) {
    let audit = directory.join("audit");
    std::fs::DirBuilder::new().mode(0o700).create(&audit).unwrap();
    let mut options = std::fs::OpenOptions::new();
    let file = options.create_new(true).write(true).mode(0o600).open(audit.join("key"));
    std::io::Write::write_all(&mut file.unwrap(), KEY.as_bytes()).unwrap();
}

async fn prove(directory: &Path, name: &str, seq: u64, text: EventText) -> Proof {
    let audit = Audit::open(directory, &address(directory)).await.unwrap();
    audit.prove(&session(name), Some(Seq(seq)), text).await.unwrap()
}

on_both!(every_event_can_be_proved_and_nothing_else_is_told);

async fn every_event_can_be_proved_and_nothing_else_is_told(directory: Home) {
    let directory = directory.path();
    store(directory).await;
    let key = outrigger_audit::verifying_key(directory).unwrap().unwrap();
    for (name, events) in [("a", 6), ("b", 4), ("c", 1), ("d", 5)] {
        for seq in 1..=events {
            let proof = prove(directory, name, seq, EventText::Included).await;
            let read = Proof::parse(&proof.to_text()).unwrap();
            assert_eq!(read, proof);
            let proved = read.check(Some(&key)).unwrap();
            assert_eq!((proved.session, proved.seq), (session(name), Seq(seq)));
            // Events say something with their number from 0; a blob only has a digest.
            let texts = proof.to_text().matches("\\\"text\\\"").count();
            let blob = (name, seq) == ("d", 5);
            assert_eq!((texts, proof.event.text.is_none()), (usize::from(!blob), blob));
            let without = prove(directory, name, seq, EventText::LeftOut).await;
            assert_eq!(
                (without.event.text.clone(), without.check(Some(&key)).is_ok()),
                (None, true)
            );
        }
    }
    let last = Audit::open(directory, &address(directory)).await.unwrap();
    let last = last.prove(&session("a"), None, EventText::Included).await.unwrap();
    assert_eq!((last.event.seq, last.after.len()), (Seq(6), 0));
}

on_both!(what_can_not_be_proved);

async fn what_can_not_be_proved(directory: Home) {
    let directory = directory.path();
    store(directory).await;
    let opened = open(directory).await;
    append(&opened, "a", 6, vec![said("not covered yet")]).await.unwrap();
    let audit = Audit::open(directory, &address(directory)).await.unwrap();
    for (name, seq) in [("a", 7), ("a", 0), ("x", 1)] {
        let refused = audit.prove(&session(name), Some(Seq(seq)), EventText::Included).await;
        let refused = refused.unwrap_err();
        assert!(matches!(refused, outrigger_store::Error::NotFound { .. }), "{refused:?}");
    }
    drop(opened);
    let proof = prove(directory, "a", 1, EventText::Included).await;
    let other = VerifyingKey::parse(KEY.lines().nth(1).unwrap()).unwrap();
    assert!(matches!(proof.check(Some(&other)), Err(ProofFault::Key(_))));
    // A changed row proves nothing.
    crate::support::execute(directory, "UPDATE events SET at_ms = 7 WHERE seq = 2").await;
    let audit = Audit::open(directory, &address(directory)).await.unwrap();
    let refused = audit.prove(&session("a"), Some(Seq(2)), EventText::Included).await.unwrap_err();
    assert!(matches!(refused, outrigger_store::Error::Damaged { .. }), "{refused:?}");
}

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden-audit")
}

/// A file of the events' current format. Those of older ones never change.
fn golden(name: &str) -> PathBuf {
    recorded().join(format!("v{}", outrigger_agent::FORMAT)).join(name)
}

/// A store whose log has eleven entries, with a key that is known.
async fn golden_store(directory: &Path) {
    with_known_key(directory);
    store(directory).await;
    let opened = open(directory).await;
    for after in 6..11 {
        turn(&opened, "a", after, 1).await;
    }
    opened.close().await;
}

#[tokio::test]
async fn formats_are_pinned() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    golden_store(directory).await;
    let read = |name: &str| std::fs::read_to_string(directory.join("audit").join(name)).unwrap();
    expect_file![golden("checkpoint.txt")].assert_eq(&read("checkpoint"));
    expect_file![golden("log.txt")].assert_eq(&read("log"));
    for (file, name, seq) in [("proof.json", "a", 2), ("proof-blob.json", "d", 5)] {
        let text = prove(directory, name, seq, EventText::Included).await.to_text();
        expect_file![golden(file)].assert_eq(&text);
    }
}

fn golden_proof() -> String {
    std::fs::read_to_string(golden("proof.json")).unwrap()
}

#[test]
fn recorded_proofs_hold() {
    let key = VerifyingKey::parse(KEY.lines().nth(1).unwrap()).unwrap();
    for format in std::fs::read_dir(recorded()).unwrap() {
        let read = |name: &str| {
            std::fs::read_to_string(format.as_ref().unwrap().path().join(name)).unwrap()
        };
        for file in ["proof.json", "proof-blob.json"] {
            let proof = Proof::parse(&read(file)).unwrap();
            assert_eq!(proof.check(Some(&key)).unwrap().size, 11);
        }
        assert_eq!(key.open(&read("checkpoint.txt")).unwrap().checkpoint.size, 11);
    }
}

/// Changes one part of a proof in one way.
fn change(value: &mut Value, part: usize, at: usize, how: u8) {
    match value {
        Value::Object(fields) => {
            let len = fields.len();
            let field = fields.values_mut().nth(part % len).unwrap();
            change(field, part / len, at, how);
        }
        Value::Array(list) if !list.is_empty() && !how.is_multiple_of(4) => {
            let len = list.len();
            change(&mut list[part % len], part / len, at, how);
        }
        Value::Array(list) if list.is_empty() => {}
        Value::String(text) => {
            let mut chars: Vec<char> = text.chars().collect();
            let at = at % chars.len();
            match how % 5 {
                0 => _ = chars.remove(at),
                1 => chars.insert(at, if chars[at] == 'a' { 'b' } else { 'a' }),
                2 => chars.truncate(at),
                _ => chars[at] = if chars[at] == '0' { '1' } else { '0' },
            }
            *text = chars.into_iter().collect();
        }
        Value::Number(number) => {
            let value = number.as_u64().unwrap();
            *number = if how.is_multiple_of(2) { value + 1 } else { value.wrapping_sub(1) }.into();
        }
        Value::Array(list) => {
            let at = at % list.len();
            match how / 4 % 3 {
                0 => _ = list.remove(at),
                1 => list.insert(at, list[at].clone()),
                _ => {
                    let next = (at + 1) % list.len();
                    list.swap(at, next);
                }
            }
        }
        other => panic!("{other} is no part"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_changed_proof_holds(part in any::<usize>(), at in any::<usize>(), how in any::<u8>()) {
        let text = golden_proof();
        let original: Value = serde_json::from_str(&text).unwrap();
        let mut changed = original.clone();
        change(&mut changed, part, at, how);
        prop_assume!(changed != original);
        let held = Proof::parse(&changed.to_string()).and_then(|proof| proof.check(None));
        prop_assert!(held.is_err(), "{}", changed);
    }

    #[test]
    fn no_text_is_too_strange(text in "\\PC*", cut in 0..3_000usize) {
        let whole = golden_proof();
        let cut = whole.floor_char_boundary(cut.min(whole.len() - 2));
        prop_assert!(Proof::parse(&text).is_err());
        prop_assert!(Proof::parse(&whole[..cut]).is_err());
        prop_assert!(VerifyingKey::parse(&text).is_none());
        let key = VerifyingKey::parse(KEY.lines().nth(1).unwrap()).unwrap();
        prop_assert!(key.open(&text).is_err());
    }
}
