//! How much is on the disks of living sandboxes.

/// What is known of a disk.
#[derive(Debug, Default)]
pub(super) struct Usage {
    _surveys: u32,
}
