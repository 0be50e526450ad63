//! Commands: what they are given and how they end.

pub(super) mod ids;
pub(super) mod limits;
pub(super) mod output;
pub(super) mod terminal;
pub(super) mod tree_kill;

use super::case::cases;
use super::context::{Context, Outcome, argv, ensure, id, same, shell, text};
use outrigger_sandbox::{Command, End, Error, Execute, FileOp, Precondition, WriteMode};

cases! { "exec":
    shell_line,
    shell_lines_and_quotes,
    argv_is_not_interpreted,
    unicode,
    exit_codes,
    signals,
    shell_program_not_found,
    argv_program_not_found,
    directory_is_the_workspace,
    directory_absolute_and_relative,
    places_are_named [Programs],
    directory_by_any_name [Programs],
    program_by_its_path [Programs],
    directory_missing,
    stdin_arrives,
    stdin_is_closed,
    stdin_unread,
    streams_by_name [Kernel],
    environment,
    argument_of_100_kib,
    arguments_of_1_mib,
    argument_not_utf8 [Programs],
    environment_is_constructed [Programs],
    variables_do_not_stay [Programs],
    directory_is_no_descriptor [Kernel],
    user_is_not_root [Kernel],
    no_network [Kernel],
}

async fn shell_line(context: Context) -> Outcome {
    context.prints("a", "echo hello", "hello\n").await?;
    let silent = context.shell("b", "true").await?;
    same("true", (silent.stdout, silent.end, silent.spill), (vec![], End::Exited(0), None))
}

async fn shell_lines_and_quotes(context: Context) -> Outcome {
    context.prints("a", "echo a; echo b\necho 'c  d' \"e\"", "a\nb\nc  d e\n").await?;
    context.prints("b", "true && echo yes; false || echo no", "yes\nno\n").await?;
    context.prints("c", "false && echo wrong; echo right", "right\n").await
}

async fn argv_is_not_interpreted(context: Context) -> Outcome {
    let done = context.run(argv("a", &["echo", "a  b", "$HOME", ";", "'q'"])).await?;
    same("argv", text(&done.stdout), "a  b $HOME ; 'q'\n".to_owned())
}

async fn unicode(context: Context) -> Outcome {
    context.prints("a", "echo 'héllo ✓ 日本'", "héllo ✓ 日本\n").await
}

async fn exit_codes(context: Context) -> Outcome {
    for code in [0, 1, 2, 7, 126, 255] {
        let done = context.shell(&format!("e{code}"), &format!("exit {code}")).await?;
        same("end", done.end, End::Exited(code))?;
        same("code", done.exit_code(), Some(code))?;
    }
    same("true", context.run(argv("true", &["true"])).await?.end, End::Exited(0))?;
    same("false", context.run(argv("false", &["false"])).await?.end, End::Exited(1))
}

async fn signals(context: Context) -> Outcome {
    for signal in [2, 9, 15] {
        let line = format!("echo before; kill -{signal} $$; echo after");
        let done = context.shell(&format!("s{signal}"), &line).await?;
        same("end", done.end, End::Signalled(signal))?;
        same("code", done.exit_code(), Some(128 + signal))?;
        same("output", text(&done.stdout), "before\n".to_owned())?;
    }
    Ok(())
}

async fn shell_program_not_found(context: Context) -> Outcome {
    let done = context.shell("a", "no-such-program-here").await?;
    same("end", done.end, End::Exited(127))?;
    ensure("stderr names the program", text(&done.stderr).contains("no-such-program-here"))
}

async fn argv_program_not_found(context: Context) -> Outcome {
    match context.refused(argv("a", &["no-such-program-here", "x"])).await? {
        Error::CannotStart { program, .. } => {
            same("program", program, "no-such-program-here".to_owned())
        }
        other => Err(format!("got `{other}`, expected CannotStart")),
    }
}

async fn directory_is_the_workspace(context: Context) -> Outcome {
    context.prints("a", "pwd", "/workspace\n").await
}

