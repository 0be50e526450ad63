//! What the rules are told of an effect: the file, the sandbox, the tool and what is left.

use outrigger_agent::{SandboxScope, Seq};
use outrigger_policy::RuleSet;
use serde_json::json;

use crate::model::{call, done, run};
use crate::spy::Spy;
use crate::world::{World, asked, drive, results, said, session};

const RULES: &str = r#"
@id("all") permit (principal, action, resource);
@id("hooks") forbid (principal, action == Action::"write_files", resource in Path::"/workspace/.git/hooks");
@id("elsewhere") forbid (principal, action in Action::"inside", resource in Sandbox::"fetch")
    unless { action == Action::"provision" };
@id("no-shell") forbid (principal, action == Action::"execute", resource)
    when { context has tool && context.tool == "execute" && context.left has tokens };
"#;

#[tokio::test(start_paused = true)]
async fn a_forbidden_file_or_sandbox_is_refused_however_it_is_spelled() {
    let mut world = World::new().await;
    let mut second = asked("fetch", SandboxScope::Thread);
    second.backend = "other".to_owned();
    world.sandboxes.push((second, Spy::new("other")));
    world.rules = RuleSet::from_cedar(RULES).unwrap();
    let write = |path: &str| call("write_file", json!({ "file_path": path, "content": "x" }));
    let steps = [
        write("/workspace/.git/hooks/pre-commit"),
        write(".git/hooks/pre-commit"),
        write("/workspace/src/../.git//hooks/./pre-commit"),
        write("notes"),
        run("cat notes"),
        call("execute_fetch", json!({ "command": "cat notes" })),
        call("read_file_fetch", json!({ "file_path": "notes" })),
        call("glob_fetch", json!({ "pattern": "/workspace/**" })),
        done(),
    ];
    let (engine, session) = world.played(&steps).await;
    let state = engine.state(&session).await.unwrap();
    let results = results(&state);
    for (index, rule) in [
        (0, "hooks"),
        (1, "hooks"),
        (2, "hooks"),
        (5, "elsewhere"),
        (6, "elsewhere"),
        (7, "elsewhere"),
    ] {
        assert!(results[index].contains(rule), "{index}: {results:?}");
    }
    assert!(!results[3].contains("hooks"), "{results:?}");
    assert!(results[4].starts_with("x"), "{results:?}");
    // Why is known of what is over, too, and nothing else is an effect.
    let judged =
        async |at| outrigger_engine::judged(&world.journal, &session, Seq(at)).await.unwrap();
    assert_eq!(judged(1).await, None);
    let mut decided = Vec::new();
    for at in 1..=state.seq().0 {
        decided.extend(judged(at).await.map(|found| found.decided.is_some()));
    }
    assert!(decided.len() > 8 && decided.iter().all(|it| *it), "{decided:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_arguments_is_judged_by_where_it_begins() {
    let mut world = World::new().await;
    let rules = r#"
        @id("all") permit (principal, action, resource);
        @id("hands-off") forbid (principal, action, resource in Path::"/workspace/part");
    "#;
    world.rules = RuleSet::from_cedar(rules).unwrap();
    let mut spec = world.spec();
    outrigger_tools::begin_in(&mut spec.tools, "/workspace/part");
    let engine = world.engine(&[call("ls", serde_json::Value::Null), done()]);
    let session = session("s1");
    engine.open(&session, spec, vec![said("go")]).await.unwrap();
    drive(&engine, &session).await;
    let results = results(&engine.state(&session).await.unwrap());
    assert!(results[0].contains("hands-off"), "{results:?}");
}
