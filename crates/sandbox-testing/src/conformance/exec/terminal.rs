//! Commands with a terminal: what they see of it, and what is typed.

use crate::conformance::case::cases;
use crate::conformance::context::{
    Context, Listener, Outcome, ensure, id, same, shell, soon, text,
};
use crate::conformance::life::{is_invalid, refused};
use outrigger_sandbox::{End, Error, Execute, Input, TerminalSize, limits};

cases! { "terminal":
    standard_streams_are_one [Terminal, Programs],
    opens_by_its_name [Terminal, Programs],
    size_is_as_given [Terminal, Programs],
    output_is_merged [Terminal, Programs],
    input_arrives [Terminal, Programs],
    input_comes_after_stdin [Terminal, Programs],
    input_in_many_pieces [Terminal, Programs],
    end_of_input_ends_a_reader [Terminal, Programs],
    interrupt_is_a_signal [Terminal, Programs],
    interrupt_ends_a_program [Terminal, Programs],
    size_change_is_a_signal [Terminal, Programs],
    has_a_session_of_its_own [Terminal, Programs],
    attached_again [Terminal, Programs],
    repeated_gives_the_kept_outcome [Terminal, Programs],
    capped_with_exact_count [Terminal, Programs],
    killed_with_its_tree [Terminal, Programs],
    deadline_ends_it [Terminal, Programs],
    held_open_by_a_child [Terminal, Programs],
    many_at_once [Terminal, Programs],
    input_to_an_ended_one_is_refused [Terminal, Programs],
    input_without_a_terminal_is_refused [Terminal, Programs],
    input_above_its_limit_is_refused [Terminal, Programs],
    input_that_nobody_reads_does_not_hold_up_others [Terminal, Programs],
}

const SIZE: TerminalSize = TerminalSize { rows: 33, columns: 121 };

fn terminal(name: &str, line: &str) -> Execute {
    Execute { terminal: Some(SIZE), ..shell(name, line) }
}

/// What a command showed, with the line ends of a terminal made plain.
fn plain(bytes: &[u8]) -> String {
    text(bytes).replace("\r\n", "\n")
}

/// Types something into a running command.
async fn types(context: &Context, name: &str, bytes: &[u8]) -> Outcome {
    let typed = input(context, name, Input::Bytes(bytes.to_vec()));
    let typed = soon("the terminal takes the input", typed).await?;
    typed.map_err(|error| format!("input: {error}"))
}

/// Runs a line; each time that it has printed the first of a pair the second is
/// given to it. Its end and all that it showed.
async fn talk(
    context: &Context,
    line: &str,
    turns: &[(&str, Input)],
) -> Result<(End, String), String> {
    let listener = Listener::default();
    let running = context.sandbox.execute(terminal("a", line), &listener);
    let talking = async {
        for (shown, input) in turns {
            soon(&format!("it shows `{shown}`"), listener.hears(shown)).await?;
            let given = self::input(context, "a", input.clone());
            let given = soon("the terminal takes the input", given).await?;
            given.map_err(|error| format!("input: {error}"))?;
        }
        Ok::<_, String>(())
    };
    let (done, talked) = tokio::join!(soon("its end", running), talking);
    talked?;
    let done = done?.map_err(|error| format!("execute: {error}"))?;
    same("stderr", done.stderr, vec![])?;
    Ok((done.end, plain(&done.stdout)))
}

fn typed(text: &str) -> Input {
    Input::Bytes(text.as_bytes().to_vec())
}

async fn standard_streams_are_one(context: Context) -> Outcome {
    let line = "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo yes; echo x > /dev/tty && echo tty";
    let done = context.run(terminal("a", line)).await?;
    same("output", plain(&done.stdout), "yes\nx\ntty\n".to_owned())?;
    let line = "[ -t 0 ] || [ -t 1 ] || [ -t 2 ] || echo none";
    context.prints("b", line, "none\n").await
}

