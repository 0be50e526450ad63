//! Filters of system calls (seccomp(2)), for processes that read what hostile sides write.
//!
//! Owns what none of them does, and how a filter is made of rules. Which ones stand is for each
//! process.

use std::collections::BTreeMap;
use std::io;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

#[cfg(target_arch = "x86_64")]
const ARCH: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCH: TargetArch = TargetArch::aarch64;

/// What neither the gate nor the harness does, and somebody else's code in them would: other
/// programs, the memory of other processes, and what reaches deep into the kernel.
pub const NEVER: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_open_by_handle_at,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_fanotify_init,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
];

/// A rule about the first argument.
///
/// # Errors
/// If it can't be one.
pub fn when(operator: Op, value: u64) -> io::Result<SeccompRule> {
    let condition = SeccompCondition::new(0, Len::Dword, operator, value);
    condition.and_then(|condition| SeccompRule::new(vec![condition])).map_err(io::Error::other)
}

/// Has a filter stand for this thread and all that it starts. `otherwise`: what is done about a
/// call without a rule, `then` about one that meets one of its rules, or has none in its list.
///
/// # Errors
/// If the kernel takes no filter.
pub fn install(
    rules: BTreeMap<c_long, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    then: SeccompAction,
) -> io::Result<()> {
    let filter = SeccompFilter::new(rules, otherwise, then, ARCH).map_err(io::Error::other)?;
    let program: BpfProgram = filter.try_into().map_err(io::Error::other)?;
    apply_filter(&program).map_err(io::Error::other)
}
