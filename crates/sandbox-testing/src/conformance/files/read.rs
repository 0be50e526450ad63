//! Operations that only read: list, stat, read, lines.

use crate::conformance::case::cases;
use crate::conformance::context::{Context, Outcome, ensure, id, same, text, write_op};
use outrigger_sandbox::{EntryKind, FileOp, FileReply, Lines, WriteMode, limits, text::digest};

cases! { "read":
    whole_and_in_parts,
    beyond_the_end,
    more_than_one_chunk,
    empty_file,
    every_byte,
    lines_with_numbers,
    lines_beyond_the_end,
    lines_keep_their_ends,
    long_lines_are_cut,
    lines_within_bytes,
    list_is_sorted,
    list_shows_hidden_and_kinds,
    list_is_bounded,
    stat_tells_what_it_is,
    what_commands_wrote,
    odd_names,
    what_commands_made [Programs],
}

async fn part(
    context: &Context,
    path: &str,
    offset: u64,
    bytes_max: u64,
) -> Result<(String, u64), String> {
    let op = FileOp::Read { path: path.to_owned(), offset, bytes_max };
    match context.files(op).await? {
        FileReply::Bytes { bytes, total_bytes } => Ok((text(&bytes), total_bytes)),
        other => Err(format!("read answered {other:?}")),
    }
}

async fn whole_and_in_parts(context: Context) -> Outcome {
    context.write("w", "f", b"0123456789").await?;
    same("whole", part(&context, "f", 0, 100).await?, ("0123456789".into(), 10))?;
    same("absolute", part(&context, "/workspace/f", 0, 100).await?, ("0123456789".into(), 10))?;
    same("middle", part(&context, "f", 3, 4).await?, ("3456".into(), 10))?;
    same("end", part(&context, "f", 8, 4).await?, ("89".into(), 10))?;
    same("nothing", part(&context, "f", 3, 0).await?, (String::new(), 10))?;
    same("slashes", part(&context, "/workspace//./f", 0, 2).await?, ("01".into(), 10))
}

async fn beyond_the_end(context: Context) -> Outcome {
    context.write("w", "f", b"0123456789").await?;
    for offset in [10, 11, 1 << 40, u64::MAX] {
        same("beyond", part(&context, "f", offset, 5).await?, (String::new(), 10))?;
    }
    Ok(())
}

async fn more_than_one_chunk(context: Context) -> Outcome {
    let chunk = usize::try_from(limits::FILE_CHUNK_BYTES_MAX).map_err(|e| e.to_string())?;
    context.files(write_op("a", "f", &vec![b'x'; chunk], WriteMode::Create)).await?;
    context.files(write_op("b", "f", &vec![b'y'; chunk], WriteMode::Append)).await?;
    let (first, total) = part(&context, "f", 0, u64::MAX).await?;
    same("size", total, 2 * limits::FILE_CHUNK_BYTES_MAX)?;
    ensure("a read gives something, and no more than a chunk", (1..=chunk).contains(&first.len()))?;
    let (second, _) = part(&context, "f", limits::FILE_CHUNK_BYTES_MAX, 10).await?;
    same("second chunk", second, "yyyyyyyyyy".to_owned())
}

async fn empty_file(context: Context) -> Outcome {
    context.write("w", "f", b"").await?;
    same("bytes", part(&context, "f", 0, 10).await?, (String::new(), 0))?;
    let lines = lines(&context, "f", 1, 10, 100).await?;
    same("lines", (lines.count, lines.total, lines.text), (0, Some(0), vec![]))
}

async fn every_byte(context: Context) -> Outcome {
    let bytes: Vec<u8> = (0..=255).collect();
    context.write("w", "f", &bytes).await?;
    same("bytes", context.read("f").await?, bytes)
}

async fn lines(
    context: &Context,
    path: &str,
    first: u64,
    lines_max: u64,
    bytes_max: u64,
) -> Result<Lines, String> {
    let op = FileOp::ReadLines { path: path.to_owned(), first, lines_max, bytes_max };
    match context.files(op).await? {
        FileReply::Lines(lines) => Ok(lines),
        other => Err(format!("read lines answered {other:?}")),
    }
}

async fn lines_with_numbers(context: Context) -> Outcome {
    let contents: String = (1..=100).map(|number| format!("line {number}\n")).collect();
    context.write("w", "f", contents.as_bytes()).await?;
    let got = lines(&context, "f", 10, 3, 1_000).await?;
    same("text", text(&got.text), "line 10\nline 11\nline 12\n".to_owned())?;
    same("numbers", (got.first, got.count, got.total), (10, 3, Some(100)))?;
    same("digest", got.digest, Some(digest(contents.as_bytes())))?;
    let all = lines(&context, "f", 1, u64::MAX, u64::MAX).await?;
    same("all", (all.count, text(&all.text)), (100, contents))
}

async fn lines_beyond_the_end(context: Context) -> Outcome {
    context.write("w", "f", b"a\nb").await?;
    let last = lines(&context, "f", 2, 10, 100).await?;
    same("last", (text(&last.text), last.count, last.total), ("b".to_owned(), 1, Some(2)))?;
    let beyond = lines(&context, "f", 3, 10, 100).await?;
    same("beyond", (text(&beyond.text), beyond.count, beyond.total), (String::new(), 0, Some(2)))
}

async fn lines_keep_their_ends(context: Context) -> Outcome {
    context.write("w", "f", b"a\r\n\r\nb\xff\n").await?;
    let got = lines(&context, "f", 1, 10, 100).await?;
    same("text", (got.text, got.count), (b"a\r\n\r\nb\xff\n".to_vec(), 3))
}

