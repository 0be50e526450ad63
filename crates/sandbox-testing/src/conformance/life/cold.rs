//! Suspension that keeps the disk and the outcomes of commands, and nothing else.

use tokio::task::JoinSet;

use super::frozen::{LEAVE_A_BEAT, beats};
use super::{is_absent, is_busy, is_lost, refused};
use crate::conformance::case::cases;
use crate::conformance::context::{
    Context, Listener, Outcome, ensure, id, read_op, same, shell, soon, text, write_op,
};
use outrigger_sandbox::{
    CreateOutcome, End, Execute, FileOp, LifecycleState, SandboxId, Suspend, WriteMode,
};

cases! { "cold":
    listed_and_not_found [Cold],
    resumed_in_the_same_generation [Cold],
    disk_is_kept [Cold],
    disk_is_verified_and_the_same [Cold],
    outcomes_of_commands_are_kept [Cold],
    outcomes_of_operations_are_kept [Cold],
    refused_ids_stay_refused [Cold],
    spilled_output_is_kept [Cold],
    old_handles_are_lost [Cold],
    repeated_is_fine [Cold],
    busy_while_a_command_runs [Cold],
    unknown_is_absent [Cold],
    destroyed_while_cold [Cold],
    resumed_at_once_is_one [Cold],
    again_and_again [Cold],
    left_processes_end [Cold, Programs],
    modes_and_links_are_kept [Cold, Programs],
    closed_directories_are_kept [Cold, Kernel],
}

async fn listed_and_not_found(context: Context) -> Outcome {
    context.suspend(Suspend::Cold).await?;
    let listed = context.listed().await?.ok_or("it is not listed")?;
    same("state", listed.state, LifecycleState::Cold)?;
    same("generation", listed.generation.as_ref(), Some(context.sandbox.generation()))?;
    ensure("it is found", context.found().await?.is_none())?;
    same("state after find", context.state().await?, Some(LifecycleState::Cold))
}

async fn resumed_in_the_same_generation(context: Context) -> Outcome {
    let again = context.resumed().await?;
    same("began", again.sandbox.outcome(), CreateOutcome::Resumed)?;
    same("generation", again.sandbox.generation(), context.sandbox.generation())?;
    same("state", context.state().await?, Some(LifecycleState::Running))?;
    same("again", context.again().await?.sandbox.outcome(), CreateOutcome::Attached)?;
    let found = context.found().await?.ok_or("it is not found")?;
    same("generation", found.sandbox.generation(), context.sandbox.generation())?;
    found.prints("a", "echo fine", "fine\n").await
}

const PATHS: [&str; 3] = ["dir/f", "/tmp/dir/f", "/home/agent/dir/f"];

async fn disk_is_kept(context: Context) -> Outcome {
    for (number, path) in PATHS.iter().enumerate() {
        context.write(&format!("w{number}"), path, path.as_bytes()).await?;
    }
    context.shell("a", "echo from a command > g").await?;
    let again = context.resumed().await?;
    for path in PATHS {
        again.holds(path, path.as_bytes()).await?;
    }
    again.prints("b", "cat g; echo more >> dir/f; cat dir/f", "from a command\ndir/fmore\n").await
}

async fn disk_is_verified_and_the_same(context: Context) -> Outcome {
    for number in 0..40 {
        let contents = vec![u8::try_from(number).unwrap_or(0); number * 1_000];
        context
            .write(&format!("w{number}"), &format!("d{}/f{number}", number % 4), &contents)
            .await?;
    }
    let mut script = write_op("x", "run", b"#!/bin/sh\n", WriteMode::Create);
    if let FileOp::Write { executable, .. } = &mut script {
        *executable = Some(true);
    }
    context.files(script).await?;
    for (name, target) in [("l1", "d0/f0"), ("l2", "nowhere"), ("l3", "/etc/passwd")] {
        let (path, target) = (name.to_owned(), target.to_owned());
        context.files(FileOp::Link { id: id(name), path, target }).await?;
    }
    context.files(FileOp::MakeDir { id: id("m"), path: "empty".to_owned() }).await?;
    let before = context.manifest().await?;
    same("entries", before.len(), 45)?;
    let again = context.resumed().await?;
    same("manifest", again.manifest().await?, before)
}

