//! The system calls of the gate.
//!
//! Owns two filters. The first ends the process at calls that only somebody else's code in it
//! would make. The second is a list of what the gate, the runtime and glibc's resolver use,
//! and answers everything else as a kernel that lacks the call would, so that libraries fall
//! back.

use std::collections::BTreeMap;
use std::io;

use libc::c_long;
use seccompiler::{SeccompAction, SeccompCmpOp as Op, SeccompRule};

use crate::seccomp::{NEVER, install, when};

/// What the gate does.
const ALLOWED: &[c_long] = &[
    // Bytes.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_pipe2,
    // Sockets. `socket` is looked at below.
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept4,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_shutdown,
    // Waiting.
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_ppoll,
    libc::SYS_eventfd2,
    libc::SYS_futex,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_sched_yield,
    libc::SYS_restart_syscall,
    // Memory.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_getrandom,
    libc::SYS_membarrier,
    // Threads. `clone` is looked at below; `clone3`, whose flags can't be, is unknown.
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_prctl,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Files: authorities, and what names are resolved by.
    libc::SYS_openat,
    libc::SYS_newfstatat,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_renameat,
    libc::SYS_flock,
    // Itself.
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_prlimit64,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
];

/// What only this architecture has, from before calls took a directory.
#[cfg(target_arch = "x86_64")]
const ALLOWED_HERE: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_poll,
    libc::SYS_epoll_wait,
    libc::SYS_time,
    libc::SYS_dup2,
    libc::SYS_unlink,
    libc::SYS_rename,
];
#[cfg(target_arch = "aarch64")]
const ALLOWED_HERE: &[c_long] = &[];

/// What sockets are made for: the outside, the resolver's daemons, and the addresses of this
/// host, by which glibc sorts what a name leads to.
const FAMILIES: [i32; 4] = [libc::AF_INET, libc::AF_INET6, libc::AF_UNIX, libc::AF_NETLINK];

/// Threads of this process, and nothing else that clone(2) makes.
const THREAD: u64 = (libc::CLONE_THREAD | libc::CLONE_VM).unsigned_abs() as u64;

/// Stands from here on.
pub(super) fn filter() -> io::Result<()> {
    let fatal = NEVER.iter().map(|call| (*call, Vec::new())).collect();
    install(fatal, SeccompAction::Allow, SeccompAction::KillProcess)?;
    let mut allowed: BTreeMap<c_long, Vec<SeccompRule>> =
        ALLOWED.iter().chain(ALLOWED_HERE).map(|call| (*call, Vec::new())).collect();
    let families = FAMILIES.iter().map(|family| when(Op::Eq, u64::from(family.unsigned_abs())));
    allowed.insert(libc::SYS_socket, families.collect::<io::Result<_>>()?);
    allowed.insert(libc::SYS_clone, vec![when(Op::MaskedEq(THREAD), THREAD)?]);
    // The first filter sees all calls, so that these two are consistent.
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    install(allowed, unknown, SeccompAction::Allow)
}
