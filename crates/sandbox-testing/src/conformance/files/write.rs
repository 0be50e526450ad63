//! Operations that change something, when they go well; and that none is
//! performed twice.

use crate::conformance::case::cases;
use crate::conformance::context::{Context, Outcome, edit_op, expecting, id, same, text, write_op};
use outrigger_sandbox::{
    EditReport, EntryKind, FileErrorKind, FileOp, FileReply, Occurrences, Precondition, WriteMode,
    text::digest,
};

cases! { "write":
    makes_parents,
    replaces_whole,
    says_what_it_did,
    appends,
    ten_mib_in_pieces,
    keeps_and_sets_the_execute_bit,
    sets_when_it_was_changed [Programs],
    precondition_that_holds,
    follows_a_link_inside,
    edits_one_place,
    edits_all_places,
    edit_leaves_other_bytes,
    edit_takes_text_literally,
    edit_keeps_the_execute_bit,
    makes_directories,
    makes_links,
    removes,
    moves,
    what_cannot_be_moved_stays,
    repeated_append_is_one,
    repeated_edit_is_one,
    repeated_failure_stays_one,
    repeated_remove_is_one,
    written_files_can_run [Programs],
    replaced_under_a_reader [Programs],
    owned_by_the_user [Programs],
}

async fn makes_parents(context: Context) -> Outcome {
    context.write("a", "x/y/z/f", b"deep").await?;
    context.holds("/workspace/x/y/z/f", b"deep").await?;
    context.write("b", "/tmp/other/f", b"tmp").await?;
    context.holds("/tmp/other/f", b"tmp").await
}

async fn replaces_whole(context: Context) -> Outcome {
    context.write("a", "f", b"a long first version").await?;
    context.write("b", "f", b"short").await?;
    context.holds("f", b"short").await?;
    context.write("c", "f", b"").await?;
    context.holds("f", b"").await
}

async fn says_what_it_did(context: Context) -> Outcome {
    for (name, replaced) in [("a", false), ("b", true)] {
        let reply = context.files(write_op(name, "f", b"text", WriteMode::Replace)).await?;
        same("reply", reply, FileReply::Written { digest: digest(b"text"), replaced })?;
    }
    Ok(())
}

async fn appends(context: Context) -> Outcome {
    context.files(write_op("a", "f", b"one ", WriteMode::Create)).await?;
    context.files(write_op("b", "f", b"two ", WriteMode::Append)).await?;
    context.files(write_op("c", "f", b"", WriteMode::Append)).await?;
    context.files(write_op("d", "f", b"three", WriteMode::Append)).await?;
    context.holds("f", b"one two three").await
}

async fn ten_mib_in_pieces(context: Context) -> Outcome {
    let pieces: Vec<Vec<u8>> = (0..5_u8).map(|number| vec![number; 2 << 20]).collect();
    for (number, piece) in pieces.iter().enumerate() {
        let mode = if number == 0 { WriteMode::Create } else { WriteMode::Append };
        context.files(write_op(&format!("p{number}"), "big", piece, mode)).await?;
    }
    let op = FileOp::ReadLines { path: "big".to_owned(), first: 1, lines_max: 0, bytes_max: 0 };
    if let FileReply::Lines(lines) = context.files(op).await?
        && let Some(whole) = lines.digest
    {
        same("digest", whole, digest(&pieces.concat()))?;
    }
    let op = FileOp::Read { path: "big".to_owned(), offset: 10 << 20, bytes_max: 1 };
    let end = FileReply::Bytes { bytes: vec![], total_bytes: 10 << 20 };
    same("end", context.files(op).await?, end)?;
    for number in 0..5 {
        let op = FileOp::Read { path: "big".to_owned(), offset: number << 21, bytes_max: 1 };
        let byte = vec![u8::try_from(number).map_err(|error| error.to_string())?];
        let expected = FileReply::Bytes { bytes: byte, total_bytes: 10 << 20 };
        same("byte", context.files(op).await?, expected)?;
    }
    Ok(())
}

