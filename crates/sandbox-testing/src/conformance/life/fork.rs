//! Sandboxes that begin where another stood, and change apart from it.

use tokio::task::JoinSet;

use super::cold::{MAKE_A_TREE, SHOW_A_TREE};
use crate::conformance::case::cases;
use crate::conformance::context::{Context, Outcome, edit_op, ensure, id, same, text, write_op};
use outrigger_sandbox::{FileOp, Occurrences, WriteMode};

cases! { "fork":
    apart_in_both_directions [Snapshots],
    is_another_life [Snapshots],
    ids_are_its_own [Snapshots],
    removals_stay_apart [Snapshots],
    links_stay_apart [Snapshots],
    appends_and_edits_stay_apart [Snapshots],
    many_at_once [Snapshots],
    while_its_parent_is_busy [Snapshots],
    of_a_fork_of_a_fork [Snapshots],
    removed_stays_removed_in_the_next [Snapshots],
    resumed_from_cold [Snapshots, Cold],
    holds_every_kind_of_thing [Snapshots, Programs],
    renames_stay_apart [Snapshots, Programs],
    renames_of_directories_stay_apart [Snapshots, Programs],
    directories_made_anew_are_empty [Snapshots, Programs],
    modes_stay_apart [Snapshots, Kernel],
    hard_links_stay_apart [Snapshots, Programs],
    symlinks_stay_apart [Snapshots, Programs],
    other_kinds_in_the_same_place_stay_apart [Snapshots, Programs],
    large_files_stay_apart [Snapshots, Programs],
    closed_files_are_its_own [Snapshots, Kernel],
}

async fn snapshot_of(
    context: &Context,
    of: &Context,
    suffix: &str,
) -> Result<outrigger_sandbox::Snapshot, String> {
    let name = context.snapshot_id(suffix)?;
    let taken = context.snapshots()?.take(of.sandbox.id(), &name).await;
    taken.map_err(|error| format!("take {suffix}: {error}"))
}

async fn apart_in_both_directions(context: Context) -> Outcome {
    context.write("a", "both", b"same").await?;
    let taken = context.take("s").await?;
    let (fork, parent) = (context.forked(&taken, "fork").await?, context.again().await?);
    fork.write("b", "both", b"fork").await?;
    fork.write("c", "new-in-fork", b"").await?;
    parent.holds("both", b"same").await?;
    parent.absent("new-in-fork").await?;
    parent.write("d", "both", b"parent").await?;
    parent.shell("e", "echo x > new-in-parent").await?;
    fork.holds("both", b"fork").await?;
    fork.absent("new-in-parent").await?;
    let late = context.forked(&taken, "late").await?;
    late.holds("both", b"same").await?;
    same("files", late.manifest().await?.len(), 1)
}

async fn is_another_life(context: Context) -> Outcome {
    let taken = context.take("s").await?;
    let (one, two) = (context.forked(&taken, "1").await?, context.forked(&taken, "2").await?);
    let lives = [&context, &one, &two].map(|of| of.sandbox.generation().clone());
    let all = std::collections::BTreeSet::from(lives);
    same("lives", all.len(), 3)?;
    one.end().await?;
    two.prints("a", "echo fine", "fine\n").await?;
    context.again().await?.prints("a", "echo fine", "fine\n").await
}

async fn ids_are_its_own(context: Context) -> Outcome {
    let line = "echo x >> count";
    context.shell("a", line).await?;
    let taken = context.take("s").await?;
    let fork = context.forked(&taken, "fork").await?;
    fork.shell("a", line).await?;
    fork.holds("count", b"x\nx\n").await?;
    context.again().await?.holds("count", b"x\n").await
}

async fn removals_stay_apart(context: Context) -> Outcome {
    for (name, path) in [("a", "f"), ("b", "dir/g"), ("c", "dir/sub/h"), ("d", "other/i")] {
        context.write(name, path, path.as_bytes()).await?;
    }
    let taken = context.take("s").await?;
    let (fork, parent) = (context.forked(&taken, "fork").await?, context.again().await?);
    fork.remove("e", "f").await?;
    fork.remove("g", "dir").await?;
    parent.remove("h", "other").await?;
    parent.holds("f", b"f").await?;
    parent.holds("dir/sub/h", b"dir/sub/h").await?;
    fork.holds("other/i", b"other/i").await?;
    fork.absent("dir").await?;
    parent.absent("other").await?;
    fork.write("i", "dir/new", b"").await?;
    same("files of the fork", fork.manifest().await?.len(), 2)?;
    same("files of the parent", parent.manifest().await?.len(), 3)
}

async fn links_stay_apart(context: Context) -> Outcome {
    let link = |name: &str, target: &str| FileOp::Link {
        id: id(name),
        path: "link".to_owned(),
        target: target.to_owned(),
    };
    context.write("a", "one", b"1").await?;
    context.write("b", "two", b"2").await?;
    context.files(link("c", "one")).await?;
    let taken = context.take("s").await?;
    let (fork, parent) = (context.forked(&taken, "fork").await?, context.again().await?);
    fork.holds("link", b"1").await?;
    fork.files(link("d", "two")).await?;
    fork.holds("link", b"2").await?;
    parent.holds("link", b"1").await?;
    parent.write("e", "link", b"through").await?;
    parent.holds("one", b"through").await?;
    fork.holds("one", b"1").await
}

