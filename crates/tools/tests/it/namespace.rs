//! File tools over a sandbox with a tree in it: one spelling, one answer, whoever keeps the
//! file.

use expect_test::expect;
use outrigger_sandbox::FileErrorKind;
use outrigger_sandbox_testing::FakeTree;
use outrigger_tools::namespace::{MOUNTS, SeenRevisions};
use outrigger_tools::{Invocation, ParsedCall, perform};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::world::{World, status};

struct Laid {
    world: World,
    tree: Arc<FakeTree>,
    seen: Arc<SeenRevisions>,
    calls: u64,
}

impl Laid {
    async fn new() -> Self {
        let mut world = World::new().await;
        world.file("src/a.rs", "one\n").await;
        let tree = Arc::new(FakeTree::new(&MOUNTS));
        tree.put("/memory/user/notes.md", "alpha\nbeta\n");
        tree.put("/memory/user/deep/more.md", "beta\n");
        tree.put("/skills/user/pdf/SKILL.md", "---\nname: pdf\n---\nbeta\n");
        Self { world, tree, seen: Arc::default(), calls: 0 }
    }

    async fn shown(&mut self, tool: &str, arguments: Value) -> String {
        self.calls += 1;
        let (tree, seen) = (Arc::clone(&self.tree), Arc::clone(&self.seen));
        let namespace = self.world.namespace().with_tree(tree, seen);
        let exec =
            outrigger_sandbox::ExecId::new(format!("laid-{}", self.calls)).expect("a valid id");
        let parsed = ParsedCall::new(tool, &arguments.to_string(), None);
        let call = Invocation {
            parsed: &parsed,
            exec,
            seen: None,
            command_ms_max: None,
            env: std::collections::BTreeMap::new(),
        };
        let (output, _) = perform(&call, &namespace, &()).await.expect("the sandbox is well");
        format!("{}: {}", status(output.status), output.text)
    }
}

