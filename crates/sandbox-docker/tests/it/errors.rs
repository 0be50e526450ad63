//! What is said when there is no daemon, no image, no runtime.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use crate::support::*;
use outrigger_sandbox::{Backend, CreateSpec, DiskOrigin, Error};
use outrigger_sandbox_docker::Docker;

/// What opening a backend on a socket says.
async fn opening(socket: &std::path::Path) -> String {
    match Docker::open(config(socket)).await {
        Err(error @ Error::Unavailable { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_daemon_that_is_not_there_is_said_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("docker.sock");
    assert!(opening(&socket).await.contains("there is no Docker socket"));
    drop(UnixListener::bind(&socket).unwrap());
    let said = opening(&socket).await;
    assert!(said.contains("no Docker daemon listens") && said.contains("systemctl"), "{said}");
}

#[tokio::test]
async fn a_daemon_that_is_too_old_is_said_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("docker.sock");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600)).unwrap();
    let daemon = async {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut peer, _) = listener.accept().await.unwrap();
        let _ = peer.read(&mut [0; 4096]).await.unwrap();
        let body = r#"{"ApiVersion":"1.30"}"#;
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        peer.write_all(answer.as_bytes()).await.unwrap();
    };
    let (said, ()) = tokio::join!(opening(&socket), daemon);
    assert!(said.contains("speaks API 1.30") && said.contains("upgrade it"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_is_not_there_is_never_fetched() {
    let mut world = world().await;
    world.config.images.insert("none".to_owned(), "outrigger-no-such-image:1".to_owned());
    let docker = world.again().await;
    let spec =
        CreateSpec { origin: DiskOrigin::Template("none".to_owned()), ..CreateSpec::default() };
    let said = docker.create(&sandbox_id("one"), &spec).await.unwrap_err().to_string();
    assert!(said.contains("has no image `outrigger-no-such-image:1`"), "{said}");
    assert!(said.contains("docker pull"), "{said}");
    assert!(world.owned("container").is_empty() && world.owned("volume").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_that_is_not_there_is_said_with_what_to_do() {
    // Held: a daemon of its own ends with it.
    let world = world().await;
    let mut config = world.config.clone();
    config.runtime = Some("no-such-runtime".to_owned());
    let said = Docker::open(config).await.unwrap_err().to_string();
    assert!(said.contains("no runtime `no-such-runtime`") && said.contains("runc"), "{said}");
}