async fn appends_and_edits_stay_apart(context: Context) -> Outcome {
    context.write("a", "f", b"one two\n").await?;
    let taken = context.take("s").await?;
    let (fork, parent) = (context.forked(&taken, "fork").await?, context.again().await?);
    fork.files(edit_op("b", "f", "one", "1", Occurrences::One)).await?;
    parent.files(write_op("c", "f", b"three\n", WriteMode::Append)).await?;
    fork.shell("d", "echo four >> f").await?;
    fork.holds("f", b"1 two\nfour\n").await?;
    parent.holds("f", b"one two\nthree\n").await
}

async fn many_at_once(context: Context) -> Outcome {
    context.write("a", "f", b"x").await?;
    let taken = context.take("s").await?;
    let mut all = JoinSet::new();
    for number in 0..6 {
        let (context, taken) = (context.clone(), taken.clone());
        all.spawn(async move {
            let fork = context.forked(&taken, &format!("fork{number}")).await?;
            fork.shell("a", &format!("echo {number} >> f")).await?;
            fork.holds("f", format!("x{number}\n").as_bytes()).await
        });
    }
    while let Some(one) = all.join_next().await {
        one.map_err(|error| error.to_string())??;
    }
    context.again().await?.holds("f", b"x").await
}

async fn while_its_parent_is_busy(context: Context) -> Outcome {
    context.write("a", "f", b"x").await?;
    let taken = context.take("s").await?;
    let parent = context.again().await?;
    parent.begin("b", "echo up; sleep 1; cat f").await?;
    let fork = context.forked(&taken, "fork").await?;
    fork.write("c", "f", b"y").await?;
    parent.prints("b", "true", "up\nx").await
}

async fn of_a_fork_of_a_fork(context: Context) -> Outcome {
    let mut at = context.clone();
    for depth in 0..4 {
        at.write("w", &format!("f{depth}"), format!("{depth}").as_bytes()).await?;
        at.write("v", "all", format!("{depth}").as_bytes()).await?;
        let taken = snapshot_of(&context, &at, &format!("s{depth}")).await?;
        at = context.forked(&taken, &format!("fork{depth}")).await?;
    }
    same("files", at.manifest().await?.len(), 5)?;
    at.prints("a", "cat f0 f1 f2 f3 all", "01233").await?;
    let parent = context.again().await?;
    same("files of the first", parent.manifest().await?.len(), 2)?;
    parent.holds("all", b"0").await
}

async fn removed_stays_removed_in_the_next(context: Context) -> Outcome {
    for (name, path) in [("a", "f"), ("b", "dir/g"), ("c", "dir/h"), ("d", "kept")] {
        context.write(name, path, b"x").await?;
    }
    let taken = context.take("s").await?;
    let fork = context.forked(&taken, "fork").await?;
    fork.remove("e", "f").await?;
    fork.remove("g", "dir").await?;
    fork.write("h", "dir/h", b"anew").await?;
    let taken = snapshot_of(&context, &fork, "t").await?;
    let next = context.forked(&taken, "next").await?;
    for of in [&next, &fork.again().await?] {
        of.absent("f").await?;
        of.absent("dir/g").await?;
        of.holds("dir/h", b"anew").await?;
        same("files", of.manifest().await?.len(), 2)?;
    }
    Ok(())
}

async fn resumed_from_cold(context: Context) -> Outcome {
    context.write("a", "f", b"x").await?;
    let taken = context.take("s").await?;
    let fork = context.forked(&taken, "fork").await?;
    fork.shell("b", "echo y >> f; echo z > g").await?;
    let resumed = fork.resumed().await?;
    same("generation", resumed.sandbox.generation(), fork.sandbox.generation())?;
    resumed.prints("c", "cat f g", "xy\nz\n").await
}

/// A line in the parent, then what it and a fork show while each changes in turn.
struct Change {
    make: &'static str,
    change: &'static str,
    show: &'static str,
}

/// Demands that a change of a fork is not seen in its parent, and one of the parent
/// not in another fork.
async fn stays_apart(context: &Context, Change { make, change, show }: Change) -> Outcome {
    let shown = |of: Context, name: &'static str| async move {
        let done = of.shell(name, show).await?;
        Ok::<_, String>(text(&done.stdout) + &text(&done.stderr))
    };
    same(make, context.shell("make", make).await?.exit_code(), Some(0))?;
    let before = shown(context.clone(), "show").await?;
    let taken = context.take("s").await?;
    let parent = context.again().await?;
    let (one, two) = (context.forked(&taken, "1").await?, context.forked(&taken, "2").await?);
    same("the fork at first", shown(one.clone(), "show").await?, before.clone())?;
    let done = one.shell("change", change).await?;
    same(&text(&done.stderr), done.exit_code(), Some(0))?;
    let after = shown(one.clone(), "show2").await?;
    ensure("nothing changed", after != before)?;
    same("the parent", shown(parent.clone(), "show2").await?, before.clone())?;
    parent.shell("change", change).await?;
    same("the parent, changed", shown(parent.clone(), "show3").await?, after.clone())?;
    same("the other fork", shown(two.clone(), "show").await?, before)?;
    let taken = snapshot_of(context, &one, "t").await?;
    let next = context.forked(&taken, "3").await?;
    same("a fork of the changed fork", shown(next, "show").await?, after)
}

