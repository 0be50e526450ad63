//! Output: which stream, in which order, how much of it, and where the rest is.

use crate::conformance::case::cases;
use crate::conformance::context::{Context, Listener, Outcome, ensure, id, same, shell, text};
use outrigger_sandbox::{End, Execute, FileOp, FileReply, Streams, limits};

cases! { "output":
    streams_apart,
    streams_merged_in_order,
    sink_gets_all,
    sink_gets_it_while_running,
    whole_500_kib,
    capped_with_exact_count,
    cap_chosen_by_caller,
    cap_of_zero,
    cap_of_each_stream,
    spilled_whole,
    spilled_where_commands_see_it [Programs],
    not_spilled_when_small,
    not_utf8 [Programs],
    flood_of_both [Programs],
    one_gigabyte_is_read_to_its_end [Programs],
    spill_is_capped_by_its_limit [Programs],
    held_open_by_a_child [Programs],
}

async fn streams_apart(context: Context) -> Outcome {
    let done = context.shell("a", "echo out; echo err >&2; echo out2").await?;
    same(
        "streams",
        (text(&done.stdout), text(&done.stderr)),
        ("out\nout2\n".into(), "err\n".into()),
    )
}

async fn streams_merged_in_order(context: Context) -> Outcome {
    let line = "echo 1; echo 2 >&2; echo 3; echo 4 >&2";
    let request = Execute { streams: Streams::Merged, ..shell("a", line) };
    let done = context.run(request).await?;
    same("merged", text(&done.stdout), "1\n2\n3\n4\n".to_owned())?;
    same("stderr", done.stderr, vec![])
}

async fn sink_gets_all(context: Context) -> Outcome {
    let listener = Listener::default();
    let request = shell("a", "echo a; echo b >&2; head -c 200000 /dev/zero; echo c");
    let done = context.sandbox.execute(request, &listener).await.map_err(|e| e.to_string())?;
    let (stdout, stderr) = listener.heard();
    ensure("stdout of sink and result agree", stdout == done.stdout)?;
    ensure("stderr of sink and result agree", stderr == done.stderr)?;
    same("bytes", stdout.len(), 200_004)
}

async fn sink_gets_it_while_running(context: Context) -> Outcome {
    let listener = Listener::default();
    let running = context.sandbox.execute(shell("a", "echo early; sleep 30"), &listener);
    tokio::select! {
        done = running => return Err(format!("it ended: {done:?}")),
        () = listener.hears("early") => {}
    }
    context.sandbox.kill(&id("a")).await.map_err(|error| error.to_string())
}

async fn whole_500_kib(context: Context) -> Outcome {
    let done = context.shell("a", "head -c 512000 /dev/zero").await?;
    same("bytes", (done.stdout.len(), done.stdout_dropped_bytes), (512_000, 0))
}

async fn capped_with_exact_count(context: Context) -> Outcome {
    let done = context.shell("a", "head -c 67108864 /dev/zero").await?;
    let dropped = (64 << 20) - limits::OUTPUT_BYTES_DEFAULT;
    same("bytes", (done.stdout.len(), done.stdout_dropped_bytes), (1 << 20, dropped))?;
    same("end", done.end, End::Exited(0))
}

async fn cap_chosen_by_caller(context: Context) -> Outcome {
    let request = Execute { stdout_bytes_max: 10, ..shell("a", "echo 123456789012345") };
    let done = context.run(request).await?;
    same("kept", (text(&done.stdout), done.stdout_dropped_bytes), ("1234567890".to_owned(), 6))?;
    let request = Execute { stdout_bytes_max: 3 << 20, ..shell("b", "head -c 3000000 /dev/zero") };
    let done = context.run(request).await?;
    same("above the default", (done.stdout.len(), done.stdout_dropped_bytes), (3_000_000, 0))
}

async fn cap_of_zero(context: Context) -> Outcome {
    let request = Execute { stdout_bytes_max: 0, ..shell("a", "echo x; echo y >&2") };
    let done = context.run(request).await?;
    same("stdout", (done.stdout.len(), done.stdout_dropped_bytes), (0, 2))?;
    same("stderr", (text(&done.stderr), done.stderr_dropped_bytes), ("y\n".to_owned(), 0))
}

