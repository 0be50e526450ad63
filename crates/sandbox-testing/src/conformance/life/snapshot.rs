//! Disks that are kept, and sandboxes that are restored from them.

use tokio::task::JoinSet;

use super::{is_absent, is_busy, refused};
use crate::conformance::case::cases;
use crate::conformance::context::{Context, Outcome, ensure, same};
use outrigger_sandbox::{
    CreateOutcome, CreateSpec, DiskOrigin, LifecycleState, SandboxId, SnapshotId, Suspend,
};

cases! { "snapshot":
    taken_is_listed [Snapshots],
    repeated_gives_the_first [Snapshots],
    taken_at_once_is_one [Snapshots],
    sandbox_goes_on [Snapshots],
    outcomes_are_kept [Snapshots],
    busy_while_a_command_runs [Snapshots],
    of_a_frozen_one [Snapshots, Frozen],
    of_a_cold_one [Snapshots, Cold],
    unknown_sandbox_is_absent [Snapshots],
    unknown_snapshot_is_absent [Snapshots],
    origin_counts_only_without_a_disk [Snapshots],
    holds_what_was_there_then [Snapshots],
    holds_all_that_can_be_written [Snapshots],
    restored_after_its_sandbox_was_destroyed [Snapshots],
    restored_under_the_same_name [Snapshots],
    restored_is_listed_with_its_origin [Snapshots],
    restored_is_the_same_to_the_byte [Snapshots],
    removed_is_gone [Snapshots],
    removed_under_those_who_stand_on_it [Snapshots],
    removed_and_taken_again [Snapshots],
    forty_in_a_row [Snapshots],
}

async fn all(context: &Context) -> Result<Vec<SnapshotId>, String> {
    let all = context.snapshots()?.list().await.map_err(|error| format!("list: {error}"))?;
    ensure("the list of snapshots is not sorted", all.is_sorted_by(|a, b| a.name < b.name))?;
    Ok(all.into_iter().map(|snapshot| snapshot.name).collect())
}

async fn forget(context: &Context, suffix: &str) -> Outcome {
    let name = context.snapshot_id(suffix)?;
    let removed = context.snapshots()?.remove(&name).await;
    removed.map_err(|error| format!("remove {suffix}: {error}"))
}

async fn taken_is_listed(context: Context) -> Outcome {
    let (second, first) = (context.take("b").await?, context.take("a").await?);
    same("its sandbox", &first.sandbox, context.sandbox.id())?;
    ensure("it stands on no layer", first.layers >= 1 && second.layers >= 1)?;
    ensure("the second is older", second.taken_at_ms <= first.taken_at_ms)?;
    let listed = all(&context).await?;
    ensure("one is missing", listed.contains(&first.name) && listed.contains(&second.name))?;
    let listed = context.snapshots()?.list().await.map_err(|error| error.to_string())?;
    ensure("it is listed as something else", listed.contains(&first))
}

async fn repeated_gives_the_first(context: Context) -> Outcome {
    context.write("a", "f", b"first").await?;
    let first = context.take("s").await?;
    let now = context.again().await?;
    now.write("b", "f", b"later").await?;
    same("repeated", now.take("s").await?, first.clone())?;
    let other = context.sibling("other").await?;
    let name = context.snapshot_id("s")?;
    let taken = context.snapshots()?.take(other.sandbox.id(), &name).await;
    same("of another", taken.map_err(|error| error.to_string())?, first.clone())?;
    context.forked(&first, "fork").await?.holds("f", b"first").await
}

async fn taken_at_once_is_one(context: Context) -> Outcome {
    context.write("a", "f", b"x").await?;
    let mut taking = JoinSet::new();
    for _ in 0..4 {
        let context = context.clone();
        taking.spawn(async move { context.take("s").await });
    }
    let mut taken = Vec::new();
    while let Some(one) = taking.join_next().await {
        taken.push(one.map_err(|error| error.to_string())??);
    }
    ensure("all are given the same", taken.windows(2).all(|pair| pair[0] == pair[1]))?;
    context.forked(&taken[0], "fork").await?.holds("f", b"x").await
}

async fn sandbox_goes_on(context: Context) -> Outcome {
    context.write("a", "f", b"x").await?;
    context.take("s").await?;
    same("state", context.state().await?, Some(LifecycleState::Running))?;
    let now = context.found().await?.ok_or("it is not found")?;
    same("generation", now.sandbox.generation(), context.sandbox.generation())?;
    now.holds("f", b"x").await?;
    now.prints("b", "cat f; echo y > f; cat f", "xy\n").await?;
    let again = context.again().await?;
    same("began", again.sandbox.outcome(), CreateOutcome::Attached)
}

async fn outcomes_are_kept(context: Context) -> Outcome {
    let line = "echo x >> count; echo out; exit 3";
    let first = context.shell("a", line).await?;
    context.take("s").await?;
    let now = context.again().await?;
    same("outcome", now.shell("a", line).await?, first)?;
    now.holds("count", b"x\n").await
}

