//! Every typed error of the file operations, and paths that lead astray.

use crate::conformance::case::cases;
use crate::conformance::context::{
    Context, Outcome, edit_op, expecting, id, read_op, same, shell, text, write_op,
};
use outrigger_sandbox::FileErrorKind::{
    AlreadyExists, Conflict, FileNotFound, InvalidArgument, InvalidPath, IsDirectory,
    NotADirectory, PermissionDenied, TooLarge,
};
use outrigger_sandbox::{
    Error, Execute, FileOp, GrepPattern, Occurrences, Precondition, WriteMode, limits, text::digest,
};

cases! { "errors":
    file_not_found,
    is_directory,
    not_a_directory,
    already_exists,
    malformed_paths,
    paths_that_leave,
    links_that_leave,
    links_in_a_loop,
    dangling_links,
    devices,
    system_files_are_not_written,
    edit_of_absent_text,
    edit_of_repeated_text,
    edit_of_empty_text,
    precondition_that_does_not_hold,
    too_large_a_piece,
    too_large_to_edit,
    malformed_patterns,
    workspace_stays,
    error_names_the_path,
    fifo_never_hangs [Programs],
    socket_is_refused [Programs],
    unreadable_file [Kernel],
    system_files_stay_as_they_are [Kernel],
}

fn own(path: &str) -> String {
    path.to_owned()
}

async fn file_not_found(context: Context) -> Outcome {
    let path = || own("no/such/file");
    let ops = [
        read_op("no/such/file"),
        FileOp::Stat { path: path() },
        FileOp::List { path: path(), entries_max: 9 },
        FileOp::ReadLines { path: path(), first: 1, lines_max: 1, bytes_max: 9 },
        write_op("a", "no/such/file", b"x", WriteMode::Append),
        edit_op("b", "no/such/file", "a", "b", Occurrences::One),
        FileOp::Remove { id: id("c"), path: path() },
        FileOp::Glob { root: path(), pattern: own("*"), paths_max: 9 },
        FileOp::Grep {
            root: path(),
            pattern: GrepPattern::Literal(own("x")),
            glob: None,
            matches_max: 9,
        },
        FileOp::Manifest { root: path(), after: None, skip: Vec::new(), entries_max: 9 },
    ];
    for op in ops {
        context.fails(op, FileNotFound).await?;
    }
    context.absent("no").await
}

async fn is_directory(context: Context) -> Outcome {
    context.write("w", "dir/f", b"x").await?;
    let ops = [
        read_op("dir"),
        FileOp::ReadLines { path: own("dir"), first: 1, lines_max: 1, bytes_max: 9 },
        write_op("a", "dir", b"x", WriteMode::Replace),
        write_op("b", "dir", b"x", WriteMode::Append),
        edit_op("c", "dir", "a", "b", Occurrences::One),
        FileOp::Link { id: id("d"), path: own("dir"), target: own("f") },
        read_op("."),
    ];
    for op in ops {
        context.fails(op, IsDirectory).await?;
    }
    context.holds("dir/f", b"x").await
}

async fn not_a_directory(context: Context) -> Outcome {
    context.write("w", "file", b"x").await?;
    let ops = [
        FileOp::List { path: own("file"), entries_max: 9 },
        read_op("file/child"),
        FileOp::Stat { path: own("file/child") },
        write_op("a", "file/child", b"x", WriteMode::Replace),
        write_op("b", "file/child/deeper", b"x", WriteMode::Create),
        FileOp::MakeDir { id: id("c"), path: own("file/child") },
        FileOp::Glob { root: own("file"), pattern: own("*"), paths_max: 9 },
        FileOp::Manifest { root: own("file"), after: None, skip: Vec::new(), entries_max: 9 },
    ];
    for op in ops {
        context.fails(op, NotADirectory).await?;
    }
    context.holds("file", b"x").await
}

async fn already_exists(context: Context) -> Outcome {
    context.write("w", "file", b"old").await?;
    context.fails(write_op("a", "file", b"new", WriteMode::Create), AlreadyExists).await?;
    context.fails(FileOp::MakeDir { id: id("b"), path: own("file") }, AlreadyExists).await?;
    context.holds("file", b"old").await
}

async fn malformed_paths(context: Context) -> Outcome {
    let long = "x".repeat(limits::PATH_BYTES_MAX + 1);
    for (number, path) in ["", "a\0b", &long].into_iter().enumerate() {
        context.fails(read_op(path), InvalidPath).await?;
        context.fails(FileOp::Stat { path: own(path) }, InvalidPath).await?;
        context.fails(FileOp::List { path: own(path), entries_max: 1 }, InvalidPath).await?;
        let write = write_op(&format!("w{number}"), path, b"x", WriteMode::Replace);
        context.fails(write, InvalidPath).await?;
    }
    Ok(())
}

