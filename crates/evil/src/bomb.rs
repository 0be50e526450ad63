//! Takes what it can get: processes, memory, descriptors, output, time.
//!
//! Owns the bombs. One that hits a limit says which and ends; one that does not runs
//! until it is killed. Those that could take for ever are given a number to stop at.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::report::Report;
use crate::sys::{alarm, call, fork, leave, name, nap, on_signal, outcome_of, pause};

/// Written and taken at once.
const PIECE: usize = 1 << 20;
/// The size that a pipe is asked to have.
const PIPE: usize = 1 << 20;

/// Runs the bomb that is named.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let kind = words.first().map_or("", String::as_str);
    // Without it a file that is too long ends its writer.
    on_signal(libc::SIGXFSZ, libc::SIG_IGN);
    let number = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(u64::MAX);
    let saw = match kind {
        "fork" => forks(),
        "stubborn" => stubborn(),
        "stopped" => stopped(),
        "vfork" => vfork(),
        "hold" => hold(number),
        "zombies" => zombies(number),
        "memory" => memory(),
        "locked" => locked(),
        "shm" => fill_file("/dev/shm/bomb", number),
        "memfd" => memfds(number),
        "sysv" => segments(number),
        "pipes" => pipes(number),
        "sockets" => buffers(number),
        "files" => until_refused(number, || call(libc::SYS_dup, &[0])),
        "ports" => ports(number),
        "inotify" => until_refused(number, || call(libc::SYS_inotify_init1, &[0])),
        "epoll" => until_refused(number, || call(libc::SYS_epoll_create1, &[0])),
        "timers" => until_refused(number, timer),
        "names" => names(number),
        "spin" => spin(number),
        "fsync" => fsync(number),
        "flood" => flood(number, b'A'),
        "garbage" => flood(number, 0xff),
        "nothing" => String::new(),
        _ => return ExitCode::from(2),
    };
    Report.say(&format!("bomb/{kind}"), &saw);
    ExitCode::SUCCESS
}

/// Calls until it is refused or was done often enough; says how often and what for.
pub(crate) fn until_refused(times: u64, mut one: impl FnMut() -> Result<usize, i32>) -> String {
    for count in 0..times {
        if let Err(error) = one() {
            return format!("{} after {count}", name(error));
        }
    }
    "never refused".to_owned()
}

fn forks() -> String {
    let mut said = false;
    loop {
        match fork() {
            Ok(0) => said = true,
            Ok(_) => {}
            Err(error) if !said => {
                said = true;
                Report.say("bomb/fork", &name(error));
            }
            Err(_) => nap(1),
        }
    }
}

/// Deaf to signals, out of its session, its own grandparent gone, holding the output.
fn stubborn() -> String {
    for signal in 1..32 {
        on_signal(signal, libc::SIG_IGN);
    }
    for _ in 0..4 {
        if fork() == Ok(0) {
            let _ = call(libc::SYS_setsid, &[]);
            if fork() != Ok(0) {
                leave(0);
            }
            loop {
                pause();
            }
        }
    }
    loop {
        pause();
    }
}

fn stopped() -> String {
    for _ in 0..2 {
        if fork() == Ok(0) {
            break;
        }
    }
    let _ = call(libc::SYS_kill, &[std::process::id() as usize, libc::SIGSTOP as usize]);
    "went on".to_owned()
}

/// A parent that waits for its child in the kernel, where few signals reach it.
fn vfork() -> String {
    // SAFETY: the child makes system calls alone and never returns from here.
    let child =
        unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_VM | libc::CLONE_VFORK, 0, 0, 0, 0) };
    if child == 0 {
        loop {
            pause();
        }
    }
    "went on".to_owned()
}

/// Ends, and leaves a child that holds the output open.
fn hold(seconds: u64) -> String {
    if fork() == Ok(0) {
        let _ = call(libc::SYS_setsid, &[]);
        alarm(u32::try_from(seconds).unwrap_or(60));
        loop {
            pause();
        }
    }
    "left".to_owned()
}

fn zombies(count: u64) -> String {
    until_refused(count, || match fork() {
        Ok(0) => leave(0),
        Ok(child) => Ok(child.unsigned_abs() as usize),
        Err(error) => Err(error),
    })
}

/// Takes memory until it is refused, all of it locked so that none is moved out.
fn locked() -> String {
    let _ = call(libc::SYS_mlockall, &[3]);
    memory()
}

fn memory() -> String {
    let mut taken: Vec<Vec<u8>> = Vec::new();
    loop {
        let mut piece = Vec::new();
        if piece.try_reserve_exact(PIECE).is_err() {
            return format!("refused after {} MiB", taken.len());
        }
        // Written, so that it is memory and not a promise.
        piece.resize(PIECE, 1);
        taken.push(piece);
    }
}

