//! Requests that ask for more than a sandbox gives.

use std::collections::BTreeSet;

use outrigger_sandbox::{Command, CreateSpec, DiskOrigin, FileOp, SandboxId, SnapshotId, Streams};

use crate::observation::{ProbeResult, seen};
use crate::stage::{EVIL, OnStage, refusal};

/// Magic links through which a guest's own descriptors and root can be named.
const MAGIC: [&str; 8] = [
    "/proc/1/root",
    "/proc/1/cwd",
    "/proc/self/root/../root",
    "/proc/self/task/1/cwd",
    "/proc/thread-self/root",
    "/proc/1/fd/4",
    "/proc/1/ns",
    "/workspace/magic",
];

/// Descriptors of whoever starts a command, as working directory and as program.
pub(crate) async fn descriptors(stage: OnStage) -> ProbeResult {
    let room = stage.room("descriptors", |_| {}).await?;
    let (id, path) = (stage.exec_id(), "/workspace/magic".to_owned());
    let link = FileOp::Link { id, path, target: "/proc/self/fd/4".to_owned() };
    room.files(link).await;
    let numbered = (0..40).map(|number| format!("/proc/self/fd/{number}"));
    let paths: Vec<String> = numbered.chain(MAGIC.map(str::to_owned)).collect();
    let mut all = Vec::new();
    for path in paths {
        for way in ["cwd", "program", "search"] {
            let mut request = room.request(&[EVIL, "bomb", "nothing"]);
            match way {
                "cwd" => request.cwd = Some(path.clone()),
                "program" => {
                    request.command = Command::Argv(vec![format!("{path}/../bin/sh").into_bytes()]);
                }
                _ => {
                    request.command = Command::Argv(vec![b"sh".to_vec()]);
                    request.env.insert("PATH".to_owned(), path.clone());
                }
            }
            let saw = match room.sandbox.execute(request, &()).await {
                Ok(executed) => format!("ran: {:?}", executed.end),
                Err(error) => refusal(&error),
            };
            all.push(seen(format!("{way} {path}"), saw));
        }
    }
    room.end().await?;
    Ok(all)
}

/// What starts commands, asked to start itself.
pub(crate) async fn own_program(stage: OnStage) -> ProbeResult {
    let room = stage.room("self", |_| {}).await?;
    let mut all = Vec::new();
    let script = FileOp::Write {
        id: stage.exec_id(),
        path: "/workspace/script".to_owned(),
        contents: b"#!/proc/self/exe\n".to_vec(),
        mode: outrigger_sandbox::WriteMode::Replace,
        executable: Some(true),
        modified_ns: None,
        precondition: outrigger_sandbox::Precondition::None,
    };
    room.files(script).await;
    for program in ["/proc/self/exe", "/proc/1/exe", "/workspace/script", "/proc/thread-self/exe"] {
        let mut request = room.request(&[program]);
        request.deadline_ms = 5_000;
        let saw = match room.sandbox.execute(request, &()).await {
            Ok(executed) => {
                executed.exit_code().map_or("ran".to_owned(), |code| format!("exit {code}"))
            }
            Err(error) => refusal(&error),
        };
        all.push(seen(format!("start {program}"), saw));
    }
    if room.alive().await != "alive" {
        all.push(seen("afterwards", "lost"));
    }
    room.end().await?;
    Ok(all)
}

/// Whether the guest serves after all that can be done to it.
pub(crate) async fn guest_survives(stage: OnStage) -> ProbeResult {
    let room = stage.room("guest", |_| {}).await?;
    for _ in 0..stage.scaled(2, 20) {
        room.evil(&["try", "guest"], |_| {}).await?;
    }
    let saw = room.alive().await;
    let op = FileOp::List { path: ".".to_owned(), entries_max: 9 };
    let (files, _) = room.files(op).await;
    room.end().await?;
    Ok(vec![seen("it serves afterwards", if files == "done" { saw } else { "files are refused" })])
}

/// Escape sequences, which are for no terminal of ours.
pub(crate) async fn escapes(stage: OnStage) -> ProbeResult {
    let room = stage.room("escapes", |_| {}).await?;
    let mut request = room.request(&[EVIL, "bomb", "garbage", "1"]);
    request.stdout_bytes_max = 8;
    request.streams = Streams::Merged;
    let executed = room.sandbox.execute(request, &()).await.map_err(|error| error.to_string())?;
    room.end().await?;
    let same = executed.stdout == b"\x1b]0;x\xc3\x28\xf0"[..8];
    Ok(vec![seen("escapes come as bytes", if same { "as they are" } else { "changed" })])
}

/// What can be asked for at all, by the names of its fields.
pub(crate) async fn fields(_: OnStage) -> ProbeResult {
    let spec = serde_json::to_value(CreateSpec::default()).map_err(|error| error.to_string())?;
    let names: BTreeSet<&str> =
        spec.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    Ok(vec![seen("fields of a spec", names.join(" "))])
}

/// Names that a careless backend would join to a path.
pub(crate) async fn names(_: OnStage) -> ProbeResult {
    let long = "x".repeat(129);
    let names =
        ["..", ".", "../x", "a/b", "/etc", "", "a\0b", "a b", ".hidden", "a\nb", "ä", "%2e", &long];
    let all = names.map(|name| {
        let sandbox = SandboxId::new(name).is_err();
        let snapshot = SnapshotId::new(name).is_err();
        let json = serde_json::to_string(name).unwrap_or_default();
        let read = serde_json::from_str::<SandboxId>(&json).is_err();
        seen(format!("{name:?}"), if sandbox && snapshot && read { "refused" } else { "taken" })
    });
    Ok(all.into())
}

/// Templates and snapshots that are not there, or are paths.
pub(crate) async fn templates(stage: OnStage) -> ProbeResult {
    let mut all = Vec::new();
    let mut origins: Vec<DiskOrigin> =
        ["../../etc", "/", "", "host-tools/../..", "no-such-template", "a\0b"]
            .map(|name| DiskOrigin::Template(name.to_owned()))
            .into();
    let absent = SnapshotId::new("no-such-snapshot").map_err(|error| error.to_string())?;
    origins.push(DiskOrigin::Snapshot(absent));
    for (number, origin) in origins.into_iter().enumerate() {
        let name = format!("attack-template-{}-{number}", std::process::id());
        let id = SandboxId::new(name).map_err(|error| error.to_string())?;
        let spec = CreateSpec { origin: origin.clone(), ..CreateSpec::default() };
        let saw = match stage.backend().create(&id, &spec).await {
            Ok(_) => "made".to_owned(),
            Err(error) => refusal(&error),
        };
        // Nothing may be left of what was refused.
        let listed = stage.backend().list().await.map_err(|error| error.to_string())?;
        let left = listed.iter().any(|listed| listed.id == id);
        stage.backend().destroy(&id).await.map_err(|error| error.to_string())?;
        all.push(seen(format!("{origin:?}"), if left { format!("{saw}, and left") } else { saw }));
    }
    Ok(all)
}