async fn executable(context: &Context, path: &str) -> Result<bool, String> {
    match context.files(FileOp::Stat { path: path.to_owned() }).await? {
        FileReply::Entry(entry) => Ok(entry.executable),
        other => Err(format!("stat answered {other:?}")),
    }
}

fn script(name: &str, contents: &[u8], executable: Option<bool>) -> FileOp {
    FileOp::Write {
        id: id(name),
        path: "run".to_owned(),
        contents: contents.to_vec(),
        mode: WriteMode::Replace,
        executable,
        modified_ns: None,
        precondition: Precondition::None,
    }
}

async fn keeps_and_sets_the_execute_bit(context: Context) -> Outcome {
    for (name, given, expected) in
        [("a", None, false), ("b", Some(true), true), ("c", None, true), ("d", Some(false), false)]
    {
        context.files(script(name, name.as_bytes(), given)).await?;
        same(name, executable(&context, "run").await?, expected)?;
    }
    Ok(())
}

/// Build tools look whether a file is newer than what they made of it.
async fn sets_when_it_was_changed(context: Context) -> Outcome {
    for (name, mode) in [("a", WriteMode::Replace), ("b", WriteMode::Append)] {
        let op = FileOp::Write {
            id: id(name),
            path: "old".to_owned(),
            contents: b"x".to_vec(),
            mode,
            executable: None,
            modified_ns: Some(1_000_000_000_123_456_789),
            precondition: Precondition::None,
        };
        context.files(op).await?;
        let FileReply::Entry(entry) =
            context.files(FileOp::Stat { path: "old".to_owned() }).await?
        else {
            return Err("stat answered something else".to_owned());
        };
        same(name, entry.modified_ms, 1_000_000_000_123)?;
    }
    Ok(())
}

async fn precondition_that_holds(context: Context) -> Outcome {
    context.write("a", "f", b"one").await?;
    let op = FileOp::Write {
        id: id("b"),
        path: "f".to_owned(),
        contents: b"two".to_vec(),
        mode: WriteMode::Replace,
        executable: None,
        modified_ns: None,
        precondition: Precondition::Digest(digest(b"one")),
    };
    context.files(op).await?;
    context.holds("f", b"two").await?;
    context.files(expecting("c", b"two")).await?;
    context.holds("f", b"twice").await
}

async fn link(context: &Context, name: &str, path: &str, target: &str) -> Outcome {
    let (path, target) = (path.to_owned(), target.to_owned());
    context.files(FileOp::Link { id: id(name), path, target }).await.map(drop)
}

async fn follows_a_link_inside(context: Context) -> Outcome {
    context.write("a", "dir/real", b"one").await?;
    link(&context, "b", "link", "dir/real").await?;
    link(&context, "c", "dir/up", "../dir").await?;
    link(&context, "d", "absolute", "/workspace/dir").await?;
    for path in ["link", "dir/up/real", "absolute/real"] {
        context.holds(path, b"one").await?;
    }
    context.write("e", "link", b"two").await?;
    context.holds("dir/real", b"two").await?;
    match context.files(FileOp::Stat { path: "link".to_owned() }).await? {
        FileReply::Entry(entry) => same("it is still a link", entry.kind, EntryKind::Link),
        other => Err(format!("stat answered {other:?}")),
    }
}

async fn edits_one_place(context: Context) -> Outcome {
    context.write("a", "f", b"one\ntwo\nthree\n").await?;
    let reply = context.files(edit_op("b", "f", "two", "2\n2", Occurrences::One)).await?;
    let expected = b"one\n2\n2\nthree\n";
    let edited = EditReport { replaced: 1, first_line: 2, digest: digest(expected) };
    same("reply", reply, FileReply::Edited(edited))?;
    context.holds("f", expected).await
}

