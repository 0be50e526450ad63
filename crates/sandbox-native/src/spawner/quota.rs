//! What a sandbox may use of the host, and which ids it has there.

pub(crate) mod amount;
pub(crate) mod cgroup;
pub(crate) mod disk_usage;
pub(crate) mod ids;
pub(crate) mod quota_state;
pub(crate) mod subordinate;
