//! Processes: what this one was given, what it can do to the guest and to terminals.
//!
//! Owns the attempts on process 1. Whether the guest lives on, its host sees.

use std::fs;

use crate::report::Report;
use crate::sys::{call, errno, outcome, outcome_of};

/// What this process was born with.
pub(crate) fn process(report: &Report) {
    report.attempt("process/descriptors", || {
        let mut found: Vec<String> = fs::read_dir("/proc/self/fd")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let number = entry.file_name().to_string_lossy().into_owned();
                let target = fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
                let own = target.contains("/fd") && target.starts_with("/proc/");
                let kind = target.split(':').next().unwrap_or("").to_owned();
                (!own).then(|| format!("{number}={kind}"))
            })
            .collect();
        found.sort();
        found.join(" ")
    });
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or("absent").split_ascii_whitespace().collect::<Vec<_>>().join(" ")
    };
    let ids = field("Uid");
    report.say("process/Uid", &ids.split(' ').map(user).collect::<Vec<_>>().join(" "));
    for name in ["CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"] {
        report.say(&format!("process/{name}"), &field(name));
    }
    report.attempt("process/secrets-in-environment", || {
        let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
        let known =
            ["HOME", "LANG", "PATH", "TMPDIR", "USER", "PWD", "SHLVL", "_", "OLDPWD", "WORKSPACE"];
        let mut extra: Vec<String> = names.filter(|name| !known.contains(&name.as_str())).collect();
        extra.sort();
        if extra.is_empty() { "none".to_owned() } else { extra.join(" ") }
    });
    report.attempt("process/others-seen", || {
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let names = pids.filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|name| name.trim().to_owned())
        });
        // Docker runs the guest in both modes; a shell may stand between it and us.
        let ours =
            ["outrigger-guest", "memfd:outrigger", "outrigger-evil", "evil", "sh", "bash", "files"];
        let mut found: Vec<String> =
            names.filter(|name| !ours.iter().any(|own| name.starts_with(own))).collect();
        found.sort();
        if found.is_empty() { "none".to_owned() } else { found.join(" ") }
    });
}

/// What can be done to process 1, which serves this sandbox.
pub(crate) fn guest(report: &Report) {
    let links = ["exe", "root", "cwd", "ns/user", "ns/mnt", "ns/net"];
    for name in links {
        report.attempt(&format!("guest/follow-{name}"), || {
            outcome_of(fs::metadata(format!("/proc/1/{name}")))
        });
    }
    for name in ["mem", "environ", "maps", "smaps", "auxv", "syscall", "stack", "io", "pagemap"] {
        report.attempt(&format!("guest/read-{name}"), || {
            outcome_of(fs::read(format!("/proc/1/{name}")).map(drop))
        });
    }
    for name in ["fd", "fdinfo", "map_files"] {
        report.attempt(&format!("guest/list-{name}"), || {
            outcome_of(fs::read_dir(format!("/proc/1/{name}")).map(drop))
        });
    }
    let buffer = [0_u8; 64];
    let vector = [buffer.as_ptr() as usize, buffer.len()];
    let (at, mask) = (vector.as_ptr() as usize, [1_u64; 2]);
    // PTRACE_ATTACH, PTRACE_SEIZE and PTRACE_TRACEME of sys/ptrace.h.
    let table: &[(&str, libc::c_long, &[usize])] = &[
        ("ptrace-attach", libc::SYS_ptrace, &[16, 1, 0, 0]),
        ("ptrace-seize", libc::SYS_ptrace, &[0x4206, 1, 0, 0]),
        ("ptrace-traceme", libc::SYS_ptrace, &[0, 0, 0, 0]),
        ("vm_readv", libc::SYS_process_vm_readv, &[1, at, 1, at, 1, 0]),
        ("vm_writev", libc::SYS_process_vm_writev, &[1, at, 1, at, 1, 0]),
        ("prlimit", libc::SYS_prlimit64, &[1, libc::RLIMIT_NOFILE as usize, at, 0]),
        ("affinity", libc::SYS_sched_setaffinity, &[1, 16, mask.as_ptr() as usize]),
        ("nice", libc::SYS_setpriority, &[0, 1, 19]),
        ("ioprio", libc::SYS_ioprio_set, &[1, 1, (3 << 13) | 7]),
        ("group", libc::SYS_setpgid, &[1, 0]),
        ("get_robust_list", libc::SYS_get_robust_list, &[1, at, at]),
    ];
    for (name, number, args) in table {
        report.attempt(&format!("guest/{name}"), || outcome(call(*number, args)));
    }
    for name in ["pidfd_getfd", "pidfd-kill", "process_mrelease"] {
        report.attempt(&format!("guest/{name}"), || {
            let pidfd = match call(libc::SYS_pidfd_open, &[1, 0]) {
                Ok(pidfd) => pidfd,
                Err(error) => return outcome(Err(error)),
            };
            outcome(match name {
                "pidfd_getfd" => call(libc::SYS_pidfd_getfd, &[pidfd, 3, 0]),
                "pidfd-kill" => call(libc::SYS_pidfd_send_signal, &[pidfd, 9, 0, 0]),
                _ => call(libc::SYS_process_mrelease, &[pidfd, 0]),
            })
        });
    }
    report.attempt("guest/signals", || {
        let threads = fs::read_dir("/proc/1/task").into_iter().flatten().flatten();
        let threads = threads.filter_map(|entry| entry.file_name().to_str()?.parse::<usize>().ok());
        let mut taken = 0;
        for thread in threads.collect::<Vec<_>>() {
            for signal in 1..64 {
                taken += usize::from(call(libc::SYS_tgkill, &[1, thread, signal]).is_ok());
            }
        }
        // Those that the kernel lets through to an init are ignored by it: see the
        // host's own look at it afterwards.
        let _ = (call(libc::SYS_kill, &[1, 9]), call(libc::SYS_kill, &[1, 19]));
        if taken == 0 { "refused".to_owned() } else { "sent".to_owned() }
    });
}

