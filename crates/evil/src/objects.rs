//! Takes what the kernel counts by user or by host, and holds it.
//!
//! Owns the kinds of such objects. `take` stops where it is refused and waits until it is
//! killed, so that others can be asked meanwhile whether there is one left for them: `one`.

use std::fs;
use std::process::ExitCode;

use crate::bomb::{timer, until_refused};
use crate::report::Report;
use crate::sys::{call, outcome, pause};

/// More than any host has of any.
const MOST: u64 = 200_000;

/// Runs what is named.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let word = |index: usize| words.get(index).map_or("", String::as_str);
    let (mode, kind) = (word(0), word(1));
    let Some(one) = KINDS.iter().find(|(name, _)| *name == kind).map(|(_, one)| one) else {
        return ExitCode::from(2);
    };
    let probe = format!("objects/{kind}");
    match mode {
        "take" => {
            let mut number = 0;
            let saw = until_refused(MOST, || {
                number += 1;
                one(number)
            });
            Report.say(&probe, &saw);
            // Whoever waits for it looks at the workspace.
            let _ = fs::write("taken", saw);
            loop {
                pause();
            }
        }
        "one" => {
            // As a number one that nobody has.
            let number = u64::from(std::process::id()) << 20;
            Report.say(&probe, &outcome(one(number)));
            if kind == "queues" {
                let name = queue(number);
                let _ = call(libc::SYS_mq_unlink, &[name.as_ptr() as usize]);
            }
            ExitCode::SUCCESS
        }
        _ => ExitCode::from(2),
    }
}

type One = fn(u64) -> Result<usize, i32>;

const KINDS: &[(&str, One)] = &[
    ("timers", |_| timer()),
    ("signals", |_| signal()),
    ("queues", |number| {
        let flags = (libc::O_CREAT | libc::O_RDWR) as usize;
        call(libc::SYS_mq_open, &[queue(number).as_ptr() as usize, flags, 0o600, 0])
    }),
    ("inotify", |_| call(libc::SYS_inotify_init1, &[0])),
    ("aio", |_| {
        let mut context = 0_usize;
        call(libc::SYS_io_setup, &[128, std::ptr::from_mut(&mut context) as usize])
    }),
    ("terminals", |_| {
        let flags = (libc::O_RDWR | libc::O_NOCTTY) as usize;
        let path = c"/dev/ptmx".as_ptr() as usize;
        call(libc::SYS_openat, &[libc::AT_FDCWD as usize, path, flags, 0])
    }),
    ("pipes", |_| pipe()),
];

/// The name of a queue of messages.
fn queue(number: u64) -> std::ffi::CString {
    std::ffi::CString::new(format!("outrigger-evil-{number}")).unwrap_or_default()
}

/// Queues a signal that is not taken.
fn signal() -> Result<usize, i32> {
    let number = libc::SIGRTMIN();
    let blocked = 1_u64 << (number - 1);
    let set = std::ptr::from_ref(&blocked) as usize;
    call(libc::SYS_rt_sigprocmask, &[libc::SIG_BLOCK as usize, set, 0, 8])?;
    // si_signo, si_errno and si_code of a siginfo_t.
    let mut info = [0_i32; 32];
    (info[0], info[2]) = (number, libc::SI_QUEUE);
    let own = std::process::id() as usize;
    call(libc::SYS_rt_sigqueueinfo, &[own, number as usize, info.as_ptr() as usize])
}

/// A pipe as large as pipes are, and larger where that can be. Refused: one that is small.
fn pipe() -> Result<usize, i32> {
    let mut pipe = [0_i32; 2];
    call(libc::SYS_pipe2, &[pipe.as_mut_ptr() as usize, 0])?;
    let end = pipe[1] as usize;
    if call(libc::SYS_fcntl, &[end, libc::F_GETPIPE_SZ as usize])? < 64 << 10 {
        return Err(libc::EPERM);
    }
    let _ = call(libc::SYS_fcntl, &[end, libc::F_SETPIPE_SZ as usize, 1 << 20]);
    Ok(end)
}
