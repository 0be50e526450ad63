//! Attacks by images: by what their archives hold, and by what they ask for.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_sandbox::{DiskOrigin, FileOp, FileReply};
use outrigger_sandbox_native::ImageDigest;
use serde_json::{Value, json};

use crate::archive::{self, Layer};
use crate::hostile::{self, Hostile};
use crate::limits;
use crate::observation::{Observation, ProbeResult, noted, seen};
use crate::stage::own_memory;
use crate::stage::{OnStage, Room};
use crate::target::TEMPLATE;

/// Where images have the evil program.
const INSIDE: &str = "image/evil";

/// A place of the host that archives mean to reach, with a file in it.
struct Outside(tempfile::TempDir);

impl Outside {
    fn new() -> Result<Self, String> {
        let made = tempfile::Builder::new().prefix("outrigger-precious-").tempdir();
        let made = made.and_then(|dir| {
            std::fs::write(dir.path().join("precious"), "as it was")?;
            Ok(Self(dir))
        });
        made.map_err(|error| error.to_string())
    }

    fn path(&self) -> String {
        self.0.path().display().to_string()
    }

    fn is_untouched(&self) -> bool {
        let names = std::fs::read_dir(self.0.path()).into_iter().flatten().flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        let text = std::fs::read_to_string(self.0.path().join("precious")).unwrap_or_default();
        names == ["precious"] && text == "as it was"
    }
}

/// Imports an image of one layer. `Err` is why it was refused.
async fn import(stage: &OnStage, layer: &[u8], config: &Value) -> Result<(), String> {
    let plain = [ImageDigest::of(layer)];
    import_bytes(stage, &archive::image(&[layer.to_vec()], &plain, config)).await
}

async fn import_bytes(stage: &OnStage, bytes: &[u8]) -> Result<(), String> {
    stage.images().forget().await?;
    stage.images().import(archive::file(bytes)?).await
}

async fn room(stage: &OnStage) -> Result<Room, String> {
    stage.room("image", |spec| spec.origin = DiskOrigin::Template(TEMPLATE.to_owned())).await
}

/// What is left that was not before, once the image and its sandboxes are gone.
async fn left(stage: &OnStage, before: &[String]) -> Result<String, String> {
    stage.images().forget().await?;
    let mut left = Vec::new();
    // Layers go in the background.
    for _ in 0..limits::LEFT_LOOKS_MAX {
        left = stage.images().left().await?;
        left.retain(|name| !before.contains(name));
        if left.is_empty() {
            return Ok("nothing".to_owned());
        }
        tokio::time::sleep(Duration::from_millis(limits::LEFT_PAUSE_MS)).await;
    }
    Ok(left.join(" "))
}

fn foreign(stage: &OnStage, name: &str) -> Option<ProbeResult> {
    let lacks = stage.images().foreign_reader()?.to_owned();
    Some(Ok(vec![Observation { lacks: Some(lacks), ..seen(name, "") }]))
}