/// Writes a file until it is refused or long enough.
pub(crate) fn fill_file(path: &str, bytes: u64) -> String {
    let mut file = match OpenOptions::new().create(true).append(true).open(path) {
        Ok(file) => file,
        Err(error) => return outcome_of::<()>(Err(error)),
    };
    let piece = vec![0x5a_u8; PIECE];
    let mut done = 0;
    while done < bytes {
        match file.write(&piece) {
            Ok(count) => done += count as u64,
            Err(error) => {
                return format!("{} after {} MiB", outcome_of::<()>(Err(error)), done >> 20);
            }
        }
    }
    "never refused".to_owned()
}

fn memfds(bytes: u64) -> String {
    let mut done = 0;
    while done < bytes {
        let fd = match call(libc::SYS_memfd_create, &[c"bomb".as_ptr() as usize, 0]) {
            Ok(fd) => fd,
            Err(error) => return format!("{} after {} MiB", name(error), done >> 20),
        };
        let piece = vec![0x5a_u8; PIECE];
        for _ in 0..16 {
            match call(libc::SYS_write, &[fd, piece.as_ptr() as usize, PIECE]) {
                Ok(count) => done += count as u64,
                Err(error) => return format!("{} after {} MiB", name(error), done >> 20),
            }
        }
    }
    "never refused".to_owned()
}

/// Shared memory of System V, which stays when its makers are gone.
fn segments(bytes: u64) -> String {
    let size = 16 << 20;
    let mut done = 0;
    while done < bytes {
        let made = call(libc::SYS_shmget, &[0, size, 0o600 | libc::IPC_CREAT as usize])
            .and_then(|id| call(libc::SYS_shmat, &[id, 0, 0]));
        let at = match made {
            Ok(at) => at,
            Err(error) => return format!("{} after {} MiB", name(error), done >> 20),
        };
        for page in (0..size).step_by(4096) {
            // SAFETY: the segment was just attached here and is that long.
            unsafe { std::ptr::write_volatile((at + page) as *mut u8, 1) };
        }
        done += size as u64;
    }
    "never refused".to_owned()
}

fn pipes(count: u64) -> String {
    let piece = vec![0x5a_u8; PIPE];
    until_refused(count, || {
        let mut pipe = [0_i32; 2];
        let flags = libc::O_NONBLOCK as usize;
        call(libc::SYS_pipe2, &[pipe.as_mut_ptr() as usize, flags])?;
        // Refused beyond the user's share, and no matter: the pipe is filled as it is.
        let _ = call(libc::SYS_fcntl, &[pipe[1] as usize, libc::F_SETPIPE_SZ as usize, PIPE]);
        call(libc::SYS_write, &[pipe[1] as usize, piece.as_ptr() as usize, PIPE])
    })
}

fn buffers(count: u64) -> String {
    let piece = vec![0x5a_u8; 64 << 10];
    let mut held = Vec::new();
    until_refused(count, || {
        let pair = UnixStream::pair().map_err(|error| error.raw_os_error().unwrap_or(0))?;
        let _ = pair.0.set_nonblocking(true);
        while (&pair.0).write(&piece).is_ok() {}
        held.push(pair);
        Ok(0)
    })
}

fn ports(count: u64) -> String {
    until_refused(count, || {
        let socket =
            call(libc::SYS_socket, &[libc::AF_INET as usize, libc::SOCK_DGRAM as usize, 0])?;
        let any = [libc::AF_INET as u16, 0, 0, 0, 0, 0, 0, 0];
        call(libc::SYS_bind, &[socket, any.as_ptr() as usize, 16])
    })
}

pub(crate) fn timer() -> Result<usize, i32> {
    let mut id = 0_u64;
    call(libc::SYS_timer_create, &[1, 0, std::ptr::from_mut(&mut id) as usize])
}

/// Asks for names that are not there, each of which the kernel remembers.
fn names(count: u64) -> String {
    for number in 0..count {
        let _ = fs::symlink_metadata(format!("{number:0>200}"));
    }
    "never refused".to_owned()
}

fn spin(threads: u64) -> String {
    for _ in 1..threads {
        if fork() == Ok(0) {
            break;
        }
    }
    loop {
        std::hint::spin_loop();
    }
}

fn fsync(milliseconds: u64) -> String {
    let end = Instant::now() + Duration::from_millis(milliseconds);
    let mut count = 0;
    while Instant::now() < end {
        let synced = File::create("synced").and_then(|mut file| {
            file.write_all(&[1; 4096])?;
            file.sync_all()
        });
        if let Err(error) = synced {
            return outcome_of::<()>(Err(error));
        }
        count += 1;
    }
    if count > 0 { "done".to_owned() } else { "none".to_owned() }
}

/// Writes as much as is taken. Never a line end.
fn flood(mebibytes: u64, byte: u8) -> String {
    let mut piece = vec![byte; PIECE];
    if byte != b'A' {
        // Broken in every way: what is no UTF-8, NULs, an escape that is never closed.
        piece[..PIECE / 2].fill(0);
        piece[..8].copy_from_slice(b"\x1b]0;x\xc3\x28\xf0");
    }
    let mut out = std::io::stdout();
    for _ in 0..mebibytes {
        if out.write_all(&piece).is_err() {
            leave(1);
        }
    }
    leave(0)
}
