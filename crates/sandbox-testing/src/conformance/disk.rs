//! The limit of the disk: what passes it is stopped, and what is removed can be
//! written again.

use super::case::cases;
use super::context::{Context, Outcome, ensure, same, shell, soon};
use super::life::until;
use outrigger_sandbox::{CreateSpec, End, ExecOutcome, Execute};

cases! { "disk":
    one_file_is_bounded [Disk, Programs] with little_disk,
    bytes_are_bounded [Disk, Programs] with little_disk,
    bytes_in_tmp_are_bounded [Disk, Programs] with little_disk,
    inodes_are_bounded [Disk, Programs] with few_inodes,
    works_after_removal [Disk, Programs] with little_disk,
    what_fits_is_left_alone [Disk, Programs] with little_disk,
    others_go_on [Disk, Programs] with little_disk,
    forks_are_bounded_too [Disk, Snapshots, Programs] with little_disk,
}

fn little_disk(spec: CreateSpec) -> CreateSpec {
    CreateSpec { disk_bytes_max: 64 << 20, ..spec }
}

fn few_inodes(spec: CreateSpec) -> CreateSpec {
    CreateSpec { disk_inodes_max: 2_000, ..spec }
}

/// Fills a directory until it is not let to.
fn fill(directory: &str) -> String {
    format!(
        "mkdir -p {directory}/full; i=0; while :; do i=$((i+1)); \
         head -c 4194304 /dev/zero > {directory}/full/$i || exit 9; \
         [ $(wc -c < {directory}/full/$i) = 4194304 ] || exit 9; sleep 0.03; done"
    )
}

/// Demands that a command was stopped by the limit, or told of it.
fn stopped(done: &ExecOutcome) -> Outcome {
    let full = matches!(done.end, End::DiskFull | End::Exited(1..) | End::Signalled(25));
    ensure(&format!("it ended with {:?}", done.end), full)
}

async fn filled(context: &Context, name: &str, line: &str) -> Outcome {
    let request = Execute { deadline_ms: 15_000, ..shell(name, line) };
    stopped(&soon("the end of what fills the disk", context.run(request)).await??)
}

/// Demands that commands run again, soon: a watcher may still see what was there.
async fn works(context: &Context, name: &str) -> Outcome {
    let mut tries = 0;
    let look = || {
        tries += 1;
        let request = shell(&format!("{name}-{tries}"), "echo x > small && cat small");
        async move {
            let done = context.run(request).await?;
            Ok((done.end == End::Exited(0) && done.stdout == b"x\n").then_some(()))
        }
    };
    until("a command that works", look).await
}

async fn one_file_is_bounded(context: Context) -> Outcome {
    filled(&context, "a", "head -c 400000000 /dev/zero > f || exit 9").await?;
    let size = context.size("f").await;
    ensure(&format!("a file of {size} bytes was made"), size < 400_000_000)?;
    context.remove("r", "f").await?;
    works(&context, "b").await
}

async fn bytes_are_bounded(context: Context) -> Outcome {
    filled(&context, "a", &fill(".")).await
}

async fn bytes_in_tmp_are_bounded(context: Context) -> Outcome {
    filled(&context, "a", &fill("/tmp")).await
}

async fn inodes_are_bounded(context: Context) -> Outcome {
    let line = "mkdir many; cd many; i=0; while :; do i=$((i+1)); : > $i || exit 9; \
                [ $((i % 50)) = 0 ] && sleep 0.02; done";
    filled(&context, "a", line).await?;
    context.remove("r", "many").await?;
    works(&context, "b").await
}

async fn works_after_removal(context: Context) -> Outcome {
    context.write("w", "kept", b"kept").await?;
    for round in 0..2 {
        filled(&context, &format!("a{round}"), &fill(".")).await?;
        context.remove(&format!("r{round}"), "full").await?;
        works(&context, &format!("b{round}")).await?;
        context.holds("kept", b"kept").await?;
    }
    same("alive", context.sandbox.is_alive(), true)
}

async fn what_fits_is_left_alone(context: Context) -> Outcome {
    let line = "i=0; while [ $i -lt 30 ]; do head -c 20000000 /dev/zero > f || exit 9; \
                i=$((i+1)); done; echo whole";
    context.prints("a", line, "whole\n").await
}

async fn others_go_on(context: Context) -> Outcome {
    let other = context.sibling("other").await?;
    other.write("w", "f", b"kept").await?;
    let (line, quiet) = (fill("."), "sleep 2; echo more >> f; cat f");
    let filling = filled(&context, "a", &line);
    let (filled, shown) = tokio::join!(filling, other.prints("b", quiet, "keptmore\n"));
    filled?;
    shown?;
    other.prints("c", "echo alive", "alive\n").await
}

async fn forks_are_bounded_too(context: Context) -> Outcome {
    context.prints("a", "head -c 10000000 /dev/zero > f; echo made", "made\n").await?;
    let taken = context.take("s").await?;
    let fork = context.forked(&taken, "fork").await?;
    filled(&fork, "b", &fill(".")).await?;
    context.again().await?.prints("c", "wc -c < f; echo x > g; cat g", "10000000\nx\n").await
}
