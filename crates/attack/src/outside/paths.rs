//! Paths given to file operations, by whoever wrote them, to a tree that the enemy laid out.

use outrigger_sandbox::{FileOp, FileReply, Precondition, WriteMode, limits};

use crate::observation::{Observation, ProbeResult, noted, seen};
use crate::stage::{OnStage, Room};

fn read(path: &str) -> FileOp {
    FileOp::Read { path: path.to_owned(), offset: 0, bytes_max: 16 }
}

fn write(room: &Room, path: &str) -> FileOp {
    FileOp::Write {
        id: room.stage.exec_id(),
        path: path.to_owned(),
        contents: b"x".to_vec(),
        mode: WriteMode::Replace,
        executable: None,
        modified_ns: None,
        precondition: Precondition::None,
    }
}

/// Every operation that takes a path, on one.
fn operations(room: &Room, path: &str) -> Vec<(&'static str, FileOp)> {
    let owned = || path.to_owned();
    vec![
        ("read", read(path)),
        ("lines", FileOp::ReadLines { path: owned(), first: 1, lines_max: 1, bytes_max: 16 }),
        ("write", write(room, path)),
        (
            "edit",
            FileOp::Edit {
                id: room.stage.exec_id(),
                path: owned(),
                old: b"x".to_vec(),
                new: b"y".to_vec(),
                occurrences: outrigger_sandbox::Occurrences::All,
                precondition: outrigger_sandbox::Precondition::None,
            },
        ),
    ]
}

async fn laid_out(stage: &OnStage) -> Result<Room, String> {
    // Room for a file of 10 GiB, all of it holes.
    let room = stage.room("paths", |spec| spec.disk_bytes_max = 20 << 30).await?;
    match room.word(&["disk", "special"]).await?.as_str() {
        "done" => Ok(room),
        other => Err(format!("the tree was not laid out: {other}")),
    }
}

/// A FIFO that nobody writes to.
pub(crate) async fn fifo(stage: OnStage) -> ProbeResult {
    let room = laid_out(&stage).await?;
    let mut all = Vec::new();
    for (name, op) in operations(&room, "/workspace/special/fifo") {
        // Replacing a FIFO by a file hangs nowhere and is what was asked for.
        let (saw, _) = room.files(op).await;
        let fine = name == "write" && saw == "done";
        all.push(seen(name, if fine { "invalid_path".to_owned() } else { saw }));
    }
    room.end().await?;
    Ok(all)
}

/// Devices, sockets and what is none of a sandbox's files.
pub(crate) async fn devices(stage: OnStage) -> ProbeResult {
    let room = laid_out(&stage).await?;
    let paths = [
        "/dev/zero",
        "/dev/random",
        "/dev/tty",
        "/dev/null",
        "/dev/ptmx",
        "/proc/kmsg",
        "/proc/1/mem",
        "/proc/1/fd/3",
        "/proc/self/fd/0",
        "/proc/1/root/etc/passwd",
        "/proc/self/environ",
        "/workspace/special/socket",
        "/workspace/special/zero",
        "/workspace/special/descriptor",
        "/workspace/special/root",
        "/workspace/special/cwd",
        "/workspace/special/program",
        "/sys/kernel/notes",
    ];
    let mut all = Vec::new();
    for path in paths {
        let (saw, _) = room.files(read(path)).await;
        all.push(seen(format!("read {path}"), saw));
    }
    for path in ["/proc/self/comm", "/proc/sys/kernel/core_pattern", "/dev/null"] {
        let (saw, _) = room.files(write(&room, path)).await;
        all.push(seen(format!("write {path}"), saw));
    }
    room.end().await?;
    Ok(all)
}

