//! The system calls of the harness.
//!
//! Owns a filter (seccomp(2)) that refuses sockets but unix sockets, and what only somebody
//! else's code in it would do. Everything else it may, since libraries and kernels to come make
//! other calls.

use outrigger_gate::seccomp::{NEVER, install, when};
use rustix::io::Errno;
use seccompiler::{SeccompAction, SeccompCmpOp as Op};
use std::collections::BTreeMap;
use std::io;

/// With this bit the kernel takes a number for a call of its x32 ABI, which does the same.
#[cfg(target_arch = "x86_64")]
const ABIS: &[libc::c_long] = &[0, 0x4000_0000];
#[cfg(target_arch = "aarch64")]
const ABIS: &[libc::c_long] = &[0];

/// Stands from here on.
pub(super) fn filter() -> io::Result<()> {
    let unix = u64::from(libc::AF_UNIX.unsigned_abs());
    let mut rules = BTreeMap::new();
    for abi in ABIS {
        rules.extend(NEVER.iter().map(|call| (call | abi, Vec::new())));
        rules.insert(libc::SYS_socket | abi, vec![when(Op::Ne, unix)?]);
    }
    let refused = SeccompAction::Errno(Errno::PERM.raw_os_error().unsigned_abs());
    install(rules, SeccompAction::Allow, refused)
}
