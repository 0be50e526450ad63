//! What the process that holds keys leaves to others of its user.

use outrigger_sandbox_native::ImageDigest;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::sockets;
use crate::support::*;

#[test]
fn a_crash_of_the_harness_leaves_no_core() {
    let world = World::new();
    // One that takes a request and does not answer, so that it waits.
    let registry = TcpListener::bind("127.0.0.1:0").unwrap();
    let image = format!("{}/test/image:one", registry.local_addr().unwrap());
    let mut shell = world.command("sh");
    let line = "ulimit -c unlimited 2>/dev/null; exec \"$0\" \"$@\"";
    shell.args(["-c", line, OUTRIGGER, "--data-dir"]).arg(world.data());
    shell.args(["sandbox", "pull", "x", &image]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut harness = shell.spawn().unwrap();
    let _waits = registry.accept().unwrap();
    assert_eq!(sockets::of_network(harness.id()), 0, "it was the gate that connected");
    let pid = rustix::process::Pid::from_raw(harness.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::ABORT).unwrap();
    let ended = harness.wait().unwrap();
    assert_eq!((ended.signal(), ended.core_dumped()), (Some(6), false), "{ended:?}");
}

/// Serves these parts of an image by the ends of their paths, and leads elsewhere for all else.
fn registry(parts: Vec<(String, Vec<u8>)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
            let first = lines.next().unwrap_or_default();
            lines.find(String::is_empty);
            let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
            let part = parts.iter().find(|(end, _)| path.ends_with(end));
            let (status, body) = match part {
                Some((_, body)) => ("200 OK", body.as_slice()),
                None => ("302 Found\r\nlocation: https://localhost/x", [].as_slice()),
            };
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}");
            stream.write_all(&[head.as_bytes(), b"\r\n\r\n", body].concat()).unwrap();
        }
    });
    place
}

#[test]
fn an_image_is_pulled_by_the_gate_which_judges_where_its_registry_leads() {
    let world = World::new();
    // An archive without entries.
    let layer = vec![0; 10_240];
    let digest = |bytes: &[u8]| ImageDigest::of(bytes).to_string();
    let architecture = if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" };
    let rootfs = json!({ "type": "layers", "diff_ids": [digest(&layer)] });
    let config =
        json!({ "architecture": architecture, "os": "linux", "config": {}, "rootfs": rootfs });
    let config = config.to_string().into_bytes();
    let described = |kind: &str, bytes: &[u8]| {
        let kind = format!("application/vnd.oci.image.{kind}");
        json!({ "mediaType": kind, "digest": digest(bytes), "size": bytes.len() })
    };
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described("config.v1+json", &config), "layers": [described("layer.v1.tar", &layer)],
    });
    let manifest = manifest.to_string().into_bytes();
    let place = registry(vec![
        ("manifests/one".to_owned(), manifest),
        (digest(&config), config),
        (digest(&layer), layer),
    ]);
    let pull = |tag: &str| {
        let image = format!("{place}/test/image:{tag}");
        Ran::of(world.outrigger(&["sandbox", "pull", "pulled", &image]).output().unwrap())
    };
    assert_eq!(pull("one").expect(0).stdout, "pulled\n");
    let told = pull("other").stderr;
    assert!(told.contains("not followed") && told.contains("https://localhost/x"), "{told}");
}