/// A file that is larger than what anybody can hold.
pub(crate) async fn large(stage: OnStage) -> ProbeResult {
    let room = laid_out(&stage).await?;
    let path = || "/workspace/special/large".to_owned();
    let chunk = limits::FILE_CHUNK_BYTES_MAX;
    let ops = [
        ("a chunk", FileOp::Read { path: path(), offset: 5 << 30, bytes_max: chunk }),
        ("beyond the end", FileOp::Read { path: path(), offset: u64::MAX, bytes_max: chunk }),
        ("all at once", FileOp::Read { path: path(), offset: 0, bytes_max: u64::MAX }),
        (
            "a line of 10 GiB",
            FileOp::ReadLines { path: path(), first: 1, lines_max: u64::MAX, bytes_max: chunk },
        ),
        (
            "line of no number",
            FileOp::ReadLines { path: path(), first: u64::MAX, lines_max: 1, bytes_max: chunk },
        ),
    ];
    let mut all = Vec::new();
    for (name, op) in ops {
        let (word, reply) = room.files(op).await;
        let bounded = match &reply {
            Some(FileReply::Bytes { bytes, .. }) => bytes.len() as u64 <= chunk,
            Some(FileReply::Lines(lines)) => lines.text.len() as u64 <= chunk,
            Some(_) => false,
            None => ["too_large", "invalid_argument", "invalid"].contains(&word.as_str()),
        };
        all.push(noted(name, if bounded { "bounded" } else { "unbounded" }, word));
    }
    room.end().await?;
    Ok(all)
}

/// Links out of the workspace, to nowhere, and to themselves.
pub(crate) async fn links(stage: OnStage) -> ProbeResult {
    let room = laid_out(&stage).await?;
    let names = ["outside", "outside-dir/passwd", "up", "dangling", "loop-a", "chain-40"];
    let mut all = Vec::new();
    for name in names {
        let (saw, _) = room.files(read(&format!("/workspace/special/{name}"))).await;
        all.push(seen(name, saw));
    }
    for name in ["outside", "outside-dir/passwd"] {
        let op = FileOp::Edit {
            id: stage.exec_id(),
            path: format!("/workspace/special/{name}"),
            old: b"root".to_vec(),
            new: b"evil".to_vec(),
            occurrences: outrigger_sandbox::Occurrences::All,
            precondition: outrigger_sandbox::Precondition::None,
        };
        let (saw, _) = room.files(op).await;
        all.push(seen(format!("edit {name}"), saw));
    }
    room.end().await?;
    Ok(all)
}

/// Paths in all forms that other systems take for something else.
pub(crate) async fn forms(stage: OnStage) -> ProbeResult {
    let room = stage.room("forms", |_| {}).await?;
    let mut all: Vec<Observation> = Vec::new();
    for (name, path) in [("normal", "/workspace/a"), ("a name of 255 bytes", &"x".repeat(255))] {
        let (saw, _) = room.files(write(&room, path)).await;
        all.push(seen(name, saw));
    }
    let long = format!("/workspace/{}", "x/".repeat(2_500));
    let paths = [
        ("up", "../etc/passwd"),
        ("up and up", "/workspace/../../../etc/shadow"),
        ("up at the end", "/workspace/.."),
        ("percent", "/workspace/%2e%2e/etc/passwd"),
        ("backslash", "..\\..\\etc\\passwd"),
        ("NUL", "/workspace/a\0b"),
        ("line end", "/workspace/a\nb"),
        ("right to left", "/workspace/\u{202e}a"),
        ("empty", ""),
        ("a file as a directory", "/workspace/a/b"),
        ("network path", "//host/share"),
        ("home", "~/a"),
        ("too long", &long),
    ];
    for (name, path) in paths {
        let (saw, _) = room.files(read(path)).await;
        all.push(seen(
            name,
            if saw == "not_a_directory" { "file_not_found".to_owned() } else { saw },
        ));
    }
    // Names that look alike are two files, and each keeps what was written to it.
    for path in ["/workspace/caf\u{e9}", "/workspace/cafe\u{301}"] {
        let (saw, _) = room.files(write(&room, path)).await;
        all.push(seen("twins stay apart", saw));
    }
    room.end().await?;
    Ok(all)
}

