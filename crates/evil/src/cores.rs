//! The limit of core dumps: what it is, and attempts to change it.
//!
//! Owns the spellings of the calls. By a limit that is not exactly one byte the kernel would
//! start the program that the host has cores handed to.

use crate::report::Report;
use crate::sys::{call, outcome};

const CORE: usize = libc::RLIMIT_CORE as usize;
/// Set in the upper half of a register, where the kernel does not look.
const HIGH: usize = 1 << 40;

fn at<T>(value: &T) -> usize {
    std::ptr::from_ref(value) as usize
}

/// Both limits, as the kernel tells them.
fn limit() -> String {
    let mut limit = [0_u64; 2];
    let asked = call(libc::SYS_prlimit64, &[0, CORE, 0, limit.as_mut_ptr() as usize]);
    asked.map_or_else(|error| outcome(Err(error)), |_| format!("{} {}", limit[0], limit[1]))
}

/// Says the limit after each attempt to change it.
pub(crate) fn cores(report: &Report) {
    report.attempt("core/limit", limit);
    let held = [0_u64; 2];
    for (name, wanted) in [("lower", [0_u64, 1]), ("give-up", [0, 0]), ("raise", [u64::MAX; 2])] {
        let (to, from) = (at(&wanted), at(&held));
        let ways: &[(&str, libc::c_long, &[usize])] = &[
            ("prlimit64", libc::SYS_prlimit64, &[0, CORE, to, 0]),
            ("prlimit64-and-ask", libc::SYS_prlimit64, &[0, CORE, to, from]),
            ("prlimit64-high-bits", libc::SYS_prlimit64, &[HIGH, CORE | HIGH, to, 0]),
            #[cfg(target_arch = "x86_64")]
            ("setrlimit", libc::SYS_setrlimit, &[CORE, to]),
            #[cfg(target_arch = "x86_64")]
            ("setrlimit-high-bits", libc::SYS_setrlimit, &[CORE | HIGH, to]),
        ];
        for (way, number, args) in ways {
            report.attempt(&format!("core/{name}-{way}"), || {
                let _ = call(*number, args);
                limit()
            });
        }
    }
}
