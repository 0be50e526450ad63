//! Exec ids: create or attach, never a second run.
//!
//! Each command leaves a line in `count`, so that a second run would show.

use tokio::task::JoinSet;

use crate::conformance::case::cases;
use crate::conformance::context::{
    Context, Listener, Outcome, argv, ensure, id, same, shell, soon, text, write_op,
};
use outrigger_sandbox::{Command, End, Error, ExecOutcome, Execute, WriteMode};

cases! { "ids":
    repeated_gives_the_kept_outcome,
    repeated_with_another_command,
    at_once_is_one_run,
    dropped_wait_goes_on,
    attached_while_running,
    attached_through_another_handle,
    sink_gets_kept_output_again,
    kill_of_a_running_one,
    kill_of_an_ended_one,
    kill_of_an_unknown_one,
    kill_twice,
    killed_keeps_its_outcome,
    not_started_can_be_repeated,
    ids_of_all_shapes,
    same_id_in_two_sandboxes,
    kept_for_those_who_come_later [Reattach],
    running_on_for_those_who_come_later [Reattach],
    killed_by_those_who_come_later [Reattach],
    operations_for_those_who_come_later [Reattach],
}

const LINE: &str = "echo x >> count; echo out; echo err >&2; exit 3";

async fn ran_once(context: &Context) -> Outcome {
    context.holds("count", b"x\n").await
}

async fn repeated_gives_the_kept_outcome(context: Context) -> Outcome {
    let first = context.shell("a", LINE).await?;
    same("end", first.end, End::Exited(3))?;
    for _ in 0..3 {
        same("outcome", context.shell("a", LINE).await?, first.clone())?;
    }
    ran_once(&context).await
}

async fn repeated_with_another_command(context: Context) -> Outcome {
    let first = context.shell("a", LINE).await?;
    same("outcome", context.shell("a", "echo other >> count").await?, first.clone())?;
    let invalid = Execute { deadline_ms: 0, ..shell("a", "true") };
    if let Ok(again) = context.sandbox.execute(invalid, &()).await {
        same("outcome", again, first)?;
    }
    ran_once(&context).await
}

async fn at_once_is_one_run(context: Context) -> Outcome {
    let mut all = JoinSet::new();
    for _ in 0..8 {
        let context = context.clone();
        let line = "echo x >> count; sleep 0.2; echo out; exit 5";
        all.spawn(async move { context.shell("a", line).await });
    }
    let mut outcomes: Vec<ExecOutcome> = Vec::new();
    while let Some(outcome) = all.join_next().await {
        outcomes.push(outcome.map_err(|error| error.to_string())??);
    }
    same("end", outcomes[0].end, End::Exited(5))?;
    ensure("all see the same outcome", outcomes.windows(2).all(|pair| pair[0] == pair[1]))?;
    ran_once(&context).await
}

/// The sandbox as another process would find it, with the first handle gone.
async fn replaced(context: Context) -> Result<Context, String> {
    let found = context.found().await?.ok_or("it is not found")?;
    drop(context);
    Ok(found)
}

async fn dropped_wait_goes_on(context: Context) -> Outcome {
    context.begin("a", "echo up; echo x >> count; sleep 0.5; echo y >> count; echo end").await?;
    let done = context.shell("a", "true").await?;
    same("output", text(&done.stdout), "up\nend\n".to_owned())?;
    context.holds("count", b"x\ny\n").await
}

async fn attached_while_running(context: Context) -> Outcome {
    context.begin("a", "echo up; echo x >> count; sleep 0.5; echo late; exit 4").await?;
    let listener = Listener::default();
    let again = context.sandbox.execute(shell("a", "true"), &listener).await;
    let done = again.map_err(|error| error.to_string())?;
    same("end", done.end, End::Exited(4))?;
    same("the sink's output", text(&listener.heard().0), "up\nlate\n".to_owned())?;
    ran_once(&context).await
}

async fn attached_through_another_handle(context: Context) -> Outcome {
    context.begin("a", "echo up; echo x >> count; sleep 0.5; echo late").await?;
    let found = context.backend.find(context.sandbox.id()).await;
    let other = found.map_err(|error| error.to_string())?.ok_or("it is not found")?;
    let done = other.execute(shell("a", "true"), &()).await.map_err(|error| error.to_string())?;
    same("output", text(&done.stdout), "up\nlate\n".to_owned())?;
    ran_once(&context).await
}

async fn sink_gets_kept_output_again(context: Context) -> Outcome {
    context.shell("a", LINE).await?;
    let listener = Listener::default();
    let again = context.sandbox.execute(shell("a", LINE), &listener).await;
    again.map_err(|error| error.to_string())?;
    let (stdout, stderr) = listener.heard();
    same("sink", (text(&stdout), text(&stderr)), ("out\n".to_owned(), "err\n".to_owned()))
}