async fn holds_every_kind_of_thing(context: Context) -> Outcome {
    same("exit", context.shell("a", MAKE_A_TREE).await?.exit_code(), Some(0))?;
    let before = text(&context.shell("b", SHOW_A_TREE).await?.stdout);
    ensure("the tree is there", before.contains("own\n"))?;
    let taken = context.take("s").await?;
    let (fork, parent) = (context.forked(&taken, "fork").await?, context.again().await?);
    same("fork", text(&fork.shell("c", SHOW_A_TREE).await?.stdout), before.clone())?;
    same("parent", text(&parent.shell("c", SHOW_A_TREE).await?.stdout), before.clone())?;
    let line = "chmod 640 d/a; echo more >> d/a; tail -n 1 d/a; rm -r d e; [ -e d ] || echo gone";
    fork.prints("d", line, "more\ngone\n").await?;
    same("parent after it", text(&parent.shell("e", SHOW_A_TREE).await?.stdout), before)
}

async fn renames_stay_apart(context: Context) -> Outcome {
    let make = "echo a > a; echo b > b; mkdir d; echo c > d/c";
    let change = "mv a z; mv b d/b; mv d/c c";
    stays_apart(&context, Change { make, change, show: "find . | sort; cat a z b d/b d/c c" }).await
}

async fn renames_of_directories_stay_apart(context: Context) -> Outcome {
    let make = "mkdir -p d/sub e; echo c > d/sub/c; echo g > e/g";
    let change = "mv d n; mv e n/sub/e; mkdir d";
    let show = "find . | sort; cat d/sub/c n/sub/c n/sub/e/g";
    stays_apart(&context, Change { make, change, show }).await
}

async fn directories_made_anew_are_empty(context: Context) -> Outcome {
    let make = "mkdir -p d/sub; echo c > d/sub/c; echo g > d/g";
    let change = "rm -r d; mkdir -p d/sub; echo new > d/new";
    stays_apart(&context, Change { make, change, show: "find . | sort; cat d/new" }).await
}

async fn modes_stay_apart(context: Context) -> Outcome {
    let make = "echo a > f; chmod 640 f; mkdir -m 750 d; echo b > d/g; chmod 711 d/g";
    let change = "chmod 400 f; chmod 1777 d; chmod -x d/g";
    stays_apart(&context, Change { make, change, show: "stat -c '%n %a' f d d/g; cat f d/g" }).await
}

async fn hard_links_stay_apart(context: Context) -> Outcome {
    let make = "echo a > a; ln a b; mkdir d; ln a d/c";
    let change = "echo more >> a; ln a new; rm b";
    // What a write to one name does to the others of a file from below is the
    // filesystem's; that each can be read and none leaves its sandbox is not.
    let show = "find . | sort; cat a; ls new";
    stays_apart(&context, Change { make, change, show }).await
}

async fn symlinks_stay_apart(context: Context) -> Outcome {
    let make = "echo a > a; ln -s a soft; ln -s /nowhere gone; mkdir d; ln -s ../a d/up";
    let change = "ln -sf gone soft; rm gone; ln -s a gone; echo more >> d/up";
    let show = "for l in soft gone d/up; do echo $l $(readlink $l); done; cat a soft";
    stays_apart(&context, Change { make, change, show }).await
}

async fn other_kinds_in_the_same_place_stay_apart(context: Context) -> Outcome {
    let make = "echo a > a; mkdir d; echo b > d/b; ln -s a l; mkfifo p";
    let change = "rm -r a d l p; mkdir a; echo d > d; mkfifo l; ln -s d p; echo x > a/x";
    let show = "stat -c '%n %F' a d l p; find . | sort; cat d; [ -p p ] || cat p";
    stays_apart(&context, Change { make, change, show }).await
}

async fn large_files_stay_apart(context: Context) -> Outcome {
    let make = "head -c 20000000 /dev/zero > f; echo end >> f";
    let change = "echo x | dd of=f bs=1 seek=10000000 conv=notrunc 2> /dev/null; echo more >> f";
    stays_apart(&context, Change { make, change, show: "sha256sum f; tail -n 1 f" }).await
}

async fn closed_files_are_its_own(context: Context) -> Outcome {
    context.write("w", "d/f", b"x").await?;
    context.shell("a", "chmod 000 d/f; chmod 500 d").await?;
    let taken = context.take("s").await?;
    let fork = context.forked(&taken, "fork").await?;
    let line = "cat d/f 2> /dev/null || echo closed; touch d/new 2> /dev/null || echo closed; \
                [ -O d/f ] && echo own; chmod 700 d; chmod 600 d/f; cat d/f";
    fork.prints("b", line, "closed\nclosed\nown\nx").await
}
