//! Bombs: one sandbox takes what it can get, and another one must not notice.
//!
//! Owns the form of what is said of each: how it ended, what stopped it, whether the
//! sandbox lives on, whether its neighbour was served meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger_sandbox::{CreateSpec, DiskLimit, Execute, FileOp, FileReply};

use crate::limits;
use crate::observation::{Observation, ProbeResult, lacks, noted, seen};
use crate::stage::{GuestReport, OnStage, Room, Stage};

/// Time that a bomb has by default, in milliseconds: longer than from one look at the
/// disks to the next, where other work on the same disk hides that one is being filled.
const FUSE: u64 = 45_000;
/// Commands of the neighbour while a bomb goes off.
const VISITS: usize = 5;

/// What was said of a bomb, without its figures.
fn cause(said: &GuestReport) -> String {
    let word = said.lines.values().next();
    let word = word.map(|word| word.split(" after ").next().unwrap_or(word).to_owned());
    word.map_or(said.end.clone(), |word| format!("{}: {word}", said.end))
}

/// Sets a bomb off in a sandbox while another one works.
async fn explode(
    room: &Room,
    neighbour: &Room,
    words: &[&str],
    adjust: impl FnOnce(&mut Execute),
) -> Result<Observation, String> {
    let fuse = |request: &mut Execute| {
        request.deadline_ms = FUSE;
        adjust(request);
    };
    let bomb = async {
        let begun = Instant::now();
        (room.evil(words, fuse).await, begun.elapsed())
    };
    let visits = async {
        for _ in 0..VISITS {
            if neighbour.evil(&["bomb", "nothing"], |_| {}).await?.end != "ended" {
                return Err("the neighbour's command failed".to_owned());
            }
        }
        Ok(())
    };
    let ((said, took), visited) = tokio::join!(bomb, visits);
    // A sandbox may go down with its own bomb, as long as it comes back.
    let cause = said.as_ref().map_or_else(|_| "lost".to_owned(), cause);
    let served = if visited.is_ok() { "neighbour served" } else { "neighbour hurt" };
    let saw = format!("{cause}; {}; {served}", room.alive().await);
    let said = said.ok().and_then(|said| said.lines.into_values().next()).unwrap_or_default();
    let name = words.iter().take(2).copied().collect::<Vec<_>>().join("/");
    Ok(noted(&name, saw, format!("{said}, {} ms", took.as_millis())))
}

/// One bomb in a sandbox of its own.
async fn alone(
    stage: &Arc<Stage>,
    neighbour: &Room,
    words: &[&str],
    adjust: impl FnOnce(&mut CreateSpec),
) -> Result<Observation, String> {
    let room = stage.room("bomb", adjust).await?;
    let seen = explode(&room, neighbour, words, |_| {}).await?;
    room.end().await?;
    Ok(seen)
}

/// Several, each in a sandbox of its own.
async fn each(stage: &Arc<Stage>, bombs: &[&[&str]]) -> ProbeResult {
    let neighbour = stage.room("neighbour", |_| {}).await?;
    let mut all = Vec::new();
    for words in bombs {
        all.push(alone(stage, &neighbour, words, |_| {}).await?);
    }
    neighbour.end().await?;
    Ok(all)
}

/// A fork bomb, until its deadline.
pub(crate) async fn forks(stage: OnStage) -> ProbeResult {
    let neighbour = stage.room("neighbour", |_| {}).await?;
    let room = stage.room("forks", |_| {}).await?;
    let seen = explode(&room, &neighbour, &["bomb", "fork"], |request| {
        // Long enough to meet the limit where each fork takes milliseconds.
        request.deadline_ms = 5_000;
    });
    let seen = seen.await?;
    room.end().await?;
    neighbour.end().await?;
    Ok(vec![seen])
}

/// Memory of programs, files, segments, pipes and sockets.
pub(crate) async fn memory(stage: OnStage) -> ProbeResult {
    if !stage.backend().capabilities().resource_limits {
        return Ok(lacks("memory", "no limits of resources"));
    }
    let bytes = (4 * limits::MEMORY_BYTES_MAX).to_string();
    each(
        &stage,
        &[
            &["bomb", "memory"],
            &["bomb", "locked"],
            &["bomb", "shm", &bytes],
            &["bomb", "memfd", &bytes],
            &["bomb", "sysv", &bytes],
            &["bomb", "pipes", "100000"],
            &["bomb", "sockets", "100000"],
        ],
    )
    .await
}

/// More bytes than the disk has.
pub(crate) async fn disk(stage: OnStage) -> ProbeResult {
    if stage.backend().capabilities().disk_limit == DiskLimit::None {
        return Ok(lacks("fill", "no limit of the disk"));
    }
    let bytes = (8 * limits::DISK_BYTES_MAX).to_string();
    each(&stage, &[&["disk", "fill", &bytes]]).await
}

/// A file that is longer than every disk.
pub(crate) async fn sparse(stage: OnStage) -> ProbeResult {
    let room = stage.room("sparse", |_| {}).await?;
    let saw = room.word(&["disk", "sparse"]).await?;
    room.end().await?;
    Ok(vec![seen("sparse", saw)])
}

