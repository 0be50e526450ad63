//! Glob, grep and manifest.

use crate::conformance::case::cases;
use crate::conformance::context::{Context, Outcome, ensure, id, same, write_op};
use outrigger_sandbox::{
    EntryKind, FileErrorKind, FileOp, FileReply, GrepPattern, ManifestEntry, Precondition,
    WriteMode, limits, text::digest,
};

cases! { "search":
    glob_at_any_depth,
    glob_with_all_its_signs,
    glob_passes_over_git,
    glob_is_sorted_and_bounded,
    glob_beneath_a_directory,
    grep_literal,
    grep_regex,
    grep_ignores_case,
    grep_with_glob,
    grep_one_file,
    grep_passes_over_binary_and_git,
    grep_is_sorted_and_bounded,
    grep_cuts_long_lines,
    grep_replaces_invalid_text,
    grep_hostile_pattern,
    searches_do_not_follow_links_out,
    manifest_with_digests,
    manifest_in_pages,
    manifest_of_what_commands_made [Programs],
    manifest_of_what_commands_closed [Kernel],
    manifest_of_a_deep_tree_that_is_closed [Kernel],
    manifest_of_a_file_too_large [Programs],
}

async fn tree(context: &Context, files: &[(&str, &str)]) -> Outcome {
    for (number, (path, contents)) in files.iter().enumerate() {
        context.write(&format!("tree{number}"), path, contents.as_bytes()).await?;
    }
    Ok(())
}

async fn glob(context: &Context, root: &str, pattern: &str) -> Result<Vec<String>, String> {
    let (root, pattern) = (root.to_owned(), pattern.to_owned());
    let op = FileOp::Glob { root, pattern, paths_max: limits::ENTRIES_MAX };
    match context.files(op).await? {
        FileReply::Paths { paths, truncated: false } => {
            let relative = |path: String| path.strip_prefix("/workspace/").map(str::to_owned);
            let paths: Option<Vec<_>> = paths.into_iter().map(relative).collect();
            paths.ok_or_else(|| "a path is not absolute".to_owned())
        }
        other => Err(format!("glob answered {other:?}")),
    }
}

