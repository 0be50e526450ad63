//! Limits of a connection to a guest, beside those of [`outrigger_sandbox::limits`].

/// From a new connection to a guest until its greeting.
pub const HELLO_MS_MAX: u64 = 10_000;
/// What a guest has to answer beyond the time that the request itself may take.
/// After it the life of the sandbox counts as lost.
pub const GUEST_SLACK_MS: u64 = 30_000;
/// Frames that wait for a guest to read them.
pub const GUEST_INBOX_FRAMES_MAX: usize = 64;
/// Questions of one guest that are read without the runtime before other tasks have their turn.
pub const SPINS_IN_A_ROW_MAX: u32 = 32;
/// What a guest may send of a carried connection before it is given more room: a read of its
/// own may pass the window.
pub const RELAY_INBOX_BYTES_MAX: usize =
    outrigger_sandbox::limits::RELAY_WINDOW_BYTES + outrigger_sandbox::limits::RELAY_PIECE_BYTES;