async fn directory_absolute_and_relative(context: Context) -> Outcome {
    context.write("w", "sub/dir/file", b"x").await?;
    for (name, cwd, expected) in [
        ("a", "/workspace/sub", "/workspace/sub\n"),
        ("b", "sub/dir", "/workspace/sub/dir\n"),
        ("c", "/tmp", "/tmp\n"),
    ] {
        let request = Execute { cwd: Some(cwd.to_owned()), ..shell(name, "pwd") };
        same(cwd, text(&context.run(request).await?.stdout), expected.to_owned())?;
    }
    Ok(())
}

/// By their variables too, those places are the ones that file operations name.
async fn places_are_named(context: Context) -> Outcome {
    let places = [("WORKSPACE", "/workspace"), ("HOME", "/home/agent"), ("TMPDIR", "/tmp")];
    for (number, (variable, place)) in places.into_iter().enumerate() {
        let (given, left) = (format!("{place}/given"), format!("{place}/left"));
        context.write(&format!("w{number}"), &given, b"from outside\n").await?;
        let line = format!("cat \"${variable}/given\" && echo from inside > \"${variable}/left\"");
        context.prints(&format!("a{number}"), &line, "from outside\n").await?;
        context.holds(&left, b"from inside\n").await?;
    }
    context
        .prints("b", "cat given; cd /; cat \"$WORKSPACE/given\"", "from outside\nfrom outside\n")
        .await
}

async fn directory_by_any_name(context: Context) -> Outcome {
    for (number, (cwd, place)) in [
        ("/workspace/sub", "/workspace/sub"),
        ("sub/dir", "/workspace/sub/dir"),
        ("/tmp/dir", "/tmp/dir"),
        ("/home/agent", "/home/agent"),
    ]
    .into_iter()
    .enumerate()
    {
        context.write(&format!("w{number}"), &format!("{place}/given"), b"given\n").await?;
        let line = "cat given && echo left > left";
        let request = Execute { cwd: Some(cwd.to_owned()), ..shell(&format!("a{number}"), line) };
        same(cwd, text(&context.run(request).await?.stdout), "given\n".to_owned())?;
        context.holds(&format!("{place}/left"), b"left\n").await?;
    }
    Ok(())
}

async fn program_by_its_path(context: Context) -> Outcome {
    let script = FileOp::Write {
        id: id("w"),
        path: "/workspace/bin/program".to_owned(),
        contents: b"#!/bin/sh\necho \"ran with $1\"\n".to_vec(),
        mode: WriteMode::Replace,
        executable: Some(true),
        modified_ns: None,
        precondition: Precondition::None,
    };
    context.files(script).await?;
    for (name, program) in [("a", "/workspace/bin/program"), ("b", "bin/program")] {
        let done = context.run(argv(name, &[program, "it"])).await?;
        same(program, text(&done.stdout), "ran with it\n".to_owned())?;
    }
    Ok(())
}

async fn directory_missing(context: Context) -> Outcome {
    let request = Execute { cwd: Some("no/such".to_owned()), ..shell("a", "echo x >> ran") };
    match context.refused(request).await? {
        Error::CannotStart { .. } | Error::Invalid(_) | Error::File(_) => {}
        other => return Err(format!("got `{other}`")),
    }
    context.absent("ran").await
}

async fn directory_is_no_descriptor(context: Context) -> Outcome {
    for number in 3..40 {
        let cwd = format!("/proc/self/fd/{number}");
        let request = Execute { cwd: Some(cwd), ..shell(&format!("fd{number}"), "pwd") };
        match context.refused(request).await? {
            Error::CannotStart { .. } | Error::Invalid(_) | Error::File(_) => {}
            other => return Err(format!("got `{other}`")),
        }
    }
    Ok(())
}

async fn stdin_arrives(context: Context) -> Outcome {
    let bytes: Vec<u8> = (0..700_000_u32).map(|i| u8::try_from(i % 251).unwrap_or(0)).collect();
    let request = Execute { stdin: bytes.clone(), ..argv("a", &["cat"]) };
    let done = context.run(request).await?;
    ensure("what came back is what was given", done.stdout == bytes)
}

async fn stdin_is_closed(context: Context) -> Outcome {
    let done = context.run(argv("a", &["cat"])).await?;
    same("cat", (done.stdout, done.end), (vec![], End::Exited(0)))
}

