//! A way to a daemon on which one request can be held up, or refused.
//!
//! Owns the moment: the daemon was not asked yet, or has done it and who asked does not
//! know. So what else happens then is certain, and no matter of luck.

#![expect(clippy::disallowed_methods, reason = "what carries bytes ends with its test")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream, unix};
use tokio::sync::Semaphore;

/// A socket that leads to a daemon, and can hold up or refuse one request.
pub(crate) struct Gateway {
    pub(crate) socket: PathBuf,
    held: Arc<HeldRequest>,
    _dir: tempfile::TempDir,
}

/// Where it is held up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    /// Before the daemon has it.
    TheWayThere,
    /// When the daemon has answered.
    TheWayBack,
}

/// The request that is held up.
struct HeldRequest {
    is_meant: fn(&str) -> bool,
    on: On,
    happened: AtomicBool,
    reached: Semaphore,
    go: Semaphore,
    /// What whoever asked gets instead of the daemon's answer.
    refusal: OnceLock<String>,
}

impl Gateway {
    /// One that holds up the first request that is meant, by its first lines.
    pub(crate) fn new(daemon: &Path, on: On, is_meant: fn(&str) -> bool) -> Self {
        let dir = tempfile::Builder::new().prefix("outrigger-gw-").tempdir().unwrap();
        let socket = dir.path().join("docker.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let held = Arc::new(HeldRequest {
            is_meant,
            on,
            happened: AtomicBool::new(false),
            reached: Semaphore::new(0),
            go: Semaphore::new(0),
            refusal: OnceLock::new(),
        });
        let (shared, daemon) = (Arc::clone(&held), daemon.to_owned());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let daemon = UnixStream::connect(&daemon).await.unwrap();
                let ((from, to_client), (from_daemon, to)) =
                    (client.into_split(), daemon.into_split());
                let here = Arc::new(AtomicBool::new(false));
                let asked = Arc::clone(&here);
                tokio::spawn(carry(from, to, Arc::clone(&shared), move |held, bytes| {
                    let meant = held.is_meant(bytes);
                    asked.fetch_or(meant, Ordering::SeqCst);
                    meant && held.on == On::TheWayThere
                }));
                tokio::spawn(carry(from_daemon, to_client, Arc::clone(&shared), move |held, _| {
                    held.on == On::TheWayBack && here.swap(false, Ordering::SeqCst)
                }));
            }
        });
        Self { socket, held, _dir: dir }
    }

    /// Waits until it is held up.
    pub(crate) async fn reached(&self) {
        self.held.reached.acquire().await.unwrap().forget();
    }

    /// Lets it go on.
    pub(crate) fn release(&self) {
        self.held.go.add_permits(1);
    }

    /// Lets it go on, and says on the way back that it failed, and why.
    pub(crate) fn refuse(&self, status: &str, why: &str) {
        assert_eq!(self.held.on, On::TheWayBack);
        let body = format!("{{\"message\":\"{why}\"}}");
        let head = "Content-Type: application/json\r\nContent-Length:";
        let refusal = format!("HTTP/1.1 {status}\r\n{head} {}\r\n\r\n{body}", body.len());
        self.held.refusal.set(refusal).unwrap();
        self.release();
    }
}

impl HeldRequest {
    /// How it is refused then, if it is.
    async fn hold(&self) -> Option<&str> {
        self.reached.add_permits(1);
        self.go.acquire().await.unwrap().forget();
        self.refusal.get().map(String::as_str)
    }

    fn is_meant(&self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        (self.is_meant)(&text) && !self.happened.swap(true, Ordering::SeqCst)
    }
}

/// Carries bytes one way, and holds those up that are to be.
async fn carry(
    mut from: unix::OwnedReadHalf,
    mut to: unix::OwnedWriteHalf,
    held: Arc<HeldRequest>,
    is_to_be_held: impl Fn(&HeldRequest, &[u8]) -> bool,
) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        let refusal = match is_to_be_held(&held, &bytes[..length]) {
            true => held.hold().await,
            false => None,
        };
        if to.write_all(refusal.map_or(&bytes[..length], str::as_bytes)).await.is_err() {
            return;
        }
    }
}
