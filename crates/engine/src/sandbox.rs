//! The life of a session's sandboxes, but for what makes them, which is an effect.

pub(crate) mod attach;
pub(crate) mod config;
mod freeze;
mod gc;
pub(crate) mod handle;
mod reattach;
pub(crate) mod snapshot;
mod suspend;

pub use config::{Owner, RetentionPolicy, SandboxConfig, SnapshotPolicy};
pub use gc::GcReport;
pub use reattach::ReattachedSandbox;