#[tokio::test]
async fn what_is_above_both_shows_both() {
    let mut laid = Laid::new().await;
    let mut text = String::new();
    for (tool, arguments) in [
        ("ls", json!({ "path": "/" })),
        ("ls", json!({ "path": "/memory" })),
        ("glob", json!({ "pattern": "*.md", "path": "/" })),
        ("glob", json!({ "pattern": "/memory/user/*.md" })),
        ("glob", json!({ "pattern": "user/**", "path": "/skills" })),
        ("grep", json!({ "pattern": "beta|one", "path": "/" })),
        ("grep", json!({ "pattern": "beta", "path": "/memory", "glob": "deep/*" })),
        ("grep", json!({ "pattern": "beta", "path": "/memory/user/notes.md" })),
        ("grep", json!({ "pattern": "beta" })),
    ] {
        text += &format!("{tool} {arguments}\n{}\n", laid.shown(tool, arguments.clone()).await);
    }
    expect![[r#"
        ls {"path":"/"}
        ok: dev/
        etc/
        memory/
        skills/
        tmp/
        usr/
        workspace/
        ls {"path":"/memory"}
        ok: user/
        glob {"pattern":"*.md","path":"/"}
        ok: /memory/user/deep/more.md
        /memory/user/notes.md
        /skills/user/pdf/SKILL.md
        glob {"pattern":"/memory/user/*.md"}
        ok: /memory/user/deep/more.md
        /memory/user/notes.md
        glob {"pattern":"user/**","path":"/skills"}
        ok: /skills/user/pdf/SKILL.md
        grep {"pattern":"beta|one","path":"/"}
        ok: /memory/user/deep/more.md:1:beta
        /memory/user/notes.md:2:beta
        /skills/user/pdf/SKILL.md:4:beta
        /workspace/src/a.rs:1:one
        grep {"pattern":"beta","path":"/memory","glob":"deep/*"}
        ok: No line beneath /memory in files like `deep/*` matches `beta`.
        grep {"pattern":"beta","path":"/memory/user/notes.md"}
        ok: /memory/user/notes.md:2:beta
        grep {"pattern":"beta"}
        ok: No line beneath /workspace matches `beta`.
    "#]]
    .assert_eq(&text);
}

#[tokio::test]
async fn every_spelling_is_the_same_file_under_the_same_knowledge() {
    let mut laid = Laid::new().await;
    let blind = json!({ "file_path": "/memory/user/notes.md", "content": "blind\n" });
    let refused = laid.shown("write_file", blind).await;
    assert!(refused.starts_with("error: conflict") && refused.contains("alpha\nbeta"), "{refused}");
    for (at, spelling) in [
        "../memory/user/notes.md",
        "//memory//user/notes.md",
        "/memory/user/./deep/../notes.md",
        "/workspace/../memory/user/notes.md",
        "/memory/user/notes.md/",
    ]
    .into_iter()
    .enumerate()
    {
        laid.tree.put("/memory/user/notes.md", format!("round {at}\n"));
        let read = laid.shown("read_file", json!({ "file_path": spelling })).await;
        assert!(read.contains(&format!("round {at}")), "{spelling}: {read}");
        let mine = format!("mine {at}\n");
        let write = json!({ "file_path": "/memory/user/notes.md", "content": mine });
        let wrote = laid.shown("write_file", write).await;
        assert!(wrote.starts_with("ok"), "{spelling}: {wrote}");
        // What it wrote it knows, until somebody else does.
        let again = json!({ "file_path": spelling, "content": "again\n" });
        assert!(laid.shown("write_file", again.clone()).await.starts_with("ok"), "{spelling}");
        laid.tree.put("/memory/user/notes.md", "theirs\n");
        let refused = laid.shown("write_file", again).await;
        assert!(refused.starts_with("error: conflict"), "{spelling}: {refused}");
    }
    // Two forms of one letter.
    laid.tree.put("/memory/user/caf\u{e9}.md", "coffee\n");
    let read = laid.shown("read_file", json!({ "file_path": "/memory/user/cafe\u{301}.md" })).await;
    assert!(read.contains("coffee"), "{read}");
}

#[tokio::test]
async fn an_edit_applies_to_what_is_there() {
    let mut laid = Laid::new().await;
    let edit = |old: &str, new: &str| json!({ "file_path": "/memory/user/notes.md", "old_string": old, "new_string": new });
    assert!(laid.shown("edit_file", edit("alpha", "ALPHA")).await.starts_with("ok"));
    laid.tree.put("/memory/user/notes.md", "theirs\nbeta\n");
    assert!(laid.shown("edit_file", edit("beta", "BETA")).await.starts_with("ok"));
    let (text, _) = laid.tree.get("/memory/user/notes.md").unwrap();
    assert_eq!(text, b"theirs\nBETA\n");
    let gone = laid.shown("edit_file", edit("ALPHA", "x")).await;
    assert!(gone.starts_with("error: conflict") && gone.contains("theirs\nBETA"), "{gone}");
    laid.tree.put("/memory/user/notes.md", "two\ntwo\n");
    let twice = laid.shown("edit_file", edit("two", "x")).await;
    assert!(twice.starts_with("error: conflict") && twice.contains("two\ntwo"), "{twice}");
    let (text, _) = laid.tree.get("/memory/user/notes.md").unwrap();
    assert_eq!(text, b"two\ntwo\n");
}

#[tokio::test]
async fn errors_are_the_same_in_both_places() {
    let mut laid = Laid::new().await;
    laid.tree.protect("/memory/user/locked", FileErrorKind::PermissionDenied);
    laid.tree.put("/memory/user/locked/a.md", "kept\n");
    laid.tree.hide("/memory/user/hidden");
    laid.tree.put("/memory/user/hidden/a.md", "hidden\n");
    let mut text = String::new();
    let long = format!("/memory/user/{}", "n".repeat(256));
    for (tool, arguments) in [
        ("read_file", json!({ "file_path": "/memory/user/none" })),
        ("read_file", json!({ "file_path": "none" })),
        ("read_file", json!({ "file_path": "/memory/user" })),
        ("read_file", json!({ "file_path": "src" })),
        ("read_file", json!({ "file_path": "/memory/user/notes.md/x" })),
        ("read_file", json!({ "file_path": "src/a.rs/x" })),
        ("ls", json!({ "path": "/memory/user/notes.md" })),
        ("ls", json!({ "path": "src/a.rs" })),
        (
            "edit_file",
            json!({ "file_path": "/memory/user/none", "old_string": "a", "new_string": "b" }),
        ),
        ("edit_file", json!({ "file_path": "none", "old_string": "a", "new_string": "b" })),
        ("write_file", json!({ "file_path": "/memory/user/locked/b.md", "content": "x" })),
        ("read_file", json!({ "file_path": "/memory/user/hidden/a.md" })),
        ("read_file", json!({ "file_path": "/memory/user/a\u{0}b" })),
        ("read_file", json!({ "file_path": "/memory/user/a\nb" })),
        ("read_file", json!({ "file_path": "a\u{0}b" })),
        ("read_file", json!({ "file_path": long })),
        ("write_file", json!({ "file_path": "/memory/user/big", "content": "x".repeat(2 << 20) })),
    ] {
        let shown = laid.shown(tool, arguments).await;
        let kind: String = shown.split(": ").take(2).collect::<Vec<_>>().join(": ");
        text += &format!("{tool} {kind}\n");
    }
    expect![[r#"
        read_file error: file_not_found
        read_file error: file_not_found
        read_file error: is_directory
        read_file error: is_directory
        read_file error: not_a_directory
        read_file error: not_a_directory
        ls error: not_a_directory
        ls error: not_a_directory
        edit_file error: file_not_found
        edit_file error: file_not_found
        write_file error: permission_denied
        read_file error: file_not_found
        read_file error: invalid_path
        read_file error: invalid_path
        read_file error: invalid_path
        read_file error: invalid_path
        write_file error: too_large
    "#]]
    .assert_eq(&text);
}
