//! Attacks on the lives of sandboxes: restarts, suspension, forks, numbers.

use std::collections::BTreeSet;

use outrigger_sandbox::{
    DiskOrigin, Error, FileOp, FileReply, Precondition, SnapshotId, Suspend, WriteMode,
};

use crate::observation::{Observation, ProbeResult, lacks, noted, seen};
use crate::stage::{OnStage, Room};

/// What covers `/proc`, before and after the sandbox is made anew many times.
pub(crate) async fn masks_after_restarts(stage: OnStage) -> ProbeResult {
    let masks = ["try", "mask"];
    let first = stage.room("masks", |_| {}).await?;
    let before = first.evil(&masks, |_| {}).await?.lines;
    first.end().await?;
    let times = stage.scaled(3, 50);
    let mut saw = "same";
    for _ in 0..times {
        let room = stage.room("masks", |_| {}).await?;
        if room.evil(&masks, |_| {}).await?.lines != before {
            saw = "different";
        }
        room.end().await?;
    }
    Ok(vec![noted("masks again", saw, format!("{times} sandboxes"))])
}

/// What two forks of one disk, and a resumed sandbox, have in common with what was.
pub(crate) async fn resumed(stage: OnStage) -> ProbeResult {
    let capabilities = stage.backend().capabilities();
    let (suspend, snapshots) = (capabilities.suspend.clone(), capabilities.snapshots);
    if suspend.is_empty() && !snapshots {
        return Ok(lacks("resumed", "neither suspension nor snapshots"));
    }
    let room = stage.room("resumed", |_| {}).await?;
    let mut all = Vec::new();
    let mut random = BTreeSet::from([room.word(&["spy", "random"]).await?]);
    let mut draws = 1;
    if let Some(how) = suspend.last() {
        stage.backend().suspend(&room.id, *how).await.map_err(|error| error.to_string())?;
        let again = stage.room_of(room.id.clone(), room.spec.clone()).await?;
        random.insert(again.word(&["spy", "random"]).await?);
        draws += 1;
        all.push(seen(format!("processes after {how}"), again.word(&["spy", "count"]).await?));
    }
    if snapshots {
        all.extend(forks(&room, &mut random, &mut draws).await?);
    }
    let saw = if random.len() == draws { "differs" } else { "repeats" };
    all.push(seen("randomness", saw));
    room.end().await?;
    Ok(all)
}

async fn forks(room: &Room, random: &mut BTreeSet<String>, draws: &mut usize) -> ProbeResult {
    let stage = &room.stage;
    let snapshots = stage.backend().snapshots().map_err(|error| error.to_string())?;
    let name = SnapshotId::new(format!("attack-{}", room.id)).map_err(|error| error.to_string())?;
    snapshots.take(&room.id, &name).await.map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    for number in 0..2 {
        let fork =
            stage.room("fork", |spec| spec.origin = DiskOrigin::Snapshot(name.clone())).await?;
        random.insert(fork.word(&["spy", "random"]).await?);
        *draws += 1;
        all.push(seen(format!("processes of fork {number}"), fork.word(&["spy", "count"]).await?));
        fork.end().await?;
    }
    snapshots.remove(&name).await.map_err(|error| error.to_string())?;
    Ok(all)
}

/// Many sandboxes at once, and none of them afterwards.
pub(crate) async fn many(stage: OnStage) -> ProbeResult {
    let count = stage.scaled(8, 64);
    let mut rooms = Vec::new();
    for _ in 0..count {
        rooms.push(stage.room("many", |_| {}).await?);
    }
    let served = rooms[0].alive().await;
    let ids: BTreeSet<_> = rooms.iter().map(|room| room.id.clone()).collect();
    for room in rooms {
        room.end().await?;
    }
    let left = stage.backend().list().await.map_err(|error| error.to_string())?;
    let left = left.iter().filter(|listed| ids.contains(&listed.id)).count();
    let saw = if left == 0 && served == "alive" {
        "made and destroyed".to_owned()
    } else {
        format!("{served}, {left} left")
    };
    Ok(vec![noted(
        "many",
        saw,
        format!("{count} at once; how many a session has is the engine's to bound"),
    )])
}

/// Appends while the sandbox is suspended and resumed beneath them: each that was
/// acknowledged is there, once and whole.
pub(crate) async fn suspended_writes(stage: OnStage) -> ProbeResult {
    let ways = stage.backend().capabilities().suspend.clone();
    if ways.is_empty() {
        return Ok(lacks("suspended", "no suspension"));
    }
    let mut all = Vec::new();
    for how in ways {
        all.push(suspend_again_and_again(&stage, how).await?);
    }
    Ok(all)
}

async fn suspend_again_and_again(stage: &OnStage, how: Suspend) -> Result<Observation, String> {
    let times: u32 = stage.scaled(20, 1_000);
    let mut room = stage.room("suspended", |_| {}).await?;
    write(&room, String::new(), WriteMode::Create).await?;
    let (mut acknowledged, mut suspended) = (Vec::new(), 0);
    for number in 0..times {
        let line = format!("{number:06}\n");
        let (written, stopped) = tokio::join!(
            write(&room, line, WriteMode::Append),
            stage.backend().suspend(&room.id, how)
        );
        if written.is_ok() {
            acknowledged.push(number);
        }
        match stopped {
            Ok(()) => suspended += 1,
            Err(Error::Busy { .. }) => {}
            Err(error) => return Err(format!("suspend: {error}")),
        }
        let sandbox = stage.backend().create(&room.id, &room.spec).await;
        room.sandbox = sandbox.map_err(|error| format!("resume: {error}"))?;
    }
    let text = read(&room).await?;
    let lines: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    let missing = acknowledged.iter().filter(|number| !lines.contains(number)).count();
    let twice = lines.len() - lines.iter().collect::<BTreeSet<_>>().len();
    let torn = text.lines().filter(|line| line.len() != 6).count();
    let saw = if missing + twice + torn == 0 {
        "nothing lost".to_owned()
    } else {
        format!("{missing} lost, {twice} twice, {torn} torn")
    };
    let note =
        format!("{suspended} of {times} suspensions, {} writes acknowledged", acknowledged.len());
    room.end().await?;
    Ok(noted(&how.to_string(), saw, note))
}

async fn write(room: &Room, line: String, mode: WriteMode) -> Result<(), String> {
    let op = FileOp::Write {
        id: room.stage.exec_id(),
        path: "/workspace/journal".to_owned(),
        contents: line.into_bytes(),
        mode,
        executable: None,
        modified_ns: None,
        precondition: Precondition::None,
    };
    match room.files(op).await {
        (_, Some(_)) => Ok(()),
        (word, None) => Err(word),
    }
}

async fn read(room: &Room) -> Result<String, String> {
    let path = "/workspace/journal".to_owned();
    let bytes_max = outrigger_sandbox::limits::FILE_CHUNK_BYTES_MAX;
    match room.files(FileOp::Read { path, offset: 0, bytes_max }).await {
        (_, Some(FileReply::Bytes { bytes, .. })) => {
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        (word, _) => Err(format!("read: {word}")),
    }
}