/// One place by several names, seen the same by all operations.
pub(crate) async fn routes(stage: OnStage) -> ProbeResult {
    let room = stage.room("routes", |_| {}).await?;
    room.files(write(&room, "/workspace/dir/file")).await;
    let same = [
        "/workspace/dir/file",
        "dir/file",
        "/workspace//dir///file",
        "/workspace/./dir/./file",
        "/workspace/dir/../dir/file",
        "./dir/../dir/file",
    ];
    let mut all = Vec::new();
    for path in same {
        let mut words = Vec::new();
        for (_, op) in operations(&room, path) {
            words.push(room.files(op).await.0);
        }
        let (stat, _) = room.files(FileOp::Stat { path: path.to_owned() }).await;
        words.push(stat);
        // The edit comes after a write of what it looks for, so all of them go well.
        let fine = words.iter().all(|word| word == "done");
        all.push(seen(path, if fine { "same".to_owned() } else { words.join(" ") }));
    }
    for (name, path) in [("other case", "/Workspace/dir/file"), ("beside", "/workspacex/dir/file")]
    {
        let (saw, _) = room.files(read(path)).await;
        all.push(seen(name, saw));
    }
    room.end().await?;
    Ok(all)
}

/// Names that a host must not join to its own paths unseen.
pub(crate) async fn strange(stage: OnStage) -> ProbeResult {
    let room = stage.room("strange", |_| {}).await?;
    let made = room.word(&["disk", "strange"]).await?;
    if made != "done" {
        return Err(format!("the names were not made: {made}"));
    }
    let root = || "/workspace/strange".to_owned();
    let list = FileOp::List { path: root(), entries_max: 100 };
    let glob = FileOp::Glob { root: root(), pattern: "*".to_owned(), paths_max: 100 };
    let mut all = Vec::new();
    for (name, op) in [("list", list), ("glob", glob)] {
        let (word, reply) = room.files(op).await;
        let names: Vec<String> = match reply {
            Some(FileReply::Entries { entries, .. }) => {
                entries.into_iter().map(|entry| entry.name).collect()
            }
            Some(FileReply::Paths { paths, .. }) => {
                paths.into_iter().map(|path| path.replacen("/workspace/strange/", "", 1)).collect()
            }
            _ => return Err(format!("{name}: {word}")),
        };
        let inside = names.iter().all(|name| !name.contains('/') && name != ".." && name != ".");
        all.push(noted(
            name,
            if inside { "relative, inside" } else { "leaves" },
            format!("{} names", names.len()),
        ));
    }
    let manifest =
        FileOp::Manifest { root: root(), after: None, skip: Vec::new(), entries_max: 100 };
    let (word, reply) = room.files(manifest).await;
    // A name that is no text makes the whole list refuse, because what is missing in
    // it is taken for deleted.
    let inside = match &reply {
        Some(FileReply::Manifest { entries, .. }) => entries.iter().all(|entry| {
            !entry.path.starts_with('/') && entry.path.split('/').all(|part| part != "..")
        }),
        _ => word == "invalid_path",
    };
    all.push(noted("manifest", if inside { "relative, inside" } else { "leaves" }, word));
    room.end().await?;
    Ok(all)
}

/// What runs later, elsewhere: it may be written, and is seen by whoever reviews.
pub(crate) async fn later(stage: OnStage) -> ProbeResult {
    let room = stage.room("later", |_| {}).await?;
    let paths = [
        ".git/hooks/pre-commit",
        ".bashrc",
        ".github/workflows/ci.yml",
        ".mcp.json",
        ".envrc",
        ".vscode/tasks.json",
    ];
    for path in paths {
        let (word, _) = room.files(write(&room, &format!("/workspace/{path}"))).await;
        if word != "done" {
            return Ok(vec![seen(path, word)]);
        }
    }
    let manifest = FileOp::Manifest {
        root: "/workspace".to_owned(),
        after: None,
        skip: Vec::new(),
        entries_max: 100,
    };
    let (word, reply) = room.files(manifest).await;
    room.end().await?;
    let Some(FileReply::Manifest { entries, .. }) = reply else { return Err(word) };
    let all = paths.map(|path| {
        let listed = entries.iter().any(|entry| entry.path == path);
        seen(path, if listed { "written and listed" } else { "not listed" })
    });
    Ok(all.into())
}
