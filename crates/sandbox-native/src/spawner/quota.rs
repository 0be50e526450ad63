//! What a sandbox may use of the host, and which ids it has there.

pub(crate) mod cgroup;
pub(crate) mod disk_usage;
pub(crate) mod ids;
pub(crate) mod subordinate;
