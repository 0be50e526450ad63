//! Two sandboxes and what passes between them: one plants marks wherever it can, the
//! other looks for them.
//!
//! Owns the places. The mark is a word that stands nowhere else.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::process::user;
use crate::report::Report;
use crate::sys::{call, nap, outcome, outcome_of};

/// A port, and a key of System V, that both know.
const PORT: u16 = 47_111;
const KEY: usize = 0x6f75_7472;
/// Where files can be left.
const PLACES: [&str; 5] = ["/workspace", "/tmp", "/var/tmp", "/dev/shm", "/home/agent"];
/// Bytes of fresh disk that are read for what somebody else left on it.
const FRESH: usize = 64 << 20;
/// Programs of which one is shown in every sandbox.
const SHARED: [&str; 3] = ["/usr/bin/env", "/bin/busybox", "/bin/sh"];

/// Plants, looks, or says who we are.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let mark = words.get(1).map_or("mark", String::as_str);
    match words.first().map(String::as_str) {
        Some("plant") => plant(mark),
        Some("leave") => leave_behind(mark),
        Some("look") => look(mark),
        Some("count") => Report.say("spy/count", &others()),
        Some("random") => Report.say("spy/random", &random()),
        Some("image") => image(),
        Some("open") => Report.say("spy/open", &outcome_of(File::open(mark))),
        Some("id") => {
            // SAFETY: neither call takes anything or fails.
            let (real, effective) = unsafe { (libc::getuid(), libc::geteuid()) };
            let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
            let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:\t"));
            let (real, effective) = (real.to_string(), effective.to_string());
            let capabilities = capabilities.unwrap_or("?");
            let text = format!("{} {} {capabilities}\n", user(&real), user(&effective));
            let _ = std::io::stdout().write_all(text.as_bytes());
        }
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

/// Files alone, which outlive this process.
fn leave_behind(mark: &str) {
    for place in PLACES {
        let _ = fs::write(format!("{place}/{mark}"), mark);
    }
    let line = format!("{mark}\n").repeat(100_000);
    let _ = File::create("full").and_then(|mut file| {
        file.write_all(line.as_bytes())?;
        file.sync_all()
    });
    Report.say("spy/leave", "done");
}

/// Everything else too, for as long as it runs.
fn plant(mark: &str) {
    leave_behind(mark);
    let _segment = call(libc::SYS_shmget, &[KEY, 4096, 0o666 | libc::IPC_CREAT as usize]);
    let _messages = call(libc::SYS_msgget, &[KEY, 0o666 | libc::IPC_CREAT as usize]);
    let _semaphores = call(libc::SYS_semget, &[KEY, 1, 0o666 | libc::IPC_CREAT as usize]);
    let queue = (libc::O_CREAT | libc::O_RDWR) as usize;
    let _queue = call(libc::SYS_mq_open, &[c"outrigger-mark".as_ptr() as usize, queue, 0o666, 0]);
    let _abstract =
        SocketAddr::from_abstract_name(mark).and_then(|at| UnixListener::bind_addr(&at));
    let _stream = TcpListener::bind(("0.0.0.0", PORT));
    let _datagram = UdpSocket::bind(("0.0.0.0", PORT));
    let shared = SHARED.iter().find_map(|path| File::open(path).ok());
    if let Some(shared) = &shared {
        let _ = call(libc::SYS_flock, &[shared.as_raw_fd() as usize, libc::LOCK_EX as usize]);
    }
    Report.say("spy/plant", "done");
    loop {
        for path in SHARED {
            let _ = File::open(path).map(|mut file| file.read(&mut [0; 16]));
        }
        nap(10);
    }
}

fn look(mark: &str) {
    let report = &Report;
    report.attempt("spy/files", || find(Path::new("/"), mark));
    report.attempt("spy/segment", || outcome(call(libc::SYS_shmget, &[KEY, 0, 0])));
    report.attempt("spy/messages", || outcome(call(libc::SYS_msgget, &[KEY, 0])));
    report.attempt("spy/semaphores", || outcome(call(libc::SYS_semget, &[KEY, 0, 0])));
    report.attempt("spy/queue", || {
        let (name, flags) = (c"outrigger-mark".as_ptr() as usize, libc::O_RDWR as usize);
        outcome(call(libc::SYS_mq_open, &[name, flags, 0, 0]))
    });
    report.attempt("spy/abstract", || {
        let at = SocketAddr::from_abstract_name(mark);
        outcome_of(at.and_then(|at| UnixStream::connect_addr(&at)))
    });
    report.attempt("spy/stream", || outcome_of(TcpStream::connect(("127.0.0.1", PORT))));
    report.attempt("spy/datagram", || {
        let asked = UdpSocket::bind("127.0.0.1:0").and_then(|socket| {
            socket.connect(("127.0.0.1", PORT))?;
            socket.set_read_timeout(Some(Duration::from_millis(500)))?;
            socket.send(b"x")?;
            socket.recv(&mut [0; 8])
        });
        outcome_of(asked)
    });
    report.attempt("spy/fresh-disk", || fresh_disk(mark));
    report.attempt("spy/fresh-memory", || {
        // What mmap(2) gives must be zero, whoever had the page before.
        let zeros = vec![0_u8; FRESH];
        let first = zeros.iter().find(|byte| **byte != 0);
        if first.is_none() { "empty".to_owned() } else { "somebody's".to_owned() }
    });
    report.attempt("spy/lock", || {
        let Some(file) = SHARED.iter().find_map(|path| File::open(path).ok()) else {
            return "nothing shared".to_owned();
        };
        let how = (libc::LOCK_EX | libc::LOCK_NB) as usize;
        outcome(call(libc::SYS_flock, &[file.as_raw_fd() as usize, how]))
    });
    report.attempt("spy/watch", watch);
    report.attempt("spy/processes", others);
}

/// What an image came to have a say in.
fn image() {
    let directory = std::env::current_dir();
    let directory = directory.map_or_else(
        |error| outcome_of::<()>(Err(error)),
        |directory| directory.display().to_string(),
    );
    Report.say("spy/directory", &directory);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let volumes: Vec<&str> =
        points.filter(|point| ["/image/volume", "/usr"].contains(point)).collect();
    let volumes = if volumes.is_empty() { "none".to_owned() } else { volumes.join(" ") };
    Report.say("spy/volumes", &volumes);
    // SAFETY: neither call takes anything or fails.
    let (real, effective) = unsafe { (libc::getuid(), libc::geteuid()) };
    let (real, effective) = (real.to_string(), effective.to_string());
    Report.say("spy/user", &format!("{} {}", user(&real), user(&effective)));
}

fn find(top: &Path, mark: &str) -> String {
    let mut left = vec![top.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().contains(mark) {
                return entry.path().display().to_string();
            }
            let inside = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if inside && entry.path() != Path::new("/proc") {
                left.push(entry.path());
            }
        }
    }
    "none".to_owned()
}

