//! Races between who writes files from outside and who lays them out inside.

use std::time::{Duration, Instant};

use outrigger_sandbox::{FileOp, FileReply, Precondition, WriteMode};

use crate::observation::{Observation, ProbeResult, noted};
use crate::stage::{EVIL, OnStage, Room};

/// Places outside every root of file operations where the sandbox's user may write,
/// and one where it may not.
const TARGETS: [&str; 3] = ["/dev/shm/outside", "/var/tmp/outside", "/var/outrigger/output"];

/// Writes, reads and removes beneath a directory that is exchanged for a link meanwhile.
pub(crate) async fn race(stage: OnStage) -> ProbeResult {
    let mut all = Vec::new();
    for target in TARGETS {
        let room = stage.room("race", |_| {}).await?;
        all.push(against(&room, target).await?);
        room.end().await?;
    }
    Ok(all)
}

async fn against(room: &Room, target: &str) -> Result<Observation, String> {
    let time: u64 = room.stage.scaled(400, 4_000);
    room.evil_shell(&format!(
        "mkdir -p {target} 2>/dev/null; cp /etc/passwd {target}/precious 2>/dev/null; true"
    ))
    .await?;
    let before = room.evil_shell(&format!("ls -la {target}")).await?;
    let swap = room.request(&[EVIL, "disk", "swap", &time.to_string(), target]);
    let swapping = async { room.sandbox.execute(swap, &()).await };
    let working = async {
        let end = Instant::now() + Duration::from_millis(time.saturating_sub(100));
        let (mut done, mut refused) = (0_u32, 0_u32);
        while Instant::now() < end {
            for op in operations(room) {
                let (word, reply) = room.files(op).await;
                if matches!(&reply, Some(FileReply::Bytes { bytes, .. }) if bytes.starts_with(b"root:"))
                {
                    return Err("a file outside was read".to_owned());
                }
                if word == "done" { done += 1 } else { refused += 1 }
            }
        }
        Ok((done, refused))
    };
    let (swapped, worked) = tokio::join!(swapping, working);
    swapped.map_err(|error| format!("the exchange: {error}"))?;
    let after = room.evil_shell(&format!("ls -la {target}")).await?;
    Ok(match worked {
        Err(what) => noted(target, what, String::new()),
        Ok((done, refused)) => {
            let saw = if before == after { "never outside" } else { "changed outside" };
            noted(target, saw, format!("{done} operations went through, {refused} were refused"))
        }
    })
}

fn operations(room: &Room) -> [FileOp; 4] {
    let path = |name: &str| format!("/workspace/race/dir/{name}");
    [
        FileOp::Write {
            id: room.stage.exec_id(),
            path: path("written"),
            contents: b"x".to_vec(),
            mode: WriteMode::Replace,
            executable: None,
            modified_ns: None,
            precondition: Precondition::None,
        },
        FileOp::Read { path: path("precious"), offset: 0, bytes_max: 64 },
        FileOp::Remove { id: room.stage.exec_id(), path: path("precious") },
        FileOp::MakeDir { id: room.stage.exec_id(), path: path("made/here") },
    ]
}

impl Room {
    /// What a line of shell prints, for looks at a place that file operations refuse.
    async fn evil_shell(&self, line: &str) -> Result<String, String> {
        let mut request = self.request(&["sh"]);
        request.command = outrigger_sandbox::Command::Shell(line.to_owned());
        let done = self.sandbox.execute(request, &()).await;
        let executed = done.map_err(|error| format!("{line}: {error}"))?;
        Ok(String::from_utf8_lossy(&executed.stdout).into_owned())
    }
}
