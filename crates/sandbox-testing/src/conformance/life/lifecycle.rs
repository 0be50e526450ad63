//! Making, finding, listing and destroying sandboxes.

use tokio::task::JoinSet;

use super::{is_lost, refused};
use crate::conformance::case::cases;
use crate::conformance::context::{
    Context, Listener, Outcome, ensure, id, read_op, same, shell, soon,
};
use outrigger_sandbox::{CreateOutcome, CreateSpec, Error, Isolation, LifecycleState, SandboxId};

cases! { "lifecycle":
    created_is_found_and_listed,
    created_again_is_the_same,
    created_at_once_is_one,
    began_says_what_was_found,
    listed_with_state_times_and_origin,
    used_later_than_made,
    unknown_is_not_found,
    destroyed_is_gone,
    destroyed_and_made_again_is_new,
    destroyed_under_a_command,
    old_handle_says_lost,
    apart_from_each_other,
    list_is_sorted,
    names_of_all_shapes,
    less_isolation_than_asked_is_refused,
    destroyed_takes_processes [Programs],
}

async fn found(context: &Context) -> Result<Option<String>, String> {
    let found = context.backend.find(context.sandbox.id()).await;
    let found = found.map_err(|error| format!("find: {error}"))?;
    Ok(found.map(|sandbox| sandbox.generation().as_str().to_owned()))
}

async fn listed(context: &Context) -> Result<Vec<SandboxId>, String> {
    let all = context.backend.list().await.map_err(|error| format!("list: {error}"))?;
    Ok(all.into_iter().map(|listed| listed.id).collect())
}

async fn created_is_found_and_listed(context: Context) -> Outcome {
    let generation = context.sandbox.generation().as_str().to_owned();
    same("found", found(&context).await?, Some(generation))?;
    ensure("it is alive", context.sandbox.is_alive())?;
    ensure("it is listed", listed(&context).await?.contains(context.sandbox.id()))
}

async fn created_again_is_the_same(context: Context) -> Outcome {
    context.write("w", "f", b"x").await?;
    let again = context.again().await?;
    same("generation", again.sandbox.generation(), context.sandbox.generation())?;
    same("id", again.sandbox.id(), context.sandbox.id())?;
    again.holds("f", b"x").await?;
    again.shell("a", "echo y > g").await?;
    context.holds("g", b"y\n").await
}

async fn created_at_once_is_one(context: Context) -> Outcome {
    context.end().await?;
    let mut all = JoinSet::new();
    for _ in 0..8 {
        let context = context.clone();
        all.spawn(async move { context.again().await });
    }
    let mut generations = std::collections::BTreeSet::new();
    while let Some(made) = all.join_next().await {
        let made = made.map_err(|error| error.to_string())??;
        generations.insert(made.sandbox.generation().clone());
    }
    same("lives", generations.len(), 1)
}

async fn began_says_what_was_found(context: Context) -> Outcome {
    same("made", context.sandbox.outcome(), CreateOutcome::Made)?;
    same("made again", context.again().await?.sandbox.outcome(), CreateOutcome::Attached)?;
    let found = context.found().await?.ok_or("it is not found")?;
    same("found", found.sandbox.outcome(), CreateOutcome::Attached)?;
    context.end().await?;
    same("made anew", context.again().await?.sandbox.outcome(), CreateOutcome::Made)
}

async fn listed_with_state_times_and_origin(context: Context) -> Outcome {
    let listed = context.listed().await?.ok_or("it is not listed")?;
    same("state", listed.state, LifecycleState::Running)?;
    same("generation", listed.generation.as_ref(), Some(context.sandbox.generation()))?;
    same("origin", listed.origin, context.spec.origin.clone())?;
    let other = context.sibling("other").await?;
    let later = other.listed().await?.ok_or("it is not listed")?;
    ensure("the second was made before the first", later.made_at_ms >= listed.made_at_ms)?;
    other.end().await
}

async fn used_later_than_made(context: Context) -> Outcome {
    let first = context.listed().await?.ok_or("it is not listed")?;
    ensure("used before it was made", first.used_at_ms >= first.made_at_ms)?;
    super::a_while().await;
    context.again().await?;
    let second = context.listed().await?.ok_or("it is not listed")?;
    same("made at", second.made_at_ms, first.made_at_ms)?;
    ensure("its use is not told", second.used_at_ms > first.used_at_ms)
}

