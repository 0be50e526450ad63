//! A change of a file is what a person saw of it, or is not made.

use outrigger_agent::{FileBaseline, Status};
use outrigger_sandbox::ExecId;
use outrigger_tools::{Invocation, ParsedCall, Preview, perform, preview};

use crate::world::World;

const WRITE: &str = r#"{"file_path": "f", "content": "new\n"}"#;
const EDIT: &str = r#"{"file_path": "f", "old_string": "one", "new_string": "two"}"#;

fn call<'a>(parsed: &'a ParsedCall, id: &str, seen: Option<&'a FileBaseline>) -> Invocation<'a> {
    let exec = ExecId::new(id).expect("a valid id");
    Invocation { parsed, exec, seen, command_ms_max: None, env: std::collections::BTreeMap::new() }
}

async fn previewed(world: &World, tool: &str, arguments: &str) -> Option<Preview> {
    let parsed = ParsedCall::new(tool, arguments, None);
    preview(&call(&parsed, "preview", None), &world.namespace()).await.expect("the sandbox is well")
}

#[tokio::test]
async fn a_change_is_shown_before_it_is_made() {
    for (before, tool, arguments, expected) in [
        (None, "write_file", WRITE, Some((None, "new\n"))),
        (Some("one\n"), "write_file", WRITE, Some((Some("one\n"), "new\n"))),
        (Some("one\n"), "edit_file", EDIT, Some((Some("one\n"), "two\n"))),
        // It would fail, and fails when it is performed.
        (Some("one one\n"), "edit_file", EDIT, None),
        (None, "edit_file", EDIT, None),
        (Some("one\n"), "read_file", r#"{"file_path": "f"}"#, None),
        (Some("one\n"), "execute", r#"{"command": "write f x"}"#, None),
        (Some("one\n"), "write_file", "nonsense", None),
    ] {
        let mut world = World::new().await;
        if let Some(before) = before {
            world.file("f", before).await;
        }
        let bytes = |text: &str| text.as_bytes().to_vec();
        let expected = expected.map(|(before, after): (Option<&str>, &str)| Preview {
            path: "f".to_owned(),
            before: before.map(bytes),
            after: bytes(after),
        });
        assert_eq!(previewed(&world, tool, arguments).await, expected, "{tool} {before:?}");
        assert_eq!(world.contents("f").as_deref(), before, "nothing was changed");
    }
}

#[tokio::test]
async fn what_was_approved_is_done_once_and_only_to_the_file_that_was_seen() {
    for (before, tool, arguments, after) in [
        (None, "write_file", WRITE, "new\n"),
        (Some("one\n"), "write_file", WRITE, "new\n"),
        (Some("one\n"), "edit_file", EDIT, "two\n"),
    ] {
        let mut world = World::new().await;
        if let Some(before) = before {
            world.file("f", before).await;
        }
        let seen = previewed(&world, tool, arguments).await.expect("it changes a file").seen();
        for _again in 0..2 {
            let parsed = ParsedCall::new(tool, arguments, None);
            let call = call(&parsed, "same", Some(&seen));
            let (output, _) = perform(&call, &world.namespace(), &()).await.unwrap();
            assert_eq!((output.status, world.contents("f").as_deref()), (Status::Ok, Some(after)));
        }
        // The file underneath is another one now.
        for changed in ["one\nmore\n", "else\n"] {
            world.file("f", changed).await;
            let id = changed.replace('\n', "-");
            let parsed = ParsedCall::new(tool, arguments, None);
            let call = call(&parsed, &id, Some(&seen));
            let (output, _) = perform(&call, &world.namespace(), &()).await.unwrap();
            assert_eq!(output.status, Status::Denied, "{}", output.text);
            assert!(output.text.contains("changed after a person approved"), "{}", output.text);
            assert_eq!(world.contents("f").as_deref(), Some(changed));
        }
    }
}
