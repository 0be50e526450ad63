//! A guest in namespaces of its own. Needs root, a mounted cgroup hierarchy of the
//! kind that is asked for, and `unshare` and `mount` of util-linux.

use std::fs::File;
use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outrigger_sandbox::{CreateOutcome, ExecId, ExecOutcome, Execute, Sandbox, SandboxId};
use outrigger_sandbox_client::{Link, RemoteSandbox};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, sendmsg, socketpair, sockopt,
};

/// A root with the host's programs, and the guest as process 1 in it.
const SCRIPT: &str = r#"
set -e
root=$1; program=$2; wrap=$3; shift 3
mkdir "$root/root"
mount -t tmpfs -o mode=755 tmpfs "$root/root"
cd "$root/root"
mkdir -p usr etc proc dev/pts workspace tmp home/agent var/outrigger/output
for dir in usr etc; do mount --bind /$dir $dir; done
for dir in bin sbin lib lib64; do
    if [ -L /$dir ]; then cp -P /$dir $dir; elif [ -d /$dir ]; then mkdir $dir; mount --bind /$dir $dir; fi
done
mount -t proc proc proc
for name in null zero urandom; do : > dev/$name; mount --bind /dev/$name dev/$name; done
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
chown 1000:1000 workspace tmp home/agent
# What a root should not have: a device beyond /dev, and a place for the kernel's that is a mere one.
mkdir opt
mknod -m 666 opt/device c 1 3
mkdir -m 777 sys
cp "$program" guest
if [ -n "$wrap" ]; then
    # As a container has it: a disk for the workspace, one more place, nothing else.
    rmdir tmp home/agent
    mount -t tmpfs tmpfs workspace
    mount -t tmpfs tmpfs var/outrigger
    mkdir var/outrigger/output
    chown -R 1000:1000 workspace var/outrigger
    mount -o remount,ro .
fi
exec chroot . $wrap /guest "$@"
"#;

/// Which hierarchy the guest makes its groups in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hierarchy {
    Unified,
    Freezer,
    Absent,
}

/// What a guest is started with.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) hierarchy: Hierarchy,
    pub(crate) kept: Option<File>,
    pub(crate) args: Vec<String>,
}

impl Default for Setup {
    fn default() -> Self {
        Self { hierarchy: Hierarchy::Absent, kept: None, args: Vec::new() }
    }
}

/// A guest that runs, and the spawner's end of its socket.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) child: Child,
    pub(crate) control: OwnedFd,
    group: Option<PathBuf>,
    _root: tempfile::TempDir,
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

fn number() -> u64 {
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// The program as a file, since it is executed by name.
fn program(dir: &Path) -> PathBuf {
    let path = dir.join("guest-program");
    std::fs::write(&path, outrigger_guest::PROGRAM).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Where a hierarchy is mounted, from proc_pid_mountinfo(5).
fn mounted(kind: &str, option: &str) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let right = after.next()? == kind
            && (option.is_empty() || after.nth(1)?.split(',').any(|word| word == option));
        right.then(|| PathBuf::from(before.split(' ').nth(4).unwrap()))
    })
}

fn base(hierarchy: Hierarchy) -> Option<PathBuf> {
    match hierarchy {
        Hierarchy::Absent => None,
        Hierarchy::Unified => mounted("cgroup2", ""),
        Hierarchy::Freezer => mounted("cgroup", "freezer"),
    }
}

/// Those in which this host can stop processes: one at least, or nothing is tested.
pub(crate) fn freezing() -> Vec<Hierarchy> {
    let mut all = vec![Hierarchy::Unified, Hierarchy::Freezer];
    all.retain(|hierarchy| base(*hierarchy).is_some());
    assert!(!all.is_empty(), "no cgroup hierarchy is mounted here");
    all
}

/// Those, and none.
pub(crate) fn hierarchies() -> Vec<Hierarchy> {
    [freezing(), vec![Hierarchy::Absent]].concat()
}

fn group(hierarchy: Hierarchy) -> Option<(PathBuf, &'static str)> {
    let option = if hierarchy == Hierarchy::Unified { "--cgroup2" } else { "--freezer" };
    let name = format!("outrigger-guest-test-{}-{}", std::process::id(), number());
    let dir = base(hierarchy)?.join(name);
    std::fs::create_dir(&dir).unwrap();
    Some((dir, option))
}

