//! Trees that are served: nothing hangs, whatever is on the other side.

use std::time::{Duration, Instant};

use super::served;
use crate::FakeTree;
use crate::conformance::case::cases;
use crate::conformance::context::{
    Context, Listener, Outcome, ensure, same, shell, soon, text, within,
};
use outrigger_sandbox::{End, Suspend, limits};

cases! { "served":
    without_a_tree_it_fails_at_once [Served, Programs] with served,
    a_kill_ends_what_waits_for_an_answer [Served, Programs] with served,
    a_deadline_ends_what_waits_to_be_written [Served, Programs] with served,
    what_waits_holds_up_nothing_else [Served, Programs] with served,
    destroyed_while_something_waits [Served, Programs] with served,
    frozen_and_thawed [Served, Programs, Frozen] with served,
    cold_and_resumed [Served, Programs, Cold] with served,
    restored_from_a_snapshot [Served, Programs, Snapshots] with served,
    wrong_folders_are_refused [Served] with served,
}

async fn without_a_tree_it_fails_at_once(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/f", "x\n");
    context.prints("a", "cat /memory/f", "x\n").await?;
    let trees = context.trees.as_ref().ok_or("no trees are served")?;
    trees.set(context.sandbox.id(), None);
    let line = "cat /memory/f 2>&1 | grep -c 'Input/output error'; \
                ls /memory 2>&1 | grep -c 'Input/output error'; \
                echo x 2>/dev/null > /memory/g || echo not written";
    context.prints("b", line, "1\n1\nnot written\n").await?;
    trees.set(context.sandbox.id(), Some(tree));
    context.prints("c", "cat /memory/f; ls /memory", "x\nf\n").await
}

/// Waits until a tree was asked more often than before.
async fn asked(tree: &FakeTree, before: u64) -> Result<(), String> {
    let more = async {
        // poll: the tree tells of no question by itself
        while tree.asked() == before {
            tokio::task::yield_now().await;
        }
    };
    soon("a question", more).await
}

async fn a_kill_ends_what_waits_for_an_answer(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/f", "x\n");
    for (number, line) in
        ["cat /memory/f", "ls -l /memory/f", "cat /memory/never"].iter().enumerate()
    {
        tree.hold("/memory");
        let (before, listener) = (tree.asked(), Listener::default());
        let request = shell(&format!("a{number}"), &format!("echo begun; {line}"));
        let id = request.id.clone();
        let kill = async {
            soon("begun", listener.hears("begun")).await?;
            asked(&tree, before).await?;
            let begun = Instant::now();
            let killed = context.sandbox.kill(&id).await;
            killed.map_err(|error| format!("kill: {error}"))?;
            Ok::<_, String>(begun.elapsed())
        };
        let (done, took) = tokio::join!(context.sandbox.execute(request, &listener), kill);
        let most = Duration::from_millis(limits::KILL_MS_MAX + 500);
        ensure(&format!("killed in time: {line}"), took? <= most)?;
        let done = done.map_err(|error| error.to_string())?;
        same("how it ended", done.end, End::Killed)?;
        tree.release();
        context.prints(&format!("c{number}"), "cat /memory/f", "x\n").await?;
    }
    Ok(())
}

async fn a_deadline_ends_what_waits_to_be_written(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/f", "x\n");
    let python = "f = open('/memory/f', 'r+'); f.write('changed'); f.flush()\n\
        print('ready', flush=True); input(); f.close(); print('closed')\n";
    let line = format!("(while ! test -e go; do sleep 0.01; done; echo) | python3 -c \"{python}\"");
    let (listener, mut request) = (Listener::default(), shell("a", &line));
    // Python is ready long before, also where everything waits for the disk.
    request.deadline_ms = 6_000;
    let act = async {
        soon("ready", listener.hears("ready")).await?;
        tree.hold("/memory");
        context.write("w", "go", b"").await
    };
    let limit = Duration::from_millis(request.deadline_ms + limits::KILL_MS_MAX + 3_000);
    let run = within(limit, "its end", context.sandbox.execute(request, &listener));
    let (done, acted) = tokio::join!(run, act);
    acted?;
    let done = done?.map_err(|error| error.to_string())?;
    same("how it ended", done.end, End::Deadline)?;
    tree.release();
    context.prints("b", "head -c 2 /memory/f | wc -c", "2\n").await
}