async fn opens_by_its_name(context: Context) -> Outcome {
    let done = context.run(terminal("a", "echo named > \"$(tty)\"")).await?;
    same("output", plain(&done.stdout), "named\n".to_owned())
}

async fn size_is_as_given(context: Context) -> Outcome {
    let done = context.run(terminal("a", "stty size")).await?;
    same("size", plain(&done.stdout), "33 121\n".to_owned())
}

async fn output_is_merged(context: Context) -> Outcome {
    let done = context.run(terminal("a", "echo 1; echo 2 >&2; echo 3; exit 4")).await?;
    same("end", done.end, End::Exited(4))?;
    same("output", text(&done.stdout), "1\r\n2\r\n3\r\n".to_owned())?;
    same("stderr", (done.stderr, done.stderr_dropped_bytes), (vec![], 0))
}

async fn input_arrives(context: Context) -> Outcome {
    let line = "echo up; read a; echo \"got [$a]\"; read b; echo \"then [$b]\"; exit 5";
    let turns = [("up", typed("first\n")), ("got [first]", typed("hé llo\n"))];
    let (end, shown) = talk(&context, line, &turns).await?;
    same("end", end, End::Exited(5))?;
    ensure(&format!("it showed {shown:?}"), shown.ends_with("then [hé llo]\n"))?;
    ensure("what is typed is shown", shown.contains("first\ngot"))
}

async fn input_comes_after_stdin(context: Context) -> Outcome {
    let line = "read a; echo \"got $a\"; read b; echo \"[$a][$b]\"";
    let request = Execute { stdin: b"given\n".to_vec(), ..terminal("a", line) };
    let listener = Listener::default();
    let running = context.sandbox.execute(request, &listener);
    let typing = async {
        soon("it has read", listener.hears("got given")).await?;
        types(&context, "a", b"typed\n").await
    };
    let (done, typed) = tokio::join!(soon("its end", running), typing);
    typed?;
    let shown = plain(&done?.map_err(|error| error.to_string())?.stdout);
    ensure(&format!("it showed {shown:?}"), shown.ends_with("[given][typed]\n"))
}

async fn input_in_many_pieces(context: Context) -> Outcome {
    let line = "stty -echo; echo up; n=0; while [ $n -lt 300 ]; do read l; n=$((n+1)); done; \
                echo \"$n $l\"";
    let listener = Listener::default();
    let running = context.sandbox.execute(terminal("a", line), &listener);
    let typing = async {
        soon("it is up", listener.hears("up")).await?;
        for number in 0..300 {
            types(&context, "a", format!("line {number}\n").as_bytes()).await?;
        }
        Ok::<_, String>(())
    };
    let (done, typed) = tokio::join!(soon("its end", running), typing);
    typed?;
    let shown = plain(&done?.map_err(|error| error.to_string())?.stdout);
    same("output", shown, "up\n300 line 299\n".to_owned())
}

async fn end_of_input_ends_a_reader(context: Context) -> Outcome {
    let line = "stty -echo; echo up; cat; echo end";
    let (end, shown) = talk(&context, line, &[("up", typed("abc\n\x04"))]).await?;
    same("outcome", (end, shown), (End::Exited(0), "up\nabc\nend\n".to_owned()))
}

async fn interrupt_is_a_signal(context: Context) -> Outcome {
    let line = "trap 'echo interrupted; exit 7' INT; echo up; while :; do sleep 0.05; done";
    let (end, shown) = talk(&context, line, &[("up", typed("\x03"))]).await?;
    same("end", end, End::Exited(7))?;
    ensure(&format!("it showed {shown:?}"), shown.contains("interrupted\n"))
}

async fn interrupt_ends_a_program(context: Context) -> Outcome {
    let (end, _) = talk(&context, "echo up; exec sleep 100", &[("up", typed("\x03"))]).await?;
    same("end", end, End::Signalled(2))
}