async fn paths_that_leave(context: Context) -> Outcome {
    for (number, path) in ["../x", "../../etc/passwd", "a/../../x", ".."].into_iter().enumerate() {
        context.fails(read_op(path), InvalidPath).await?;
        let write = write_op(&format!("w{number}"), path, b"x", WriteMode::Replace);
        context.fails(write, InvalidPath).await?;
    }
    context.write("w", "a/f", b"x").await?;
    context.holds("a/../a/./f", b"x").await
}

async fn link(context: &Context, name: &str, path: &str, target: &str) -> Outcome {
    let op = FileOp::Link { id: id(name), path: own(path), target: own(target) };
    context.files(op).await.map(drop)
}

async fn links_that_leave(context: Context) -> Outcome {
    for (number, target) in
        ["/etc", "/", "../..", "../../etc", "a/../../../etc"].into_iter().enumerate()
    {
        let name = format!("link{number}");
        link(&context, &name, &name, target).await?;
        context.fails(read_op(&format!("{name}/passwd")), InvalidPath).await?;
        let path = format!("{name}/new");
        let write = write_op(&format!("w{number}"), &path, b"x", WriteMode::Create);
        context.fails(write, InvalidPath).await?;
        context.fails(FileOp::List { path: name, entries_max: 9 }, InvalidPath).await?;
    }
    link(&context, "file", "passwd", "/etc/passwd").await?;
    context.fails(read_op("passwd"), InvalidPath).await?;
    context.fails(write_op("w", "passwd", b"x", WriteMode::Replace), InvalidPath).await
}

async fn links_in_a_loop(context: Context) -> Outcome {
    link(&context, "a", "a", "b").await?;
    link(&context, "b", "b", "a").await?;
    context.fails(read_op("a"), InvalidPath).await?;
    context.fails(read_op("a/x"), InvalidPath).await
}

async fn dangling_links(context: Context) -> Outcome {
    link(&context, "a", "link", "nowhere").await?;
    context.fails(read_op("link"), FileNotFound).await?;
    context.files(FileOp::Remove { id: id("r"), path: own("link") }).await?;
    context.absent("link").await
}

async fn devices(context: Context) -> Outcome {
    context.fails(read_op("/dev/zero"), InvalidPath).await?;
    let write = write_op("a", "/dev/null", b"x", WriteMode::Append);
    match context.sandbox.files(write).await {
        Err(Error::File(error)) if matches!(error.kind, InvalidPath | PermissionDenied) => Ok(()),
        other => Err(format!("write to a device: {other:?}")),
    }
}

async fn system_files_are_not_written(context: Context) -> Outcome {
    for (number, path) in ["/etc/passwd", "/usr/x", "/x", "/usr/bin/x/y"].into_iter().enumerate() {
        let write = write_op(&format!("w{number}"), path, b"x", WriteMode::Replace);
        context.fails(write, PermissionDenied).await?;
    }
    Ok(())
}

async fn edit_of_absent_text(context: Context) -> Outcome {
    context.write("w", "f", b"one two").await?;
    for (name, occurrences) in [("a", Occurrences::One), ("b", Occurrences::All)] {
        context.fails(edit_op(name, "f", "three", "3", occurrences), Conflict).await?;
    }
    context.holds("f", b"one two").await
}

async fn edit_of_repeated_text(context: Context) -> Outcome {
    context.write("w", "f", b"x\ny\nx\n").await?;
    match context.sandbox.files(edit_op("a", "f", "x", "z", Occurrences::One)).await {
        Err(Error::File(error)) if error.kind == Conflict && error.detail.contains('2') => {}
        other => return Err(format!("expected a conflict with the count, got {other:?}")),
    }
    context.holds("f", b"x\ny\nx\n").await
}

async fn edit_of_empty_text(context: Context) -> Outcome {
    context.write("w", "f", b"x").await?;
    context.fails(edit_op("a", "f", "", "z", Occurrences::All), InvalidArgument).await
}

async fn precondition_that_does_not_hold(context: Context) -> Outcome {
    context.write("w", "f", b"changed meanwhile").await?;
    for (name, path) in [("a", "f"), ("b", "missing")] {
        let op = FileOp::Write {
            id: id(name),
            path: own(path),
            contents: b"mine".to_vec(),
            mode: WriteMode::Replace,
            executable: None,
            modified_ns: None,
            precondition: Precondition::Digest(digest(b"as it was")),
        };
        context.fails(op, Conflict).await?;
    }
    context.fails(expecting("c", b"as it was"), Conflict).await?;
    context.holds("f", b"changed meanwhile").await?;
    context.absent("missing").await
}

