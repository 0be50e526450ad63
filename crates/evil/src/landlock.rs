//! What Landlock (landlock(7)) refuses where nothing else would, and ways round it.
//!
//! Owns the attempts and the raw calls. On a kernel without a Landlock that a sandbox
//! could use those that get round it say `none`: there is nothing to get round then.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;

use crate::report::Report;
use crate::sys::{call, name, outcome_of};
use crate::whiteout::make;

/// `LANDLOCK_CREATE_RULESET_VERSION`, `LANDLOCK_RULE_PATH_BENEATH` of linux/landlock.h.
const VERSION: usize = 1;
const PATH_BENEATH: usize = 1;
/// The first version that lets files be moved between directories.
const USED_SINCE: usize = 2;
/// The rights that it has.
const RIGHTS: u64 = (1 << 14) - 1;
/// `LANDLOCK_ACCESS_FS_MAKE_BLOCK`.
const MAKE_BLOCK: u64 = 1 << 11;
/// Domains that the kernel puts around one process (`LANDLOCK_MAX_NUM_LAYERS`).
const DOMAINS: usize = 16;

fn is_there() -> bool {
    let version = call(libc::SYS_landlock_create_ruleset, &[0, 0, VERSION]);
    version.is_ok_and(|version| version >= USED_SINCE)
}

/// Puts a domain of its own around this process, which refuses what of `handled` is not
/// allowed beneath the root.
fn enter(handled: u64, allowed: u64) -> Result<usize, i32> {
    let attributes = [handled, 0, 0];
    let at = attributes.as_ptr() as usize;
    let rules = call(libc::SYS_landlock_create_ruleset, &[at, size_of::<u64>(), 0])?;
    if allowed != 0 {
        let root = File::open("/").map_err(|error| error.raw_os_error().unwrap_or(0))?;
        // landlock_path_beneath_attr: 8 bytes of rights, then 4 of a descriptor.
        let rule = [allowed, u64::from(root.as_raw_fd().unsigned_abs())];
        let rule = rule.as_ptr() as usize;
        call(libc::SYS_landlock_add_rule, &[rules, PATH_BENEATH, rule, 0])?;
    }
    let entered = call(libc::SYS_landlock_restrict_self, &[rules, 0]);
    let _ = call(libc::SYS_close, &[rules]);
    entered
}

/// Tries what only Landlock refuses, and the ways round it.
pub(crate) fn landlock(report: &Report) {
    let attempt = |probe: &str, attempt: &dyn Fn() -> String| {
        report.attempt(&format!("landlock/{probe}"), || {
            if is_there() { attempt() } else { "none".to_owned() }
        });
    };
    // The domains of this process are not told of, but there is room for so many.
    attempt("domain", &|| {
        let mut own = 0;
        loop {
            match enter(MAKE_BLOCK, 0) {
                Ok(_) => own += 1,
                Err(libc::E2BIG) if own < DOMAINS => return "confined".to_owned(),
                Err(libc::E2BIG) => return "free".to_owned(),
                Err(error) => return name(error),
            }
        }
    });
    // One that allows everything within one that does not.
    attempt("node-widened", &|| match enter(RIGHTS, RIGHTS) {
        Ok(_) => make(".", "node-widened"),
        Err(error) => name(error),
    });
    for place in ["", "/dev", "/dev/pts", "/proc", "/proc/self", "/sys", "/usr", "/etc", "/var"] {
        let path = format!("{place}/outrigger-was-here");
        let shown = if place.is_empty() { "/" } else { place };
        report.attempt(&format!("landlock/make{shown}"), || {
            outcome_of(OpenOptions::new().write(true).create_new(true).open(&path))
        });
    }
}