async fn unknown_is_not_found(context: Context) -> Outcome {
    let unknown = SandboxId::new("conformance-nobody-made-this").map_err(|e| e.to_string())?;
    let found = context.backend.find(&unknown).await.map_err(|error| error.to_string())?;
    ensure("it is found", found.is_none())?;
    context.backend.destroy(&unknown).await.map_err(|error| format!("destroy: {error}"))
}

async fn destroyed_is_gone(context: Context) -> Outcome {
    context.end().await?;
    same("found", found(&context).await?, None)?;
    ensure("it is still listed", !listed(&context).await?.contains(context.sandbox.id()))?;
    context.end().await
}

async fn destroyed_and_made_again_is_new(context: Context) -> Outcome {
    context.shell("a", "echo x >> count").await?;
    context.end().await?;
    let again = context.again().await?;
    let (old, new) = (context.sandbox.generation(), again.sandbox.generation());
    ensure("the generation is the old one", old != new)?;
    again.absent("count").await?;
    again.shell("a", "echo y >> count").await?;
    again.holds("count", b"y\n").await
}

async fn destroyed_under_a_command(context: Context) -> Outcome {
    let listener = Listener::default();
    let running = context.sandbox.execute(shell("a", "echo up; sleep 50"), &listener);
    let ending = async {
        soon("its first output", listener.hears("up")).await?;
        context.end().await
    };
    let (running, ended) = tokio::join!(soon("its end", running), ending);
    ended?;
    refused("the running command", running?, is_lost)
}

async fn old_handle_says_lost(context: Context) -> Outcome {
    context.end().await?;
    let gone = &context.sandbox;
    refused("execute", gone.execute(shell("a", "true"), &()).await, is_lost)?;
    refused("files", gone.files(read_op("f")).await, is_lost)?;
    refused("kill", gone.kill(&id("a")).await, is_lost)?;
    context.again().await?;
    refused("execute in the next life", gone.execute(shell("b", "true"), &()).await, is_lost)
}

async fn apart_from_each_other(context: Context) -> Outcome {
    let other = context.sibling("other").await?;
    ensure("one life for two", other.sandbox.generation() != context.sandbox.generation())?;
    context.write("w", "f", b"mine").await?;
    context.write("t", "/tmp/f", b"mine").await?;
    other.absent("f").await?;
    other.absent("/tmp/f").await?;
    other.end().await?;
    context.holds("f", b"mine").await
}

async fn list_is_sorted(context: Context) -> Outcome {
    let others = [context.sibling("b").await?, context.sibling("a").await?];
    let all = listed(&context).await?;
    ensure("the list is not sorted", all.is_sorted())?;
    for other in &others {
        ensure("one is missing", all.contains(other.sandbox.id()))?;
        other.end().await?;
    }
    Ok(())
}

async fn names_of_all_shapes(context: Context) -> Outcome {
    for name in ["a", "A.b_c-1", "--", &"x".repeat(outrigger_sandbox::limits::ID_BYTES_MAX)] {
        let id = SandboxId::new(name).map_err(|error| error.to_string())?;
        let made = context.backend.create(&id, &context.spec).await;
        let sandbox = made.map_err(|error| format!("create `{name}`: {error}"))?;
        let other = Context { sandbox, ..context.clone() };
        other.prints("a", "echo fine", "fine\n").await?;
        other.end().await?;
    }
    Ok(())
}

async fn less_isolation_than_asked_is_refused(context: Context) -> Outcome {
    let stronger = match context.spec.isolation_min {
        Isolation::Fake => Isolation::RootlessSingle,
        Isolation::RootlessSingle => Isolation::Container,
        Isolation::Container => Isolation::RootlessRange,
        Isolation::RootlessRange => Isolation::RootRange,
        Isolation::RootRange => Isolation::Gvisor,
        Isolation::Gvisor => return Ok(()),
    };
    let name = SandboxId::new("conformance-too-strong").map_err(|error| error.to_string())?;
    let spec = CreateSpec { isolation_min: stronger, ..context.spec.clone() };
    match context.backend.create(&name, &spec).await {
        Err(Error::Unavailable { .. }) => Ok(()),
        other => Err(format!("got {other:?}, expected Unavailable")),
    }
}

async fn destroyed_takes_processes(context: Context) -> Outcome {
    let line = "setsid sleep 50 >/dev/null 2>&1 </dev/null & echo started";
    context.prints("a", line, "started\n").await?;
    soon("the end of the sandbox", context.end()).await??;
    same("found", found(&context).await?, None)
}