async fn busy_while_a_command_runs(context: Context) -> Outcome {
    context.begin("a", "echo up; sleep 50; echo end").await?;
    let name = context.snapshot_id("s")?;
    let taken = context.snapshots()?.take(context.sandbox.id(), &name).await;
    refused("a snapshot under a command", taken, is_busy)?;
    ensure("it is listed", !all(&context).await?.contains(&name))?;
    context.killed("a").await?;
    context.take("s").await.map(drop)
}

async fn of_a_frozen_one(context: Context) -> Outcome {
    context.write("a", "f", b"x").await?;
    context.suspend(Suspend::Frozen).await?;
    let taken = context.take("s").await?;
    let now = context.again().await?;
    same("generation", now.sandbox.generation(), context.sandbox.generation())?;
    now.holds("f", b"x").await?;
    now.prints("b", "echo fine", "fine\n").await?;
    context.forked(&taken, "fork").await?.holds("f", b"x").await
}

async fn of_a_cold_one(context: Context) -> Outcome {
    context.write("a", "f", b"x").await?;
    let line = "echo x >> count; exit 3";
    let first = context.shell("b", line).await?;
    context.suspend(Suspend::Cold).await?;
    let taken = context.take("s").await?;
    same("state", context.state().await?, Some(LifecycleState::Cold))?;
    context.forked(&taken, "fork").await?.holds("f", b"x").await?;
    let again = context.again().await?;
    same("began", again.sandbox.outcome(), CreateOutcome::Resumed)?;
    same("generation", again.sandbox.generation(), context.sandbox.generation())?;
    same("outcome", again.shell("b", line).await?, first)?;
    again.holds("count", b"x\n").await?;
    again.holds("f", b"x").await
}

async fn unknown_sandbox_is_absent(context: Context) -> Outcome {
    let unknown = SandboxId::new("conformance-nobody-made-this").map_err(|e| e.to_string())?;
    let name = context.snapshot_id("s")?;
    let taken = context.snapshots()?.take(&unknown, &name).await;
    refused("a snapshot of nothing", taken, is_absent)?;
    ensure("it is listed", !all(&context).await?.contains(&name))
}

async fn unknown_snapshot_is_absent(context: Context) -> Outcome {
    let name = SandboxId::new(format!("{}-fork", context.sandbox.id()));
    let name = name.map_err(|error| error.to_string())?;
    let origin = DiskOrigin::Snapshot(context.snapshot_id("never-taken")?);
    let spec = CreateSpec { origin, ..context.spec.clone() };
    for _ in 0..2 {
        let made = context.backend.create(&name, &spec).await;
        refused("create from nothing", made, is_absent)?;
    }
    let listed = context.backend.list().await.map_err(|error| error.to_string())?;
    ensure("it is listed", listed.iter().all(|listed| listed.id != name))
}

async fn origin_counts_only_without_a_disk(context: Context) -> Outcome {
    let taken = context.take("s").await?;
    let now = context.again().await?;
    now.write("a", "f", b"mine").await?;
    for origin in [taken.name, context.snapshot_id("never-taken")?] {
        let spec = CreateSpec { origin: DiskOrigin::Snapshot(origin), ..context.spec.clone() };
        let made = context.backend.create(context.sandbox.id(), &spec).await;
        let sandbox = made.map_err(|error| format!("create: {error}"))?;
        same("began", sandbox.outcome(), CreateOutcome::Attached)?;
        same("generation", sandbox.generation(), context.sandbox.generation())?;
        Context { sandbox, ..context.clone() }.holds("f", b"mine").await?;
    }
    same("origin", context.listed().await?.map(|listed| listed.origin), Some(context.spec.origin))
}

async fn holds_what_was_there_then(context: Context) -> Outcome {
    let mut now = context.clone();
    for (round, contents) in ["one", "two", "three"].into_iter().enumerate() {
        now.write(&format!("w{round}"), "f", contents.as_bytes()).await?;
        now.write(&format!("v{round}"), &format!("only-{contents}"), b"").await?;
        now.take(contents).await?;
        now = now.again().await?;
    }
    now.remove("r", "f").await?;
    for (contents, files) in [("one", 2), ("two", 3), ("three", 4)] {
        let taken = context.take(contents).await?;
        let fork = context.forked(&taken, contents).await?;
        fork.holds("f", contents.as_bytes()).await?;
        same("files", fork.manifest().await?.len(), files)?;
        fork.end().await?;
    }
    now.absent("f").await
}

async fn holds_all_that_can_be_written(context: Context) -> Outcome {
    let paths = ["dir/f", "/tmp/dir/f", "/home/agent/dir/f"];
    for (number, path) in paths.iter().enumerate() {
        context.write(&format!("w{number}"), path, path.as_bytes()).await?;
    }
    let taken = context.take("s").await?;
    let (fork, now) = (context.forked(&taken, "fork").await?, context.again().await?);
    for path in paths {
        fork.holds(path, path.as_bytes()).await?;
        now.holds(path, path.as_bytes()).await?;
    }
    Ok(())
}