/// Makes `command` have each descriptor at its number.
pub(crate) fn give(command: &mut Command, given: Vec<(OwnedFd, RawFd)>) {
    let act = move || {
        for (fd, number) in &given {
            // SAFETY: no memory is passed; the descriptors live in this closure, far
            // above the numbers.
            if unsafe { libc::dup2(fd.as_raw_fd(), *number) } < 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls alone.
    unsafe { command.pre_exec(act) };
}

/// Makes `command` end with this test, however that ends.
fn end_with_this(command: &mut Command) {
    let act = || {
        // SAFETY: no memory is passed.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes a system call alone.
    unsafe { command.pre_exec(act) };
}

/// A program in a process group of its own, which ends with this value.
#[derive(Debug)]
pub(crate) struct Program(Child);

impl Deref for Program {
    type Target = Child;
    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Program {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Until it is waited for here, or was, nothing else has its number.
        if let Ok(None) = self.0.try_wait() {
            let group = rustix::process::Pid::from_child(&self.0);
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

/// A copy above the numbers that are given away.
fn above(fd: impl AsFd) -> OwnedFd {
    rustix::io::fcntl_dupfd_cloexec(fd, 64).unwrap()
}

/// What makes of a program one of a container's: the user of commands, no rights.
/// And that it ends with whoever started it, which a change of user would make it forget.
const UNPRIVILEGED: &str = "setpriv --reuid=1000 --regid=1000 --clear-groups \
    --bounding-set=-all --inh-caps=-all --pdeathsig KILL";

/// A guest that listens at this path, as process 1 of what is like a container.
pub(crate) const LISTENS_AT: &str = "/var/outrigger/socket";

/// A guest that listens at [`LISTENS_AT`].
#[derive(Debug)]
pub(crate) struct ContainedGuest {
    child: Child,
    _root: tempfile::TempDir,
}

impl ContainedGuest {
    pub(crate) fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        let args = ["--listen", LISTENS_AT].map(str::to_owned);
        Self { child: launch(root.path(), UNPRIVILEGED, &args, Vec::new()), _root: root }
    }

    /// Runs something in it from outside, as an attached exec does.
    pub(crate) fn exec(&self, line: &str) -> Program {
        let outer = self.child.id();
        // poll: `unshare` has its one child at once.
        let inner = (0..2_000).find_map(|_| {
            let path = format!("/proc/{outer}/task/{outer}/children");
            let pid: Option<u32> = std::fs::read_to_string(path).unwrap().trim().parse().ok();
            // Its root is its own when it is the guest.
            let guest = pid.filter(|pid| {
                std::fs::read(format!("/proc/{pid}/cmdline"))
                    .is_ok_and(|words| words.starts_with(b"/guest"))
            });
            if guest.is_none() {
                std::thread::sleep(Duration::from_millis(5)); // poll: a process of another namespace raises no event here
            }
            guest
        });
        let target = inner.expect("a guest").to_string();
        let script = format!("exec {UNPRIVILEGED} {line}");
        let mut command = Command::new("nsenter");
        end_with_this(&mut command);
        let started = command
            .args(["--target", &target, "--all", "--root", "--wd", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // It and the program that it starts are ended together.
            .process_group(0)
            .spawn();
        Program(started.expect("nsenter of util-linux"))
    }
}

impl Drop for ContainedGuest {
    fn drop(&mut self) {
        // The guest itself: with its change of user it forgot that it was to end with `unshare`.
        let outer = self.child.id();
        let path = format!("/proc/{outer}/task/{outer}/children");
        let guests = std::fs::read_to_string(path).unwrap_or_default();
        for guest in guests.split_whitespace().filter_map(|pid| pid.parse().ok()) {
            let guest = rustix::process::Pid::from_raw(guest).expect("no process has number 0");
            let _ = rustix::process::kill_process(guest, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the program in namespaces of its own.
fn launch(root: &Path, wrap: &str, args: &[String], given: Vec<(OwnedFd, RawFd)>) -> Child {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--pid", "--ipc", "--net", "--fork", "--kill-child", "sh", "-c", SCRIPT])
        .arg("sh")
        .args([root, &program(root)])
        .arg(wrap)
        .args(args)
        .stdin(Stdio::null());
    give(&mut command, given);
    end_with_this(&mut command);
    command.spawn().expect("unshare of util-linux")
}

impl Guest {
    /// Starts one; it may not come up.
    pub(crate) fn start(setup: Setup) -> Self {
        let root = tempfile::tempdir().unwrap();
        let (control, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        sockopt::set_socket_timeout(
            &control,
            sockopt::Timeout::Recv,
            Some(Duration::from_secs(20)),
        )
        .unwrap();
        let mut given = vec![(above(&theirs), 3)];
        let mut args: Vec<String> =
            ["--generation", "g1", "--pids", "200", "--control", "3"].map(str::to_owned).into();
        let group = group(setup.hierarchy);
        if let Some((dir, option)) = &group {
            given.push((above(File::open(dir).unwrap()), 4));
            args.extend([(*option).to_owned(), "4".to_owned()]);
        }
        if let Some(kept) = setup.kept {
            given.push((above(kept), 5));
            args.extend(["--kept".to_owned(), "5".to_owned()]);
        }
        args.extend(setup.args);
        let child = launch(root.path(), "", &args, given);
        Self { child, control, group: group.map(|(dir, _)| dir), _root: root }
    }

    /// Starts one and waits until it serves.
    pub(crate) fn ready(setup: Setup) -> Self {
        let guest = Self::start(setup);
        assert_eq!(guest.hears(), Some(b'r'), "the guest is ready");
        guest
    }

    /// The next message from the guest, activity aside. `None`: it ended.
    pub(crate) fn hears(&self) -> Option<u8> {
        loop {
            let mut byte = [0; 1];
            match recv(&self.control, &mut byte, RecvFlags::empty()) {
                Ok((_, 0)) | Err(rustix::io::Errno::CONNRESET) => return None,
                Ok(_) if byte[0] == b'a' => {}
                Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Some(byte[0]),
                Err(error) => panic!("nothing is heard from the guest: {error}"),
            }
        }
    }

    /// The next message from the guest, whatever it is about.
    pub(crate) fn word(&self) -> u8 {
        let mut byte = [0; 1];
        assert_eq!(recv(&self.control, &mut byte, RecvFlags::empty()).unwrap().1, 1);
        byte[0]
    }

    /// Tells it something.
    pub(crate) fn tell(&self, byte: u8, passed: Option<&OwnedFd>) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds: Vec<_> = passed.iter().map(|fd| fd.as_fd()).collect();
        if !fds.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(&fds)));
        }
        sendmsg(&self.control, &[IoSlice::new(&[byte])], &mut ancillary, SendFlags::NOSIGNAL)
            .unwrap();
    }

    /// A new connection, as bytes.
    pub(crate) fn socket(&self) -> std::os::unix::net::UnixStream {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        self.tell(b'c', Some(&OwnedFd::from(theirs)));
        ours
    }

    /// A new connection.
    pub(crate) async fn connect(&self) -> RemoteSandbox {
        remote(self.socket()).await
    }

    /// Asks for what is to be kept; the answer, and the file.
    pub(crate) fn hand_over(&self) -> (Option<u8>, File) {
        let file = tempfile::tempfile().unwrap();
        self.tell(b'h', Some(&above(&file)));
        let answer = self.hears();
        let mut file = file;
        std::io::Seek::rewind(&mut file).unwrap();
        (answer, file)
    }

    /// The code that it ends with.
    pub(crate) fn code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

/// Waits for a program, while the tasks of this test go on.
pub(crate) async fn ended(child: &mut Child) -> Option<i32> {
    until("an end", async || child.try_wait().unwrap()).await.code()
}

/// The sandbox at the other end.
pub(crate) async fn remote(socket: std::os::unix::net::UnixStream) -> RemoteSandbox {
    socket.set_nonblocking(true).unwrap();
    let (reads, writes) = tokio::net::UnixStream::from_std(socket).unwrap().into_split();
    let link = Link::open(reads, writes).await.unwrap();
    RemoteSandbox::new(SandboxId::new("s").unwrap(), CreateOutcome::Made, Arc::new(link))
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let Some(group) = &self.group else { return };
        let run = group.join("run");
        // Frozen processes of a version 1 group die only when they are let go.
        let _ = std::fs::write(run.join("freezer.state"), "THAWED");
        // poll: the last processes of the namespace leave the group one by one.
        for _ in 0..2_000 {
            let inner = std::fs::read_dir(&run).into_iter().flatten().flatten();
            for dir in inner.filter(|entry| entry.path().is_dir()) {
                let _ = std::fs::remove_dir(dir.path());
            }
            let _ = std::fs::remove_dir(&run);
            if std::fs::remove_dir(group).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1)); // poll: a group tells nobody that it is empty
        }
        let _ = writeln!(std::io::stderr(), "{} stays behind", group.display());
    }
}

/// An id that no other call has.
pub(crate) fn fresh() -> ExecId {
    ExecId::new(format!("e{}", number())).unwrap()
}

pub(crate) fn shell(line: &str) -> Execute {
    Execute::new(fresh(), outrigger_sandbox::Command::Shell(line.to_owned()))
}

pub(crate) async fn run(sandbox: &dyn Sandbox, request: Execute) -> ExecOutcome {
    sandbox.execute(request, &()).await.unwrap()
}

/// What a line prints.
pub(crate) async fn says(sandbox: &dyn Sandbox, line: &str) -> String {
    let mut request = shell(line);
    request.streams = outrigger_sandbox::Streams::Merged;
    String::from_utf8(run(sandbox, request).await.stdout).unwrap()
}

/// Asks again and again until the answer is right.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    // poll: nothing tells of what goes on inside.
    for _ in 0..2_000 {
        if let Some(answer) = ask().await {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(5)).await; // poll: nothing tells of what goes on inside
    }
    panic!("{what} did not come to be");
}