async fn edits_all_places(context: Context) -> Outcome {
    context.write("a", "f", b"x-x-x").await?;
    match context.files(edit_op("b", "f", "x", "yy", Occurrences::All)).await? {
        FileReply::Edited(edited) => same("count", edited.replaced, 3)?,
        other => return Err(format!("edit answered {other:?}")),
    }
    context.holds("f", b"yy-yy-yy").await?;
    context.files(edit_op("c", "f", "yy", "", Occurrences::All)).await?;
    context.holds("f", b"--").await
}

async fn edit_leaves_other_bytes(context: Context) -> Outcome {
    context.write("a", "f", b"\xef\xbb\xbfa\r\n\xff\x00b\r\ntarget\r\n\tend").await?;
    context.files(edit_op("b", "f", "target", "done", Occurrences::One)).await?;
    same("bytes", context.read("f").await?, b"\xef\xbb\xbfa\r\n\xff\x00b\r\ndone\r\n\tend".to_vec())
}

async fn edit_takes_text_literally(context: Context) -> Outcome {
    context.write("a", "f", b"a.c $1 [x] (y)* \\n").await?;
    context.files(edit_op("b", "f", "[x] (y)* \\n", "$0 \\1 &", Occurrences::One)).await?;
    context.holds("f", b"a.c $1 $0 \\1 &").await
}

async fn edit_keeps_the_execute_bit(context: Context) -> Outcome {
    context.files(script("a", b"echo one", Some(true))).await?;
    context.files(edit_op("b", "run", "one", "two", Occurrences::One)).await?;
    same("executable", executable(&context, "run").await?, true)
}

async fn makes_directories(context: Context) -> Outcome {
    for name in ["a", "b"] {
        let op = FileOp::MakeDir { id: id(name), path: "x/y".to_owned() };
        same("reply", context.files(op).await?, FileReply::Done)?;
    }
    match context.files(FileOp::Stat { path: "x/y".to_owned() }).await? {
        FileReply::Entry(entry) => same("kind", entry.kind, EntryKind::Directory),
        other => Err(format!("stat answered {other:?}")),
    }
}

async fn makes_links(context: Context) -> Outcome {
    context.write("a", "f", b"one").await?;
    context.write("b", "g", b"two").await?;
    link(&context, "c", "new/link", "../f").await?;
    context.holds("new/link", b"one").await?;
    link(&context, "d", "new/link", "../g").await?;
    context.holds("new/link", b"two").await?;
    link(&context, "e", "f", "g").await?;
    context.holds("f", b"two").await
}

async fn removes(context: Context) -> Outcome {
    context.write("a", "dir/sub/f", b"x").await?;
    context.write("b", "dir-2", b"stays").await?;
    link(&context, "c", "link", "dir-2").await?;
    for (name, path) in [("d", "dir"), ("e", "link")] {
        context.files(FileOp::Remove { id: id(name), path: path.to_owned() }).await?;
        context.absent(path).await?;
    }
    context.holds("dir-2", b"stays").await
}

async fn rename(context: &Context, name: &str, path: &str, to: &str) -> Result<(), String> {
    let op = FileOp::Move { id: id(name), path: path.to_owned(), to: to.to_owned() };
    same("reply", context.files(op).await?, FileReply::Done)
}

async fn moves(context: Context) -> Outcome {
    context.write("a", "dir/sub/f", b"x").await?;
    context.write("b", "old", b"old").await?;
    for _ in 0..2 {
        // Once by its id, however often it is asked for.
        rename(&context, "c", "dir", "new/place/dir").await?;
    }
    context.absent("dir").await?;
    context.holds("new/place/dir/sub/f", b"x").await?;
    rename(&context, "d", "new/place/dir/sub/f", "old").await?;
    context.holds("old", b"x").await?;
    link(&context, "e", "link", "old").await?;
    rename(&context, "f", "link", "new/link").await?;
    context.absent("link").await?;
    context.holds("old", b"x").await
}

