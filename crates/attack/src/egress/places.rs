//! Places that are not granted: addresses, names, ways round the gate.
//!
//! Owns the spellings. What left the gate is told by the hosts: every name goes by them.

use outrigger_gate::{Grant, Network, Scheme};

use super::wire::word;
use super::world::{GateWorld, grant};
use crate::observation::{Observation, ProbeResult, noted, seen};
use crate::stage::OnStage;

/// Metadata services, loopback and private networks, in the spellings of inet_aton(3), of URLs,
/// and of version 6 that hides version 4.
const ADDRESSES: &[&str] = &[
    "169.254.169.254",
    "169.254.169.254.",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "0xa9fea9fe",
    "2852039166",
    "0251.0376.0251.0376",
    "169.254.43518",
    "[fd00:ec2::254]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "metadata.google.internal",
    "127.0.0.1",
    "127.1",
    "0x7f000001",
    "0.0.0.0",
    "[::1]",
    "localhost",
    "10.0.0.1",
    "192.168.1",
    "[fe80::1%25eth0]",
];

/// Names around `good.test`, which is granted.
const NAMES: &[&str] = &[
    "evil.test\0.good.test",
    "evil.test%00.good.test",
    "good.test.evil.test",
    "notgood.test",
    "sub.good.test",
    "good.test.",
    ".good.test",
    "good.test@evil.test",
    "evil.test@good.test",
    "evil.test#.good.test",
    "evil.test/.good.test",
    "evil.test\\.good.test",
    "good%2etest",
    "go\u{3bf}d.test",
    "xn--gd-jbab.test",
    "good.test:443:80",
];

/// What left the gate meanwhile.
fn left(world: &GateWorld) -> Observation {
    let names = world.hosts.take().names;
    seen("what left", if names.is_empty() { "nothing".to_owned() } else { names.join(" ") })
}

/// Addresses that nobody granted, by CONNECT and by URL.
pub(crate) async fn addresses(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("addresses").await?;
    let mut all = Vec::new();
    for address in ADDRESSES {
        all.push(seen(
            format!("connect {address}"),
            room.connect(&format!("{address}:443")).await?.0,
        ));
        // As IMDSv2 wants it.
        let put = format!(
            "PUT http://{address}/latest/api/token HTTP/1.1\r\nHost: {address}\r\n\
             X-aws-ec2-metadata-token-ttl-seconds: 60\r\nContent-Length: 0\r\n\r\n"
        );
        all.push(seen(format!("url {address}"), word(room.plain(&put).await?.as_ref())));
    }
    all.push(left(&world));
    room.room.end().await?;
    Ok(all)
}

/// What is granted as a public host, and lies inside.
pub(crate) async fn inside(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let hosts = [
        "localhost",
        "127.0.0.1",
        "10.0.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "::1",
        "fd00:ec2::254",
    ];
    // A gate that does not hold finds nobody at this port.
    let grants = hosts.map(|host| Grant { port: 9, ..grant(host, Scheme::Http) }).into();
    let room = world.room("inside", &Network { grants, ..Network::default() }, &[]).await?;
    let mut all = Vec::new();
    for host in hosts {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let request = format!("GET http://{host}:9/ HTTP/1.1\r\nHost: {host}:9\r\n\r\n");
        all.push(seen(host, word(room.plain(&request).await?.as_ref())));
    }
    room.room.end().await?;
    Ok(all)
}

/// A redirect to a metadata service, followed.
pub(crate) async fn redirect(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("redirect").await?;
    let reply = room.https("good.test", "GET /redirect HTTP/1.1\r\nHost: §\r\n\r\n").await?;
    let handed = reply.is_some_and(|reply| reply.status() == "302");
    let first = seen("the redirect", if handed { "handed back" } else { "not handed back" });
    world.hosts.take();
    let request = "GET http://169.254.169.254/latest/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n";
    let second = seen("followed", word(room.plain(request).await?.as_ref()));
    let all = vec![first, second, left(&world)];
    room.room.end().await?;
    Ok(all)
}

/// Names that are nearly the granted one, and data in names.
pub(crate) async fn names(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("names").await?;
    let mut all = Vec::new();
    for name in NAMES {
        let (came, _) = room.connect(&format!("{name}:443")).await?;
        all.push(seen(format!("connect {name:?}"), came));
        let request = format!("GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\n\r\n");
        all.push(seen(format!("url {name:?}"), word(room.plain(&request).await?.as_ref())));
    }
    all.push(left(&world));
    for name in ["good.test", "GOOD.TEST"] {
        all.push(seen(
            format!("the granted one, {name}"),
            room.connect(&format!("{name}:443")).await?.0,
        ));
    }
    room.room.end().await?;
    Ok(all)
}

/// What is secret, as labels before a name.
pub(crate) async fn labels(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let wide = vec![grant("good.test", Scheme::Https), grant("*.wide.test", Scheme::Https)];
    let room = world.room("labels", &world.network(wide), &[]).await?;
    let mut all = Vec::new();
    let long = format!("{}good.test", "a.".repeat(1_000));
    for name in ["data.good.test", "data.evil.test", &long] {
        let (came, _) = room.connect(&format!("{name}:443")).await?;
        all.push(seen(format!("connect {name:.20}"), came));
    }
    let said = room.room.evil(&["egress", "names"], |_| {}).await?;
    all.extend(said.lines.into_iter().map(|(name, saw)| seen(name, saw)));
    all.push(left(&world));
    let request = "GET / HTTP/1.1\r\nHost: §\r\n\r\n";
    let beneath = word(room.https("data.wide.test", request).await?.as_ref());
    all.push(seen("a name beneath one that is granted", beneath));
    room.room.end().await?;
    Ok(all)
}

/// Everything but the gate, by a program that does not know of it.
pub(crate) async fn round(stage: OnStage) -> ProbeResult {
    let world = GateWorld::new(stage).await?;
    let room = world.usual_room("round").await?;
    let said = room.room.evil(&["try", "network"], |_| {}).await?;
    let mut all: Vec<_> = said.lines.into_iter().map(|(name, saw)| seen(name, saw)).collect();
    all.push(left(&world));
    let reply = room.https("good.test", "GET / HTTP/1.1\r\nHost: §\r\n\r\n").await?;
    all.push(noted("by the gate", word(reply.as_ref()), "the same sandbox".to_owned()));
    room.room.end().await?;
    Ok(all)
}