async fn size_change_is_a_signal(context: Context) -> Outcome {
    let line = "trap 'stty size; exit 6' WINCH; echo up; while :; do sleep 0.05; done";
    let size = Input::Size(TerminalSize { rows: 50, columns: 90 });
    let (end, shown) = talk(&context, line, &[("up", size)]).await?;
    same("outcome", (end, shown), (End::Exited(6), "up\n50 90\n".to_owned()))
}

async fn has_a_session_of_its_own(context: Context) -> Outcome {
    // Field 6 is the session, 7 the terminal, 8 its foreground process group.
    let line = "read -r p c s pp g session tty front rest < /proc/self/stat; \
                [ \"$g\" = \"$front\" ] && [ \"$tty\" != 0 ] && [ \"$session\" != 0 ] && echo own";
    let done = context.run(terminal("a", line)).await?;
    same("output", plain(&done.stdout), "own\n".to_owned())
}

async fn attached_again(context: Context) -> Outcome {
    let line = "echo x >> count; echo up; read a; echo \"got $a\"";
    let listener = Listener::default();
    tokio::select! {
        done = context.sandbox.execute(terminal("a", line), &listener) => {
            return Err(format!("it ended too soon: {done:?}"));
        }
        heard = soon("its first output", listener.hears("up")) => heard?,
    }
    let other = context.found().await?.ok_or("it is not found")?;
    let listener = Listener::default();
    let running = other.sandbox.execute(terminal("a", "true"), &listener);
    let typing = async {
        soon("it shows all from the first byte", listener.hears("up")).await?;
        types(&other, "a", b"later\n").await
    };
    let (done, typed) = tokio::join!(soon("its end", running), typing);
    typed?;
    let done = done?.map_err(|error| error.to_string())?;
    let shown = plain(&done.stdout);
    ensure(&format!("it showed {shown:?}"), shown.ends_with("got later\n"))?;
    ensure("sink and result agree", listener.heard().0 == done.stdout)?;
    context.holds("count", b"x\n").await
}

async fn repeated_gives_the_kept_outcome(context: Context) -> Outcome {
    let line = "echo x >> count; echo out; exit 3";
    let first = context.run(terminal("a", line)).await?;
    same("end", first.end, End::Exited(3))?;
    same("again", context.run(terminal("a", line)).await?, first)?;
    context.holds("count", b"x\n").await
}

async fn capped_with_exact_count(context: Context) -> Outcome {
    let base = terminal("a", "head -c 3000000 /dev/zero");
    let done = context.run(Execute { stdout_bytes_max: 1_000, ..base }).await?;
    let got = (done.stdout.len(), done.stdout_dropped_bytes, done.end);
    same("bytes", got, (1_000, 2_999_000, End::Exited(0)))
}

async fn killed_with_its_tree(context: Context) -> Outcome {
    let line = "trap '' HUP TERM INT; (trap '' HUP; while :; do echo x >> alive; sleep 0.02; done) & \
                while [ ! -s alive ]; do sleep 0.02; done; echo up; sleep 50";
    let listener = Listener::default();
    let running = context.sandbox.execute(terminal("a", line), &listener);
    let killing = async {
        soon("it is up", listener.hears("up")).await?;
        context.sandbox.kill(&id("a")).await.map_err(|error| format!("kill: {error}"))
    };
    let (done, kill) = tokio::join!(soon("its end", running), killing);
    kill?;
    same("end", done?.map_err(|error| error.to_string())?.end, End::Killed)?;
    let before = context.size("alive").await;
    context.shell("between", "sleep 0.3").await?;
    same("bytes of `alive` some time later", context.size("alive").await, before)
}

async fn deadline_ends_it(context: Context) -> Outcome {
    let request = Execute { deadline_ms: 5_000, ..terminal("a", "echo before; sleep 50") };
    let done = soon("the end at the deadline", context.run(request)).await??;
    same("outcome", (done.end, plain(&done.stdout)), (End::Deadline, "before\n".to_owned()))
}