async fn what_waits_holds_up_nothing_else(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/held/f", "x\n");
    tree.put("/memory/f", "y\n");
    tree.hold("/memory/held/f");
    let line = "for i in 1 2 3 4 5 6 7 8; do cat /memory/held/f & done; echo begun; wait";
    let (listener, request) = (Listener::default(), shell("a", line));
    let act = async {
        soon("begun", listener.hears("begun")).await?;
        context.prints("b", "cat /memory/f; echo z > /memory/g; cat /memory/g", "y\nz\n").await?;
        context.prints("c", "echo fine", "fine\n").await?;
        tree.release();
        Ok::<(), String>(())
    };
    let (done, acted) = tokio::join!(context.sandbox.execute(request, &listener), act);
    acted?;
    let done = done.map_err(|error| error.to_string())?;
    same("what was held", text(&done.stdout).matches('x').count(), 8)
}

async fn destroyed_while_something_waits(context: Context) -> Outcome {
    let other = context.sibling("other").await?;
    let tree = other.tree()?;
    tree.put("/memory/f", "x\n");
    tree.hold("/memory");
    let listener = Listener::default();
    let act = async {
        soon("begun", listener.hears("begun")).await?;
        asked(&tree, 0).await?;
        soon("its end", other.end()).await?
    };
    let request = shell("a", "echo begun; cat /memory/f");
    let (done, acted) = tokio::join!(other.sandbox.execute(request, &listener), act);
    acted?;
    ensure("the command is lost", done.is_err())
}

async fn frozen_and_thawed(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/f", "1\n");
    let left = "(exec 3< /memory/f; while :; do cat /memory/f; sleep 0.01; done) \
                > /dev/null 2>&1 < /dev/null & echo left";
    context.prints("a", left, "left\n").await?;
    for round in 0..5 {
        context.suspend(Suspend::Frozen).await?;
        tree.put("/memory/f", format!("{round}\n"));
        context.prints(&format!("b{round}"), "cat /memory/f", &format!("{round}\n")).await?;
    }
    Ok(())
}

async fn cold_and_resumed(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/f", "1\n");
    let left = "(while :; do cat /memory/f; echo x >> /memory/log; done) \
                > /dev/null 2>&1 < /dev/null & cat /memory/f";
    context.prints("a", left, "1\n").await?;
    let mut now = context.clone();
    for round in 0..3 {
        now = now.resumed().await?;
        tree.put("/memory/f", format!("{round}\n"));
        now.prints(&format!("b{round}"), "cat /memory/f", &format!("{round}\n")).await?;
        let line = format!("echo {round} > /memory/g; ls /skills");
        now.prints(&format!("c{round}"), &line, "").await?;
        now.kept("/memory/g", &format!("{round}\n"))?;
    }
    Ok(())
}

async fn restored_from_a_snapshot(context: Context) -> Outcome {
    let tree = context.tree()?;
    tree.put("/memory/f", "1\n");
    context.write("w", "own", b"on the disk\n").await?;
    let name = context.snapshot_id("s")?;
    let snapshots = context.backend.snapshots().map_err(|error| error.to_string())?;
    let taken = snapshots.take(context.sandbox.id(), &name).await;
    taken.map_err(|error| format!("take: {error}"))?;
    let again = context.again().await?;
    again.prints("a", "cat /memory/f own", "1\non the disk\n").await?;
    let mut fork = context.clone();
    fork.spec.origin = outrigger_sandbox::DiskOrigin::Snapshot(name);
    let fork = fork.sibling("fork").await?;
    fork.tree()?.put("/memory/f", "of the fork\n");
    fork.prints("b", "cat /memory/f own; echo x > /memory/g", "of the fork\non the disk\n").await?;
    fork.kept("/memory/g", "x\n")?;
    same("the other's", tree.get("/memory/g"), None)?;
    fork.end().await
}

async fn wrong_folders_are_refused(context: Context) -> Outcome {
    let name = format!("{}-wrong", context.sandbox.id());
    let name = outrigger_sandbox::SandboxId::new(name).map_err(|error| error.to_string())?;
    for folders in [&["relative"][..], &["/memory", "/memory/inner"], &["/proc/x"], &["/a/../b"]] {
        let served = folders.iter().map(|&folder| folder.to_owned()).collect();
        let spec = outrigger_sandbox::CreateSpec { served, ..context.spec.clone() };
        let made = context.backend.create(&name, &spec).await;
        crate::conformance::life::refused("create", made, crate::conformance::life::is_invalid)?;
    }
    Ok(())
}