async fn long_lines_are_cut(context: Context) -> Outcome {
    let long = "x".repeat(limits::LINE_BYTES_MAX + 10) + "\nshort\n";
    context.write("w", "f", long.as_bytes()).await?;
    let got = lines(&context, "f", 1, 10, 1 << 20).await?;
    same("lines", (got.count, got.cut_lines, got.total), (2, 1, Some(2)))?;
    same("bytes", got.text.len(), limits::LINE_BYTES_MAX + 1 + 6)
}

async fn lines_within_bytes(context: Context) -> Outcome {
    context.write("w", "f", b"aaaa\nbbbb\ncccc\n").await?;
    let got = lines(&context, "f", 1, 10, 11).await?;
    same("whole lines that fit", (text(&got.text), got.count), ("aaaa\nbbbb\n".to_owned(), 2))
}

async fn names(
    context: &Context,
    path: &str,
    entries_max: u32,
) -> Result<(Vec<String>, bool), String> {
    let op = FileOp::List { path: path.to_owned(), entries_max };
    match context.files(op).await? {
        FileReply::Entries { entries, truncated } => {
            Ok((entries.into_iter().map(|entry| entry.name).collect(), truncated))
        }
        other => Err(format!("list answered {other:?}")),
    }
}

async fn list_is_sorted(context: Context) -> Outcome {
    for (number, name) in ["b", "a-b", "a", "B", "é", "a.b", "10", "9"].iter().enumerate() {
        context.write(&format!("w{number}"), name, b"").await?;
    }
    let (got, truncated) = names(&context, ".", 100).await?;
    let mut sorted = got.clone();
    sorted.sort();
    same("order", &got, &sorted)?;
    same("all, and no more", (got.len(), truncated), (8, false))
}

async fn list_shows_hidden_and_kinds(context: Context) -> Outcome {
    context.write("a", ".hidden", b"xyz").await?;
    context.write("b", "dir/file", b"").await?;
    let link = FileOp::Link { id: id("c"), path: "link".to_owned(), target: "nowhere".to_owned() };
    context.files(link).await?;
    let op = FileOp::List { path: "/workspace".to_owned(), entries_max: 100 };
    let FileReply::Entries { entries, .. } = context.files(op).await? else {
        return Err("list gave no entries".to_owned());
    };
    let shown: Vec<_> = entries.iter().map(|entry| (entry.name.as_str(), entry.kind)).collect();
    let (directory, file, link) = (EntryKind::Directory, EntryKind::File, EntryKind::Link);
    same("entries", shown, vec![(".hidden", file), ("dir", directory), ("link", link)])?;
    same("size", entries[0].bytes, 3)
}

async fn list_is_bounded(context: Context) -> Outcome {
    for number in 0..20 {
        context.write(&format!("w{number}"), &format!("f{number:02}"), b"").await?;
    }
    let expected = vec!["f00".to_owned(), "f01".to_owned(), "f02".to_owned()];
    same("some", names(&context, ".", 3).await?, (expected, true))?;
    same("all", names(&context, ".", 20).await?.1, false)
}

async fn stat_tells_what_it_is(context: Context) -> Outcome {
    let executable = FileOp::Write {
        id: id("w"),
        path: "dir/run".to_owned(),
        contents: b"12345".to_vec(),
        mode: WriteMode::Create,
        executable: Some(true),
        modified_ns: None,
        precondition: outrigger_sandbox::Precondition::None,
    };
    context.files(executable).await?;
    for (path, kind, name) in
        [("dir/run", EntryKind::File, "run"), ("dir", EntryKind::Directory, "dir")]
    {
        match context.files(FileOp::Stat { path: path.to_owned() }).await? {
            FileReply::Entry(entry) => {
                same(path, (entry.kind, entry.name), (kind, name.to_owned()))?;
                if kind == EntryKind::File {
                    same("file", (entry.bytes, entry.executable), (5, true))?;
                }
            }
            other => return Err(format!("stat answered {other:?}")),
        }
    }
    Ok(())
}

async fn what_commands_wrote(context: Context) -> Outcome {
    context.shell("a", "echo from a command > f; echo more >> f").await?;
    context.holds("f", b"from a command\nmore\n").await?;
    context.write("w", "g", b"from a file operation\n").await?;
    context.prints("b", "cat g", "from a file operation\n").await
}

async fn odd_names(context: Context) -> Outcome {
    let long = "x".repeat(255);
    let names = ["a b", "quote'\"", "é日本", "$HOME", "new\nline", "-rf", "*", &long];
    for (number, name) in names.iter().enumerate() {
        context.write(&format!("w{number}"), name, name.as_bytes()).await?;
        context.holds(name, name.as_bytes()).await?;
    }
    Ok(())
}

async fn what_commands_made(context: Context) -> Outcome {
    let line = "mkdir -p d/e && printf 'x\\000y' > d/e/f && chmod +x d/e/f && ln -s e/f d/link";
    same("exit", context.shell("a", line).await?.exit_code(), Some(0))?;
    same("through the link", context.read("d/link").await?, b"x\0y".to_vec())?;
    match context.files(FileOp::Stat { path: "d/e/f".to_owned() }).await? {
        FileReply::Entry(entry) => same("stat", (entry.bytes, entry.executable), (3, true)),
        other => Err(format!("stat answered {other:?}")),
    }
}
