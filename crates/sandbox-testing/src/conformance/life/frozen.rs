//! Suspension that keeps processes: they stop, and go on with the next command.

use super::{a_while, is_absent, is_busy, refused, until};
use crate::conformance::case::cases;
use crate::conformance::context::{Context, Outcome, ensure, same, soon};
use outrigger_sandbox::{CreateOutcome, LifecycleState, SandboxId, Suspend};

cases! { "frozen":
    found_and_listed [Frozen],
    a_command_thaws_it [Frozen],
    create_thaws_it [Frozen],
    repeated_is_fine [Frozen],
    files_are_at_hand [Frozen],
    outcomes_are_kept [Frozen],
    busy_while_a_command_runs [Frozen],
    unknown_is_absent [Frozen],
    destroyed_while_frozen [Frozen],
    again_and_again [Frozen],
    then_cold [Frozen, Cold],
    processes_stop_and_go_on [Frozen, Programs],
    destroyed_with_its_processes [Frozen, Programs],
}

/// Leaves a process behind that appends to `beat` for ever.
pub(super) const LEAVE_A_BEAT: &str =
    "(while :; do echo x >> beat; sleep 0.02; done) > /dev/null 2>&1 < /dev/null & echo left";

async fn found_and_listed(context: Context) -> Outcome {
    context.suspend(Suspend::Frozen).await?;
    same("state", context.state().await?, Some(LifecycleState::Frozen))?;
    let found = context.found().await?.ok_or("it is not found")?;
    same("generation", found.sandbox.generation(), context.sandbox.generation())?;
    same("began", found.sandbox.outcome(), CreateOutcome::Attached)?;
    same("state after find", context.state().await?, Some(LifecycleState::Frozen))?;
    ensure("the handle lives", context.sandbox.is_alive())
}

async fn a_command_thaws_it(context: Context) -> Outcome {
    context.write("w", "f", b"kept").await?;
    context.suspend(Suspend::Frozen).await?;
    context.prints("a", "cat f", "kept").await?;
    same("state", context.state().await?, Some(LifecycleState::Running))
}

async fn create_thaws_it(context: Context) -> Outcome {
    context.suspend(Suspend::Frozen).await?;
    let again = context.again().await?;
    same("began", again.sandbox.outcome(), CreateOutcome::Attached)?;
    same("generation", again.sandbox.generation(), context.sandbox.generation())?;
    same("state", context.state().await?, Some(LifecycleState::Running))?;
    context.prints("a", "echo old handle", "old handle\n").await?;
    again.prints("b", "echo new handle", "new handle\n").await
}

async fn repeated_is_fine(context: Context) -> Outcome {
    for _ in 0..3 {
        context.suspend(Suspend::Frozen).await?;
        same("state", context.state().await?, Some(LifecycleState::Frozen))?;
    }
    context.prints("a", "echo fine", "fine\n").await
}

async fn files_are_at_hand(context: Context) -> Outcome {
    context.write("a", "f", b"before").await?;
    context.suspend(Suspend::Frozen).await?;
    context.holds("f", b"before").await?;
    context.write("b", "f", b"meanwhile").await?;
    context.holds("f", b"meanwhile").await?;
    same("state", context.state().await?, Some(LifecycleState::Frozen))?;
    context.prints("c", "cat f", "meanwhile").await
}

async fn outcomes_are_kept(context: Context) -> Outcome {
    let line = "echo x >> count; echo out; exit 3";
    let first = context.shell("a", line).await?;
    context.suspend(Suspend::Frozen).await?;
    same("outcome", context.shell("a", line).await?, first)?;
    context.holds("count", b"x\n").await
}

async fn busy_while_a_command_runs(context: Context) -> Outcome {
    context.begin("a", "echo up; sleep 50; echo end").await?;
    let suspended = context.backend.suspend(context.sandbox.id(), Suspend::Frozen).await;
    refused("suspend under a command", suspended, is_busy)?;
    same("state", context.state().await?, Some(LifecycleState::Running))?;
    context.killed("a").await?;
    context.suspend(Suspend::Frozen).await
}

async fn unknown_is_absent(context: Context) -> Outcome {
    let unknown = SandboxId::new("conformance-nobody-made-this").map_err(|e| e.to_string())?;
    let suspended = context.backend.suspend(&unknown, Suspend::Frozen).await;
    refused("suspend of an unknown one", suspended, is_absent)?;
    context.end().await?;
    let suspended = context.backend.suspend(context.sandbox.id(), Suspend::Frozen).await;
    refused("suspend of a destroyed one", suspended, is_absent)
}

async fn destroyed_while_frozen(context: Context) -> Outcome {
    context.write("w", "f", b"x").await?;
    context.suspend(Suspend::Frozen).await?;
    soon("its end", context.end()).await??;
    same("state", context.state().await?, None)?;
    let again = context.again().await?;
    same("began", again.sandbox.outcome(), CreateOutcome::Made)?;
    again.absent("f").await
}

async fn again_and_again(context: Context) -> Outcome {
    for round in 0..10 {
        context.suspend(Suspend::Frozen).await?;
        context.prints(&format!("a{round}"), "echo thawed", "thawed\n").await?;
    }
    Ok(())
}

async fn then_cold(context: Context) -> Outcome {
    context.suspend(Suspend::Frozen).await?;
    context.suspend(Suspend::Cold).await?;
    same("state", context.state().await?, Some(LifecycleState::Cold))?;
    context.suspend(Suspend::Frozen).await?;
    same("state of a cold one", context.state().await?, Some(LifecycleState::Cold))?;
    let again = context.again().await?;
    same("began", again.sandbox.outcome(), CreateOutcome::Resumed)?;
    same("generation", again.sandbox.generation(), context.sandbox.generation())
}

/// Waits until `beat` is longer than that.
pub(super) async fn beats(context: &Context, above: u64) -> Result<u64, String> {
    until("a beat", || async { Ok(Some(context.size("beat").await).filter(|size| *size > above)) })
        .await
}

async fn processes_stop_and_go_on(context: Context) -> Outcome {
    context.prints("a", LEAVE_A_BEAT, "left\n").await?;
    beats(&context, 0).await?;
    context.suspend(Suspend::Frozen).await?;
    let stopped = context.size("beat").await;
    a_while().await;
    same("bytes of `beat` some time later", context.size("beat").await, stopped)?;
    context.prints("b", "echo thawed", "thawed\n").await?;
    beats(&context, stopped).await.map(drop)
}

async fn destroyed_with_its_processes(context: Context) -> Outcome {
    context.prints("a", LEAVE_A_BEAT, "left\n").await?;
    context.suspend(Suspend::Frozen).await?;
    soon("its end", context.end()).await??;
    same("state", context.state().await?, None)
}
