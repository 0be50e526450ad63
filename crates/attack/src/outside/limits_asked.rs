//! Requests whose numbers and lengths are absurd.

use outrigger_sandbox::{Execute, FileOp};

use crate::limits;
use crate::observation::{Observation, ProbeResult, noted, seen};
use crate::stage::own_memory;
use crate::stage::{EVIL, OnStage, Room, refusal};

async fn asked(room: &Room, name: &str, change: impl FnOnce(&mut Execute)) -> Observation {
    let mut request = room.request(&[EVIL, "bomb", "nothing"]);
    change(&mut request);
    match room.sandbox.execute(request, &()).await {
        Ok(executed) => seen(name, format!("ran: {:?}", executed.end)),
        Err(error) => seen(name, refusal(&error)),
    }
}

/// Commands, environments, input and paths beyond all bounds.
pub(crate) async fn too_long(stage: OnStage) -> ProbeResult {
    let room = stage.room("long", |_| {}).await?;
    let words = |count: usize, length: usize| vec![vec![b'x'; length]; count];
    let argv = |words| {
        move |request: &mut Execute| request.command = outrigger_sandbox::Command::Argv(words)
    };
    let all = vec![
        asked(&room, "one word of 1 MiB", argv(words(1, 1 << 20))).await,
        asked(&room, "words of 3 MiB", argv(words(3 << 10, 1 << 10))).await,
        asked(&room, "three million words", argv(words(3_000_000, 0))).await,
        asked(&room, "an environment of 3 MiB", |request| {
            request.env.insert("X".to_owned(), "x".repeat(3 << 20));
        })
        .await,
        asked(&room, "a variable of 200 KiB", |request| {
            request.env.insert("X".to_owned(), "x".repeat(200 << 10));
        })
        .await,
        asked(&room, "input of 17 MiB", |request| request.stdin = vec![0; 17 << 20]).await,
        asked(&room, "a directory of 5000 bytes", |request| request.cwd = Some("x".repeat(5_000)))
            .await,
        asked(&room, "no word at all", argv(Vec::new())).await,
        asked(&room, "a NUL in a word", argv(vec![b"a\0b".to_vec()])).await,
        asked(&room, "a variable's name with =", |request| {
            request.env.insert("A=B".to_owned(), String::new());
        })
        .await,
    ];
    room.end().await?;
    Ok(all)
}

/// Deadlines and caps beyond all bounds.
pub(crate) async fn numbers(stage: OnStage) -> ProbeResult {
    let room = stage.room("numbers", |_| {}).await?;
    let mut all = Vec::new();
    for deadline in [0, u64::MAX, 1 << 63, outrigger_sandbox::limits::DEADLINE_MS_MAX + 1] {
        let name = format!("a deadline of {deadline}");
        all.push(asked(&room, &name, |request| request.deadline_ms = deadline).await);
    }
    for cap in [u64::MAX, 1 << 40] {
        let name = format!("a cap of {cap}");
        all.push(asked(&room, &name, |request| request.stdout_bytes_max = cap).await);
    }
    let size = outrigger_sandbox::TerminalSize { rows: 0, columns: 0 };
    all.push(asked(&room, "a terminal of nothing", |request| request.terminal = Some(size)).await);
    room.end().await?;
    Ok(all)
}

/// One refusal after the other.
pub(crate) async fn denials(stage: OnStage) -> ProbeResult {
    let room = stage.room("denials", |_| {}).await?;
    let count = stage.scaled(500, 20_000);
    let before = own_memory()?;
    let mut refused = 0;
    for number in 0..count {
        let op = match number % 3 {
            0 => FileOp::Stat { path: "../../etc/passwd".to_owned() },
            1 => FileOp::Read { path: "/dev/mem".to_owned(), offset: 0, bytes_max: 1 },
            _ => FileOp::MakeDir { id: stage.exec_id(), path: "/usr/evil".to_owned() },
        };
        let (word, reply) = room.files(op).await;
        refused += u64::from(reply.is_none() && word != "lost" && word != "backend");
    }
    let grown = own_memory()?.saturating_sub(before);
    room.end().await?;
    let flat = if grown < limits::GROWTH_BYTES_MAX { "memory flat" } else { "memory grew" };
    let saw = if refused == count {
        format!("refused, {flat}")
    } else {
        format!("{refused} of {count} refused")
    };
    Ok(vec![noted("denials", saw, format!("{count} requests, {} KiB more memory", grown >> 10))])
}