const LINE: &str = "echo x >> count; echo out; echo err >&2; exit 3";

async fn outcomes_of_commands_are_kept(context: Context) -> Outcome {
    let first = context.shell("a", LINE).await?;
    let deadline = Execute { deadline_ms: 100, ..shell("d", "echo begun; sleep 50") };
    let late = context.run(deadline.clone()).await?;
    let again = context.resumed().await?;
    let listener = Listener::default();
    let repeated = again.sandbox.execute(shell("a", LINE), &listener).await;
    same("outcome", repeated.map_err(|error| error.to_string())?, first)?;
    let (stdout, stderr) = listener.heard();
    same("sink", (text(&stdout), text(&stderr)), ("out\n".to_owned(), "err\n".to_owned()))?;
    same("the one with a deadline", again.run(deadline).await?, late)?;
    again.holds("count", b"x\n").await
}

async fn outcomes_of_operations_are_kept(context: Context) -> Outcome {
    context.write("a", "f", b"x").await?;
    let append = || write_op("b", "f", b"y", WriteMode::Append);
    let first = context.files(append()).await?;
    let again = context.resumed().await?;
    same("reply", again.files(append()).await?, first)?;
    again.holds("f", b"xy").await
}

async fn refused_ids_stay_refused(context: Context) -> Outcome {
    context.sandbox.kill(&id("a")).await.map_err(|error| format!("kill: {error}"))?;
    let again = context.resumed().await?;
    same("end", again.shell("a", LINE).await?.end, End::Killed)?;
    again.absent("count").await
}

async fn spilled_output_is_kept(context: Context) -> Outcome {
    let base = shell("a", "echo first; head -c 100000 /dev/zero; echo last");
    let request = Execute { stdout_bytes_max: 1_000, spill_after_bytes: Some(1_000), ..base };
    let done = context.run(request).await?;
    let path = done.spill.ok_or("no file is named")?;
    let again = context.resumed().await?;
    let kept = again.read(&path).await?;
    same("size", kept.len(), 100_011)?;
    ensure("it is not what was printed", kept.starts_with(b"first\n"))
}

async fn old_handles_are_lost(context: Context) -> Outcome {
    context.suspend(Suspend::Cold).await?;
    let gone = &context.sandbox;
    refused("execute", gone.execute(shell("a", "true"), &()).await, is_lost)?;
    ensure("the handle says that it lives", !gone.is_alive())?;
    context.again().await?;
    refused("execute after it", gone.execute(shell("b", "true"), &()).await, is_lost)?;
    refused("files", gone.files(read_op("f")).await, is_lost)?;
    refused("kill", gone.kill(&id("a")).await, is_lost)?;
    ensure("the handle says that it lives again", !gone.is_alive())
}

async fn repeated_is_fine(context: Context) -> Outcome {
    context.write("w", "f", b"x").await?;
    for _ in 0..3 {
        context.suspend(Suspend::Cold).await?;
        same("state", context.state().await?, Some(LifecycleState::Cold))?;
    }
    context.again().await?.holds("f", b"x").await
}

async fn busy_while_a_command_runs(context: Context) -> Outcome {
    context.begin("a", "echo up; sleep 50; echo end").await?;
    let suspended = context.backend.suspend(context.sandbox.id(), Suspend::Cold).await;
    refused("suspend under a command", suspended, is_busy)?;
    same("state", context.state().await?, Some(LifecycleState::Running))?;
    context.killed("a").await?;
    let again = context.resumed().await?;
    same("began", again.sandbox.outcome(), CreateOutcome::Resumed)
}

async fn unknown_is_absent(context: Context) -> Outcome {
    let unknown = SandboxId::new("conformance-nobody-made-this").map_err(|e| e.to_string())?;
    let suspended = context.backend.suspend(&unknown, Suspend::Cold).await;
    refused("suspend of an unknown one", suspended, is_absent)
}