/// Room that is taken without being written, in a moment.
pub(crate) async fn allocate(stage: OnStage) -> ProbeResult {
    let room = stage.room("allocate", |_| {}).await?;
    let bytes = (limits::DISK_BYTES_MAX - 1).to_string();
    let saw = room.word(&["disk", "allocate", &bytes]).await?;
    room.end().await?;
    Ok(vec![seen("allocate", saw)])
}

/// More files than the disk has.
pub(crate) async fn inodes(stage: OnStage) -> ProbeResult {
    if stage.backend().capabilities().disk_limit == DiskLimit::None {
        return Ok(lacks("inodes", "no limit of the disk"));
    }
    let count = (20 * limits::DISK_INODES_MAX).to_string();
    each(&stage, &[&["disk", "inodes", &count]]).await
}

/// A directory in a directory in a directory, and its end.
pub(crate) async fn depth(stage: OnStage) -> ProbeResult {
    let room = stage.room("depth", |spec| spec.disk_inodes_max = 100_000).await?;
    let levels = stage.scaled("1500", "20000");
    let said = room.word(&["disk", "deep", levels]).await?;
    // Removed from inside by a file operation, what is left by the backend.
    let op = FileOp::Remove { id: stage.exec_id(), path: "/workspace/d/d/d".to_owned() };
    let (removed, _) = room.files(op).await;
    let ended = room.end().await;
    let saw = if ended.is_ok() { "destroyed" } else { "left" };
    Ok(vec![noted("depth", saw, format!("{levels} levels: {said}; removed inside: {removed}"))])
}

/// A directory with more names than are listed.
pub(crate) async fn listing(stage: OnStage) -> ProbeResult {
    let count = stage.scaled("2000", "30000");
    let room = stage.room("listing", |spec| spec.disk_inodes_max = 100_000).await?;
    room.evil(&["disk", "inodes", count], |request| request.deadline_ms = FUSE * 2).await?;
    let asked = 500;
    let path = "/workspace".to_owned();
    let list = FileOp::List { path: "/workspace/many-0".to_owned(), entries_max: asked };
    let glob = FileOp::Glob { root: path, pattern: "**/*".to_owned(), paths_max: asked };
    let mut all = Vec::new();
    for (name, op) in [("ls", list), ("glob", glob)] {
        let (word, reply) = room.files(op).await;
        let saw = match reply {
            Some(
                FileReply::Entries { truncated: true, .. }
                | FileReply::Paths { truncated: true, .. },
            ) => "truncated".to_owned(),
            Some(_) => "whole".to_owned(),
            None => word,
        };
        all.push(seen(name, saw));
    }
    room.end().await?;
    Ok(all)
}

/// Commands that do not want to end.
pub(crate) async fn outlive(stage: OnStage) -> ProbeResult {
    let neighbour = stage.room("neighbour", |_| {}).await?;
    let mut all = Vec::new();
    for kind in ["stubborn", "stopped", "vfork", "spin"] {
        let room = stage.room("outlive", |_| {}).await?;
        let begun = Instant::now();
        let fuse = Duration::from_millis(500);
        let mut seen = explode(&room, &neighbour, &["bomb", kind, "4"], |request| {
            request.deadline_ms = 500;
        })
        .await?;
        let late = begun.elapsed().saturating_sub(fuse).as_millis();
        let slow = if late > u128::from(limits::KILL_MS_MAX) { ", ABOVE THE LIMIT" } else { "" };
        seen.note = Some(format!("all done {late} ms after the deadline{slow}"));
        seen.saw.push_str(left(&room).await?);
        all.push(seen);
        room.end().await?;
    }
    neighbour.end().await?;
    Ok(all)
}

async fn left(room: &Room) -> Result<&'static str, String> {
    let count = room.word(&["spy", "count"]).await?;
    Ok(if count == "0" { "; nothing left" } else { "; processes left" })
}

/// Dead processes that nobody waits for.
pub(crate) async fn zombies(stage: OnStage) -> ProbeResult {
    let neighbour = stage.room("neighbour", |_| {}).await?;
    let room = stage.room("zombies", |_| {}).await?;
    let mut seen = explode(&room, &neighbour, &["bomb", "zombies", "100000"], |_| {}).await?;
    seen.saw.push_str(left(&room).await?);
    room.end().await?;
    neighbour.end().await?;
    Ok(vec![seen])
}

/// What the kernel keeps for a process beside its memory.
pub(crate) async fn objects(stage: OnStage) -> ProbeResult {
    let names = stage.scaled("20000", "300000");
    each(
        &stage,
        &[
            &["bomb", "files", "1000000"],
            &["bomb", "ports", "100000"],
            &["bomb", "inotify", "1000000"],
            &["bomb", "epoll", "1000000"],
            &["bomb", "timers", "1000000"],
            &["bomb", "names", names],
        ],
    )
    .await
}

/// Writes that go to the disk one by one.
pub(crate) async fn fsync(stage: OnStage) -> ProbeResult {
    let milliseconds = stage.scaled("500", "3000");
    each(&stage, &[&["bomb", "fsync", milliseconds]]).await
}

/// Whether the disk's bandwidth can be limited at all.
pub(crate) async fn bandwidth(stage: OnStage) -> ProbeResult {
    let spec = serde_json::to_value(CreateSpec::default()).map_err(|error| error.to_string())?;
    let names = spec.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let limited = names.into_iter().any(|name| name.starts_with("io_"));
    drop(stage);
    Ok(vec![seen("unlimited", if limited { "limited" } else { "unlimited" })])
}