async fn restored_after_its_sandbox_was_destroyed(context: Context) -> Outcome {
    context.write("a", "dir/f", b"kept").await?;
    let taken = context.take("s").await?;
    context.end().await?;
    ensure("the snapshot went too", all(&context).await?.contains(&taken.name))?;
    let fork = context.forked(&taken, "fork").await?;
    same("began", fork.sandbox.outcome(), CreateOutcome::Made)?;
    fork.prints("b", "cat dir/f; echo more >> dir/f; cat dir/f", "keptkeptmore\n").await
}

async fn restored_under_the_same_name(context: Context) -> Outcome {
    let line = "echo x >> count";
    context.shell("a", line).await?;
    let taken = context.take("s").await?;
    context.again().await?.shell("b", "echo y >> count").await?;
    context.end().await?;
    let spec = CreateSpec { origin: DiskOrigin::Snapshot(taken.name), ..context.spec.clone() };
    let restored = Context { spec, ..context.clone() }.again().await?;
    same("began", restored.sandbox.outcome(), CreateOutcome::Made)?;
    ensure("another life", restored.sandbox.generation() != context.sandbox.generation())?;
    restored.holds("count", b"x\n").await?;
    restored.shell("a", line).await?;
    restored.holds("count", b"x\nx\n").await
}

async fn restored_is_listed_with_its_origin(context: Context) -> Outcome {
    let taken = context.take("s").await?;
    let fork = context.forked(&taken, "fork").await?;
    let listed = fork.listed().await?.ok_or("it is not listed")?;
    same("origin", listed.origin, DiskOrigin::Snapshot(taken.name))?;
    same("state", listed.state, LifecycleState::Running)?;
    same("generation", listed.generation.as_ref(), Some(fork.sandbox.generation()))
}

async fn restored_is_the_same_to_the_byte(context: Context) -> Outcome {
    for number in 0..30 {
        let contents = vec![u8::try_from(number).unwrap_or(0); number * 3_000];
        context
            .write(&format!("w{number}"), &format!("d{}/f{number}", number % 3), &contents)
            .await?;
    }
    for number in 0..5 {
        let (path, target) = (format!("d0/l{number}"), format!("../d{number}/f{number}"));
        context
            .files(outrigger_sandbox::FileOp::Link {
                id: crate::conformance::context::id(&path.replace('/', "-")),
                path,
                target,
            })
            .await?;
    }
    let before = context.manifest().await?;
    let taken = context.take("s").await?;
    same("fork", context.forked(&taken, "fork").await?.manifest().await?, before.clone())?;
    same("itself", context.again().await?.manifest().await?, before)
}

async fn removed_is_gone(context: Context) -> Outcome {
    let taken = context.take("s").await?;
    for _ in 0..2 {
        forget(&context, "s").await?;
        ensure("it is listed", !all(&context).await?.contains(&taken.name))?;
    }
    ensure("it can be restored", context.forked(&taken, "fork").await.is_err())?;
    context.again().await?.prints("a", "echo fine", "fine\n").await
}

async fn removed_under_those_who_stand_on_it(context: Context) -> Outcome {
    context.write("a", "f", b"x").await?;
    let first = context.take("first").await?;
    let fork = context.forked(&first, "fork").await?;
    fork.write("b", "g", b"y").await?;
    let name = context.snapshot_id("second")?;
    let taken = context.snapshots()?.take(fork.sandbox.id(), &name).await;
    let second = taken.map_err(|error| format!("take: {error}"))?;
    forget(&context, "first").await?;
    context.end().await?;
    let fork = fork.again().await?;
    fork.holds("f", b"x").await?;
    fork.holds("g", b"y").await?;
    fork.prints("c", "cat f g", "xy").await?;
    fork.end().await?;
    let last = context.forked(&second, "last").await?;
    last.prints("d", "cat f g; echo z >> f; cat f", "xyxz\n").await
}

async fn removed_and_taken_again(context: Context) -> Outcome {
    context.write("a", "f", b"first").await?;
    context.take("s").await?;
    let now = context.again().await?;
    now.write("b", "f", b"second").await?;
    forget(&now, "s").await?;
    let taken = now.take("s").await?;
    now.forked(&taken, "fork").await?.holds("f", b"second").await
}

async fn forty_in_a_row(context: Context) -> Outcome {
    let mut now = context.clone();
    for round in 0..40 {
        now.write(&format!("w{round}"), &format!("f{round:02}"), b"x").await?;
        now.write(&format!("c{round}"), "last", format!("{round}").as_bytes()).await?;
        now.take(&format!("s{round:02}")).await?;
        now = now.again().await?;
    }
    same("generation", now.sandbox.generation(), context.sandbox.generation())?;
    now.holds("last", b"39").await?;
    now.prints("a", "cat f00 f20 f39; echo fine", "xxxfine\n").await?;
    for (round, files) in [(0, 2), (9, 11), (39, 41)] {
        let taken = context.take(&format!("s{round:02}")).await?;
        let fork = context.forked(&taken, &format!("fork{round}")).await?;
        fork.holds("last", format!("{round}").as_bytes()).await?;
        same("files", fork.manifest().await?.len(), files)?;
        fork.end().await?;
    }
    Ok(())
}
