//! What a backend declares is there, and what it does not declare is refused by
//! name: nothing is silently less than it was asked to be.

use super::case::cases;
use super::context::{Context, Outcome, ensure, id, same, shell};
use super::life::{is_absent, is_invalid, is_unsupported, refused};
use super::served::served;
use outrigger_sandbox::{
    CreateSpec, DiskOrigin, Error, Execute, Input, Lifetime, SandboxId, Suspend, TerminalSize,
    limits,
};

cases! { "declared":
    lists_are_in_order,
    every_layer_says_what_it_is,
    frozen_suspension,
    cold_suspension,
    snapshots,
    origin_of_a_snapshot,
    served_folders [Programs] with served,
    terminal,
    input,
    unknown_template_is_absent,
    absurd_specifications_are_refused,
}

async fn lists_are_in_order(context: Context) -> Outcome {
    let declared = context.backend.capabilities();
    ensure("it has no name", !declared.backend.is_empty())?;
    ensure("no network mode is on offer", !declared.network.is_empty())?;
    let shallow_first = declared.suspend.is_sorted_by(|a, b| a < b);
    ensure("suspensions are not in order, or twice", shallow_first)?;
    same("a second look", context.backend.capabilities(), declared)
}

async fn every_layer_says_what_it_is(context: Context) -> Outcome {
    let layers = &context.backend.capabilities().layers;
    ensure("no layer is named", !layers.is_empty())?;
    for (number, layer) in layers.iter().enumerate() {
        ensure("a layer has no name", !layer.name.is_empty())?;
        ensure(&format!("{} says nothing", layer.name), !layer.detail.is_empty())?;
        let twice = layers[..number].iter().any(|other| other.name == layer.name);
        ensure(&format!("{} is there twice", layer.name), !twice)?;
    }
    Ok(())
}

/// Demands what the declaration says: done, or refused as unsupported.
fn as_declared<T: std::fmt::Debug>(
    what: &str,
    declared: bool,
    result: Result<T, Error>,
) -> Outcome {
    match (declared, result) {
        (true, Ok(_)) => Ok(()),
        (true, Err(error)) => Err(format!("{what} is declared, and gives `{error}`")),
        (false, result) => refused(&format!("{what} is not declared"), result, is_unsupported),
    }
}

async fn suspension(context: &Context, how: Suspend) -> Outcome {
    let declared = context.backend.capabilities().suspend.contains(&how);
    let done = context.backend.suspend(context.sandbox.id(), how).await;
    as_declared(&format!("suspending {how}"), declared, done)?;
    context.again().await?.prints("a", "echo fine", "fine\n").await
}

async fn frozen_suspension(context: Context) -> Outcome {
    suspension(&context, Suspend::Frozen).await
}

async fn cold_suspension(context: Context) -> Outcome {
    suspension(&context, Suspend::Cold).await
}

async fn snapshots(context: Context) -> Outcome {
    let declared = context.backend.capabilities().snapshots;
    as_declared("the port of snapshots", declared, context.backend.snapshots())?;
    let Ok(snapshots) = context.backend.snapshots() else { return Ok(()) };
    let name = context.snapshot_id("s")?;
    let taken = snapshots.take(context.sandbox.id(), &name).await;
    as_declared("a snapshot", declared, taken)
}

async fn origin_of_a_snapshot(context: Context) -> Outcome {
    let name = SandboxId::new(format!("{}-fork", context.sandbox.id()));
    let name = name.map_err(|error| error.to_string())?;
    let origin = DiskOrigin::Snapshot(context.snapshot_id("never-taken")?);
    let spec = CreateSpec { origin, ..context.spec.clone() };
    let made = context.backend.create(&name, &spec).await;
    let declared = context.backend.capabilities().snapshots;
    let expected = if declared { is_absent } else { is_unsupported };
    refused("create from a snapshot that is not there", made, expected)
}

