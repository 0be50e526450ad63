//! Every limit of the client, with its unit in its name.

/// Of an answer that is read whole.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Of an archive of changes.
pub const ARCHIVE_BYTES_MAX: usize = 300 << 20;
/// Of one frame of a stream.
pub const FRAME_BYTES_MAX: usize = 32 << 20;
/// Until a server answers that there is a connection.
pub const CONNECT_MS_MAX: u64 = 10_000;
/// Without a byte of an answer: to open a session may take as long, where an image is pulled.
pub const SILENCE_MS_MAX: u64 = 600_000;
/// How often it is looked whether the other side of a silent connection is there.
pub const KEEP_ALIVE_MS: u64 = 15_000;
/// Bytes of an archive that are compressed and sent at once.
pub const PIECE_BYTES: usize = 256 << 10;
