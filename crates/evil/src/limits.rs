//! Limits of what the program takes while it looks and waits, with their units.

/// How long slow requests wait to be ended.
pub(crate) const SLOW_SECONDS_MAX: u64 = 40;
/// How long an answer about a name is waited for.
pub(crate) const NAMES_MS_MAX: u64 = 2_000;
/// Files that a hunt looks into.
pub(crate) const FILES_MAX: usize = 20_000;
/// Bytes of each.
pub(crate) const FILE_BYTES_MAX: u64 = 4 << 20;
/// Bytes of one mapping of another process.
pub(crate) const MAPPING_BYTES_MAX: u64 = 16 << 20;