async fn destroyed_while_cold(context: Context) -> Outcome {
    context.shell("a", LINE).await?;
    context.suspend(Suspend::Cold).await?;
    context.end().await?;
    same("state", context.state().await?, None)?;
    let again = context.again().await?;
    same("began", again.sandbox.outcome(), CreateOutcome::Made)?;
    ensure("another life", again.sandbox.generation() != context.sandbox.generation())?;
    again.absent("count").await?;
    again.shell("a", LINE).await?;
    again.holds("count", b"x\n").await
}

async fn resumed_at_once_is_one(context: Context) -> Outcome {
    context.write("w", "f", b"x").await?;
    context.suspend(Suspend::Cold).await?;
    let mut all = JoinSet::new();
    for _ in 0..8 {
        let context = context.clone();
        all.spawn(async move { context.again().await });
    }
    let mut resumed = 0;
    while let Some(made) = all.join_next().await {
        let made = made.map_err(|error| error.to_string())??;
        same("generation", made.sandbox.generation(), context.sandbox.generation())?;
        match made.sandbox.outcome() {
            CreateOutcome::Resumed => resumed += 1,
            CreateOutcome::Attached => {}
            other => return Err(format!("one says {other:?}")),
        }
        made.holds("f", b"x").await?;
    }
    same("those who resumed it", resumed, 1)
}

async fn again_and_again(context: Context) -> Outcome {
    let first = context.shell("a", LINE).await?;
    let mut now = context.clone();
    for round in 0..8 {
        now.shell(&format!("r{round}"), "echo x >> rounds").await?;
        now = now.resumed().await?;
        same("outcome", now.shell("a", LINE).await?, first.clone())?;
        now.shell(&format!("r{round}"), "echo x >> rounds").await?;
    }
    now.holds("count", b"x\n").await?;
    now.holds("rounds", "x\n".repeat(8).as_bytes()).await
}

async fn left_processes_end(context: Context) -> Outcome {
    context.prints("a", LEAVE_A_BEAT, "left\n").await?;
    beats(&context, 0).await?;
    soon("its suspension", context.suspend(Suspend::Cold)).await??;
    let again = context.again().await?;
    let before = again.size("beat").await;
    again.shell("between", "sleep 0.3").await?;
    same("bytes of `beat` some time later", again.size("beat").await, before)
}

/// A tree of every kind of thing that a command can make.
pub(super) const MAKE_A_TREE: &str = "mkdir d e; chmod 750 d; chmod 1777 e; echo a > d/a; chmod 440 d/a; \
     ln d/a d/hard; ln -s a d/soft; ln -s /etc/passwd out; echo b > e/b; chmod 755 e/b; \
     : > 'odd name'; mkfifo e/pipe";

/// Shows it, with modes and owners, and whether the hard link is one.
pub(super) const SHOW_A_TREE: &str = "stat -c '%n %a %F' d e d/a d/soft out e/b 'odd name' e/pipe; \
     [ -O d ] && [ -O d/a ] && echo own; readlink d/soft out; cat d/a d/hard d/soft e/b";

async fn modes_and_links_are_kept(context: Context) -> Outcome {
    same("exit", context.shell("a", MAKE_A_TREE).await?.exit_code(), Some(0))?;
    let before = text(&context.shell("b", SHOW_A_TREE).await?.stdout);
    ensure("the tree is there", before.contains("own\n"))?;
    let again = context.resumed().await?;
    same("tree", text(&again.shell("c", SHOW_A_TREE).await?.stdout), before)?;
    again.prints("d", "chmod 640 d/a; echo more >> d/a; cat d/hard", "a\nmore\n").await
}

async fn closed_directories_are_kept(context: Context) -> Outcome {
    context.write("w", "closed/f", b"x").await?;
    let close = "chmod 000 closed/f closed; ls closed || echo closed";
    same("closed", text(&context.shell("a", close).await?.stdout), "closed\n".to_owned())?;
    let again = context.resumed().await?;
    let show = "ls closed || echo closed; chmod 700 closed; stat -c %a closed/f";
    let shown = text(&again.shell("b", show).await?.stdout);
    same("still closed", shown, "closed\n0\n".to_owned())
}
