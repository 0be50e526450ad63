//! What outlives a guest that was in no namespace.
//!
//! Owns that it ends too. A namespace ends with its process 1 and a group of cgroups can be
//! killed; where there is neither, what commands left running becomes the spawner's when its
//! guest is gone. The spawner's own children are told apart by a limit that commands were
//! given and can't raise.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Signal, WaitOptions, kill_process, waitpid};

use crate::limits;

/// Has processes whose guest is gone become this one's.
pub(super) fn adopt() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Ends all there are, as far as that goes in a time.
pub(super) fn end() {
    let until = Instant::now() + Duration::from_millis(limits::KILL_MS_MAX);
    // Who was stopped has no more children. Each that ends gives its own to this process.
    loop {
        let found = strays();
        if found.is_empty() || Instant::now() >= until {
            return;
        }
        for signal in [Signal::STOP, Signal::KILL] {
            for pid in &found {
                let _ = kill_process(*pid, signal);
            }
        }
        for pid in found {
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

fn strays() -> Vec<Pid> {
    let own = rustix::process::getpid();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries
        .flatten()
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter(|pid| parent(*pid) == Some(own) && is_marked(*pid)).collect()
}

/// From proc_pid_stat(5). Its second field is a name that the process gave itself.
fn parent(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let rest = &stat[stat.rfind(')')? + 1..];
    Pid::from_raw(rest.split_ascii_whitespace().nth(1)?.parse().ok()?)
}

/// Whether it has the mark of a command: no room for message queues (`child.rs` of the
/// guest). Where this process has none either it can't be told.
fn is_marked(pid: Pid) -> bool {
    let own = rustix::process::getrlimit(Resource::Msgqueue);
    let found = fs::read_to_string(format!("/proc/{}/limits", pid.as_raw_nonzero()));
    let marked = |limits: &str| {
        limits.lines().any(|line| {
            let most = line.strip_prefix("Max msgqueue size");
            most.is_some_and(|most| most.split_ascii_whitespace().nth(1) == Some("0"))
        })
    };
    own.maximum != Some(0) && found.is_ok_and(|limits| marked(&limits))
}
