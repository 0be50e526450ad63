//! Limits of the contract.

/// Sessions that a page of a list has at most.
pub const PAGE_SESSIONS_MAX: u32 = 200;
/// Sessions that a page of a list has where nobody says how many.
pub const PAGE_SESSIONS_DEFAULT: u32 = 50;
/// Seconds that a long poll waits at most for an event.
pub const WAIT_SECONDS_MAX: u32 = 30;
/// Bytes of a patch that an answer shows; the whole is a file of its own.
pub const PATCH_BYTES_MAX: usize = 2 << 20;