/// Whatever is declared, nobody keeps there what is no part of a tree.
async fn served_folders(context: Context) -> Outcome {
    let live = context.backend.capabilities().live_mounts;
    let (line, expected) = match (live, &context.trees) {
        (true, Some(trees)) => {
            trees.tree(context.sandbox.id()).put("/memory/f", "x\n");
            ("cat /memory/f", "x\n")
        }
        (true, None) => ("ls -A /memory 2> /dev/null || echo nobody answers", "nobody answers\n"),
        (false, _) => (
            "for d in /memory /skills; do ls -A $d 2> /dev/null; mkdir $d/d 2> /dev/null || echo kept; \
             (echo x > $d/f) 2> /dev/null || echo kept; rmdir $d 2> /dev/null || echo kept; done",
            "kept\nkept\nkept\nkept\nkept\nkept\n",
        ),
    };
    context.prints("a", line, expected).await?;
    let Ok(snapshots) = context.backend.snapshots() else { return Ok(()) };
    let name = context.snapshot_id("s")?;
    let taken = snapshots.take(context.sandbox.id(), &name).await;
    taken.map_err(|error| format!("take: {error}"))?;
    let mut fork = context.clone();
    fork.spec.origin = DiskOrigin::Snapshot(name);
    let fork = fork.sibling("fork").await?;
    if let (true, Some(trees)) = (live, &fork.trees) {
        trees.tree(fork.sandbox.id()).put("/memory/f", "x\n");
    }
    fork.prints("b", line, expected).await?;
    fork.end().await
}

async fn terminal(context: Context) -> Outcome {
    let size = Some(TerminalSize { rows: 24, columns: 80 });
    let request = Execute { terminal: size, ..shell("a", "echo x >> count; true") };
    let done = context.sandbox.execute(request, &()).await;
    let declared = context.backend.capabilities().terminal;
    as_declared("a terminal", declared, done)?;
    if !declared {
        context.absent("count").await?;
    }
    context.prints("b", "echo fine", "fine\n").await
}

async fn input(context: Context) -> Outcome {
    let given = context.sandbox.input(&id("a"), Input::Bytes(b"x".to_vec())).await;
    let declared = context.backend.capabilities().terminal;
    let expected = if declared { is_invalid } else { is_unsupported };
    refused("input for a command that never was", given, expected)
}

async fn unknown_template_is_absent(context: Context) -> Outcome {
    let name = SandboxId::new(format!("{}-other", context.sandbox.id()));
    let name = name.map_err(|error| error.to_string())?;
    let origin = DiskOrigin::Template("conformance-no-such-template".to_owned());
    let spec = CreateSpec { origin, ..context.spec.clone() };
    refused("create", context.backend.create(&name, &spec).await, is_absent)?;
    let listed = context.backend.list().await.map_err(|error| error.to_string())?;
    ensure("it is listed", listed.iter().all(|listed| listed.id != name))
}

async fn absurd_specifications_are_refused(context: Context) -> Outcome {
    let name = SandboxId::new(format!("{}-other", context.sandbox.id()));
    let name = name.map_err(|error| error.to_string())?;
    let lasting = |idle_ms_max, age_ms_max| Lifetime { idle_ms_max, age_ms_max };
    let changes: [(&str, CreateSpec); 9] = [
        ("no idle time", CreateSpec { lifetime: lasting(Some(0), None), ..context.spec.clone() }),
        ("no age", CreateSpec { lifetime: lasting(None, Some(0)), ..context.spec.clone() }),
        (
            "a long idle time",
            CreateSpec {
                lifetime: lasting(Some(limits::LIFETIME_MS_MAX + 1), None),
                ..context.spec.clone()
            },
        ),
        (
            "an old age",
            CreateSpec { lifetime: lasting(None, Some(u64::MAX)), ..context.spec.clone() },
        ),
        ("no memory", CreateSpec { memory_bytes_max: 0, ..context.spec.clone() }),
        ("no processes", CreateSpec { pids_max: 0, ..context.spec.clone() }),
        ("no CPU", CreateSpec { cpu_millis_max: 0, ..context.spec.clone() }),
        ("no disk", CreateSpec { disk_bytes_max: 0, ..context.spec.clone() }),
        ("no files", CreateSpec { disk_inodes_max: 0, ..context.spec.clone() }),
    ];
    for (what, spec) in changes {
        refused(what, context.backend.create(&name, &spec).await, is_invalid)?;
    }
    Ok(())
}