/// An image that wants to be run in its own way, with storage and checks of its own.
pub(crate) async fn wishes(stage: OnStage) -> ProbeResult {
    let before = stage.images().left().await?;
    let program = format!("/{INSIDE}");
    let config = json!({
        "User": "0:0",
        "Entrypoint": [program, "spy", "leave", "entrypoint"],
        "Cmd": [program, "spy", "leave", "command"],
        "OnBuild": ["RUN /image/evil spy leave built"],
        "Volumes": { "/image/volume": {}, "/workspace": {}, "/usr": {} },
        "Healthcheck": {
            "Test": ["CMD", program, "spy", "leave", "health"],
            "Interval": 100_000_000, "Timeout": 5_000_000_000_u64, "Retries": 1,
        },
        "ExposedPorts": { "22/tcp": {} },
        "StopSignal": "SIGSTOP",
        "Env": ["PATH=/image:/bin", "LD_PRELOAD=/image/evil", "OUTRIGGER_GUEST_SOCKET=/image/x"],
        "Labels": { "outrigger.owner": "evil", "outrigger.part": "disk", "privileged": "true" },
    });
    let mut layer = Layer::default();
    layer.file(INSIDE, 0o4755, outrigger_evil::PROGRAM);
    layer.dir("image/volume/", 0o777);
    import(&stage, &layer.bytes(), &config).await?;
    let room = room(&stage).await?;
    // Time enough for a check that is to be made ten times a second.
    tokio::time::sleep(Duration::from_millis(stage.scaled(1_000, 3_000))).await;
    let mut all = Vec::new();
    for (name, mark) in [
        ("ENTRYPOINT", "entrypoint"),
        ("CMD", "command"),
        ("ONBUILD", "built"),
        ("HEALTHCHECK", "health"),
    ] {
        let (word, _) = room.files(FileOp::Stat { path: format!("/workspace/{mark}") }).await;
        let absent = word == "file_not_found";
        all.push(seen(name, if absent { "ignored".to_owned() } else { format!("run: {word}") }));
    }
    let mut request = room.request(&[&program, "spy", "image"]);
    request.deadline_ms = 10_000;
    let executed = room.sandbox.execute(request, &()).await.map_err(|error| error.to_string())?;
    for (name, saw) in crate::stage::lines(&executed.stdout) {
        all.push(seen(name, saw));
    }
    let listed = stage.backend().list().await.map_err(|error| error.to_string())?;
    let own = listed.iter().any(|listed| listed.id == room.id);
    all.push(seen("labels", if own { "ignored" } else { "it is not listed" }));
    room.end().await?;
    all.push(seen("left", left(&stage, &before).await?));
    Ok(all)
}

/// Working directories that lead out of a root that is not yet entered (CVE-2024-21626).
pub(crate) async fn directories(stage: OnStage) -> ProbeResult {
    let mut all = Vec::new();
    for dir in ["/proc/self/fd/7", "/proc/self/fd/8/../../..", "../../..", "/proc/1/root", "/\0"] {
        let name = format!("working directory {dir:?}");
        let mut layer = Layer::default();
        layer.dir("image/", 0o755);
        let saw = match import(&stage, &layer.bytes(), &json!({ "WorkingDir": dir })).await {
            Err(reason) if reason.starts_with("failed") => reason,
            Err(_) => "refused".to_owned(),
            Ok(()) => match room(&stage).await {
                Err(_) => "refused".to_owned(),
                Ok(room) => {
                    let said = room.evil(&["spy", "image"], |_| {}).await;
                    let saw = said.map_or_else(
                        |_| "refused".to_owned(),
                        |said| said.lines.get("spy/directory").cloned().unwrap_or_default(),
                    );
                    room.end().await?;
                    saw
                }
            },
        };
        all.push(seen(name, saw));
    }
    stage.images().forget().await?;
    Ok(all)
}

/// An image that has links where a root is masked: what the sandbox has there.
async fn redirected(stage: &OnStage, group: &str) -> ProbeResult {
    let layer = hostile::redirecting().bytes();
    if let Err(reason) = import(stage, &layer, &json!({})).await {
        return Ok(vec![noted("image", "refused", reason)]);
    }
    let times = stage.scaled(2, 20);
    let mut all: Vec<Observation> = Vec::new();
    for _ in 0..times {
        let room = match room(stage).await {
            Ok(room) => room,
            Err(reason) => {
                all.push(noted("image", "refused", reason));
                break;
            }
        };
        let said = room.evil(&["try", group], |_| {}).await?;
        room.end().await?;
        for (name, saw) in said.lines {
            let one = seen(format!("image: {name}"), saw);
            if !all.contains(&one) {
                all.push(one);
            }
        }
    }
    stage.images().forget().await?;
    Ok(all)
}

/// What covers `/proc` in it.
pub(crate) async fn masks(stage: OnStage) -> ProbeResult {
    redirected(&stage, "mask").await
}

/// Devices of it, the console first.
pub(crate) async fn console(stage: OnStage) -> ProbeResult {
    redirected(&stage, "device").await
}