async fn too_large_a_piece(context: Context) -> Outcome {
    let bytes = usize::try_from(limits::FILE_CHUNK_BYTES_MAX).map_err(|e| e.to_string())? + 1;
    context.fails(write_op("a", "f", &vec![b'x'; bytes], WriteMode::Create), TooLarge).await?;
    context.absent("f").await
}

async fn too_large_to_edit(context: Context) -> Outcome {
    let piece = vec![b'x'; 4 << 20];
    for number in 0..5 {
        let mode = if number == 0 { WriteMode::Create } else { WriteMode::Append };
        context.files(write_op(&format!("w{number}"), "f", &piece, mode)).await?;
    }
    context.fails(edit_op("a", "f", "x", "y", Occurrences::All), TooLarge).await
}

async fn malformed_patterns(context: Context) -> Outcome {
    for pattern in ["", "[", "{a"] {
        let op = FileOp::Glob { root: own("."), pattern: own(pattern), paths_max: 9 };
        context.fails(op, InvalidArgument).await?;
    }
    for pattern in ["", "(", "[z-a]", "a{9999999}", "(?<=x)y"] {
        let pattern = GrepPattern::Regex(own(pattern));
        let op = FileOp::Grep { root: own("."), pattern, glob: None, matches_max: 9 };
        context.fails(op, InvalidArgument).await?;
    }
    Ok(())
}

async fn workspace_stays(context: Context) -> Outcome {
    context.write("w", "f", b"x").await?;
    for (name, path) in [("a", "/workspace"), ("b", "."), ("c", "/")] {
        if context.sandbox.files(FileOp::Remove { id: id(name), path: own(path) }).await.is_ok() {
            return Err(format!("{path} was removed"));
        }
    }
    context.holds("f", b"x").await
}

async fn error_names_the_path(context: Context) -> Outcome {
    match context.sandbox.files(read_op("some/where")).await {
        Err(Error::File(error)) => same("path", error.path, own("some/where")),
        other => Err(format!("got {other:?}")),
    }
}

async fn fifo_never_hangs(context: Context) -> Outcome {
    context.shell("a", "mkfifo pipe").await?;
    context.fails(read_op("pipe"), InvalidPath).await?;
    context.fails(write_op("b", "pipe", b"x", WriteMode::Append), InvalidPath).await?;
    context.fails(edit_op("c", "pipe", "a", "b", Occurrences::One), InvalidPath).await?;
    let pattern = GrepPattern::Literal(own("x"));
    let op = FileOp::Grep { root: own("."), pattern, glob: None, matches_max: 9 };
    context.files(op).await?;
    context
        .files(FileOp::Manifest { root: own("."), after: None, skip: Vec::new(), entries_max: 9 })
        .await
        .map(drop)
}

async fn socket_is_refused(context: Context) -> Outcome {
    // Programs that can make a socket differ; an archive can hold one, and every
    // cpio makes it.
    let field = |value: u32| format!("{value:08x}");
    let entry = |name: &str, mode: u32| {
        let length = u32::try_from(name.len() + 1).unwrap_or(0);
        let fields = [1, mode, 0, 0, 1, 0, 0, 0, 0, 0, 0, length, 0].map(field).concat();
        let mut entry = format!("070701{fields}{name}\0").into_bytes();
        entry.resize(entry.len().next_multiple_of(4), 0);
        entry
    };
    let archive = [entry("sock", 0o140_644), entry("TRAILER!!!", 0)].concat();
    let line = "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => \"sock\", Listen => 1)' \
                || python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")' \
                || cpio -i || busybox cpio -i; [ -S sock ]";
    let made = context.run(Execute { stdin: archive, ..shell("a", line) }).await?;
    same(&format!("a socket was made: {}", text(&made.stderr)), made.exit_code(), Some(0))?;
    context.fails(read_op("sock"), InvalidPath).await
}

async fn unreadable_file(context: Context) -> Outcome {
    context.write("w", "dir/f", b"x").await?;
    context.shell("a", "chmod 000 dir/f; chmod 000 dir").await?;
    context.fails(write_op("c", "dir/g", b"x", WriteMode::Create), PermissionDenied).await?;
    context.fails(FileOp::List { path: own("dir"), entries_max: 9 }, PermissionDenied).await?;
    // Its owner's to read, who can open it again at any time; no command may keep
    // what it made from being fetched.
    context.holds("dir/f", b"x").await
}

async fn system_files_stay_as_they_are(context: Context) -> Outcome {
    for (number, path) in ["/etc/x", "/usr/x", "/bin/x", "/x", "/dev/x"].into_iter().enumerate() {
        let done = context.shell(&format!("s{number}"), &format!("echo x > {path}")).await?;
        if done.exit_code() == Some(0) {
            return Err(format!("a command wrote {path}"));
        }
    }
    Ok(())
}
