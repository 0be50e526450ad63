//! The end of a whole process tree, whatever it does to stay.
//!
//! A process that outlived its command would go on writing to a file; so the file
//! is looked at twice, with another command between.

use crate::conformance::case::cases;
use crate::conformance::context::{
    Context, Listener, Outcome, ensure, id, same, shell, soon, text,
};
use outrigger_sandbox::{End, Execute, limits};

cases! { "tree":
    deadline_although_term_is_ignored [Programs],
    deadline_although_forked_twice [Programs],
    deadline_although_in_a_new_session [Programs],
    deadline_although_stopped [Programs],
    kill_takes_the_whole_tree [Programs],
    kill_takes_orphans [Programs],
    kill_spares_the_others [Programs],
    deadline_ends_a_flood [Programs],
}

/// Appends to `alive` for ever.
const BEAT: &str = "while :; do echo x >> alive; sleep 0.02; done";

/// Demands that nothing writes to `alive` any more.
async fn nothing_lives(context: &Context) -> Outcome {
    let before = context.read("alive").await?.len();
    ensure("it never lived", before > 0)?;
    context.shell("between", "sleep 0.3").await?;
    same("bytes of `alive` some time later", context.read("alive").await?.len(), before)
}

async fn dies_at_deadline(context: &Context, line: &str) -> Outcome {
    let request = Execute { deadline_ms: 5_000, ..shell("a", line) };
    let done = soon("the end at the deadline", context.run(request)).await??;
    same("end", done.end, End::Deadline)?;
    nothing_lives(context).await
}

async fn deadline_although_term_is_ignored(context: Context) -> Outcome {
    dies_at_deadline(&context, &format!("trap '' TERM HUP INT; {BEAT}")).await
}

async fn deadline_although_forked_twice(context: Context) -> Outcome {
    dies_at_deadline(&context, &format!("( ( {BEAT} ) & ) & sleep 50")).await
}

async fn deadline_although_in_a_new_session(context: Context) -> Outcome {
    let line = format!("setsid sh -c '{BEAT}' </dev/null >/dev/null 2>&1 & sleep 50");
    dies_at_deadline(&context, &line).await
}

async fn deadline_although_stopped(context: Context) -> Outcome {
    dies_at_deadline(&context, "echo x >> alive; kill -STOP $$; echo x >> alive").await
}

async fn killed(context: &Context, line: &str) -> Outcome {
    let listener = Listener::default();
    let running = context.sandbox.execute(shell("a", line), &listener);
    let killing = async {
        soon("its first output", listener.hears("up")).await?;
        context.sandbox.kill(&id("a")).await.map_err(|error| format!("kill: {error}"))
    };
    let (done, kill) = tokio::join!(soon("its end", running), killing);
    kill?;
    same("end", done?.map_err(|error| error.to_string())?.end, End::Killed)?;
    nothing_lives(context).await
}

async fn kill_takes_the_whole_tree(context: Context) -> Outcome {
    let line = format!("trap '' TERM; echo x >> alive; echo up; ( {BEAT} ) & ( {BEAT} ) & wait");
    killed(&context, &line).await
}

async fn kill_takes_orphans(context: Context) -> Outcome {
    let line = format!("echo x >> alive; (setsid sh -c '{BEAT}' &) ; echo up; sleep 50");
    killed(&context, &line).await
}

async fn kill_spares_the_others(context: Context) -> Outcome {
    let other = context.shell("other", "sleep 1; echo whole");
    let kill = killed(&context, "echo x >> alive; echo up; sleep 50");
    let (other, kill) = tokio::join!(other, kill);
    kill?;
    same("the other", text(&other?.stdout), "whole\n".to_owned())
}

async fn deadline_ends_a_flood(context: Context) -> Outcome {
    let base = shell("a", "cat /dev/zero");
    let request = Execute { deadline_ms: 5_000, spill_after_bytes: Some(1_000), ..base };
    let done = soon("the end at the deadline", context.run(request)).await??;
    same("end", done.end, End::Deadline)?;
    same("kept", done.stdout.len() as u64, limits::OUTPUT_BYTES_DEFAULT)?;
    ensure("what came after the cap is counted", done.stdout_dropped_bytes > 0)
}
