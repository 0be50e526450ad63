//! Requests that are ambiguous, ask for more than HTTP, or push.
//!
//! Owns their texts.

use outrigger_gate::{Refusal, Scheme, ready};

use super::wire::{HostReply, ask, word};
use super::world::{GateWorld, SECRET, grant};
use crate::observation::{ProbeResult, seen};
use crate::stage::OnStage;

/// Requests that two servers could read as different ones, `§` for the host.
const AMBIGUOUS: &[(&str, &str)] = &[
    (
        "length and encoding",
        "POST * HTTP/1.1\r\nHost: §\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "two lengths",
        "POST * HTTP/1.1\r\nHost: §\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nhello",
    ),
    ("a length with a sign", "POST * HTTP/1.1\r\nHost: §\r\nContent-Length: +5\r\n\r\nhello"),
    ("a space before the colon", "POST * HTTP/1.1\r\nHost: §\r\nContent-Length : 5\r\n\r\nhello"),
    (
        "another encoding",
        "POST * HTTP/1.1\r\nHost: §\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "encoding twice",
        "POST * HTTP/1.1\r\nHost: §\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
    ),
    (
        "encoding behind a tab",
        "POST * HTTP/1.1\r\nHost: §\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "a header that goes on",
        "POST * HTTP/1.1\r\nHost: §\r\nX: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    ("two hosts", "GET * HTTP/1.1\r\nHost: §\r\nHost: evil.test\r\n\r\n"),
    ("line feeds alone", "GET * HTTP/1.1\nHost: §\n\n"),
    ("a line feed inside", "GET * HTTP/1.1\r\nHost: §\r\nX: a\nTransfer-Encoding: chunked\r\n\r\n"),
    ("a carriage return inside", "GET * HTTP/1.1\r\nHost: §\r\nX: a\rb\r\n\r\n"),
    ("a header of 1 MiB", "GET * HTTP/1.1\r\nHost: §\r\nX: ^\r\n\r\n"),
    ("TRACE", "TRACE * HTTP/1.1\r\nHost: §\r\n\r\n"),
];

/// Heads with two readings, to the gate and within TLS.
pub(crate) async fn ambiguous(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("heads").await?;
    let mut all = Vec::new();
    for (name, template) in AMBIGUOUS {
        let template = template.replace('^', &"y".repeat(1 << 20));
        let request = template.replace('*', "http://§/");
        let reply = room.plain(&room.filled("good.test", &request)).await?;
        all.push(seen(format!("{name}, by URL"), word(reply.as_ref())));
        let reply = room.https("good.test", &template.replace('*', "/")).await?;
        all.push(seen(format!("{name}, in TLS"), word(reply.as_ref())));
    }
    let requests = world.hosts.take().requests.len();
    all.push(seen(
        "what left",
        if requests == 0 { "nothing".to_owned() } else { requests.to_string() },
    ));
    room.room.end().await?;
    Ok(all)
}

/// Other protocols out of HTTP, with the secret in the request that asks for them.
pub(crate) async fn upgrades(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("upgrades").await?;
    let mut all = Vec::new();
    for (name, upgrade) in [("another", "x, h2"), ("h2c", "h2c")] {
        let request = format!(
            "GET / HTTP/1.1\r\nHost: §\r\nConnection: Upgrade, HTTP2-Settings\r\n\
             Upgrade: {upgrade}\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nX-Token: @\r\n\r\n"
        );
        let reply = room.https("good.test", &request).await?;
        let asked = world.hosts.take().requests.concat().to_ascii_lowercase();
        let saw = if asked.contains("upgrade") {
            "the wish left".to_owned()
        } else {
            word(reply.as_ref())
        };
        all.push(seen(name, saw));
    }
    let wish = "GET / HTTP/1.1\r\nHost: §\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let mut reading = grant("good.test", Scheme::Https);
    reading.methods = vec!["GET".to_owned()];
    let reader = world.room("reader", &world.network(vec![reading]), &[]).await?;
    for (name, room) in
        [("websocket to a host that was named", room), ("websocket where reading is", reader)]
    {
        let reply = room.https("good.test", wish).await?;
        let left = world.hosts.take().requests.concat().to_ascii_lowercase().contains("upgrade");
        let saw = if left { "the wish left".to_owned() } else { word(reply.as_ref()) };
        all.push(seen(name, saw));
        room.room.end().await?;
    }
    Ok(all)
}

/// A signature over what stands for the secret, and one in a query.
pub(crate) async fn signed(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("signed").await?;
    let signed = "PUT /big HTTP/1.1\r\nHost: §\r\nContent-Length: 0\r\nAuthorization: \
                  AWS4-HMAC-SHA256 Credential=AKIA/20261127/x/s3/aws4_request, Signature=00ff\r\n\r\n";
    room.https("good.test", signed).await?;
    let asked = world.hosts.take().requests.concat();
    let saw = if asked.contains("Signature=00ff") { "as it was signed" } else { "signed anew" };
    let first = seen("a signature", saw);
    let reply = room
        .https(
            "good.test",
            "GET /?X-Amz-Credential=@&X-Amz-Signature=0 HTTP/1.1\r\nHost: §\r\n\r\n",
        )
        .await?;
    let second = seen("presigned", world.fate(&room, reply.as_ref()));
    room.room.end().await?;
    Ok(vec![first, second])
}

const OLD: &str = "0123456789012345678901234567890123456789";
const NONE: &str = "0000000000000000000000000000000000000000";

fn push(path: &str, new: &str, name: &str) -> String {
    let line = format!("{OLD} {new} {name}\0 report-status");
    let body = format!("{:04x}{line}0000PACK", line.len() + 4);
    format!(
        "POST {path}/git-receive-pack HTTP/1.1\r\nHost: §\r\nAuthorization: Bearer @\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn get(method: &str, path: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: §\r\nAuthorization: Bearer @\r\nContent-Length: 0\r\n\r\n"
    )
}

/// A repository with a secret for one kind of branch, and all that git and its hosts have
/// beside that.
pub(crate) async fn git(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let refs = ["refs/heads/agent/*".to_owned()];
    let places = ready::repository("https://git.test/o/r", &refs).ok_or("no repository")?;
    let secret = world.seal(None, places, SECRET).await?;
    let room = world.room("git", &world.network(Vec::new()), &[secret]).await?;
    let new = OLD.replace('9', "8");
    let mut all = Vec::new();
    for (name, request) in [
        ("its own branch", push("/o/r", &new, "refs/heads/agent/fix")),
        ("main", push("/o/r", &new, "refs/heads/main")),
        ("a tag", push("/o/r", &new, "refs/tags/v1")),
        ("delete its own branch", push("/o/r", NONE, "refs/heads/agent/fix")),
        ("a climbing name", push("/o/r", &new, "refs/heads/agent/../main")),
        ("another repository", push("/o/other", &new, "refs/heads/agent/fix")),
        ("another by climbing", push("/o/r/../other", &new, "refs/heads/agent/fix")),
        ("the old protocol", get("GET", "/o/r/HEAD")),
        ("large files", get("POST", "/o/r/info/lfs/objects/batch")),
        ("two services", get("GET", "/o/r/info/refs?service=git-upload-pack&service=x")),
        ("the host's API", get("POST", "/api/v1/repos")),
    ] {
        let reply = room.https("git.test", &request).await?;
        let left = !world.hosts.take().requests.is_empty();
        let saw = word(reply.as_ref());
        all.push(seen(
            name,
            if left && saw != "passed" { format!("{saw}, but it left") } else { saw },
        ));
    }
    room.room.end().await?;
    Ok(all)
}

/// Ways to carry something out by a host that may be reached in part.
pub(crate) async fn carried(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let mut reading = grant("good.test", Scheme::Https);
    (reading.methods, reading.paths) = (vec!["GET".to_owned()], vec!["/repos/mine/*".to_owned()]);
    let room = world.room("carried", &world.network(vec![reading]), &[]).await?;
    let mut all = Vec::new();
    for (name, request) in [
        ("a gist", get("POST", "/gists")),
        ("a comment", get("POST", "/repos/mine/issues/1/comments")),
        ("a fork", get("POST", "/repos/mine/forks")),
        ("somebody else's", get("GET", "/repos/other/x")),
        ("somebody else's by climbing", get("GET", "/repos/mine/../other/x")),
        ("somebody else's by codes", get("GET", "/repos/mine/%2e%2e/other/x")),
        ("in a query of what may be read", get("GET", "/repos/mine/x?data")),
    ] {
        let reply: Option<HostReply> = room.https("good.test", &request).await?;
        let saw = if world.hosts.take().requests.is_empty() {
            word(reply.as_ref())
        } else {
            "it left".to_owned()
        };
        all.push(seen(name, saw));
    }
    room.room.end().await?;
    Ok(all)
}

/// A body that is long before the placeholder comes.
pub(crate) async fn padded(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("padded").await?;
    let long = "x".repeat(world.stage.scaled(2 << 20, 16 << 20));
    let mut tunnel = room
        .tunnel("good.test:443", Some("good.test"), &room.authority, &[])
        .await?
        .ok_or("no tunnel")?;
    let length = long.len() + room.placeholder.len();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: {length}\r\n\r\n{long}{}",
        room.placeholder
    );
    let reply = ask(&mut tunnel, request.as_bytes()).await;
    let alarm = world.alarm(&room, Refusal::Secret).await;
    let whole = world.hosts.take().requests.concat().contains(&room.placeholder);
    let saw = if whole { "it left".to_owned() } else { format!("cut off, {alarm}") };
    room.room.end().await?;
    drop(reply);
    Ok(vec![seen("behind a long body", saw)])
}