async fn streams_by_name(context: Context) -> Outcome {
    let line = "cat /dev/stdin > /dev/stdout; echo err > /dev/stderr; echo out > /proc/self/fd/1";
    let request = Execute { stdin: b"in\n".to_vec(), ..shell("a", line) };
    let done = context.run(request).await?;
    same("stdout", text(&done.stdout), "in\nout\n".to_owned())?;
    same("stderr", text(&done.stderr), "err\n".to_owned())
}

async fn stdin_unread(context: Context) -> Outcome {
    let request = Execute { stdin: vec![b'x'; 4 << 20], ..argv("a", &["true"]) };
    same("end", context.run(request).await?.end, End::Exited(0))
}

async fn environment(context: Context) -> Outcome {
    let value = "a b 'c' \"d\" é=\\";
    let mut request = argv("a", &["printenv", "GREETING"]);
    request.env.insert("GREETING".to_owned(), value.to_owned());
    same("argv", text(&context.run(request).await?.stdout), format!("{value}\n"))?;
    let mut request = shell("b", "echo \"$GREETING\"");
    request.env.insert("GREETING".to_owned(), "hi there".to_owned());
    same("shell", text(&context.run(request).await?.stdout), "hi there\n".to_owned())
}

async fn argument_of_100_kib(context: Context) -> Outcome {
    let long = "x".repeat(100 << 10);
    let done = context.run(argv("a", &["echo", &long])).await?;
    ensure("the whole argument came through", done.stdout == format!("{long}\n").as_bytes())
}

async fn arguments_of_1_mib(context: Context) -> Outcome {
    let long = "y".repeat(64 << 10);
    let words: Vec<&str> = ["echo"].into_iter().chain([long.as_str(); 16]).collect();
    let done = context.run(Execute { stdout_bytes_max: 2 << 20, ..argv("a", &words) }).await?;
    same("bytes", done.stdout.len(), 16 * (64 << 10) + 16)
}

async fn argument_not_utf8(context: Context) -> Outcome {
    let words = vec![b"printf".to_vec(), b"%s".to_vec(), b"\xff\xfe\x80".to_vec()];
    let done = context.run(Execute::new(argv("a", &[""]).id, Command::Argv(words))).await?;
    same("bytes", done.stdout, b"\xff\xfe\x80".to_vec())
}

async fn environment_is_constructed(context: Context) -> Outcome {
    let done = context.run(argv("a", &["env"])).await?;
    let shown = text(&done.stdout);
    let known = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "LANG",
        "LC_ALL",
        "TMPDIR",
        "SHELL",
        "PWD",
        "TERM",
        "WORKSPACE",
    ];
    for line in shown.lines() {
        let name = line.split('=').next().unwrap_or_default();
        ensure(&format!("variable `{name}` is none of the constructed"), known.contains(&name))?;
    }
    for name in ["PATH", "HOME"] {
        let there = shown.lines().any(|line| line.starts_with(&format!("{name}=")));
        ensure(&format!("{name} is set"), there)?;
    }
    Ok(())
}

async fn variables_do_not_stay(context: Context) -> Outcome {
    let mut request = shell("a", "export LEFT=1");
    request.env.insert("ONCE".to_owned(), "1".to_owned());
    context.run(request).await?;
    context.prints("b", "echo \"[$ONCE$LEFT]\"", "[]\n").await
}

async fn user_is_not_root(context: Context) -> Outcome {
    let done = context.shell("a", "id -u").await?;
    ensure("the user is root", text(&done.stdout).trim() != "0")?;
    let caps = context.shell("b", "grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status").await?;
    for line in text(&caps.stdout).lines() {
        let value = line.split_whitespace().last().unwrap_or_default();
        let expected = if line.starts_with("NoNewPrivs") { "1" } else { "0000000000000000" };
        same(line, value.to_owned(), expected.to_owned())?;
    }
    same("lines", text(&caps.stdout).lines().count(), 3)
}

async fn no_network(context: Context) -> Outcome {
    let done = context.shell("a", "cat /proc/net/dev").await?;
    let shown = text(&done.stdout);
    let names: Vec<_> = shown.lines().skip(2).filter_map(|line| line.split(':').next()).collect();
    let foreign = names.iter().any(|name| name.trim() != "lo");
    ensure(&format!("interfaces {names:?}"), !foreign)
}
