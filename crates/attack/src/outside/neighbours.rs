//! What passes between sandboxes, and between one and its host.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use outrigger_sandbox::FileOp;

use crate::limits;
use crate::observation::{Observation, ProbeResult, seen};
use crate::stage::{EVIL, OnStage, Room};

/// A word that stands nowhere else.
fn mark(what: &str) -> String {
    format!("outrigger-{what}-{}", std::process::id())
}

async fn look(room: &Room, mark: &str) -> Result<Vec<Observation>, String> {
    let said = room.evil(&["spy", "look", mark], |_| {}).await?;
    Ok(said.lines.into_iter().map(|(name, saw)| seen(name, saw)).collect())
}

/// One plants marks wherever it can, the other looks, both at once.
pub(crate) async fn spy(stage: OnStage) -> ProbeResult {
    let (one, other) = (stage.room("plant", |_| {}).await?, stage.room("look", |_| {}).await?);
    let mark = mark("mark");
    let plant = one.request(&[EVIL, "spy", "plant", &mark]);
    let planting = plant.id.clone();
    let planted = async {
        // It goes on until it is killed; its outcome is of no interest.
        drop(one.sandbox.execute(plant, &()).await);
    };
    let looked = async {
        await_file(&one, &mark).await?;
        let looked = look(&other, &mark).await;
        one.sandbox.kill(&planting).await.map_err(|error| error.to_string())?;
        looked
    };
    let ((), looked) = tokio::join!(planted, looked);
    one.end().await?;
    other.end().await?;
    looked
}

/// Waits until a sandbox's own file is there.
async fn await_file(room: &Room, name: &str) -> Result<(), String> {
    for _ in 0..1_000 {
        let path = format!("/workspace/{name}");
        if room.files(FileOp::Stat { path }).await.0 == "done" {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    Err("the marks were never planted".to_owned())
}

/// Looks until no lock is seen, for some time: another run of the same plants one on the
/// same program of the host, and takes it away; one that was left behind stays.
async fn look_for_left(room: &Room, mark: &str) -> Result<Vec<Observation>, String> {
    for _ in 0..limits::LEFT_LOOKS_MAX {
        let looked = look(room, mark).await?;
        if !looked.iter().any(|seen| seen.name == "spy/lock" && seen.saw == "EAGAIN") {
            return Ok(looked);
        }
        tokio::time::sleep(std::time::Duration::from_millis(limits::LEFT_PAUSE_MS)).await;
    }
    look(room, mark).await
}

/// A disk that is gone, and what those who come after see of it.
pub(crate) async fn destroyed(stage: OnStage) -> ProbeResult {
    let mark = mark("left");
    let room = stage.room("left", |_| {}).await?;
    room.word(&["spy", "leave", &mark]).await?;
    let (id, spec) = (room.id.clone(), room.spec.clone());
    room.end().await?;
    let mut all = Vec::new();
    // One of the same name, and one that comes next.
    let same = stage.room_of(id, spec).await?;
    let next = stage.room("next", |_| {}).await?;
    for room in [same, next] {
        all.extend(look_for_left(&room, &mark).await?);
        room.end().await?;
    }
    Ok(all)
}

/// Listeners of the host on its loopback and in its abstract names.
pub(crate) async fn host_listener(stage: OnStage) -> ProbeResult {
    // The marks of the one who looks are the host's here.
    let mark = mark("host");
    let local = SocketAddr::from_abstract_name(&mark).and_then(|at| UnixListener::bind_addr(&at));
    let _local = local.map_err(|error| error.to_string())?;
    // Taken when another run of the same has it; then that one is the listener.
    let _listener = TcpListener::bind(("127.0.0.1", 47_111));
    let room = stage.room("host", |_| {}).await?;
    let looked = look(&room, &mark).await?;
    room.end().await?;
    Ok(looked
        .into_iter()
        .filter(|seen| ["spy/stream", "spy/abstract", "spy/datagram"].contains(&seen.name.as_str()))
        .collect())
}
