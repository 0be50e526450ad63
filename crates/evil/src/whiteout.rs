//! Whiteouts: what hides a file of the layers below, and no other device may be.

use std::ffi::CString;
use std::fs::File;

use crate::report::Report;
use crate::sys::{call, outcome, outcome_of};

/// Places where commands write.
const PLACES: [&str; 5] = ["/workspace", "/tmp", "/home/agent", "/var/tmp", "/dev/shm"];

/// A whiteout, which is the one device that an ordinary user may make (since Linux 5.8).
pub(crate) fn make(place: &str, name: &str) -> String {
    let path = CString::new(format!("{place}/{name}")).expect("no NUL in it");
    let args = [libc::AT_FDCWD as usize, path.as_ptr() as usize];
    let mode = (libc::S_IFCHR | 0o666) as usize;
    outcome(call(libc::SYS_mknodat, &[&args[..], &[mode, 0]].concat()))
}

/// The whiteout that a move can leave behind.
fn left_behind(place: &str) -> String {
    let named = |name: &str| CString::new(format!("{place}/{name}")).expect("no NUL in it");
    let (from, to) = (named("left"), named("moved"));
    let made = File::create(format!("{place}/left"));
    if made.is_err() {
        return outcome_of(made);
    }
    let here = libc::AT_FDCWD as usize;
    let (from, to) = (from.as_ptr() as usize, to.as_ptr() as usize);
    let flags = libc::RENAME_WHITEOUT as usize;
    outcome(call(libc::SYS_renameat2, &[here, from, here, to, flags]))
}

/// Tries to make whiteouts and other devices, and to leave them for a later layer.
pub(crate) fn whiteouts(report: &Report) {
    for place in PLACES {
        report.attempt(&format!("whiteout/made{place}"), || make(place, "whiteout"));
        report.attempt(&format!("whiteout/left{place}"), || left_behind(place));
    }
}
