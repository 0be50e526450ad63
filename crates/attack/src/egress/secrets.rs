//! Secrets and what stands for them: out by ways that are not theirs, and back in.
//!
//! Owns the ways. What became of the secret is told by the hosts and the answer.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_gate::{Refusal, Scheme};
use tokio::io::AsyncWriteExt;

use super::hosts::{INVALID, MINTED};
use super::http2::{WHOLE, exchange, head, headers, literal, packed, preface};
use super::wire::{ask, word};
use super::world::{GateRoom, GateWorld, SECRET, grant, place};
use crate::limits;
use crate::observation::{Observation, ProbeResult, noted, seen};
use crate::stage::OnStage;

const BEARER: &str = "Host: §\r\nAuthorization: Bearer @\r\n\r\n";

async fn tried(
    world: &GateWorld,
    room: &GateRoom,
    name: &str,
    (host, request): (&str, &str),
) -> Result<Observation, String> {
    world.hosts.take();
    let reply = room.https(host, request).await?;
    Ok(noted(name, world.fate(room, reply.as_ref()), word(reply.as_ref())))
}

/// The secret, looked for everywhere inside, after it was used and came back.
pub(crate) async fn hunt(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("hunt").await?;
    let get = format!("GET / HTTP/1.1\r\n{BEARER}");
    let mut all = vec![tried(&world, &room, "used before", ("good.test", &get)).await?];
    let backwards = |text: &str| text.chars().rev().collect::<String>();
    for (what, word) in
        [("the secret", backwards(SECRET)), ("the placeholder", backwards(&room.placeholder))]
    {
        let token = room.placeholder.clone();
        let words = ["egress", "hunt", &word];
        let said = room.room.evil(&words, |request| {
            request.env.insert("TOKEN".to_owned(), token);
        });
        let said = said.await?;
        all.extend(said.lines.into_iter().map(|(name, saw)| seen(format!("{what}: {name}"), saw)));
    }
    room.room.end().await?;
    Ok(all)
}

/// The placeholder, sent where its secret does not go.
pub(crate) async fn elsewhere(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let mut narrow = place(grant("good.test", Scheme::Https));
    narrow.grant.paths = vec!["/ok/*".to_owned()];
    let secret = world.seal(None, vec![narrow], SECRET).await?;
    let room = world.room("elsewhere", &world.usual(), &[secret]).await?;
    let ok = format!("GET /ok/1 HTTP/1.1\r\n{BEARER}");
    let mut all = vec![tried(&world, &room, "where it goes", ("good.test", &ok)).await?];
    for (name, host, request) in [
        ("another host", "other.test", ok.clone()),
        ("another path", "good.test", format!("GET /no HTTP/1.1\r\n{BEARER}")),
        ("a path that climbs", "good.test", format!("GET /ok/../no HTTP/1.1\r\n{BEARER}")),
        ("a path with codes", "good.test", format!("GET /ok/%2e%2e/no HTTP/1.1\r\n{BEARER}")),
        (
            "another header",
            "good.test",
            "GET /ok/1 HTTP/1.1\r\nHost: §\r\nReferer: https://x/@\r\n\r\n".to_owned(),
        ),
        ("a query", "good.test", "GET /ok/1?key=@ HTTP/1.1\r\nHost: §\r\n\r\n".to_owned()),
        ("the path", "good.test", "GET /ok/@ HTTP/1.1\r\nHost: §\r\n\r\n".to_owned()),
    ] {
        all.push(tried(&world, &room, name, (host, &request)).await?);
    }
    let plain = format!("GET http://good.test/ok/1 HTTP/1.1\r\n{BEARER}");
    let reply = room.plain(&room.filled("good.test", &plain)).await?;
    all.push(seen("without TLS", world.fate(&room, reply.as_ref())));
    all.push(seen("told", world.alarm(&room, Refusal::Secret).await));
    room.room.end().await?;
    Ok(all)
}

