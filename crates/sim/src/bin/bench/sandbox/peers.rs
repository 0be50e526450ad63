//! The others: a bare process, bubblewrap, crun and Docker, each doing the same work.
//!
//! Owns the bundle of crun and the containers. A peer that is not installed ends the
//! measurement with the name of its package: a table with holes would compare nothing.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

use super::Samples;
use super::shell::Shell;
use super::stream::Stream;
use crate::error::{Error, ErrorContext, Outcome};

/// Programs of the peers and Debian's packages that have them.
const PROGRAMS: [(&str, &str); 4] = [
    ("bwrap", "bubblewrap"),
    ("crun", "crun"),
    ("docker", "docker.io"),
    ("busybox", "busybox-static"),
];
/// The image and the container that are made for this.
const IMAGE: &str = "outrigger-bench";
const CONTAINER: &str = "outrigger-bench";
/// Options of bubblewrap for a sandbox that shows what our template `host-tools` shows.
const BWRAP: [&str; 19] = [
    "--unshare-all",
    "--die-with-parent",
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "/usr/bin/true",
];

/// All of them, ready.
#[derive(Debug)]
pub(super) struct Peers {
    bundle: PathBuf,
    shell: Shell,
    stream: Stream,
}

/// Runs a program to its end, which must be a good one.
async fn run(program: &str, args: &[&str]) -> Outcome<()> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let done = command.spawn().doing("starting a peer")?.wait_with_output().await;
    let done = done.doing("waiting for a peer")?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(Error::Astray(format!("`{program} {}` failed: {}", args.join(" "), said.trim())))
}

fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.exists())
}

/// A root filesystem of busybox alone, for those that need one of their own.
fn root(at: &Path) -> Outcome<()> {
    let doing = "making a root filesystem";
    let busybox = installed("busybox").ok_or_else(|| missing("busybox", "busybox-static"))?;
    for dir in ["bin", "proc", "dev", "sys", "tmp", "etc", "workspace"] {
        fs::create_dir_all(at.join(dir)).doing(doing)?;
    }
    fs::copy(busybox, at.join("bin/busybox")).doing(doing)?;
    for applet in ["sh", "true", "sleep", "cat"] {
        symlink("busybox", at.join("bin").join(applet)).doing(doing)?;
    }
    fs::create_dir_all(at.join("usr")).doing(doing)?;
    symlink("../bin", at.join("usr/bin")).doing(doing)
}

fn missing(program: &str, package: &str) -> Error {
    Error::Astray(format!("`{program}` is missing: install {package}, then measure again"))
}

/// The least that crun runs, without cgroups and network of its own: what it does
/// for the price that is measured is less than what ours does.
fn oci_config() -> String {
    let namespaces = ["pid", "mount", "ipc", "uts", "network", "cgroup"];
    let namespaces: Vec<_> =
        namespaces.iter().map(|kind| serde_json::json!({ "type": kind })).collect();
    serde_json::json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": { "uid": 1000, "gid": 1000 }, "args": ["/bin/true"], "cwd": "/",
            "env": ["PATH=/bin"], "noNewPrivileges": true,
        },
        "root": { "path": "root", "readonly": true },
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc" },
            { "destination": "/dev", "type": "tmpfs", "source": "tmpfs" },
        ],
        "linux": { "namespaces": namespaces },
    })
    .to_string()
}

impl Peers {
    pub(super) async fn start(home: &Path) -> Outcome<Self> {
        for (program, package) in PROGRAMS {
            installed(program).ok_or_else(|| missing(program, package))?;
        }
        let bundle = home.join("bundle");
        root(&bundle.join("root"))?;
        fs::write(bundle.join("config.json"), oci_config()).doing("writing crun's bundle")?;
        let archive = home.join("root.tar");
        let (from, to) = (bundle.join("root"), archive.display().to_string());
        run("tar", &["-C", &from.display().to_string(), "-cf", &to, "."]).await?;
        run("docker", &["import", &to, IMAGE]).await?;
        drop(run("docker", &["rm", "--force", CONTAINER]).await);
        let start = ["run", "--detach", "--network", "none", "--name", CONTAINER, IMAGE];
        run("docker", &[&start[..], &["/bin/sleep", "600"]].concat()).await?;
        let stream = Stream::open(IMAGE).await?;
        let shell = Shell::start().await?;
        Ok(Self { bundle, shell, stream })
    }

    /// The floor under everything.
    pub(super) async fn bare(&self, samples: &mut Samples) -> Outcome<()> {
        for _ in 0..crate::sizes::SANDBOX_EXECS {
            // The same program, with pipes for its output as ours has them.
            let fork = async {
                let done =
                    std::process::Command::new("/usr/bin/true").stdin(Stdio::null()).output();
                done.map(drop).doing("running a bare process")
            };
            samples.time("fork_exec_true", fork).await?;
        }
        Ok(())
    }

    /// Those that make a sandbox for each command.
    pub(super) async fn one_shot(&mut self, samples: &mut Samples) -> Outcome<()> {
        samples.time("bwrap/run_true", run("bwrap", &BWRAP)).await?;
        let bundle = self.bundle.display();
        // Without cgroups it is faster, and Debian's refuses a host with both versions.
        let line =
            format!("crun --cgroup-manager=disabled run --bundle '{bundle}' outrigger-bench");
        samples.time("crun/run_true", self.shell.run(&line)).await
    }

    pub(super) async fn docker(&self, round: usize, samples: &mut Samples) -> Outcome<()> {
        let container = format!("{CONTAINER}-{round}");
        let start = ["run", "--detach", "--network", "none", "--name", &container, IMAGE];
        let create = [&start[..], &["/bin/sleep", "600"]].concat();
        samples.time("docker/create", run("docker", &create)).await?;
        run("docker", &["rm", "--force", &container]).await?;
        let exec = ["exec", CONTAINER, "/bin/true"];
        samples.time("docker/exec_cli", run("docker", &exec)).await?;
        self.stream.sample(round, samples).await
    }

    pub(super) async fn stop(self) -> Outcome<()> {
        self.stream.close().await?;
        run("docker", &["rm", "--force", CONTAINER]).await?;
        run("docker", &["rmi", "--force", IMAGE]).await
    }
}