async fn kill(context: &Context, name: &str) -> Outcome {
    context.sandbox.kill(&id(name)).await.map_err(|error| format!("kill: {error}"))
}

async fn kill_of_a_running_one(context: Context) -> Outcome {
    context.begin("a", "echo up; sleep 50; echo x >> count").await?;
    kill(&context, "a").await?;
    let done = soon("its end", context.shell("a", "true")).await??;
    same("end", (done.end, done.exit_code()), (End::Killed, None))?;
    same("output", text(&done.stdout), "up\n".to_owned())?;
    context.absent("count").await
}

async fn kill_of_an_ended_one(context: Context) -> Outcome {
    let first = context.shell("a", LINE).await?;
    kill(&context, "a").await?;
    same("outcome", context.shell("a", LINE).await?, first)?;
    ran_once(&context).await
}

async fn kill_of_an_unknown_one(context: Context) -> Outcome {
    kill(&context, "a").await?;
    let done = context.shell("a", LINE).await?;
    same("outcome", (done.end, done.stdout), (End::Killed, vec![]))?;
    context.absent("count").await?;
    context.prints("b", "echo another id is fine", "another id is fine\n").await
}

async fn kill_twice(context: Context) -> Outcome {
    context.begin("a", "echo up; sleep 50").await?;
    kill(&context, "a").await?;
    kill(&context, "a").await?;
    same("end", context.shell("a", "true").await?.end, End::Killed)
}

async fn killed_keeps_its_outcome(context: Context) -> Outcome {
    context.begin("a", "echo up; sleep 50").await?;
    kill(&context, "a").await?;
    let first = context.shell("a", "true").await?;
    same("again", context.shell("a", "true").await?, first)
}

async fn not_started_can_be_repeated(context: Context) -> Outcome {
    for _ in 0..2 {
        match context.refused(argv("a", &["no-such-program-here"])).await? {
            Error::CannotStart { .. } => {}
            other => return Err(format!("got `{other}`, expected CannotStart")),
        }
    }
    // It never ran, so that its id is free.
    context.prints("a", "echo now it is there", "now it is there\n").await
}

async fn ids_of_all_shapes(context: Context) -> Outcome {
    for name in ["a", "A.b_c-1", "0", "--", &"x".repeat(128)] {
        let request = Execute::new(id(name), Command::Shell("echo fine".to_owned()));
        same(name, text(&context.run(request).await?.stdout), "fine\n".to_owned())?;
    }
    Ok(())
}

async fn same_id_in_two_sandboxes(context: Context) -> Outcome {
    let other = context.sibling("other").await?;
    context.shell("a", LINE).await?;
    other.shell("a", LINE).await?;
    ran_once(&context).await?;
    ran_once(&other).await?;
    other.end().await
}

async fn kept_for_those_who_come_later(context: Context) -> Outcome {
    let first = context.shell("a", LINE).await?;
    let later = replaced(context).await?;
    let listener = Listener::default();
    let again = later.sandbox.execute(shell("a", LINE), &listener).await;
    same("outcome", again.map_err(|error| error.to_string())?, first.clone())?;
    same("sink", listener.heard(), (first.stdout, first.stderr))?;
    ran_once(&later).await
}

async fn running_on_for_those_who_come_later(context: Context) -> Outcome {
    context.begin("a", "echo up; echo x >> count; sleep 1; echo late; exit 6").await?;
    let later = replaced(context).await?;
    let listener = Listener::default();
    let again = later.sandbox.execute(shell("a", LINE), &listener).await;
    let done = again.map_err(|error| error.to_string())?;
    same("end", done.end, End::Exited(6))?;
    same("sink", text(&listener.heard().0), "up\nlate\n".to_owned())?;
    ran_once(&later).await
}

async fn killed_by_those_who_come_later(context: Context) -> Outcome {
    context.begin("a", "echo up; sleep 50").await?;
    let later = replaced(context).await?;
    kill(&later, "a").await?;
    let done = soon("its end", later.shell("a", "true")).await??;
    same("outcome", (done.end, text(&done.stdout)), (End::Killed, "up\n".to_owned()))
}

async fn operations_for_those_who_come_later(context: Context) -> Outcome {
    context.write("a", "f", b"x").await?;
    let append = || write_op("b", "f", b"y", WriteMode::Append);
    let first = context.files(append()).await?;
    let later = replaced(context).await?;
    same("reply", later.files(append()).await?, first)?;
    later.holds("f", b"xy").await
}