/// Takes blocks that were never written and reads them.
fn fresh_disk(mark: &str) -> String {
    let Ok(mut file) =
        File::options().read(true).write(true).create(true).truncate(true).open("fresh")
    else {
        return "cannot make it".to_owned();
    };
    // Where they can't be taken ahead there is nothing old to show either.
    let _ = call(libc::SYS_fallocate, &[file.as_raw_fd() as usize, 0, 0, FRESH]);
    let mut bytes = Vec::new();
    if let Err(error) = file.read_to_end(&mut bytes) {
        return outcome_of::<()>(Err(error));
    }
    let _ = fs::remove_file("fresh");
    let found = bytes.windows(mark.len()).any(|window| window == mark.as_bytes());
    let dirty = bytes.iter().any(|byte| *byte != 0);
    if found {
        "the mark".to_owned()
    } else if dirty {
        "somebody's".to_owned()
    } else {
        "empty".to_owned()
    }
}

/// Whether somebody else's use of a shared program can be seen.
fn watch() -> String {
    let inotify = match call(libc::SYS_inotify_init1, &[libc::IN_NONBLOCK as usize]) {
        Ok(inotify) => inotify,
        Err(error) => return outcome(Err(error)),
    };
    for path in [c"/usr/bin/env", c"/bin/busybox", c"/bin/sh"] {
        let events = (libc::IN_OPEN | libc::IN_ACCESS) as usize;
        let _ = call(libc::SYS_inotify_add_watch, &[inotify, path.as_ptr() as usize, events]);
    }
    let end = Instant::now() + Duration::from_secs(1);
    let mut events = [0_u8; 256];
    while Instant::now() < end {
        if call(libc::SYS_read, &[inotify, events.as_mut_ptr() as usize, events.len()]).is_ok() {
            return "seen".to_owned();
        }
        nap(5);
    }
    "nothing".to_owned()
}

/// Processes beside this one and process 1.
fn others() -> String {
    let own = std::process::id();
    // SAFETY: takes nothing and does not fail.
    let parent = unsafe { libc::getppid() }.unsigned_abs();
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let living = pids.filter(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.contains(") Z") && !stat.contains("(outrigger-guest") && !stat.is_empty()
    });
    living.filter(|pid| ![1, own, parent].contains(pid)).count().to_string()
}

fn random() -> String {
    let mut bytes = [0_u8; 16];
    let _ = call(libc::SYS_getrandom, &[bytes.as_mut_ptr() as usize, bytes.len(), 0]);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
