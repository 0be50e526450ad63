//! What the kernel is told of the CPU of a sandbox.
//!
//! Owns the files in which it is said. What is said is [`outrigger_sandbox::cpu`]'s.

use std::io;
use std::path::Path;

use outrigger_sandbox::cpu::CpuQuota;

use super::file::put;

/// How a version says how much CPU a group gets: all that a version differs in here.
#[derive(Debug, Clone, Copy)]
pub(super) enum Version {
    /// `cpu.max`, see the kernel's admin-guide/cgroup-v2.rst.
    Unified,
    /// `cpu.cfs_quota_us`, see the kernel's scheduler/sched-bwc.rst.
    Legacy,
}

impl Version {
    /// Sets the share of a group.
    pub(super) fn limit(self, dir: &Path, quota: CpuQuota) -> io::Result<()> {
        let CpuQuota { quota_us, period_us } = quota;
        match self {
            Self::Unified => put(&dir.join("cpu.max"), &format!("{quota_us} {period_us}")),
            Self::Legacy => {
                put(&dir.join("cpu.cfs_period_us"), &period_us.to_string())?;
                put(&dir.join("cpu.cfs_quota_us"), &quota_us.to_string())
            }
        }
    }

    /// The file in which the kernel counts kills for memory.
    pub(super) fn memory_events(self) -> &'static str {
        match self {
            Self::Unified => "memory.events",
            Self::Legacy => "memory.oom_control",
        }
    }

    /// Gives a group hundredths of the usual weight. What is refused stays as it was: it
    /// was no limit.
    pub(super) fn weigh(self, dir: &Path, percent: u64) {
        let (file, usual) = match self {
            Self::Unified => ("cpu.weight", 100),
            Self::Legacy => ("cpu.shares", 1_024),
        };
        let _ = put(&dir.join(file), &(usual * percent / 100).to_string());
    }
}