/// Images whose layers are not what their digests say.
pub(crate) async fn forged(stage: OnStage) -> ProbeResult {
    if let Some(lacks) = foreign(&stage, "forged") {
        return lacks;
    }
    let before = stage.images().left().await?;
    let (mut one, mut other) = (Layer::default(), Layer::default());
    one.file("image/one", 0o644, b"x");
    other.file("image/two", 0o644, b"x");
    let (one, other) = (one.bytes(), other.bytes());
    let digests = [ImageDigest::of(&one)];
    let cases = [
        ("another layer", archive::image(&[other], &digests, &json!({}))),
        ("one layer more", archive::image(&[one.clone(), one.clone()], &digests, &json!({}))),
        ("one layer less", archive::image(&[], &digests, &json!({}))),
    ];
    let mut all = Vec::new();
    for (name, bytes) in cases {
        let saw = match import_bytes(&stage, &bytes).await {
            Ok(()) => "taken".to_owned(),
            Err(reason) if reason.starts_with("failed") => reason,
            Err(_) => "refused".to_owned(),
        };
        all.push(seen(name, saw));
    }
    all.push(seen("left", left(&stage, &before).await?));
    Ok(all)
}

/// What came of unpacking a layer, and of a sandbox of what came out.
async fn unpacked(
    stage: &OnStage,
    hostile: Hostile,
    outside: &Outside,
) -> Result<Observation, String> {
    let name = hostile.name;
    let (saw, note) = match import(stage, &hostile.layer.bytes(), &json!({})).await {
        Err(reason) if reason.starts_with("failed") => (reason, None),
        Err(reason) => ("refused".to_owned(), Some(reason)),
        Ok(()) => match room(stage).await {
            Err(reason) => ("refused".to_owned(), Some(reason)),
            Ok(room) => {
                let saw = room.alive().await;
                room.end().await?;
                (if saw == "alive" { "inside" } else { saw }.to_owned(), None)
            }
        },
    };
    let saw = if outside.is_untouched() { saw } else { "it reached the host".to_owned() };
    Ok(Observation { note, ..seen(name, saw) })
}

/// Entries that leave the layer that they are in.
pub(crate) async fn entries(stage: OnStage) -> ProbeResult {
    if let Some(lacks) = foreign(&stage, "entries") {
        return lacks;
    }
    let before = stage.images().left().await?;
    let outside = Outside::new()?;
    let mut all = Vec::new();
    for hostile in hostile::entries(&outside.path()) {
        all.push(unpacked(&stage, hostile, &outside).await?);
    }
    all.push(seen("left", left(&stage, &before).await?));
    Ok(all)
}

/// A chain of links that is longer than what a reader follows.
pub(crate) async fn overlong(stage: OnStage) -> ProbeResult {
    if let Some(lacks) = foreign(&stage, "overlong") {
        return lacks;
    }
    let outside = Outside::new()?;
    let seen = unpacked(&stage, hostile::overlong(&outside.path()), &outside).await?;
    stage.images().forget().await?;
    Ok(vec![seen])
}

/// Devices, programs of root's and pipes in a layer, as a sandbox has them.
pub(crate) async fn special(stage: OnStage) -> ProbeResult {
    let mut layer = Layer::default();
    for (name, kind) in [
        ("image/block", tar::EntryType::Block),
        ("image/device", tar::EntryType::Char),
        ("image/fifo", tar::EntryType::Fifo),
    ] {
        layer.entry(kind, name.as_bytes(), b"", 0o666, 0, b"");
    }
    layer.file(INSIDE, 0o6755, outrigger_evil::PROGRAM);
    import(&stage, &layer.bytes(), &json!({})).await?;
    let room = room(&stage).await?;
    let mut all = Vec::new();
    for name in ["block", "device"] {
        let saw = room.word(&["spy", "open", &format!("/image/{name}")]).await?;
        all.push(seen(format!("open the {name}"), saw));
    }
    for name in ["block", "device", "fifo"] {
        let path = format!("/image/{name}");
        let (saw, _) = room.files(FileOp::Read { path, offset: 0, bytes_max: 16 }).await;
        all.push(seen(format!("read the {name}"), saw));
    }
    let setuid = room.request(&[&format!("/{INSIDE}"), "spy", "id"]);
    let executed = room.sandbox.execute(setuid, &()).await.map_err(|error| error.to_string())?;
    all.push(seen("a setuid program", String::from_utf8_lossy(&executed.stdout).trim()));
    room.end().await?;
    stage.images().forget().await?;
    Ok(all)
}

