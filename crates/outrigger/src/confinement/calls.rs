//! The system calls of the harness.
//!
//! Owns a filter (seccomp(2)) that refuses what only somebody else's code in it would make:
//! sockets but unix sockets, other programs, other processes' memory, and what reaches deep into
//! the kernel. Everything else it may, since libraries and kernels to come make others.

use rustix::io::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;
use std::io;

#[cfg(target_arch = "x86_64")]
const ARCH: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCH: TargetArch = TargetArch::aarch64;

/// What nothing in the harness does.
const REFUSED: &[i64] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_open_by_handle_at,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_fanotify_init,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
];

/// With this bit the kernel takes a number for a call of its x32 ABI, which does the same.
#[cfg(target_arch = "x86_64")]
const ABIS: &[i64] = &[0, 0x4000_0000];
#[cfg(target_arch = "aarch64")]
const ABIS: &[i64] = &[0];

/// Stands from here on.
pub(super) fn filter() -> io::Result<()> {
    let unix = u64::from(libc::AF_UNIX.unsigned_abs());
    let other = SeccompCondition::new(0, Len::Dword, Op::Ne, unix);
    let other = other.and_then(|other| SeccompRule::new(vec![other])).map_err(io::Error::other)?;
    let mut rules = BTreeMap::new();
    for abi in ABIS {
        rules.extend(REFUSED.iter().map(|call| (call | abi, Vec::new())));
        rules.insert(libc::SYS_socket | abi, vec![other.clone()]);
    }
    let refused = SeccompAction::Errno(Errno::PERM.raw_os_error().unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, ARCH);
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(io::Error::other)?;
    apply_filter(&program).map_err(io::Error::other)
}
