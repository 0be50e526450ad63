//! Work that is asked of whoever serves files: edits, patterns, globs.

use std::time::Instant;

use outrigger_sandbox::{
    ContentDigest, FileOp, FileReply, GrepPattern, Occurrences, Precondition, WriteMode, limits,
};

use crate::observation::{Observation, ProbeResult, noted, seen};
use crate::stage::{OnStage, Room};

async fn put(room: &Room, path: &str, contents: &[u8]) -> Result<(), String> {
    let piece = usize::try_from(limits::FILE_CHUNK_BYTES_MAX).unwrap_or(usize::MAX);
    for (index, contents) in contents.chunks(piece).enumerate() {
        let op = FileOp::Write {
            id: room.stage.exec_id(),
            path: path.to_owned(),
            contents: contents.to_vec(),
            mode: if index == 0 { WriteMode::Replace } else { WriteMode::Append },
            executable: None,
            modified_ns: None,
            precondition: Precondition::None,
        };
        if let (word, None) = room.files(op).await {
            return Err(format!("put {path}: {word}"));
        }
    }
    Ok(())
}

fn edit(room: &Room, path: &str, old: &[u8], new: &[u8]) -> FileOp {
    FileOp::Edit {
        id: room.stage.exec_id(),
        path: path.to_owned(),
        old: old.to_vec(),
        new: new.to_vec(),
        occurrences: Occurrences::All,
        precondition: outrigger_sandbox::Precondition::None,
    }
}

async fn timed(room: &Room, name: &str, op: FileOp) -> Observation {
    let begun = Instant::now();
    let (saw, _) = room.files(op).await;
    noted(name, saw, format!("{} ms", begun.elapsed().as_millis()))
}

/// Edits that would make ten thousand times as much as they found.
pub(crate) async fn edits(stage: OnStage) -> ProbeResult {
    let room = stage.room("edits", |_| {}).await?;
    let path = "/workspace/many";
    put(&room, path, &vec![b'a'; stage.scaled(3 << 20, 15 << 20)]).await?;
    let mut all = vec![
        timed(&room, "each byte by a kilobyte", edit(&room, path, b"a", &[b'b'; 1024])).await,
        timed(&room, "millions of places", edit(&room, path, b"a", b"b")).await,
        timed(&room, "what is not there", edit(&room, path, b"aaaaaaaaaaaaaaab", b"")).await,
    ];
    let op = FileOp::Edit {
        id: stage.exec_id(),
        path: path.to_owned(),
        old: b"b".to_vec(),
        new: b"c".to_vec(),
        occurrences: Occurrences::One,
        precondition: outrigger_sandbox::Precondition::None,
    };
    all.push(timed(&room, "one of millions", op).await);
    if room.alive().await != "alive" {
        all.push(seen("afterwards", "lost"));
    }
    room.end().await?;
    Ok(all)
}

/// Patterns that take for ever where an engine goes back.
pub(crate) async fn patterns(stage: OnStage) -> ProbeResult {
    let room = stage.room("patterns", |_| {}).await?;
    put(&room, "/workspace/text", &vec![b'a'; stage.scaled(64 << 10, 2 << 20)]).await?;
    let nested = format!("{}a{}", "(".repeat(2_000), ")".repeat(2_000));
    let patterns = [
        ("(a+)+$", "(a+)+$"),
        ("(a|aa)+$", "(a|aa)+$"),
        ("(.*)*b", "(.*)*b"),
        ("counted", "((a{100}){100}){100}"),
        ("unicode", r"(\w{200}){50}"),
        ("nested", &nested),
        ("empty", ""),
    ];
    let mut all = Vec::new();
    for (name, pattern) in patterns {
        let op = FileOp::Grep {
            root: "/workspace".to_owned(),
            pattern: GrepPattern::Regex(pattern.to_owned()),
            glob: Some("text".to_owned()),
            matches_max: 10,
        };
        all.push(timed(&room, name, op).await);
    }
    room.end().await?;
    Ok(all)
}

/// Globs that ask for everything in every way.
pub(crate) async fn globs(stage: OnStage) -> ProbeResult {
    let room = stage.room("globs", |_| {}).await?;
    room.evil(&["disk", "deep", "200"], |_| {}).await?;
    let patterns = [
        ("stars", "**/**/**/**/**/**/**/**/*".to_owned()),
        ("choices", "{a,b}".repeat(30)),
        ("nested choices", format!("{}a{}", "{a,".repeat(500), "}".repeat(500))),
        ("star chain", "*a".repeat(1_000)),
        ("too long", "a".repeat(limits::PATTERN_BYTES_MAX + 1)),
    ];
    let mut all = Vec::new();
    for (name, pattern) in patterns {
        let root = "/workspace".to_owned();
        all.push(timed(&room, name, FileOp::Glob { root, pattern, paths_max: 10 }).await);
    }
    // The root itself: programs by the ten thousand, and no way to leave by a link.
    let op = FileOp::Glob { root: "/".to_owned(), pattern: "**/*".to_owned(), paths_max: 10 };
    all.push(timed(&room, "the whole root", op).await);
    room.end().await?;
    Ok(all)
}

/// A file that another one changed since it was read.
pub(crate) async fn conflict(stage: OnStage) -> ProbeResult {
    let room = stage.room("conflict", |_| {}).await?;
    put(&room, "/workspace/file", b"as it is now").await?;
    let op = FileOp::Write {
        id: stage.exec_id(),
        path: "/workspace/file".to_owned(),
        contents: b"mine".to_vec(),
        mode: WriteMode::Replace,
        executable: None,
        modified_ns: None,
        precondition: Precondition::Digest(ContentDigest([0; 32])),
    };
    let (stale, _) = room.files(op).await;
    let (gone, _) = room.files(edit(&room, "/workspace/file", b"as it was", b"mine")).await;
    room.end().await?;
    Ok(vec![seen("a stale write", stale), seen("a stale edit", gone)])
}

/// Bytes that are no text, with every line end, around an edit.
pub(crate) async fn binary(stage: OnStage) -> ProbeResult {
    let room = stage.room("binary", |_| {}).await?;
    let around: Vec<u8> = (0..=255).chain(*b"\r\n\n\r\xef\xbb\xbf\xff\xfe").collect();
    let whole = |middle: &[u8]| [&around[..], middle, &around].concat();
    put(&room, "/workspace/binary", &whole(b"<old>")).await?;
    room.files(edit(&room, "/workspace/binary", b"<old>", b"<newer>")).await;
    let op = FileOp::Read { path: "/workspace/binary".to_owned(), offset: 0, bytes_max: 4_096 };
    let (word, reply) = room.files(op).await;
    room.end().await?;
    let Some(FileReply::Bytes { bytes, .. }) = reply else { return Err(word) };
    let same = bytes == whole(b"<newer>");
    Ok(vec![seen("binary", if same { "bytes outside stay" } else { "bytes changed" })])
}
