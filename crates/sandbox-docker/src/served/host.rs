//! Whether trees can be served into containers of a daemon.
//!
//! Owns the question whether it runs its containers on this host, where this process can
//! reach into them: the socket of a daemon may lead anywhere. What is answered is what the
//! capabilities say.

use std::path::Path;

use bollard::models::SystemInfo;
use tokio::net::UnixStream;

use super::fuse;

/// The file in its directory in which a daemon keeps its name (Docker 24 and later).
const ENGINE_ID: &str = "engine-id";

/// Its program.
const DAEMON: &str = "dockerd";

/// Why they can't be. `None`: they can.
pub(crate) async fn why_not(socket: &Path, info: &SystemInfo) -> Option<String> {
    let peer = UnixStream::connect(socket).await.and_then(|stream| stream.peer_cred());
    let listener = peer.ok().and_then(|peer| peer.pid());
    let why = if !rustix::process::geteuid().is_root() {
        "this process is not root"
    } else if !listener.is_some_and(shares_processes) {
        "the daemon's process is none of this host's, as this process sees it"
    } else if !listener.is_some_and(is_the_daemon) && !keeps_its_name_here(info) {
        "its socket is not the daemon's own, and this host has no directory of the daemon with \
         its name in `engine-id` (Docker 24 and later)"
    } else if let Err(error) = fuse::make(0) {
        return Some(format!(
            "no file system can be made whose server is the guest ({error}): `modprobe fuse`"
        ));
    } else {
        return None;
    };
    Some(why.to_owned())
}

/// Whether a process is in this one's process namespace, not one below.
fn shares_processes(pid: i32) -> bool {
    let namespace = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/pid")).ok();
    let ours = namespace("self");
    pid > 0 && ours.is_some() && ours == namespace(&pid.to_string())
}

/// Whether a process is a daemon, and not somebody who listens for one (systemd), or leads
/// elsewhere.
fn is_the_daemon(pid: i32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    program.file_name().is_some_and(|name| name == DAEMON)
}

/// Whether the directory that the daemon says is its own is this host's, and its own.
fn keeps_its_name_here(info: &SystemInfo) -> bool {
    let (Some(dir), Some(id)) = (&info.docker_root_dir, &info.id) else { return false };
    let kept = std::fs::read_to_string(Path::new(dir).join(ENGINE_ID)).unwrap_or_default();
    !id.is_empty() && kept.trim() == id
}