async fn cap_of_each_stream(context: Context) -> Outcome {
    let line = "echo 123456; echo abcdef >&2";
    let request = Execute { stdout_bytes_max: 3, stderr_bytes_max: 4, ..shell("a", line) };
    let done = context.run(request).await?;
    same("kept", (text(&done.stdout), text(&done.stderr)), ("123".into(), "abcd".into()))?;
    same("dropped", (done.stdout_dropped_bytes, done.stderr_dropped_bytes), (4, 3))
}

async fn spilled_whole(context: Context) -> Outcome {
    let line = "echo first; head -c 3000000 /dev/zero; echo last";
    let base = shell("a", line);
    let request = Execute { stdout_bytes_max: 1_000, spill_after_bytes: Some(1_000), ..base };
    let done = context.run(request).await?;
    let path = done.spill.ok_or("no file is named")?;
    let read = FileOp::Read { path: path.clone(), offset: 3_000_000, bytes_max: 100 };
    let FileReply::Bytes { bytes, total_bytes } = context.files(read).await? else {
        return Err("read gave no bytes".to_owned());
    };
    same("size", total_bytes, 3_000_011)?;
    ensure("its end is there", bytes.ends_with(b"last\n"))
}

async fn spilled_where_commands_see_it(context: Context) -> Outcome {
    let base = shell("a", "echo first; head -c 100000 /dev/zero");
    let request = Execute { stdout_bytes_max: 1_000, spill_after_bytes: Some(1_000), ..base };
    let path = context.run(request).await?.spill.ok_or("no file is named")?;
    context.prints("b", &format!("head -c 6 {path}"), "first\n").await
}

async fn not_spilled_when_small(context: Context) -> Outcome {
    let request = Execute { spill_after_bytes: Some(1_000), ..shell("a", "echo small") };
    same("spill", context.run(request).await?.spill, None)
}

async fn not_utf8(context: Context) -> Outcome {
    let done = context.shell("a", r"printf '\377\000\376ok'").await?;
    same("bytes", done.stdout, b"\xff\x00\xfeok".to_vec())
}

async fn flood_of_both(context: Context) -> Outcome {
    let line = "head -c 8000000 /dev/zero & head -c 9000000 /dev/zero >&2; wait";
    let done = context.shell("a", line).await?;
    same("stdout", done.stdout.len() as u64 + done.stdout_dropped_bytes, 8_000_000)?;
    same("stderr", done.stderr.len() as u64 + done.stderr_dropped_bytes, 9_000_000)?;
    same("end", done.end, End::Exited(0))
}

async fn one_gigabyte_is_read_to_its_end(context: Context) -> Outcome {
    let line = "head -c 1000000000 /dev/zero; echo end >&2";
    let done = context.shell("a", line).await?;
    let dropped = 1_000_000_000 - limits::OUTPUT_BYTES_DEFAULT;
    same("kept", done.stdout.len() as u64, limits::OUTPUT_BYTES_DEFAULT)?;
    same("dropped", done.stdout_dropped_bytes, dropped)?;
    same("it went on to its end", text(&done.stderr), "end\n".to_owned())
}

async fn spill_is_capped_by_its_limit(context: Context) -> Outcome {
    let base = shell("a", "head -c 70000000 /dev/zero");
    let request = Execute { stdout_bytes_max: 1, spill_after_bytes: Some(1), ..base };
    let done = context.run(request).await?;
    same("dropped", done.stdout_dropped_bytes, 69_999_999)?;
    let path = done.spill.ok_or("no file is named")?;
    match context.files(FileOp::Stat { path }).await? {
        FileReply::Entry(entry) => same("size", entry.bytes, limits::SPILL_BYTES_MAX),
        other => Err(format!("stat answered {other:?}")),
    }
}

async fn held_open_by_a_child(context: Context) -> Outcome {
    let running = context.shell("a", "sleep 50 & echo done");
    let done =
        crate::conformance::context::soon("the end of a command whose child holds stdout", running);
    let done = done.await??;
    same("outcome", (text(&done.stdout), done.end), ("done\n".to_owned(), End::Exited(0)))
}