/// The placeholder in pieces and in other forms.
pub(crate) async fn forms(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("forms").await?;
    let token = room.placeholder.clone();
    let (left, right) = token.split_at(20);
    let body = |body: &str| {
        format!("POST / HTTP/1.1\r\nHost: §\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let hex: String = token.bytes().map(|byte| format!("{byte:02x}")).collect();
    let escaped: String = token.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let mut all = Vec::new();
    for (name, request) in [
        (
            "Basic",
            format!(
                "GET / HTTP/1.1\r\nHost: §\r\nAuthorization: Basic {}\r\n\r\n",
                STANDARD.encode(format!("x:{token}"))
            ),
        ),
        (
            "twice in one header",
            "GET / HTTP/1.1\r\nHost: §\r\nAuthorization: Bearer @ @\r\n\r\n".to_owned(),
        ),
        (
            "as a part of a word",
            "GET / HTTP/1.1\r\nHost: §\r\nAuthorization: Bearer x@\r\n\r\n".to_owned(),
        ),
        ("base64 in a body", body(&STANDARD.encode(format!("x:{token}")))),
        ("hex in a body", body(&hex)),
        ("JSON in a body", body(&format!("{{\"a\":\"{escaped}\"}}"))),
        (
            "over two headers",
            format!("GET / HTTP/1.1\r\nHost: §\r\nX-A: {left}\r\nX-A: {right}\r\n\r\n"),
        ),
        (
            "over two lines of a header",
            format!("GET / HTTP/1.1\r\nHost: §\r\nX-A: {left}\r\n {right}\r\n\r\n"),
        ),
    ] {
        all.push(tried(&world, &room, name, ("good.test", &request)).await?);
    }
    let tunnel = room.tunnel("good.test:443", Some("good.test"), &room.authority, &[]).await?;
    let mut tunnel = tunnel.ok_or("no tunnel")?;
    let head = "POST / HTTP/1.1\r\nHost: good.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    let _ = tunnel.write_all(head.as_bytes()).await;
    for letter in token.chars() {
        let _ = tunnel.write_all(format!("1\r\n{letter}\r\n").as_bytes()).await;
        let _ = tunnel.flush().await;
    }
    let reply = ask(&mut tunnel, b"0\r\n\r\n").await;
    all.push(seen("over chunks of one byte", world.fate(&room, reply.as_ref())));
    room.room.end().await?;
    Ok(all)
}

/// Hosts that send back what they got.
pub(crate) async fn echoes(stage: OnStage) -> ProbeResult {
    let mut all =
        reflected(Arc::clone(&stage), &[("in a body", ""), ("in a header", "header")]).await?;
    all.extend(trailer(stage).await?);
    Ok(all)
}

/// It comes back behind the body, which programs get that speak HTTP/2.
async fn trailer(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    // Of symbols whose codes are known without a table.
    let value = "cest0a1is2".repeat(4);
    let secret = world.seal(None, vec![place(grant("good.test", Scheme::Https))], &value).await?;
    let room = world.room("trailer", &world.usual(), &[secret]).await?;
    let bearer = literal("authorization", &format!("Bearer {}", room.placeholder));
    let block = [head("good.test", "/trailer"), bearer, literal("te", "trailers")].concat();
    let sent = [preface(&[]), headers(1, WHOLE, &block)].concat();
    let (came, _) = exchange(&room, &sent, 1, limits::FLOOD_MS_MAX).await?;
    let has = |text: &[u8]| came.windows(text.len()).any(|window| window == text);
    let alarm = world.alarm(&room, Refusal::Echo).await;
    let (raw, packed) = (value.as_bytes(), packed(&value));
    let saw = if has(raw) || has(&packed) { "it came in" } else { "the placeholder came" };
    room.room.end().await?;
    Ok(vec![noted("in a trailer", format!("{saw}, {alarm}"), format!("{} bytes", came.len()))])
}

/// The same in other forms.
pub(crate) async fn transformed(stage: OnStage) -> ProbeResult {
    let ways = ["hex", "base64", "packed", "name", "reversed"].map(|way| (way, way));
    let ways = [&ways[..], &[("in two halves", "first")]].concat();
    let mut all = reflected(Arc::clone(&stage), &ways).await?;
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("last").await?;
    room.https("good.test", &format!("GET / HTTP/1.1\r\n{BEARER}")).await?;
    // What was told of the first is not of interest.
    world.alarm(&room, Refusal::Echo).await;
    let reply = room.https("other.test", "GET /last HTTP/1.1\r\nHost: §\r\n\r\n").await?;
    let came = reply.is_some_and(|reply| reply.body.contains(SECRET));
    let came = if came { "it came in" } else { "the placeholder came" };
    let alarm = world.alarm(&room, Refusal::Echo).await;
    all.push(seen("by another host", format!("{came}, {alarm}")));
    room.room.end().await?;
    Ok(all)
}

async fn reflected(stage: OnStage, ways: &[(&str, &str)]) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("echo").await?;
    let mut all = Vec::new();
    for (name, path) in ways {
        let request = format!("GET /{path} HTTP/1.1\r\n{BEARER}");
        let reply = room.https("good.test", &request).await?;
        let all_of = |reply: super::wire::HostReply| format!("{}{}", reply.head, reply.body);
        let came = reply.map(all_of).unwrap_or_default();
        let lower = came.to_ascii_lowercase();
        let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
        let coded = STANDARD.encode(format!("a:{SECRET}"));
        let reversed: String = SECRET.chars().rev().collect();
        let forms = [SECRET.to_ascii_lowercase(), hex(SECRET), reversed.to_ascii_lowercase()];
        let secret = forms.iter().any(|form| lower.contains(form))
            || came.contains(&coded[4..48])
            || lower.contains(&SECRET.to_ascii_lowercase()[..20]);
        let alarm = world.alarm(&room, Refusal::Echo).await;
        let saw = match secret {
            true => format!("it came in, {alarm}"),
            false if came.contains("x-outrigger-refused") => "refused".to_owned(),
            false => format!("the placeholder came, {alarm}"),
        };
        all.push(seen(*name, saw));
    }
    room.room.end().await?;
    Ok(all)
}

/// A token that a host makes for who shows the secret.
pub(crate) async fn minted(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("minted").await?;
    let post = format!("POST /token HTTP/1.1\r\nContent-Length: 0\r\n{BEARER}");
    let reply = room.https("good.test", &post).await?;
    let came = reply.is_some_and(|reply| reply.body.contains(MINTED));
    room.room.end().await?;
    Ok(vec![seen("a token that was made", if came { "it came in" } else { "a placeholder came" })])
}

/// Hosts that have no valid certificate, and are where the secret goes.
pub(crate) async fn certificates(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let places = INVALID.iter().map(|host| place(grant(host, Scheme::Https))).collect();
    let secret = world.seal(None, places, SECRET).await?;
    let room = world.room("certificates", &world.network(Vec::new()), &[secret]).await?;
    let mut all = Vec::new();
    for host in INVALID {
        let reply = room.https(host, &format!("GET / HTTP/1.1\r\n{BEARER}")).await?;
        let fate = world.fate(&room, reply.as_ref());
        all.push(seen(host, format!("{}, {fate}", word(reply.as_ref()))));
    }
    // A place without TLS: there is nobody whose certificate could be looked at.
    let plain = world.seal(None, vec![place(grant("good.test", Scheme::Http))], SECRET).await;
    let saw = match plain {
        Err(_) => "refused".to_owned(),
        Ok(secret) => {
            let room = world.open(room.room.clone(), &world.network(Vec::new()), &[secret]).await?;
            let request = format!("GET http://good.test/ HTTP/1.1\r\n{BEARER}");
            let reply = room.plain(&room.filled("good.test", &request)).await?;
            world.fate(&room, reply.as_ref())
        }
    };
    all.push(seen("a place without TLS", saw));
    room.room.end().await?;
    Ok(all)
}
