//! What outlives what: a secret its revocation, the gate its death, an authority its sandbox.
//!
//! Owns the moments at which something ends.

use std::path::Path;
use std::time::{Duration, Instant};

use outrigger_gate::SealedSecret;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_rustls::client::TlsStream;

use super::wire::word;
use super::world::{GateRoom, GateWorld, SECRET};
use crate::limits;
use crate::observation::{ProbeResult, noted, seen};
use crate::stage::OnStage;

const USE: &str = "GET / HTTP/1.1\r\nHost: §\r\nAuthorization: Bearer @\r\n\r\n";

/// A request with the secret that goes on for as long as nobody ends it.
async fn under_way(room: &GateRoom) -> Result<TlsStream<DuplexStream>, String> {
    let tunnel = room.tunnel("good.test:443", Some("good.test"), &room.authority, &[]).await?;
    let mut tunnel = tunnel.ok_or("no tunnel")?;
    let request = room.filled("good.test", &USE.replace("GET /", "GET /hold"));
    tunnel.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
    tunnel.flush().await.map_err(|error| error.to_string())?;
    let limit = Duration::from_millis(limits::ANSWER_MS_MAX);
    let begun = tokio::time::timeout(limit, tunnel.read_u8()).await;
    begun.map_err(|_| "no answer began")?.map_err(|error| error.to_string())?;
    Ok(tunnel)
}

/// Until nothing more comes.
async fn ended(tunnel: &mut TlsStream<DuplexStream>) -> (String, u128) {
    let begun = Instant::now();
    let mut space = vec![0; limits::WIRE_BYTES];
    let rest = async { while matches!(tunnel.read(&mut space).await, Ok(1..)) {} };
    let limit = Duration::from_millis(limits::ANSWER_MS_MAX);
    let done = tokio::time::timeout(limit, rest).await.is_ok();
    let took = begun.elapsed().as_millis();
    let in_time = done && took <= limits::REVOKED_MS_MAX;
    (if in_time { "ended" } else { "went on" }.to_owned(), took)
}

/// A secret that is taken away, or becomes another, while a request with it is under way.
pub(crate) async fn revoked(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let secret = world.secret().await?;
    let room = world.room("revoked", &world.usual(), std::slice::from_ref(&secret)).await?;
    let mut all = Vec::new();
    let mut tunnel = under_way(&room).await?;
    world.hosts.take();
    world.client.revoke(&secret.id).await.map_err(|error| error.to_string())?;
    let (saw, took) = ended(&mut tunnel).await;
    all.push(noted("what was under way", saw, format!("{took} ms after it was revoked")));
    room.https("good.test", USE).await?;
    all.push(seen("afterwards", sent(&world)));
    let next = "ghp_rotatedROTATED0123456789abcdefghijkl";
    let rotated: SealedSecret =
        world.seal(Some(&secret), secret.terms.places.clone(), next).await?;
    let room = world.open(room.room, &world.usual(), &[rotated]).await?;
    let reply = room.https("good.test", USE).await?;
    let saw = format!("{}, {}", word(reply.as_ref()), sent(&world));
    all.push(seen("rotated", saw));
    room.room.end().await?;
    Ok(all)
}

/// Whether the hosts saw the secret since then.
fn sent(world: &GateWorld) -> &'static str {
    let seen = world.hosts.take().requests.concat().contains(SECRET);
    if seen { "the secret left" } else { "no secret left" }
}

/// The gate, killed while it holds a secret that it has put into a request.
pub(crate) async fn killed(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let secret = world.secret().await?;
    let secrets = std::slice::from_ref(&secret);
    let room = world.room("killed", &world.usual(), secrets).await?;
    let mut tunnel = under_way(&room).await?;
    let gate = world.gates().pop().ok_or("no gate")?;
    let process = format!("/proc/{}", gate.as_raw_nonzero());
    let text =
        |file: &str| std::fs::read_to_string(format!("{process}/{file}")).unwrap_or_default();
    let core = text("limits").lines().any(|line| {
        line.starts_with("Max core file size") && line.split_ascii_whitespace().nth(4) == Some("0")
    });
    let mut all = vec![seen("cores of the gate", if core { "none" } else { "some" })];
    all.push(seen("its environment and command", {
        let told = [text("environ"), text("cmdline")].concat();
        if told.contains(SECRET) { "the secret" } else { "nothing" }
    }));
    let swapped = text("status").lines().any(|line| line == "VmLck:\t       0 kB");
    all.push(seen("its memory", if swapped { "may be swapped" } else { "is locked" }));
    world.kill();
    let (saw, _) = ended(&mut tunnel).await;
    all.push(seen("what was under way", saw));
    let left = if holds(&world.gate_dir(), SECRET.as_bytes()) { "the secret" } else { "nothing" };
    all.push(seen("what it left in its directory", left));
    let room = world.open(room.room, &world.usual(), secrets).await?;
    let reply = room.https("good.test", USE).await?;
    all.push(seen("the next gate", word(reply.as_ref())));
    room.room.end().await?;
    Ok(all)
}

/// Whether a file beneath holds a text.
fn holds(path: &Path, text: &[u8]) -> bool {
    if let Ok(entries) = std::fs::read_dir(path) {
        return entries.flatten().any(|entry| holds(&entry.path(), text));
    }
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes.windows(text.len()).any(|window| window == text)
}

/// What one sandbox has of another: its authority and its placeholder.
pub(crate) async fn exchanged(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let secret = world.secret().await?;
    let secrets = std::slice::from_ref(&secret);
    let one = world.room("one", &world.usual(), secrets).await?;
    let other = world.room("other", &world.usual(), secrets).await?;
    let private = [&one.authority, &other.authority].iter().any(|it| it.contains("PRIVATE"));
    let mut all = vec![seen("what is told of it", if private { "its key" } else { "no key" })];
    let trusting = other.tunnel("good.test:443", Some("good.test"), &one.authority, &[]).await?;
    all.push(seen("trusted elsewhere", if trusting.is_none() { "refused" } else { "trusted" }));
    world.hosts.take();
    other.https("good.test", &USE.replace('@', &one.placeholder)).await?;
    all.push(seen("its placeholder elsewhere", sent(&world)));
    one.room.end().await?;
    other.room.end().await?;
    Ok(all)
}
