//! How much CPU a sandbox may use.
//!
//! Owns the arithmetic, for every backend whose kernel measures CPU out in periods. Reads
//! and writes nothing itself.

use crate::{CreateSpec, limits};

/// CPU that a sandbox may use: so many microseconds of each period of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuQuota {
    /// In microseconds.
    pub quota_us: u64,
    /// In microseconds. Short: many processes use up a share at once, on all processors,
    /// and whoever else wakes up then waits for them.
    pub period_us: u64,
}

impl CpuQuota {
    /// What a sandbox may use of all cores.
    #[must_use]
    pub fn of(spec: &CreateSpec) -> Self {
        let millis = u64::from(spec.cpu_millis_max).max(1);
        let period_us = (limits::CPU_QUOTA_US_MIN * 1_000)
            .div_ceil(millis)
            .clamp(limits::CPU_PERIOD_US, limits::CPU_PERIOD_US_MAX);
        Self { quota_us: millis * period_us / 1_000, period_us }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact_and_what_the_kernel_takes() {
        let quota = |cpu_millis_max| {
            let quota = CpuQuota::of(&CreateSpec { cpu_millis_max, ..CreateSpec::default() });
            (quota.quota_us, quota.period_us)
        };
        assert_eq!(quota(1_000), (10_000, 10_000));
        assert_eq!(quota(2_500), (25_000, 10_000));
        assert_eq!(quota(100), (1_000, 10_000));
        assert_eq!(quota(50), (1_000, 20_000));
        assert_eq!(quota(1), (1_000, 1_000_000));
        assert!((0..2_000).map(quota).all(|(quota, period)| quota >= 1_000 && period <= 1_000_000));
    }
}
