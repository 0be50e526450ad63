//! Connections that are not what they say, or never end.
//!
//! Owns the three places that name a host, and the floods. That the gate held is judged by
//! others: they are served meanwhile, and it does not grow.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, prlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::http2::{GOES_ON, WHOLE, exchange, frame, head, headers, literal, preface};
use super::wire::{ask, word};
use super::world::GateWorld;
use crate::limits;
use crate::observation::{ProbeResult, noted, seen};
use crate::stage::{OnStage, memory_of};

/// Two that are granted and one that is not.
const HOSTS: [&str; 3] = ["good.test", "other.test", "evil.test"];
/// A setting of HTTP/2: nothing of an answer may be sent.
const NO_WINDOW: [u8; 6] = [0, 4, 0, 0, 0, 0];
const GET: &str = "GET / HTTP/1.1\r\nHost: §\r\n\r\n";
/// A greeting of TLS 1.0 with one old suite and the name `good.test` (RFC 2246, RFC 6066).
const TLS_1_0: &[u8] = b"\x16\x03\x01\0\x41\x01\0\0\x3d\x03\x01\
    0123456789abcdef0123456789abcdef\0\0\x02\0\x2f\x01\0\0\x12\0\0\0\x0e\0\x0c\0\0\x09good.test";

/// One name in CONNECT, one in TLS, one in the request, in all their orders.
pub(crate) async fn three_names(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("names").await?;
    let mut all = Vec::new();
    for number in 0..HOSTS.len().pow(3) {
        let [connect, name, host] = [number / 9, number / 3 % 3, number % 3].map(|it| HOSTS[it]);
        let to = format!("{connect}:443");
        let tunnel = room.tunnel(&to, Some(name), &room.authority, &[]).await?;
        let saw = match tunnel {
            Some(mut tunnel) => {
                let request = room.filled(host, GET);
                word(ask(&mut tunnel, request.as_bytes()).await.as_ref())
            }
            None => "refused".to_owned(),
        };
        let one = connect == name && name == host && host != "evil.test";
        let what = if one { "one host" } else { "several hosts" };
        all.push(seen(format!("{connect}, {name}, {host}: {what}"), saw));
    }
    for number in 0..HOSTS.len().pow(2) {
        let [name, host] = [number / 3, number % 3].map(|it| HOSTS[it]);
        let saw = match room.straight(Some(name)).await? {
            Some(mut stream) => {
                let request = room.filled(host, GET);
                word(ask(&mut stream, request.as_bytes()).await.as_ref())
            }
            None => "refused".to_owned(),
        };
        let one = name == host && host != "evil.test";
        let what = if one { "one host" } else { "several hosts" };
        all.push(seen(format!("without CONNECT, {name}, {host}: {what}"), saw));
    }
    let mut wire = room.captured(80).await?;
    let saw = word(ask(&mut wire, room.filled("evil.test", GET).as_bytes()).await.as_ref());
    all.push(seen("without TLS, evil.test: several hosts", saw));
    for authority in ["good.test", "other.test", "evil.test"] {
        world.hosts.take();
        let sent = [preface(&[]), headers(1, WHOLE, &head(authority, "/"))].concat();
        exchange(&room, &sent, 1, limits::FLOOD_MS_MAX).await?;
        let reached = if world.hosts.take().requests.is_empty() { "refused" } else { "passed" };
        let what = if authority == "good.test" { "one host" } else { "several hosts" };
        all.push(seen(format!("HTTP/2, :authority {authority}: {what}"), reached));
    }
    room.room.end().await?;
    Ok(all)
}

/// What comes behind CONNECT and is not the TLS that it should be.
pub(crate) async fn not_tls(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("tls").await?;
    let mut all = Vec::new();
    for (name, bytes) in [
        ("HTTP", room.filled("good.test", GET).into_bytes()),
        ("SSH", b"SSH-2.0-OpenSSH_9.9\r\n".to_vec()),
        ("TLS 1.0", TLS_1_0.to_vec()),
        ("nothing that anybody speaks", vec![0; 64]),
    ] {
        let (word, mut wire) = room.connect("good.test:443").await?;
        let _ = wire.write_all(&bytes).await;
        let mut answer = Vec::new();
        let end = Duration::from_millis(limits::ANSWER_MS_MAX);
        let ended = tokio::time::timeout(end, wire.read_to_end(&mut answer)).await.is_ok();
        let saw = match (word.as_str(), ended, world.hosts.take().names.is_empty()) {
            ("passed", true, true) => "closed, nothing left".to_owned(),
            (word, ended, empty) => format!("{word}, closed {ended}, nothing left {empty}"),
        };
        all.push(seen(name, saw));
    }
    let tunnel = room.tunnel("good.test:443", None, &room.authority, &[]).await?;
    all.push(seen("no name", if tunnel.is_none() { "closed, nothing left" } else { "passed" }));
    let straight = room.straight(None).await?;
    let saw = if straight.is_none() { "closed, nothing left" } else { "passed" };
    all.push(seen("no name, without CONNECT", saw));
    room.room.end().await?;
    Ok(all)
}