fn owned(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

async fn globs(context: &Context, table: &[(&str, &[&str])]) -> Outcome {
    for (pattern, expected) in table {
        same(pattern, glob(context, ".", pattern).await?, owned(expected))?;
    }
    Ok(())
}

async fn glob_at_any_depth(context: Context) -> Outcome {
    tree(&context, &[("a.py", ""), ("src/b.py", ""), ("src/x/c.py", ""), ("src/c.rs", "")]).await?;
    let all: &[&str] = &["a.py", "src/b.py", "src/x/c.py"];
    globs(
        &context,
        &[
            ("*.py", all),
            ("**/*.py", all),
            ("src/*.py", &["src/b.py"]),
            ("src/**/*.py", &["src/b.py", "src/x/c.py"]),
            ("*/*", &["src/b.py", "src/c.rs"]),
            ("none*", &[]),
            ("src", &[]),
        ],
    )
    .await
}

async fn glob_with_all_its_signs(context: Context) -> Outcome {
    tree(&context, &[("a1", ""), ("a2", ""), ("b1", ""), (".hidden", ""), ("[x]", ""), ("É", "")])
        .await?;
    globs(
        &context,
        &[
            ("a?", &["a1", "a2"]),
            ("[ab]1", &["a1", "b1"]),
            ("[!a]1", &["b1"]),
            ("{a2,b1}", &["a2", "b1"]),
            (".h*", &[".hidden"]),
            ("*", &[".hidden", "[x]", "a1", "a2", "b1", "É"]),
            ("\\[x\\]", &["[x]"]),
            ("É*", &["É"]),
        ],
    )
    .await
}

async fn glob_passes_over_git(context: Context) -> Outcome {
    let files = [".git/config", ".github/x", "sub/.git/config", "f", "sub/node_modules/a/b"];
    tree(&context, &files.map(|path| (path, ""))).await?;
    globs(
        &context,
        &[
            ("**", &[".github/x", "f"]),
            (".git/*", &[".git/config"]),
            ("**/node_modules/**", &["sub/node_modules/a/b"]),
            ("**/.git/config", &[".git/config", "sub/.git/config"]),
        ],
    )
    .await?;
    same("root", glob(&context, ".git", "*").await?, owned(&[".git/config"]))
}

async fn glob_is_sorted_and_bounded(context: Context) -> Outcome {
    tree(&context, &[("a/x", ""), ("a.b", ""), ("a-b", ""), ("a0", ""), ("B", "")]).await?;
    same("order", glob(&context, ".", "*").await?, owned(&["B", "a-b", "a.b", "a/x", "a0"]))?;
    let op = FileOp::Glob { root: ".".to_owned(), pattern: "*".to_owned(), paths_max: 2 };
    match context.files(op).await? {
        FileReply::Paths { paths, truncated } => {
            same("bounded", (paths.len(), truncated), (2, true))
        }
        other => Err(format!("glob answered {other:?}")),
    }
}

async fn glob_beneath_a_directory(context: Context) -> Outcome {
    tree(&context, &[("a/x.py", ""), ("a/b/y.py", ""), ("z.py", "")]).await?;
    for root in ["a", "/workspace/a", "a/"] {
        same(root, glob(&context, root, "*.py").await?, owned(&["a/b/y.py", "a/x.py"]))?;
    }
    Ok(())
}

/// Matches as `path:line:text`, relative to the workspace.
async fn grep(
    context: &Context,
    root: &str,
    pattern: GrepPattern,
    glob: Option<&str>,
) -> Result<Vec<String>, String> {
    let (root, glob) = (root.to_owned(), glob.map(str::to_owned));
    let op = FileOp::Grep { root, pattern, glob, matches_max: limits::MATCHES_MAX };
    match context.files(op).await? {
        FileReply::Matches { matches, truncated: false } => {
            let shown = |found: &outrigger_sandbox::GrepMatch| {
                let path = found.path.strip_prefix("/workspace/").unwrap_or("not absolute");
                format!("{path}:{}:{}", found.line, found.text)
            };
            Ok(matches.iter().map(shown).collect())
        }
        other => Err(format!("grep answered {other:?}")),
    }
}

fn literal(text: &str) -> GrepPattern {
    GrepPattern::Literal(text.to_owned())
}

fn regex(text: &str) -> GrepPattern {
    GrepPattern::Regex(text.to_owned())
}

async fn grep_literal(context: Context) -> Outcome {
    tree(&context, &[("f", "one\na.b(c)*\naxb\n"), ("d/g", "last a.b(c)* line\r\n")]).await?;
    let expected = owned(&["d/g:1:last a.b(c)* line", "f:2:a.b(c)*"]);
    same("literal", grep(&context, ".", literal("a.b(c)*"), None).await?, expected)?;
    same("case", grep(&context, ".", literal("ONE"), None).await?, vec![])
}

async fn grep_regex(context: Context) -> Outcome {
    tree(&context, &[("f", "fn main() {\n    let x = 42;\n}\n"), ("g", "é42")]).await?;
    for (pattern, expected) in [
        (r"^fn \w+\(", vec!["f:1:fn main() {"]),
        (r"\d+;$", vec!["f:2:    let x = 42;"]),
        (r"42", vec!["f:2:    let x = 42;", "g:1:é42"]),
        (r"^.42$", vec!["g:1:é42"]),
        (r"x{3}", vec![]),
    ] {
        same(pattern, grep(&context, ".", regex(pattern), None).await?, owned(&expected))?;
    }
    Ok(())
}

async fn grep_ignores_case(context: Context) -> Outcome {
    tree(&context, &[("f", "Straße ÄRGER\n")]).await?;
    let pattern = GrepPattern::RegexIgnoreCase("ärger".to_owned());
    same("match", grep(&context, ".", pattern, None).await?, owned(&["f:1:Straße ÄRGER"]))
}

async fn grep_with_glob(context: Context) -> Outcome {
    tree(&context, &[("a.py", "x"), ("d/b.py", "x"), ("c.rs", "x"), ("d/.h.py", "x")]).await?;
    let expected = owned(&["a.py:1:x", "d/.h.py:1:x", "d/b.py:1:x"]);
    same("glob", grep(&context, ".", literal("x"), Some("*.py")).await?, expected)?;
    same("path", grep(&context, ".", literal("x"), Some("d/b*")).await?, owned(&["d/b.py:1:x"]))
}

async fn grep_one_file(context: Context) -> Outcome {
    tree(&context, &[("d/f", "x\ny\nx\n"), ("g", "x")]).await?;
    same("file", grep(&context, "d/f", literal("x"), None).await?, owned(&["d/f:1:x", "d/f:3:x"]))
}

async fn grep_passes_over_binary_and_git(context: Context) -> Outcome {
    let files = [("bin", "x\0y\nx\n"), (".git/f", "x"), ("f", "x"), ("node_modules/f", "x")];
    tree(&context, &files).await?;
    same("matches", grep(&context, ".", literal("x"), None).await?, owned(&["f:1:x"]))?;
    same("in .git", grep(&context, ".git", literal("x"), None).await?, owned(&[".git/f:1:x"]))
}

async fn grep_is_sorted_and_bounded(context: Context) -> Outcome {
    tree(&context, &[("a/x", "x\nx\n"), ("a.b", "x"), ("a-b", "x")]).await?;
    let expected = owned(&["a-b:1:x", "a.b:1:x", "a/x:1:x", "a/x:2:x"]);
    same("order", grep(&context, ".", literal("x"), None).await?, expected)?;
    let pattern = literal("x");
    let op = FileOp::Grep { root: ".".to_owned(), pattern, glob: None, matches_max: 3 };
    match context.files(op).await? {
        FileReply::Matches { matches, truncated } => {
            same("bounded", (matches.len(), truncated), (3, true))
        }
        other => Err(format!("grep answered {other:?}")),
    }
}

async fn grep_cuts_long_lines(context: Context) -> Outcome {
    let long = "x".repeat(100_000);
    tree(&context, &[("f", &long)]).await?;
    let found = grep(&context, ".", literal("xxx"), None).await?;
    same("bytes", found.first().map(String::len), Some(limits::LINE_BYTES_MAX + "f:1:".len()))
}

async fn grep_replaces_invalid_text(context: Context) -> Outcome {
    context.write("w", "f", b"a\xffb needle\n").await?;
    let expected = owned(&["f:1:a\u{fffd}b needle"]);
    same("match", grep(&context, ".", literal("needle"), None).await?, expected)
}

async fn grep_hostile_pattern(context: Context) -> Outcome {
    tree(&context, &[("f", &"a".repeat(60_000))]).await?;
    for pattern in ["(a+)+$b", "(a|aa)+b", "(.*)*(.*)*(.*)*b", "(a|a)*(a|a)*c"] {
        same(pattern, grep(&context, ".", regex(pattern), None).await?, vec![])?;
    }
    Ok(())
}

async fn searches_do_not_follow_links_out(context: Context) -> Outcome {
    tree(&context, &[("d/f", "root:x")]).await?;
    for (name, target) in [("out", "/etc"), ("loop", "."), ("file", "/etc/passwd")] {
        let (path, target) = (name.to_owned(), target.to_owned());
        context.files(FileOp::Link { id: id(name), path, target }).await?;
    }
    same("grep", grep(&context, ".", literal(":x"), None).await?, owned(&["d/f:1:root:x"]))?;
    same("glob", glob(&context, ".", "**").await?, owned(&["d/f"]))
}

async fn manifest(
    context: &Context,
    after: Option<&str>,
    entries_max: u32,
) -> Result<(Vec<ManifestEntry>, bool), String> {
    let after = after.map(str::to_owned);
    let root = "/workspace".to_owned();
    let op = FileOp::Manifest { root, after, skip: Vec::new(), entries_max };
    match context.files(op).await? {
        FileReply::Manifest { entries, more } => Ok((entries, more)),
        other => Err(format!("manifest answered {other:?}")),
    }
}

async fn manifest_with_digests(context: Context) -> Outcome {
    tree(&context, &[("a/x", "1"), ("a.b", "22"), (".git/y", "")]).await?;
    let target = "a/x".to_owned();
    context.files(FileOp::Link { id: id("l"), path: "link".to_owned(), target }).await?;
    context.files(FileOp::MakeDir { id: id("d"), path: "empty".to_owned() }).await?;
    let (entries, more) = manifest(&context, None, 100).await?;
    let (file, link, directory) = (EntryKind::File, EntryKind::Link, EntryKind::Directory);
    let shown: Vec<_> = entries.iter().map(|e| (e.path.as_str(), e.kind)).collect();
    let expected =
        vec![(".git/y", file), ("a.b", file), ("a/x", file), ("empty", directory), ("link", link)];
    same("entries", shown, expected)?;
    same("more", more, false)?;
    same("file", (entries[1].digest, entries[1].bytes), (Some(digest(b"22")), 2))?;
    same("link", entries[4].digest, Some(digest(b"a/x")))?;
    let skip = vec!["a".to_owned(), ".git".to_owned(), "link".to_owned()];
    let root = ".".to_owned();
    let op = FileOp::Manifest { root, after: None, skip, entries_max: 100 };
    let FileReply::Manifest { entries, .. } = context.files(op).await? else {
        return Err("a manifest is answered by one".to_owned());
    };
    let left: Vec<_> = entries.iter().map(|entry| entry.path.as_str()).collect();
    same("without directories", left, vec!["a.b", "empty", "link"])
}

async fn manifest_in_pages(context: Context) -> Outcome {
    let names: Vec<String> =
        (0..25).map(|number| format!("d{}/f{number:02}", number % 3)).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
    tree(&context, &files).await?;
    tree_ends(&context, &[("d1.x", "y"), ("d1-x", "y")]).await?;
    let (whole, _) = manifest(&context, None, 100).await?;
    same("entries", whole.len(), 27)?;
    ensure("sorted by path", whole.is_sorted_by(|a, b| a.path < b.path))?;
    let mut paged: Vec<ManifestEntry> = Vec::new();
    loop {
        let after = paged.last().map(|entry| entry.path.clone());
        let (page, more) = manifest(&context, after.as_deref(), 4).await?;
        ensure("a page has at most what was asked for", page.len() <= 4 && !page.is_empty())?;
        paged.extend(page);
        if !more {
            break;
        }
    }
    same("pages together", paged, whole)
}

async fn tree_ends(context: &Context, files: &[(&str, &str)]) -> Outcome {
    for (path, contents) in files {
        context.write(&format!("end-{path}"), path, contents.as_bytes()).await?;
    }
    Ok(())
}

async fn manifest_of_what_commands_made(context: Context) -> Outcome {
    let line =
        "mkdir -p a/b; printf x > a/b/run; chmod +x a/b/run; ln -s run a/b/link; mkfifo pipe";
    same("exit", context.shell("a", line).await?.exit_code(), Some(0))?;
    let (entries, _) = manifest(&context, None, 100).await?;
    let shown: Vec<_> = entries.iter().map(|e| (e.path.as_str(), e.kind)).collect();
    let expected =
        [("a/b/link", EntryKind::Link), ("a/b/run", EntryKind::File), ("pipe", EntryKind::Other)];
    same("entries", &shown[..], &expected)?;
    same("executable", (entries[1].executable, entries[2].executable), (true, false))?;
    same("pipe", entries[2].digest, None)
}

async fn manifest_of_what_commands_closed(context: Context) -> Outcome {
    let line = "mkdir -p a/b c d/e; for f in a/b/1 a/2 c/3 4 5; do printf $f > $f; done; \
                ln -s 3 c/link; chmod 000 a/b/1 4; chmod 111 5; chmod 400 c; \
                chmod 000 a/b a d/e; chmod 000 .";
    same("exit", context.shell("a", line).await?.exit_code(), Some(0))?;
    let (entries, more) = manifest(&context, None, 100).await?;
    same("more", more, false)?;
    let shown: Vec<_> = entries.iter().map(|e| (e.path.as_str(), e.digest, e.executable)).collect();
    let expected = vec![
        ("4", Some(digest(b"4")), false),
        ("5", Some(digest(b"5")), true),
        ("a/2", Some(digest(b"a/2")), false),
        ("a/b/1", Some(digest(b"a/b/1")), false),
        ("c/3", Some(digest(b"c/3")), false),
        ("c/link", Some(digest(b"3")), false),
        ("d/e", Some(digest(b"")), false),
    ];
    same("entries", shown, expected)?;
    context.shell("b", "chmod 000 a/b/1 a/b a").await?;
    context.holds("a/b/1", b"a/b/1").await
}

async fn manifest_of_a_deep_tree_that_is_closed(context: Context) -> Outcome {
    // Nearly as deep as a path can be.
    let deep = vec!["d"; 1_900].join("/");
    context.write("w", &format!("{deep}/f"), b"x").await?;
    same(
        "exit",
        context.shell("a", &format!("chmod 000 {deep}; chmod 000 d")).await?.exit_code(),
        Some(0),
    )?;
    let (entries, _) = manifest(&context, None, 100).await?;
    same("entries", entries.len(), 1)?;
    same("file", entries[0].path.clone(), format!("{deep}/f"))
}

async fn manifest_of_a_file_too_large(context: Context) -> Outcome {
    let bytes = limits::MANIFEST_FILE_BYTES_MAX + 1;
    let line = format!("echo x > a; dd if=/dev/zero of=big bs=1 count=1 seek={}", bytes - 1);
    same("exit", context.shell("a", &line).await?.exit_code(), Some(0))?;
    let (entries, _) = manifest(&context, None, 100).await?;
    let shown: Vec<_> = entries.iter().map(|e| (e.path.as_str(), e.bytes, e.digest)).collect();
    same("entries", shown, vec![("a", 2, Some(digest(b"x\n"))), ("big", bytes, None)])?;
    let mut write = write_op("w", "big", b"", WriteMode::Replace);
    if let FileOp::Write { precondition, .. } = &mut write {
        *precondition = Precondition::Digest(digest(b""));
    }
    context.fails(write, FileErrorKind::TooLarge).await
}
