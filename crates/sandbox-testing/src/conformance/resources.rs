//! Memory, processes and CPU: what passes a limit is stopped, and the sandbox and
//! others go on.

use super::case::cases;
use super::context::{Context, Outcome, ensure, same, shell, soon, text};
use super::life::until;
use outrigger_sandbox::{CreateSpec, End, Execute};

cases! { "resources":
    memory_of_one_process [Resources, Programs] with little_memory,
    memory_of_many_processes [Resources, Programs] with little_memory,
    memory_of_a_child_is_the_childs [Resources, Programs] with little_memory,
    peak_memory_is_told [Resources, Programs],
    processes_are_bounded [Resources, Programs] with few_processes,
    fork_bomb_ends_at_its_deadline [Resources, Programs] with few_processes,
    cpu_is_bounded [Resources, Programs] with little_cpu,
    others_go_on [Resources, Programs] with little_memory,
}

fn little_memory(spec: CreateSpec) -> CreateSpec {
    CreateSpec { memory_bytes_max: 96 << 20, ..spec }
}

fn few_processes(spec: CreateSpec) -> CreateSpec {
    CreateSpec { pids_max: 48, ..spec }
}

fn little_cpu(spec: CreateSpec) -> CreateSpec {
    CreateSpec { cpu_millis_max: 200, ..spec }
}

/// Doubles a text in the shell's own memory for ever.
const HOG: &str = "x=0123456789abcdef; while :; do x=$x$x; done";

async fn memory_of_one_process(context: Context) -> Outcome {
    let done = soon("the end of a hog", context.shell("a", HOG)).await??;
    // A shell may see its allocation refused before the kernel ends it.
    let ended = matches!(done.end, End::OutOfMemory | End::Exited(1..));
    ensure(&format!("it ended with {:?}", done.end), ended)?;
    let line = "head -c 300000000 /dev/zero | tail -c 300000000 | wc -c; echo after";
    let done = soon("the end of a hog", context.shell("b", line)).await??;
    let shown = text(&done.stdout);
    ensure(&format!("it held 300 MB: {shown}"), !shown.contains("300000000"))?;
    context.prints("c", "echo alive", "alive\n").await
}

async fn memory_of_many_processes(context: Context) -> Outcome {
    // Each within the limit, all together not.
    let one = "(x=0123456789abcdef; n=0; while [ $n -lt 20 ]; do x=$x$x; n=$((n+1)); done; \
               sleep 1; echo whole) &";
    let line = format!("{} wait", one.repeat(12));
    let done = soon("the end of the hogs", context.shell("a", &line)).await??;
    let whole = text(&done.stdout).matches("whole").count();
    ensure(&format!("all {whole} held their memory at once"), whole < 12)?;
    context.prints("b", "echo alive", "alive\n").await
}

async fn memory_of_a_child_is_the_childs(context: Context) -> Outcome {
    let line = format!("sh -c '{HOG}'; [ $? -ne 0 ] && echo the shell goes on");
    let done = soon("the end of a hog", context.shell("a", &line)).await??;
    match done.end {
        End::Exited(0) => same("output", text(&done.stdout), "the shell goes on\n".to_owned())?,
        End::OutOfMemory => {}
        other => return Err(format!("it ended with {other:?}")),
    }
    context.prints("b", "echo alive", "alive\n").await
}

async fn peak_memory_is_told(context: Context) -> Outcome {
    let line = "x=0123456789abcdef; n=0; while [ $n -lt 20 ]; do x=$x$x; n=$((n+1)); done";
    let done = context.shell("a", line).await?;
    same("end", done.end, End::Exited(0))?;
    let peak = done.peak_memory_bytes;
    ensure(&format!("a peak of {peak} bytes for 16 MiB"), peak >= 16 << 20)
}

async fn processes_are_bounded(context: Context) -> Outcome {
    let line = "i=0; while [ $i -lt 100 ]; do sleep 3 & i=$((i+1)); done; echo all of them";
    let request = Execute { deadline_ms: 3_000, ..shell("a", line) };
    let done = soon("its end", context.run(request)).await??;
    ensure("a hundred processes were made", !text(&done.stdout).contains("all of them"))?;
    // Those that were made hold their places until they end.
    let mut tries = 0;
    let look = || {
        tries += 1;
        let request = shell(&format!("b{tries}"), "echo alive");
        let context = context.clone();
        async move {
            let done = context.sandbox.execute(request, &()).await;
            Ok(done.is_ok_and(|done| done.stdout == b"alive\n").then_some(()))
        }
    };
    until("a command that works", look).await
}

async fn fork_bomb_ends_at_its_deadline(context: Context) -> Outcome {
    let line = "bomb() { bomb | bomb & bomb; }; bomb";
    let request = Execute { deadline_ms: 1_000, ..shell("a", line) };
    let done = soon("its end", context.run(request)).await??;
    ensure(&format!("it ended with {:?}", done.end), done.end != End::Exited(0))?;
    context.prints("b", "echo alive", "alive\n").await
}

async fn cpu_is_bounded(context: Context) -> Outcome {
    let request = Execute { deadline_ms: 2_000, ..shell("a", "while :; do :; done") };
    let done = context.run(request).await?;
    same("end", done.end, End::Deadline)?;
    let (cpu, wall) = (done.cpu_ms, done.wall_ms);
    // A fifth of a core was given; half of one shows that nothing held it.
    ensure(&format!("{cpu} ms of CPU in {wall} ms"), cpu * 2 < wall)
}

async fn others_go_on(context: Context) -> Outcome {
    let other = context.sibling("other").await?;
    other.write("w", "f", b"kept").await?;
    let hog = soon("the end of a hog", context.shell("a", HOG));
    let (hog, shown) = tokio::join!(hog, other.prints("b", "sleep 0.5; cat f", "kept"));
    hog??;
    shown?;
    other.prints("c", "echo alive", "alive\n").await
}