async fn held_open_by_a_child(context: Context) -> Outcome {
    let running = context.run(terminal("a", "(trap '' HUP; sleep 50) & echo done"));
    let done = soon("the end of a command whose child holds the terminal", running).await??;
    same("end", done.end, End::Exited(0))?;
    ensure("what it printed", plain(&done.stdout).ends_with("done\n"))
}

async fn many_at_once(context: Context) -> Outcome {
    let mut all = tokio::task::JoinSet::new();
    for number in 0..10_u16 {
        let context = context.clone();
        all.spawn(async move {
            let size = TerminalSize { rows: 20 + number, columns: 100 };
            let base = shell(&format!("t{number}"), "stty size");
            let done = context.run(Execute { terminal: Some(size), ..base }).await?;
            same("size", plain(&done.stdout), format!("{} 100\n", 20 + number))
        });
    }
    while let Some(one) = all.join_next().await {
        one.map_err(|error| error.to_string())??;
    }
    Ok(())
}

async fn input(context: &Context, name: &str, input: Input) -> Result<(), Error> {
    context.sandbox.input(&id(name), input).await
}

async fn input_to_an_ended_one_is_refused(context: Context) -> Outcome {
    context.run(terminal("a", "true")).await?;
    refused("bytes", input(&context, "a", typed("x")).await, is_invalid)?;
    refused("a size", input(&context, "a", Input::Size(SIZE)).await, is_invalid)?;
    refused("one that never was", input(&context, "b", typed("x")).await, is_invalid)
}

async fn input_without_a_terminal_is_refused(context: Context) -> Outcome {
    context.begin("a", "echo up; sleep 50; echo end").await?;
    refused("bytes", input(&context, "a", typed("x")).await, is_invalid)?;
    refused("a size", input(&context, "a", Input::Size(SIZE)).await, is_invalid)?;
    context.killed("a").await
}

async fn input_above_its_limit_is_refused(context: Context) -> Outcome {
    let long = Input::Bytes(vec![b'x'; limits::INPUT_BYTES_MAX + 1]);
    let none = Input::Size(TerminalSize { rows: 0, columns: 80 });
    let line = "echo up; read a; echo \"got $a\"";
    let listener = Listener::default();
    let running = context.sandbox.execute(terminal("a", line), &listener);
    let typing = async {
        soon("it is up", listener.hears("up")).await?;
        refused("long input", input(&context, "a", long).await, is_invalid)?;
        refused("no lines", input(&context, "a", none).await, is_invalid)?;
        types(&context, "a", b"short\n").await
    };
    let (done, typed) = tokio::join!(soon("its end", running), typing);
    typed?;
    let shown = plain(&done?.map_err(|error| error.to_string())?.stdout);
    ensure(&format!("it showed {shown:?}"), shown.ends_with("got short\n"))
}

async fn input_that_nobody_reads_does_not_hold_up_others(context: Context) -> Outcome {
    let listener = Listener::default();
    let running =
        context.sandbox.execute(terminal("a", "stty raw -echo; echo up; sleep 50"), &listener);
    let piece = || Input::Bytes(vec![b'x'; limits::INPUT_BYTES_MAX]);
    let typing = async {
        soon("it is up", listener.hears("up")).await?;
        let flood = async { while input(&context, "a", piece()).await.is_ok() {} };
        let others = async {
            context.prints("b", "echo fine", "fine\n").await?;
            context.write("w", "f", b"x").await?;
            context.sandbox.kill(&id("a")).await.map_err(|error| format!("kill: {error}"))
        };
        let (_, others) = tokio::join!(soon("the end of the typing", flood), others);
        others
    };
    let (done, typed) = tokio::join!(soon("its end", running), typing);
    typed?;
    same("end", done?.map_err(|error| error.to_string())?.end, End::Killed)
}
