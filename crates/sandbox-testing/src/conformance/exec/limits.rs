//! Limits of requests, deadlines, and many commands at once.

use tokio::task::JoinSet;

use crate::conformance::case::cases;
use crate::conformance::context::{Context, Outcome, argv, same, shell, text};
use outrigger_sandbox::{Command, End, Error, Execute, limits};

cases! { "limits":
    malformed_requests_are_refused,
    nothing_ran_of_a_refused_one,
    deadline_ends_it,
    output_before_the_deadline_is_kept,
    fifty_at_once,
    two_hundred_in_a_row,
    slow_ones_do_not_hold_up_others,
    many_processes_are_bounded [Programs],
    files_are_bounded [Kernel],
}

type Change = fn(&mut Execute);

async fn malformed_requests_are_refused(context: Context) -> Outcome {
    let changes: [(&str, Change); 9] = [
        ("empty argv", |r| r.command = Command::Argv(vec![])),
        ("empty program", |r| r.command = Command::Argv(vec![vec![]])),
        ("NUL in argv", |r| r.command = Command::Argv(vec![b"echo".into(), b"a\0b".into()])),
        ("NUL in a line", |r| r.command = Command::Shell("echo \0".into())),
        ("NUL in env", |r| drop(r.env.insert("A".into(), "\0".into()))),
        ("= in env", |r| drop(r.env.insert("A=B".into(), "c".into()))),
        ("no deadline", |r| r.deadline_ms = 0),
        ("long deadline", |r| r.deadline_ms = limits::DEADLINE_MS_MAX + 1),
        ("large cap", |r| r.stdout_bytes_max = limits::OUTPUT_BYTES_MAX + 1),
    ];
    for (what, change) in changes {
        let mut request = shell("a", "true");
        change(&mut request);
        match context.refused(request).await? {
            Error::Invalid(_) => {}
            other => return Err(format!("{what}: got `{other}`, expected Invalid")),
        }
    }
    let mut large = argv("a", &["echo"]);
    large.stdin = vec![0; limits::STDIN_BYTES_MAX + 1];
    match context.refused(large).await? {
        Error::Invalid(_) => Ok(()),
        other => Err(format!("stdin: got `{other}`, expected Invalid")),
    }
}

async fn nothing_ran_of_a_refused_one(context: Context) -> Outcome {
    let refused = Execute { deadline_ms: 0, ..shell("a", "echo x >> ran") };
    context.refused(refused).await?;
    context.absent("ran").await?;
    context.prints("a", "echo the id is still free", "the id is still free\n").await
}

async fn deadline_ends_it(context: Context) -> Outcome {
    let request = Execute { deadline_ms: 200, ..shell("a", "sleep 50; echo x >> ran") };
    let done = context.run(request).await?;
    same("end", (done.end, done.exit_code()), (End::Deadline, None))?;
    context.absent("ran").await?;
    context.prints("b", "echo alive", "alive\n").await
}

async fn output_before_the_deadline_is_kept(context: Context) -> Outcome {
    let request = Execute { deadline_ms: 5_000, ..shell("a", "echo before; sleep 50; echo after") };
    let done = context.run(request).await?;
    same("outcome", (done.end, text(&done.stdout)), (End::Deadline, "before\n".to_owned()))
}

async fn fifty_at_once(context: Context) -> Outcome {
    let mut all = JoinSet::new();
    for number in 0..50 {
        let context = context.clone();
        all.spawn(async move {
            let line =
                format!("echo start {number}; sleep 0.1; head -c 50000 /dev/zero; exit {number}");
            let done = context.shell(&format!("p{number}"), &line).await?;
            let start = format!("start {number}\n");
            same("start", text(&done.stdout[..start.len().min(done.stdout.len())]), start.clone())?;
            same("bytes", done.stdout.len(), 50_000 + start.len())?;
            same("end", done.end, End::Exited(number))
        });
    }
    while let Some(outcome) = all.join_next().await {
        outcome.map_err(|error| error.to_string())??;
    }
    Ok(())
}

async fn two_hundred_in_a_row(context: Context) -> Outcome {
    for number in 0..200 {
        let done = context.run(argv(&format!("n{number}"), &["echo", "-n", "x"])).await?;
        same("outcome", (done.stdout, done.end), (b"x".to_vec(), End::Exited(0)))?;
    }
    Ok(())
}

async fn slow_ones_do_not_hold_up_others(context: Context) -> Outcome {
    let slow = context.shell("slow", "sleep 50");
    tokio::select! {
        done = slow => Err(format!("the slow one ended: {done:?}")),
        quick = context.prints("quick", "echo quick", "quick\n") => quick,
    }
}

async fn many_processes_are_bounded(context: Context) -> Outcome {
    let line = "i=0; while [ $i -lt 2000 ]; do sleep 3 & i=$((i+1)); done; wait; echo end";
    let request = Execute { deadline_ms: 5_000, ..shell("a", line) };
    context.run(request).await?;
    context.prints("b", "echo alive", "alive\n").await
}

async fn files_are_bounded(context: Context) -> Outcome {
    let line = "(dd if=/dev/zero of=f bs=1 count=1 seek=1000G) 2> /dev/null";
    let done = context.shell("a", line).await?;
    same("a file of 1 TB was made", done.exit_code() == Some(0), false)?;
    context.prints("b", "dd if=/dev/zero of=f bs=1 count=1 seek=1G 2> /dev/null", "").await
}