/// Floods of HTTP/2, while another sandbox is served.
pub(crate) async fn floods(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("flood").await?;
    let other = world.usual_room("beside").await?;
    let (get, endless) = (head("good.test", "/"), head("good.test", "/endless"));
    let streams = |count: u32| (0..count).map(|number| 1 + 2 * number);
    let reset =
        |stream| [headers(stream, WHOLE, &get), frame(3, 0, stream, &[0, 0, 0, 8])].concat();
    // One entry of the table, and that entry again and again (RFC 7541, 6.1 and 6.2.1).
    let bomb = [&get[..], &[0x40, 1, b'x', 0x7e], &[b'y'; 0x7e], &[0xbe; 16_000]].concat();
    let more = frame(9, 0, 1, &literal("x", "y").repeat(1_000));
    let times = world.stage.scaled(100, 1_000);
    let mut all = Vec::new();
    for (name, settings, flood) in [
        ("rapid reset (CVE-2023-44487)", &[][..], streams(20 * times).flat_map(reset).collect()),
        (
            "continuation without end (CVE-2024-27316)",
            &[],
            [headers(1, GOES_ON, &get), more.repeat(times as usize)].concat(),
        ),
        ("a table that unfolds", &[], headers(1, WHOLE, &bomb)),
        (
            "a window of nothing",
            &NO_WINDOW,
            streams(90).flat_map(|stream| headers(stream, WHOLE, &endless)).collect::<Vec<u8>>(),
        ),
    ] {
        let before = gate_memory(&world)?;
        let (_, closed) =
            exchange(&room, &[preface(settings), flood].concat(), usize::MAX, limits::FLOOD_MS_MAX)
                .await?;
        let grown = gate_memory(&world)?.saturating_sub(before);
        let begun = Instant::now();
        let reply = other.https("good.test", GET).await?;
        let saw = match (word(reply.as_ref()).as_str(), grown < limits::GATE_GROWTH_BYTES_MAX) {
            ("passed", true) => "others are served, memory flat".to_owned(),
            (word, flat) => format!("{word}, memory flat {flat}"),
        };
        let (came, took) =
            (if closed { "closed" } else { "left open" }, begun.elapsed().as_millis());
        let note =
            format!("{came}, {} KiB more memory, another answered in {took} ms", grown >> 10);
        all.push(noted(name, saw, note));
    }
    room.room.end().await?;
    other.room.end().await?;
    Ok(all)
}

/// What the gate holds, in bytes.
fn gate_memory(world: &GateWorld) -> Result<u64, String> {
    let gate = world.gates().pop().ok_or("the gate is gone")?;
    memory_of(&gate.as_raw_nonzero().to_string())
}

/// Heads that never end, on as many connections as there are.
pub(crate) async fn slow(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("slow").await?;
    let other = world.usual_room("beside").await?;
    let (port, count) = (room.port.to_string(), limits::HALF_OPEN.to_string());
    let whole = world.stage.scaled(false, true);
    let served = async {
        let mut worst = 0;
        for _ in 0..10 {
            let begun = Instant::now();
            let reply = other.https("good.test", GET).await?;
            if word(reply.as_ref()) != "passed" {
                return Err(word(reply.as_ref()));
            }
            worst = worst.max(begun.elapsed().as_millis());
        }
        Ok::<_, String>(worst)
    };
    let words = ["egress", "slow", &port, &count];
    let deadline = if whole { limits::ATTACK_MS_MAX } else { 3_000 };
    let slow = room.room.evil(&words, |request| request.deadline_ms = deadline);
    let (slow, served) = tokio::join!(slow, served);
    let (saw, note) = match served {
        Ok(worst) => ("served".to_owned(), format!("the slowest in {worst} ms")),
        Err(word) => (word, String::new()),
    };
    let mut all = vec![noted("another sandbox", saw, note)];
    if whole {
        let said = slow?.lines.into_values().next().unwrap_or_default();
        all.push(seen("heads that never end", said));
    }
    room.room.end().await?;
    other.room.end().await?;
    Ok(all)
}

/// As many requests at once as the gate has descriptors for, none of whose answers is read.
pub(crate) async fn hoarded(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = Arc::new(world.usual_room("hoard").await?);
    let other = world.usual_room("beside").await?;
    let gate = world.gates().pop().ok_or("the gate is gone")?;
    // Fewer than it has elsewhere: what one sandbox can have is more than any host gives.
    let few = Rlimit { current: Some(limits::DESCRIPTORS), maximum: Some(limits::DESCRIPTORS) };
    prlimit(Some(gate), Resource::Nofile, few).map_err(|error| error.to_string())?;
    let endless = head("good.test", "/endless");
    let streams = (0..limits::STREAMS).flat_map(|it| headers(1 + 2 * it, WHOLE, &endless));
    let sent = [preface(&NO_WINDOW), streams.collect()].concat();
    let mut hoards = tokio::task::JoinSet::new();
    for _ in 0..limits::HOARDS {
        let (room, sent) = (Arc::clone(&room), sent.clone());
        let hoard = async move { exchange(&room, &sent, usize::MAX, limits::ATTACK_MS_MAX).await };
        hoards.spawn(hoard);
    }
    // Until the hosts are asked for no more: there is nothing left to ask with.
    let (mut asked, mut still, mut looks) = (0, 0, 0..limits::TAKEN_LOOKS_MAX);
    while still < limits::STILL_LOOKS {
        looks.next().ok_or("the gate has descriptors left")?;
        tokio::time::sleep(Duration::from_millis(limits::TAKEN_PAUSE_MS)).await;
        let more = world.hosts.take().names.len();
        still = if more == 0 && asked > 0 { still + 1 } else { 0 };
        asked += more;
    }
    let limit = Duration::from_millis(limits::BESIDE_MS_MAX);
    let saw = match tokio::time::timeout(limit, other.https("good.test", GET)).await {
        Ok(reply) => word(reply?.as_ref()),
        Err(_) => "not served".to_owned(),
    };
    hoards.shutdown().await;
    Ok(vec![noted("another sandbox beside a hoard", saw, format!("{asked} connections outside"))])
}
