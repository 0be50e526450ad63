//! What a backend does by itself when nobody asks for a sandbox for long.

use super::{is_lost, refused, until};
use crate::conformance::case::cases;
use crate::conformance::context::{Context, Outcome, same, shell, soon};
use outrigger_sandbox::{CreateOutcome, CreateSpec, End, LifecycleState, Lifetime, Suspend};

cases! { "lifetime":
    idle_is_suspended [Suspended] with soon_idle,
    idle_after_a_command_left_processes [Suspended, Programs] with soon_idle,
    running_command_is_not_idle [Suspended] with soon_idle,
    idle_goes_cold_again_and_again [Cold] with soon_idle,
    idle_and_frozen_goes_cold [Frozen, Cold] with soon_idle,
    old_is_destroyed with soon_old,
    old_is_destroyed_under_a_command with soon_old,
    old_is_destroyed_although_cold [Cold] with soon_old,
    old_leaves_its_snapshots [Snapshots] with soon_old,
    without_limits_it_stays,
}

fn soon_idle(spec: CreateSpec) -> CreateSpec {
    CreateSpec { lifetime: Lifetime { idle_ms_max: Some(5_000), age_ms_max: None }, ..spec }
}

fn soon_old(spec: CreateSpec) -> CreateSpec {
    CreateSpec { lifetime: Lifetime { idle_ms_max: None, age_ms_max: Some(10_000) }, ..spec }
}

/// As deep as the backend can.
fn deepest(context: &Context) -> LifecycleState {
    match context.backend.capabilities().suspend.iter().max() {
        Some(Suspend::Cold) => LifecycleState::Cold,
        Some(Suspend::Frozen) | None => LifecycleState::Frozen,
    }
}

async fn reaches(context: &Context, state: Option<LifecycleState>) -> Outcome {
    let look = || async { Ok((context.state().await? == state).then_some(())) };
    until(&format!("the state {state:?}"), look).await
}

async fn idle_is_suspended(context: Context) -> Outcome {
    context.write("w", "f", b"kept").await?;
    let line = "echo x >> count; exit 3";
    let first = context.shell("a", line).await?;
    reaches(&context, Some(deepest(&context))).await?;
    let again = context.again().await?;
    same("generation", again.sandbox.generation(), context.sandbox.generation())?;
    let began = if deepest(&context) == LifecycleState::Cold {
        CreateOutcome::Resumed
    } else {
        CreateOutcome::Attached
    };
    same("began", again.sandbox.outcome(), began)?;
    again.holds("f", b"kept").await?;
    same("outcome", again.shell("a", line).await?, first)?;
    again.holds("count", b"x\n").await
}

async fn idle_after_a_command_left_processes(context: Context) -> Outcome {
    let line = "sleep 60 > /dev/null 2>&1 < /dev/null & echo left";
    context.prints("a", line, "left\n").await?;
    reaches(&context, Some(deepest(&context))).await
}

async fn running_command_is_not_idle(context: Context) -> Outcome {
    let done = context.shell("a", "echo begun; sleep 8; echo ended").await?;
    same("outcome", (done.end, done.stdout), (End::Exited(0), b"begun\nended\n".to_vec()))
}

async fn idle_goes_cold_again_and_again(context: Context) -> Outcome {
    let mut now = context.clone();
    for round in 0..3 {
        now.shell(&format!("a{round}"), "echo x >> f").await?;
        reaches(&context, Some(LifecycleState::Cold)).await?;
        now = now.again().await?;
        same("began", now.sandbox.outcome(), CreateOutcome::Resumed)?;
    }
    now.holds("f", b"x\nx\nx\n").await
}

async fn idle_and_frozen_goes_cold(context: Context) -> Outcome {
    context.suspend(Suspend::Frozen).await?;
    reaches(&context, Some(LifecycleState::Cold)).await
}

async fn gone(context: &Context) -> Outcome {
    reaches(context, None).await?;
    let done = context.sandbox.execute(shell("after", "true"), &()).await;
    refused("a command after its age", done, is_lost)
}

async fn old_is_destroyed(context: Context) -> Outcome {
    context.write("w", "f", b"x").await?;
    gone(&context).await?;
    let again = context.again().await?;
    same("began", again.sandbox.outcome(), CreateOutcome::Made)?;
    again.absent("f").await
}

async fn old_is_destroyed_under_a_command(context: Context) -> Outcome {
    let running = context.sandbox.execute(shell("a", "echo up; sleep 100"), &());
    refused("the running command", soon("its end", running).await?, is_lost)?;
    gone(&context).await
}

async fn old_is_destroyed_although_cold(context: Context) -> Outcome {
    context.suspend(Suspend::Cold).await?;
    gone(&context).await
}

async fn old_leaves_its_snapshots(context: Context) -> Outcome {
    context.write("w", "f", b"x").await?;
    let taken = context.take("s").await?;
    reaches(&context, None).await?;
    let lasting = CreateSpec { lifetime: Lifetime::default(), ..context.spec.clone() };
    let fork = Context { spec: lasting, ..context }.forked(&taken, "fork").await?;
    fork.holds("f", b"x").await
}

async fn without_limits_it_stays(context: Context) -> Outcome {
    let made = context.listed().await?.ok_or("it is not listed")?;
    super::a_while().await;
    let listed = context.listed().await?.ok_or("it is gone")?;
    same("state", listed.state, LifecycleState::Running)?;
    same("when it was made", listed.made_at_ms, made.made_at_ms)?;
    context.prints("a", "echo fine", "fine\n").await
}
