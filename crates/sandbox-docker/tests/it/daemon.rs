//! A Docker daemon for the tests: the one that answers, or one of their own.
//!
//! Owns its directories, its processes and their end. One of their own has no
//! network, so it changes nothing of the host beside a control group and mounts that
//! go away with it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// How long a daemon may take to answer, or to end.
const READY: Duration = Duration::from_secs(60);
/// The control group of containers of a daemon of the tests.
const GROUP: &str = "outrigger-docker-test";

/// A daemon to test against.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) socket: PathBuf,
    own: Option<Own>,
}

#[derive(Debug)]
struct Own {
    home: PathBuf,
    process: Mutex<Child>,
}

/// The daemon of all tests of this process that do not end it; it ends with the last.
pub(crate) fn shared() -> Arc<Daemon> {
    static SHARED: Mutex<Weak<Daemon>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(daemon) = shared.upgrade() {
        return daemon;
    }
    let daemon = Arc::new(Daemon::find().unwrap_or_else(Daemon::start));
    *shared = Arc::downgrade(&daemon);
    daemon
}

fn answers(socket: &Path) -> bool {
    let host = format!("--host=unix://{}", socket.display());
    let asked = Command::new("docker").arg(host).arg("version").output();
    asked.expect("`docker` is missing: install the package docker.io").status.success()
}

impl Daemon {
    /// The one that the environment names, or the usual one, if it answers.
    fn find() -> Option<Self> {
        let named = std::env::var("DOCKER_HOST").ok();
        let named = named.and_then(|host| Some(PathBuf::from(host.strip_prefix("unix://")?)));
        let socket = named.unwrap_or_else(|| PathBuf::from("/var/run/docker.sock"));
        (socket.exists() && answers(&socket)).then(|| {
            println!("testing against the Docker daemon at {}", socket.display());
            Self { socket, own: None }
        })
    }

    /// One that is the caller's alone.
    pub(crate) fn start() -> Self {
        // Beneath /run, because paths of sockets are at most 107 bytes long (unix(7)).
        let home = tempfile::Builder::new().prefix("outrigger-dt-").tempdir_in("/run");
        let home = home.expect("a daemon of the tests' own needs root").keep();
        let data = data(&home);
        std::fs::create_dir_all(&data).unwrap();
        let process = Mutex::new(spawn(&home));
        let socket = home.join("docker.sock");
        println!("no Docker daemon answers: started one at {}", socket.display());
        let daemon = Self { socket, own: Some(Own { home, process }) };
        daemon.wait();
        daemon
    }

    fn wait(&self) {
        let own = self.own.as_ref().unwrap();
        let begun = Instant::now();
        while !answers(&self.socket) {
            let ended = own.process.lock().unwrap().try_wait().unwrap();
            if ended.is_some() || begun.elapsed() > READY {
                let log = std::fs::read_to_string(own.home.join("log")).unwrap_or_default();
                panic!("dockerd does not come up ({ended:?}):\n{log}");
            }
            // poll: the daemon tells nobody when it is ready.
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Ends it, which ends its containers, and starts it again.
    pub(crate) fn restart(&self) {
        let own = self.own.as_ref().expect("only a daemon of the tests' own is ended");
        let mut process = own.process.lock().unwrap();
        end(&mut process);
        *process = spawn(&own.home);
        drop(process);
        self.wait();
    }

    /// Runs the client, which must succeed, and gives what it says.
    pub(crate) fn docker(&self, words: &[&str]) -> String {
        let host = format!("--host=unix://{}", self.socket.display());
        let done = Command::new("docker").arg(host).args(words).output().unwrap();
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "docker {words:?}: {errors}");
        String::from_utf8(done.stdout).unwrap()
    }
}

/// On a disk, because layers in memory would be of another kind.
fn data(home: &Path) -> PathBuf {
    Path::new("/var/tmp").join(home.file_name().unwrap())
}

fn spawn(home: &Path) -> Child {
    let log = std::fs::File::options().create(true).append(true).open(home.join("log")).unwrap();
    let spawned = Command::new("dockerd")
        .args(["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"])
        // Not lower than it is, which needs a capability of its own.
        .args(["--oom-score-adjust=0", "--exec-opt=native.cgroupdriver=cgroupfs"])
        .arg(format!("--cgroup-parent=/{GROUP}"))
        .arg(format!("--data-root={}", data(home).display()))
        .arg(format!("--exec-root={}", home.join("exec").display()))
        .arg(format!("--pidfile={}", home.join("pid").display()))
        .arg(format!("--host=unix://{}", home.join("docker.sock").display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
    spawned.expect("`dockerd` is missing: install the package docker.io")
}

fn end(process: &mut Child) {
    let pid = rustix::process::Pid::from_child(process);
    // It ends its own children when it is asked to, and not when it is killed.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    let begun = Instant::now();
    while process.try_wait().unwrap().is_none() {
        if begun.elapsed() > READY {
            process.kill().unwrap();
            process.wait().unwrap();
        }
        // poll: only this can be waited for with a bound.
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let Some(own) = &self.own else { return };
        end(&mut own.process.lock().unwrap());
        for dir in [data(&own.home), own.home.clone()] {
            let _ = std::fs::remove_dir_all(dir);
        }
        // Empty, or another process's still: then it stays.
        for place in std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
            let _ = std::fs::remove_dir(place.path().join(GROUP));
        }
    }
}
