//! The life of a session's sandboxes, but for what makes them, which is an effect.

pub(crate) mod attach;
pub(crate) mod config;
pub(crate) mod freeze;
mod gc;
pub(crate) mod handle;
mod reattach;
pub(crate) mod snapshot;
pub(crate) mod suspend;

pub use config::{RetentionPolicy, SandboxConfig, SandboxOwner, SnapshotPolicy};
pub use gc::{GcReport, gc, gc_dry_run};
pub use handle::sandbox_id;
pub use reattach::{ReattachedSandbox, reattach};
pub use suspend::{discard, suspend};
