//! Limits of the fake and of the conformance suite.

/// All file contents of one fake sandbox together.
pub(crate) const FAKE_DISK_BYTES_MAX: usize = 256 << 20;
/// From the start of a conformance case until it counts as hanging. No case may come
/// near it by being slow: the longest takes forty snapshots, of many requests to a daemon
/// each, beside others' work.
pub(crate) const CASE_MS_MAX: u64 = 900_000;
/// Conformance cases that run at once; most of them wait.
pub(crate) const CASES_AT_ONCE: usize = 4;
/// What goes through a connection in each direction, many windows of it.
pub(crate) const NETWORK_BYTES: usize = 3 << 20;
/// What is shown of a value that is not as it must be.
pub(crate) const SHOWN_CHARS_MAX: usize = 300;