/// Archives that careless readers read differently: what of them is in the sandbox.
pub(crate) async fn ambiguous(stage: OnStage) -> ProbeResult {
    if let Some(lacks) = foreign(&stage, "ambiguous") {
        return lacks;
    }
    let mut all = Vec::new();
    for (hostile, names) in hostile::ambiguous() {
        let saw = match import(&stage, &hostile.layer.bytes(), &json!({})).await {
            Err(reason) if reason.starts_with("failed") => reason,
            Err(_) => "refused".to_owned(),
            Ok(()) => {
                let room = room(&stage).await?;
                let root = "/image".to_owned();
                let glob = FileOp::Glob { root, pattern: "**".to_owned(), paths_max: 100 };
                let (word, reply) = room.files(glob).await;
                room.end().await?;
                let Some(FileReply::Paths { paths, .. }) = reply else { return Err(word) };
                let mut expected: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
                let inside = |path: &String| Path::new("image").join(path.trim_start_matches('/'));
                let strip = |path: &String| PathBuf::from(path.trim_start_matches('/'));
                let mut found: Vec<PathBuf> = paths
                    .iter()
                    .map(|path| if path.contains("image/") { strip(path) } else { inside(path) })
                    .collect();
                found.sort();
                expected.sort();
                if found == expected { "as GNU tar".to_owned() } else { format!("{found:?}") }
            }
        };
        all.push(seen(hostile.name, saw));
    }
    stage.images().forget().await?;
    Ok(all)
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    packed.map_err(|error| error.to_string())
}

fn layer(fill: impl FnOnce(&mut Layer)) -> Vec<u8> {
    let mut layer = Layer::default();
    fill(&mut layer);
    layer.bytes()
}

/// Archives that are much larger once they are unpacked.
fn bombs() -> Result<Vec<(&'static str, Vec<u8>)>, String> {
    let zeros = layer(|layer| layer.file("zeros", 0o644, &vec![0; 80 << 20]));
    let deep = layer(|layer| layer.pax(&[("path", &"d/".repeat(1_000))]));
    let deep = [&deep[..deep.len() - 1024], &layer(|layer| layer.dir("short/", 0o755))].concat();
    let record = layer(|layer| {
        let long = "x".repeat(3 << 20);
        layer.pax(&[("comment", &long)]);
        layer.file("short", 0o644, b"");
    });
    let of = |bytes: &[u8]| [ImageDigest::of(bytes)];
    let packed = |plain: &[u8], packed: Vec<u8>| archive::image(&[packed], &of(plain), &json!({}));
    let dense = packed(&zeros, gzip(&zeros)?);
    let small = layer(|layer| layer.file("small", 0o644, b"x"));
    let (count, digests) = (300, vec![ImageDigest::of(&small); 300]);
    Ok(vec![
        ("an archive in gzip in gzip", gzip(&gzip(&dense)?)?),
        ("gzip, a thousand to one", dense),
        ("a thousand directories deep", packed(&deep, deep.clone())),
        ("a record of 3 MiB", packed(&record, record.clone())),
        ("300 layers", archive::image(&vec![small; count], &digests, &json!({}))),
        ("a zip", b"PK\x03\x04".repeat(10_000)),
    ])
}

/// Imports them.
pub(crate) async fn grown(stage: OnStage) -> ProbeResult {
    if let Some(lacks) = foreign(&stage, "grown") {
        return lacks;
    }
    let before = stage.images().left().await?;
    let mut all = Vec::new();
    for (name, bytes) in bombs()? {
        let memory = own_memory()?;
        let saw = match import_bytes(&stage, &bytes).await {
            Ok(()) => "taken".to_owned(),
            Err(reason) if reason.starts_with("failed") => reason,
            Err(_) => "refused".to_owned(),
        };
        let grown = own_memory()?.saturating_sub(memory);
        let flat = if grown < limits::GROWTH_BYTES_MAX { "memory flat" } else { "memory grew" };
        let note = format!("{} KiB of archive, {} KiB more memory", bytes.len() >> 10, grown >> 10);
        all.push(noted(name, format!("{saw}, {flat}"), note));
    }
    all.push(seen("left", left(&stage, &before).await?));
    Ok(all)
}
