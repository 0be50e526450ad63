//! What a crash of the harness in the middle of a call means.

use outrigger_agent::Status;
use outrigger_sandbox::{Error, ExecId};
use outrigger_sandbox_testing::fake::Disk;
use outrigger_tools::{Invocation, ParsedCall, perform};
use std::time::Duration;

use crate::world::World;

fn call(parsed: &ParsedCall) -> Invocation<'_> {
    let exec = ExecId::new("same").expect("a valid id");
    Invocation {
        parsed,
        exec,
        seen: None,
        command_ms_max: None,
        env: std::collections::BTreeMap::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_call_again_changes_nothing_twice() {
    for (tool, arguments, path, expected) in [
        ("execute", r#"{"command": "append f x; sleep 5; append f y"}"#, "f", "xy"),
        ("write_file", r#"{"file_path": "f", "content": "x"}"#, "f", "x"),
        ("edit_file", r#"{"file_path": "g", "old_string": "1", "new_string": "11"}"#, "g", "11"),
    ] {
        let mut world = World::new().await;
        world.file("g", "1").await;
        let parsed = ParsedCall::new(tool, arguments, None);
        let call = call(&parsed);
        let before = world.fake.starts().len();
        let namespace = world.namespace();
        let first = perform(&call, &namespace, &());
        let stopped = tokio::time::timeout(Duration::from_secs(1), first).await;
        assert_eq!(stopped.is_err(), tool == "execute");
        let (again, _) = perform(&call, &namespace, &()).await.unwrap();
        assert_eq!(again.status, Status::Ok);
        assert_eq!(world.contents(path).unwrap(), expected);
        assert_eq!(world.fake.starts().len(), before + 1, "{tool}");
    }
}

#[tokio::test]
async fn a_lost_sandbox_is_the_engines_to_explain() {
    for (tool, arguments) in [
        ("execute", r#"{"command": "true"}"#),
        ("read_file", r#"{"file_path": "f"}"#),
        ("grep", r#"{"pattern": "f"}"#),
    ] {
        let world = World::new().await;
        world.fake.lose(&world.name, Disk::Kept);
        let parsed = ParsedCall::new(tool, arguments, None);
        let lost = perform(&call(&parsed), &world.namespace(), &()).await;
        assert!(matches!(lost, Err(Error::Lost { .. })), "{tool}");
    }
}
