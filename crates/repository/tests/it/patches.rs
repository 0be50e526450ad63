//! Patches that git itself takes, forwards and back.

use super::World;
use outrigger_repository::{Change, File, patch};
use outrigger_sandbox::EntryKind;
use std::fs;

fn file(contents: &[u8]) -> Option<File> {
    Some(File { kind: EntryKind::File, executable: false, contents: contents.to_vec() })
}

#[test]
fn git_takes_renames_and_what_is_no_text() {
    let world = World::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_003).collect();
    let text: String = (0..50).map(|line| format!("line {line} of the file\n")).collect();
    let edited = text.replace("line 7 ", "line seven ");
    let mut other = bytes.clone();
    other[500] = 7;
    let change = |path: &str, before, after| Change { path: path.to_owned(), before, after };
    let changes = [
        change("empty", file(b""), None),
        change("image.png", file(&bytes), file(&other)),
        change("new.bin", None, file(b"\0\x01")),
        change("old.bin", file(b"\0old"), None),
        change("old/exact name", file(b"the same\n"), None),
        change("src/new.rs", None, file(edited.as_bytes())),
        change("src/old.rs", file(text.as_bytes()), None),
        change("void", None, file(b"")),
        change("weit/exact \"näme\"", None, file(b"the same\n")),
    ];
    for Change { path, before, .. } in &changes {
        let Some(before) = before else { continue };
        world.write(&format!("a/{path}"), &before.contents);
    }
    world.git("a", &["init", "-q"]);
    world.git("a", &["add", "."]);
    let patch = patch(&changes, &[]);
    let text = String::from_utf8_lossy(&patch);
    for part in [
        "diff --git a/src/old.rs b/src/new.rs\nsimilarity index 97%\nrename from src/old.rs\nrename to src/new.rs\n--- a/src/old.rs\n",
        "similarity index 100%\nrename from old/exact name\nrename to \"weit/exact \\\"n\\303\\244me\\\"\"\n",
        "GIT binary patch\nliteral 2\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    fs::write(world.path("a/../the.patch"), &patch).unwrap();
    world.git("a", &["apply", "--index", "../the.patch"]);
    for Change { path, after, .. } in &changes {
        let is = fs::read(world.path(&format!("a/{path}"))).ok();
        assert!(is == after.as_ref().map(|file| file.contents.clone()), "{path}");
    }
    world.git("a", &["apply", "--index", "-R", "../the.patch"]);
    for Change { path, before, .. } in &changes {
        let is = fs::read(world.path(&format!("a/{path}"))).ok();
        assert!(is == before.as_ref().map(|file| file.contents.clone()), "{path}");
    }
}
