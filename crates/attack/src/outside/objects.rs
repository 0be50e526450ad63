//! What the kernel counts by user or by host: one sandbox takes all that it gets of it, and
//! who runs this and another sandbox ask for one more.
//!
//! Owns the kinds, and the evil program's run on the host, which asks for one and nothing
//! else.

use std::io::ErrorKind;
use std::process::Command;
use std::time::Duration;

use outrigger_sandbox::FileOp;

use crate::limits;
use crate::observation::{Observation, ProbeResult, noted};
use crate::stage::{EVIL, OnStage, Room, lines};

const KINDS: [&str; 7] = ["timers", "signals", "queues", "inotify", "aio", "terminals", "pipes"];

/// Each kind, in a sandbox of its own.
pub(crate) async fn taken(stage: OnStage) -> ProbeResult {
    let neighbour = stage.room("neighbour", |_| {}).await?;
    let mut all = Vec::new();
    for kind in KINDS {
        let room = stage.room("taker", |_| {}).await?;
        all.push(take(&room, &neighbour, kind).await?);
        room.end().await?;
    }
    neighbour.end().await?;
    Ok(all)
}

async fn take(room: &Room, neighbour: &Room, kind: &'static str) -> Result<Observation, String> {
    let request = room.request(&[EVIL, "objects", "take", kind]);
    let id = request.id.clone();
    let taker = async {
        let done = room.sandbox.execute(request, &()).await.map_err(|error| error.to_string())?;
        let said = lines(&done.stdout).into_values().next();
        said.ok_or_else(|| "it took nothing".to_owned())
    };
    let others = async {
        let asked = ask(room, neighbour, kind).await;
        room.sandbox.kill(&id).await.map_err(|error| error.to_string())?;
        asked
    };
    let (taken, asked) = tokio::join!(taker, others);
    Ok(noted(&format!("objects/{kind}"), asked?, format!("taken: {}", taken?)))
}

/// Asks on the host and in another sandbox once all is taken.
async fn ask(room: &Room, neighbour: &Room, kind: &'static str) -> Result<String, String> {
    for _ in 0..limits::TAKEN_LOOKS_MAX {
        let path = "/workspace/taken".to_owned();
        if room.files(FileOp::Stat { path }).await.0 == "done" {
            let words = ["objects", "one", kind];
            let on_host = tokio::task::spawn_blocking(move || on_host(&words));
            let neighbours = neighbour.word(&["objects", "one", kind]).await?;
            let hosts = on_host.await.map_err(|error| error.to_string())??;
            return Ok(format!("host {hosts}; neighbour {neighbours}"));
        }
        // poll: the other one takes what it takes
        tokio::time::sleep(Duration::from_millis(limits::TAKEN_PAUSE_MS)).await;
    }
    Err(format!("{kind} were never taken"))
}

/// Runs the evil program here, with words that harm nothing.
fn on_host(words: &[&str]) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("evil on the host: {error}");
    let dir = tempfile::Builder::new().prefix("outrigger-attack-").tempdir().map_err(failed)?;
    let program = dir.path().join("evil");
    std::fs::write(&program, outrigger_evil::PROGRAM).map_err(failed)?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&program, mode).map_err(failed)?;
    for _ in 0..limits::TAKEN_LOOKS_MAX {
        match Command::new(&program).args(words).output() {
            // A process that was forked meanwhile has it open for writing until its exec.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                // poll: that ends by itself
                std::thread::sleep(Duration::from_millis(limits::TAKEN_PAUSE_MS));
            }
            done => {
                let said = lines(&done.map_err(failed)?.stdout).into_values().next();
                return said.ok_or_else(|| "evil on the host said nothing".to_owned());
            }
        }
    }
    Err("evil on the host stays busy".to_owned())
}
