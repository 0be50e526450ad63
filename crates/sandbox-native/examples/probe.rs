//! Makes system calls that a sandbox must refuse, and says what became of each.
//! The tests run it inside one; outside it would be refused less.

#![expect(unsafe_code, reason = "raw system calls are what this program is for")]
#![expect(clippy::print_stdout, reason = "its output is read by a test")]

use std::io::Error;

/// `clone_args` of clone3(2) with nothing set but the exit signal.
const CLONE_ARGS: [u64; 11] = [0, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0, 0, 0, 0];

fn call(name: &str, number: libc::c_long, args: [usize; 6]) {
    // SAFETY: every call in the table below is given null, small numbers, or
    // pointers to constants; those that could harm this process are refused or fail.
    let result =
        unsafe { libc::syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]) };
    if result == 0 && (number == libc::SYS_clone || number == libc::SYS_clone3) {
        // SAFETY: ends a child that should not have been born.
        unsafe { libc::_exit(0) };
    }
    let error = Error::last_os_error().raw_os_error().unwrap_or(0);
    let shown = match (result, error) {
        (-1, libc::EPERM) => "EPERM".to_owned(),
        (-1, libc::ENOSYS) => "ENOSYS".to_owned(),
        (-1, number) => format!("errno {number}"),
        _ => "done".to_owned(),
    };
    println!("{name} {shown}");
}

/// Calls whose arguments do not matter, because the call itself is refused.
const OUTRIGHT: &[(&str, libc::c_long)] = &[
    ("mount", libc::SYS_mount),
    ("umount", libc::SYS_umount2),
    ("fsopen", libc::SYS_fsopen),
    ("open_tree", libc::SYS_open_tree),
    ("pivot_root", libc::SYS_pivot_root),
    ("chroot", libc::SYS_chroot),
    ("unshare", libc::SYS_unshare),
    ("setns", libc::SYS_setns),
    ("ptrace", libc::SYS_ptrace),
    ("process_vm_readv", libc::SYS_process_vm_readv),
    ("pidfd_getfd", libc::SYS_pidfd_getfd),
    ("keyctl", libc::SYS_keyctl),
    ("add_key", libc::SYS_add_key),
    ("request_key", libc::SYS_request_key),
    ("io_uring_setup", libc::SYS_io_uring_setup),
    ("bpf", libc::SYS_bpf),
    ("perf_event_open", libc::SYS_perf_event_open),
    ("userfaultfd", libc::SYS_userfaultfd),
    ("open_by_handle_at", libc::SYS_open_by_handle_at),
    ("name_to_handle_at", libc::SYS_name_to_handle_at),
    ("kexec_load", libc::SYS_kexec_load),
    ("init_module", libc::SYS_init_module),
    ("swapon", libc::SYS_swapon),
    ("reboot", libc::SYS_reboot),
    ("quotactl", libc::SYS_quotactl),
    ("fanotify_init", libc::SYS_fanotify_init),
    ("acct", libc::SYS_acct),
    ("clock_settime", libc::SYS_clock_settime),
    ("syslog", libc::SYS_syslog),
    ("setuid-root", libc::SYS_setuid),
    ("unknown", 4000),
    // __X32_SYSCALL_BIT of asm/unistd.h, with the number of getpid.
    ("x32", 0x4000_0000 + libc::SYS_getpid),
];

/// Calls of which some uses are refused.
fn by_argument() -> Vec<(&'static str, libc::c_long, [usize; 6])> {
    let byte = c"/".as_ptr() as usize;
    let device = c"device".as_ptr() as usize;
    let high = 1_usize << 40;
    let here = libc::AT_FDCWD as usize;
    let clone = |flag: i32| [(flag | libc::SIGCHLD) as usize, 0, 0, 0, 0, 0];
    let socket = |family: i32, kind: i32, protocol: i32| {
        [family as usize, kind as usize, protocol as usize, 0, 0, 0]
    };
    let ioctl = |request: usize| [0, request, byte, 0, 0, 0];
    let limits = |pid: usize| [pid, libc::RLIMIT_NOFILE as usize, 0, 0, 0, 0];
    let (stream, raw) = (libc::SOCK_STREAM, libc::SOCK_RAW);
    vec![
        ("clone-user", libc::SYS_clone, clone(libc::CLONE_NEWUSER)),
        ("clone-net", libc::SYS_clone, clone(libc::CLONE_NEWNET)),
        ("clone3", libc::SYS_clone3, [CLONE_ARGS.as_ptr() as usize, 88, 0, 0, 0, 0]),
        ("socket-vsock", libc::SYS_socket, socket(libc::AF_VSOCK, stream, 0)),
        ("socket-packet", libc::SYS_socket, socket(libc::AF_PACKET, raw, 0)),
        ("socket-alg", libc::SYS_socket, socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0)),
        ("socket-audit", libc::SYS_socket, socket(libc::AF_NETLINK, raw, libc::NETLINK_AUDIT)),
        ("socket-route", libc::SYS_socket, socket(libc::AF_NETLINK, raw, libc::NETLINK_ROUTE)),
        ("socket-inet", libc::SYS_socket, socket(libc::AF_INET, stream, 0)),
        ("socket-unix", libc::SYS_socket, socket(libc::AF_UNIX, stream, 0)),
        ("tiocsti", libc::SYS_ioctl, ioctl(libc::TIOCSTI as usize)),
        ("tiocsti-high-bits", libc::SYS_ioctl, ioctl(libc::TIOCSTI as usize | high)),
        ("tioclinux", libc::SYS_ioctl, ioctl(libc::TIOCLINUX as usize)),
        ("prlimit-self", libc::SYS_prlimit64, limits(0)),
        ("prlimit-init", libc::SYS_prlimit64, limits(1)),
        ("personality-ask", libc::SYS_personality, [0xffff_ffff, 0, 0, 0, 0, 0]),
        (
            "personality-set",
            libc::SYS_personality,
            [libc::ADDR_NO_RANDOMIZE as usize, 0, 0, 0, 0, 0],
        ),
        (
            "mknod-device",
            libc::SYS_mknodat,
            [here, device, (libc::S_IFCHR | 0o666) as usize, 0x0103, 0, 0],
        ),
    ]
}

/// Enters the kernel as a 32-bit program would. Number 20 is getpid there.
#[cfg(target_arch = "x86_64")]
fn call_as_i386() -> i32 {
    let result: i32;
    // SAFETY: getpid takes no arguments and touches no memory.
    unsafe { core::arch::asm!("int 0x80", inlateout("eax") 20 => result) };
    result
}

fn main() {
    #[cfg(target_arch = "x86_64")]
    if std::env::args().nth(1).is_some_and(|mode| mode == "i386") {
        println!("i386 {}", call_as_i386());
        return;
    }
    for (name, number) in OUTRIGHT {
        call(name, *number, [0; 6]);
    }
    for (name, number, args) in by_argument() {
        call(name, number, args);
    }
}