async fn what_cannot_be_moved_stays(context: Context) -> Outcome {
    use FileErrorKind::{
        AlreadyExists, FileNotFound, InvalidPath, NotADirectory, PermissionDenied,
    };
    context.write("a", "dir/f", b"x").await?;
    context.write("b", "file", b"y").await?;
    let refused = [
        ("no", "there", FileNotFound),
        ("file", "dir", AlreadyExists),
        ("dir", "file", NotADirectory),
        ("dir", "dir/within", InvalidPath),
        ("file", "file/within", NotADirectory),
        ("file", "/usr/evil", PermissionDenied),
        ("/usr/bin", "stolen", PermissionDenied),
        (".", "/tmp/stolen", PermissionDenied),
        ("file", "../../etc/evil", InvalidPath),
    ];
    for (number, (path, to, kind)) in refused.into_iter().enumerate() {
        let id = id(&format!("m{number}"));
        let op = FileOp::Move { id, path: path.to_owned(), to: to.to_owned() };
        context.fails(op, kind).await?;
    }
    context.holds("dir/f", b"x").await?;
    context.holds("file", b"y").await
}

async fn repeated_append_is_one(context: Context) -> Outcome {
    context.files(write_op("a", "f", b"x", WriteMode::Create)).await?;
    let first = context.files(write_op("b", "f", b"y", WriteMode::Append)).await?;
    for _ in 0..3 {
        let again = context.files(write_op("b", "f", b"y", WriteMode::Append)).await?;
        same("reply", again, first.clone())?;
    }
    context.holds("f", b"xy").await
}

async fn repeated_edit_is_one(context: Context) -> Outcome {
    context.write("a", "f", b"1").await?;
    for _ in 0..3 {
        context.files(edit_op("b", "f", "1", "11", Occurrences::One)).await?;
    }
    context.holds("f", b"11").await
}

async fn repeated_failure_stays_one(context: Context) -> Outcome {
    let append = || write_op("a", "f", b"y", WriteMode::Append);
    context.fails(append(), FileErrorKind::FileNotFound).await?;
    context.write("b", "f", b"x").await?;
    context.fails(append(), FileErrorKind::FileNotFound).await?;
    context.holds("f", b"x").await
}

async fn repeated_remove_is_one(context: Context) -> Outcome {
    context.write("a", "f", b"x").await?;
    let remove = || FileOp::Remove { id: id("b"), path: "f".to_owned() };
    context.files(remove()).await?;
    context.write("c", "f", b"again").await?;
    same("reply", context.files(remove()).await?, FileReply::Done)?;
    context.holds("f", b"again").await
}

async fn written_files_can_run(context: Context) -> Outcome {
    context.files(script("a", b"#!/bin/sh\necho ran \"$1\"\n", Some(true))).await?;
    context.prints("b", "./run it", "ran it\n").await
}

async fn replaced_under_a_reader(context: Context) -> Outcome {
    context.write("a", "f", b"old old old\n").await?;
    let line = "exec 3<f; echo open > opened; while [ -f opened ]; do sleep 0.02; done; cat <&3";
    let reader = context.shell("b", line);
    let writer = async {
        let mut looks = 0;
        while context.read("opened").await.is_err() {
            looks += 1;
            context.shell(&format!("look-{looks}"), "sleep 0.02").await?;
        }
        context.write("c", "f", b"new\n").await?;
        context.files(FileOp::Remove { id: id("d"), path: "opened".to_owned() }).await
    };
    let (reader, writer) = tokio::join!(reader, writer);
    writer?;
    same("what the reader had open", text(&reader?.stdout), "old old old\n".to_owned())?;
    context.holds("f", b"new\n").await
}

async fn owned_by_the_user(context: Context) -> Outcome {
    context.write("a", "dir/f", b"x").await?;
    let line = "[ -O dir ] && [ -O dir/f ] && echo y >> dir/f && rm -r dir && echo fine";
    context.prints("b", line, "fine\n").await
}