/// Terminals, of which there may be one of our own and none of others.
pub(crate) fn terminal(report: &Report) {
    report.attempt("terminal/controlling", || outcome_of(fs::File::open("/dev/tty")));
    report.attempt("terminal/others", || {
        let names = fs::read_dir("/dev/pts").into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name != "ptmx").collect();
        names.sort();
        if names.is_empty() { "none".to_owned() } else { names.join(" ") }
    });
    let byte = b'x';
    let at = std::ptr::from_ref(&byte) as usize;
    let high = 1_usize << 40;
    // Of asm-generic/ioctls.h; the discipline is N_GSM0710 of linux/tty.h.
    let discipline = 21_u32;
    let line = std::ptr::from_ref(&discipline) as usize;
    let table = [
        ("push", libc::TIOCSTI as usize, at),
        ("push-high-bits", libc::TIOCSTI as usize | high, at),
        ("console", libc::TIOCLINUX as usize, at),
        ("take-console", libc::TIOCCONS as usize, 0),
        ("steal", libc::TIOCSCTTY as usize, 1),
        ("discipline", libc::TIOCSETD as usize, line),
    ];
    for (name, request, argument) in table {
        report.attempt(&format!("terminal/{name}"), || {
            // SAFETY: takes flags; what it gives is a descriptor or -1.
            let master = unsafe { libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY) };
            if master < 0 {
                return outcome(Err(errno()));
            }
            // SAFETY: both take the descriptor that was just opened.
            let ready = unsafe { libc::grantpt(master) == 0 && libc::unlockpt(master) == 0 };
            // TIOCGPTPEER of ioctl_tty(2) opens the other end without a path.
            let peer = call(libc::SYS_ioctl, &[master as usize, 0x5441, 0x102]);
            match peer {
                Ok(peer) if ready => outcome(call(libc::SYS_ioctl, &[peer, request, argument])),
                Ok(_) => "no terminal".to_owned(),
                Err(error) => outcome(Err(error)),
            }
        });
    }
}

/// A user as tables have it: that of a sandbox, whichever a container has to itself (of the
/// ranges of `sandbox-docker/src/user.rs`), is `agent`.
pub(crate) fn user(id: &str) -> &str {
    match id.parse::<u64>() {
        Ok(1_000 | 10_000..60_000 | 0x7000_0000..0x7ff0_0000) => "agent",
        _ => id,
    }
}
